"""Polls. Readers learn the numbers after voting, after the end, or as the sender."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from items import bodies
from items.bodies import ItemBody, Option
from items.models import Item, ItemType, Poll, Vote
from items.signals import poll_ended
from items.text import POLL_FIELD, ContentError, check_poll, poll_end
from storage.connections import fetch, id_array
from web.refusals import ConflictError, RefusalError

SHORTEST, LONGEST = timedelta(minutes=5), timedelta(days=30)
SLACK = timedelta(minutes=1)
"""Allowed beyond `SHORTEST` and `LONGEST` for the way to the server and for clocks that differ."""
TOLD_AT_ONCE = 1_000
"""Voters who are told in one transaction."""
ENDED_AT_ONCE = 100
"""Polls that one run of the periodic task ends."""

OF_ITEMS = """
    SELECT p.item_id, p.closes_at, p.closes_at <= now(), p.votes, p.voters, v.choices
    FROM items_poll p LEFT JOIN items_vote v ON v.item_id = p.item_id AND v.user_id = %(reader)s
    WHERE p.item_id = ANY(%(items)s::bigint[])
"""
TAKE_BACK = """
    DELETE FROM items_vote WHERE user_id = %(user)s AND item_id = ANY(%(items)s::bigint[]) RETURNING item_id, choices
"""


class VotedError(ConflictError):
    """The user has voted in this poll."""

    sentence = "You already voted in this poll."


class PollEndedError(ConflictError):
    """Voting has ended."""

    sentence = "This poll has ended."


class OwnPollError(RefusalError):
    """Nobody votes in a poll of their own."""

    status = HTTPStatus.FORBIDDEN
    sentence = "You can't vote in your own poll."


class PollFixedError(ConflictError):
    """Someone has voted, so the poll can't be changed."""

    sentence = "Someone has voted or the poll has ended, so it can't be changed."


class ChoiceError(RefusalError, ValueError):
    """The choices do not fit. The message is for people."""

    field = "choices"


class AnswersChangedError(ChoiceError):
    """The poll no longer has an answer that was chosen: it was edited meanwhile."""


class PollTally(NamedTuple):
    """The tally of a poll: a row of `OF_ITEMS`."""

    item_id: int
    closes_at: datetime
    is_closed: bool
    votes: list[int]
    voters: int
    choices: list[int] | None


# --- The content -----------------------------------------------------------------------------------------
def with_end_time(item_type: str, content: dict[str, Any]) -> dict[str, Any]:
    """A new item's content with its poll's end as a time. Raises ContentError."""
    if item_type != ItemType.POLL:
        return content
    closes_at, now = poll_end(content["poll"]), timezone.now()
    if not now + SHORTEST - SLACK <= closes_at <= now + LONGEST + SLACK:
        raise ContentError(_("A poll can last from 5 minutes to 30 days."), POLL_FIELD)
    return content | {"poll": _stored_poll(content["poll"], closes_at)}


def _stored_poll(poll: Mapping[str, Any], closes_at: datetime) -> dict[str, Any]:
    options = [text.strip() for text in poll["options"]]
    return {"options": options, "multiple": poll.get("multiple", False), "closes_at": closes_at.isoformat()}


# --- Writing ---------------------------------------------------------------------------------------------
def create_tally(item: Item) -> None:
    """Write the tally of a new item if it is a poll."""
    if item.type != ItemType.POLL:
        return
    poll = item.content["poll"]
    Poll.objects.create(item=item, closes_at=poll_end(poll), votes=[0] * len(poll["options"]))


def edited_content(item: Item, content: dict[str, Any]) -> dict[str, Any]:
    """An edit's content, with the old poll if it has none. Raises ContentError, and PollFixedError after the first
    vote.
    """
    if item.type != ItemType.POLL:
        return content
    before = item.content.get("poll")
    if "poll" not in content or before is None:
        return content | {"poll": before}
    check_poll(item.type, content)
    if _stored_poll(content["poll"], poll_end(content["poll"])) == before:
        return content | {"poll": before}
    content = with_end_time(item.type, content)
    poll = Poll.objects.select_for_update().get(pk=item.pk)
    if poll.voters or poll.closes_at <= timezone.now():
        raise PollFixedError
    poll.closes_at, poll.votes = poll_end(content["poll"]), [0] * len(content["poll"]["options"])
    poll.save(update_fields=["closes_at", "votes"])
    return content


@transaction.atomic
def vote(*, user: User, item: Item, choices: Sequence[int | str], may_add: bool = False) -> None:
    """Vote in the poll of an item, or of a repost's original: once, for good. `may_add`: also for further answers, if
    the poll allows several.

    `choices` are answers by place or by text; after an edit a text finds its own answer. Raises AnswersChangedError,
    ChoiceError, OwnPollError, PollEndedError, VotedError.
    """
    item = item.repost_of or item
    asked = item.content.get("poll")
    poll = Poll.objects.select_for_update().filter(pk=item.pk).first() if asked else None
    if poll is None:
        raise ChoiceError("This post has no poll.")
    if item.sender_id == user.pk:
        raise OwnPollError
    # Edits wait for the lock: read the options again.
    asked = Item.objects.values_list("content", flat=True).get(pk=item.pk)["poll"]
    places = [_option_index(one, asked["options"]) for one in choices]
    if not places or len(set(places)) < len(places):
        raise ChoiceError("Choose answers of this poll, each at most once.")
    if len(places) > 1 and not asked["multiple"]:
        raise ChoiceError("Choose only one answer in this poll.")
    before = Vote.objects.filter(item=item, user=user).first()
    if before and (not may_add or not asked["multiple"] or set(places) & set(before.choices)):
        raise VotedError
    if poll.closes_at <= timezone.now():
        raise PollEndedError
    chosen = sorted([*places, *(before.choices if before else ())])
    Vote.objects.update_or_create(item=item, user=user, defaults={"choices": chosen})
    poll.votes = [count + (place in places) for place, count in enumerate(poll.votes)]
    poll.voters += before is None
    poll.save(update_fields=["votes", "voters"])


@transaction.atomic
def withdraw_votes(*, user_id: int, limit: int) -> int:
    """Take up to `limit` votes of a deleted account out of the tallies. Returns how many."""
    item_ids = list(Vote.objects.filter(user=user_id).order_by("item_id").values_list("item_id", flat=True)[:limit])
    tallied = Poll.objects.select_for_update().filter(pk__in=item_ids).order_by("pk").in_bulk() if item_ids else {}
    gone = fetch(TAKE_BACK, {"user": user_id, "items": id_array(item_ids)}) if item_ids else []
    for item_id, choices in gone:
        if poll := tallied.get(item_id):
            poll.votes = [count - (place in choices) for place, count in enumerate(poll.votes)]
            poll.voters -= 1
    Poll.objects.bulk_update(tallied.values(), ["votes", "voters"])
    return len(gone)


def _option_index(choice: int | str, options: Sequence[str]) -> int:
    if isinstance(choice, str):
        if choice not in options:
            raise AnswersChangedError("This poll has no such answer.")
        return options.index(choice)
    if not 0 <= choice < len(options):
        raise ChoiceError("Choose answers of this poll.")
    return choice


# --- The end ---------------------------------------------------------------------------------------------
def end_polls() -> int:
    """Tell of polls that ended. Returns how many."""
    count = 0
    while count < ENDED_AT_ONCE and _end_next():
        count += 1
    return count


def _end_next() -> bool:
    while True:
        with transaction.atomic():
            due = Poll.objects.filter(is_told=False, closes_at__lte=timezone.now()).order_by("closes_at")
            poll = due.select_for_update(skip_locked=True).first()
            if poll is None:
                return False
            item = Item.objects.published().select_related("sender").filter(pk=poll.pk).first()
            votes = Vote.objects.filter(item=poll.pk, user__gt=poll.told_to).order_by("user_id")
            voters = list(votes.values_list("user_id", flat=True)[:TOLD_AT_ONCE]) if item else []
            if item:
                told = voters if poll.told_to else [item.sender_id, *voters]
                poll_ended.send(sender=Item, item=item, user_ids=told)
            poll.is_told = len(voters) < TOLD_AT_ONCE
            poll.told_to = voters[-1] if voters else poll.told_to
            poll.save(update_fields=["is_told", "told_to"])
        if poll.is_told:
            return True


# --- Reading ---------------------------------------------------------------------------------------------
def tallies(item_ids: Iterable[int], reader_id: int | None) -> dict[int, PollTally]:
    """The tallies of polls with the reader's choices, by item."""
    asked = list(item_ids)
    params = {"items": id_array(asked), "reader": reader_id or 0}
    rows: list[tuple[Any, ...]] = fetch(OF_ITEMS, params) if asked else []
    return {row[0]: PollTally._make(row) for row in rows}


def attach_polls(items: Sequence[ItemBody], reader_id: int | None) -> None:
    """Put the polls into the items, which all have one."""
    found = tallies({int(item.id) for item in items}, reader_id)
    for item in items:
        item.poll = poll_of(item, found[int(item.id)], is_own=int(item.sender.id) == reader_id)


def poll_of(item: ItemBody, tally: PollTally, *, is_own: bool) -> bodies.Poll | None:
    """The poll of an item as its reader gets it. None if purged."""
    poll = item.content_fields.get("poll")
    if poll is None:
        return None
    texts, is_told = poll["options"], is_own or tally.is_closed or tally.choices is not None
    # An edit in between may have changed the number of answers. Nobody has voted then.
    votes = tally.votes if len(tally.votes) == len(texts) else [0] * len(texts)
    options = [Option(text, count if is_told else None) for text, count in zip(texts, votes, strict=True)]
    return bodies.Poll(options, poll["multiple"], tally.closes_at, tally.is_closed, tally.voters, tally.choices)
