"""Scheduled posts: written now, published at a time by a periodic task.

A row holds the arguments of `items.actions.publish`. One transaction locks the row, publishes and deletes it.
"""

import contextlib
import logging
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.about.site import current
from accounts.models import RepliableBy, User
from items import actions
from items.attachments import attachments
from items.attachments.attachments import UnfinishedError
from items.conversations.recipients import StrangersError
from items.idempotency import IdempotencyConflictError
from items.models import Failure, Item, ItemType, ScheduledPost, Status, Visibility
from items.quotes import NotQuotableError, check_quote
from items.signals import scheduled_ended
from items.text import ContentError, check_content, media_ids, mentions
from items.threads.replying import NotRepliableError, check_choice, check_reply
from media import attaching
from media.models import MediaFile, MediaState
from media.objects import OwnMedium, own_medium
from media.offering import reports_blocked_media
from storage.queue import task
from web.refusals import ConflictError, RefusalError

logger = logging.getLogger(__name__)

LEAD = timedelta(minutes=5)
"""The soonest time, from now."""
FARTHEST = timedelta(days=366)
"""The latest time, from now."""
MOST = 100
"""Scheduled posts that a user may have, failed ones too."""
BATCH = 100
"""Posts that one run of the task publishes."""


REFUSALS = {
    StrangersError: Failure.STRANGERS,
    NotQuotableError: Failure.QUOTE_GONE,
    NotRepliableError: Failure.REPLY_CLOSED,
    ContentError: Failure.REFUSED,
}
"""What a refusal at its time means to the sender, the narrower before the wider."""


class ScheduledCapError(ConflictError):
    """The user would schedule more than `MOST` posts."""


class PublishTimeError(RefusalError, ValueError):
    """The time is wrong. The message is for people."""

    field = "publish_at"


# --- Verbs -----------------------------------------------------------------------------------------------
def publish_or_wait(*, sender: User, idempotency_key: str = "", **post: Any) -> Item | ScheduledPost:
    """Publish an item, or schedule it for when its video is ready. Raises what `publish` and `schedule` do."""
    may_be_repeated = bool(idempotency_key) and post.get("type") == ItemType.VIDEO
    waiting = {"sender": sender, "key": idempotency_key, "publish_at": None}
    if not (may_be_repeated and ScheduledPost.objects.filter(**waiting).exists()):
        with contextlib.suppress(UnfinishedError):
            return actions.publish(sender=sender, idempotency_key=idempotency_key, **post)
    return schedule(sender=sender, publish_at=None, idempotency_key=idempotency_key, **post)


@reports_blocked_media
@transaction.atomic
def schedule(
    *,
    sender: User,
    publish_at: datetime | None,
    content: dict[str, Any],
    type: str = ItemType.TEXT,  # noqa: A002 (the field's name)
    title: str = "",
    extra_info: dict[str, Any] | None = None,
    visibility: str = Visibility.PUBLIC,
    reply_to: Item | None = None,
    quote_of: Item | None = None,
    quotable_by: str | None = None,
    repliable_by: str | None = None,
    idempotency_key: str = "",
) -> ScheduledPost:
    """Schedule a post. `publish_at` None: as soon as its video is ready. Raises PublishTimeError, ScheduledCapError,
    ContentError, NotQuotableError, NotRepliableError and IdempotencyConflictError.
    """
    if reply_to and (reply_to.repost_of or reply_to).is_private:
        visibility = Visibility.MENTIONED
    _check_reply(reply_to, sender, repliable_by)
    _check_quote(quote_of, sender, visibility)
    post: dict[str, Any] = {
        "type": type,
        "title": title,
        "content": content,
        "extra_info": extra_info or {},
        "visibility": visibility,
        "reply_to": reply_to and reply_to.pk,
        "quote_of": quote_of and quote_of.pk,
        "quotable_by": quotable_by,
    } | ({"repliable_by": repliable_by} if repliable_by not in (None, RepliableBy.EVERYONE) else {})
    if publish_at is None and idempotency_key:
        post["idempotency_key"] = idempotency_key  # the item keeps it, for calls that are repeated later
    _check(post)
    _lock(sender)
    own = ScheduledPost.objects.filter(sender=sender)
    if idempotency_key and (known := own.filter(key=idempotency_key).first()):
        if known.post != post or (publish_at and known.publish_at != publish_at):
            raise IdempotencyConflictError
        return known
    if publish_at:
        _check_time(publish_at)
    if own.count() >= MOST:
        raise ScheduledCapError(f"You can have up to {MOST} scheduled posts.")
    awaits = _reserve_media(sender, post)
    row = ScheduledPost(sender=sender, post=post, awaits=awaits, key=idempotency_key or uuid.uuid4().hex)
    row.publish_at = publish_at or _at_once(awaits)
    row.save()
    return row


@reports_blocked_media
@transaction.atomic
def change(*, sender: User, post_id: int, publish_at: datetime | None = None, **fields: Any) -> ScheduledPost:
    """Change the time or some arguments of `publish`. Raises ScheduledPost.DoesNotExist, PublishTimeError,
    ContentError, NotQuotableError.
    """
    row = ScheduledPost.objects.select_for_update().get(sender=sender, pk=post_id)
    time = publish_at or row.publish_at
    if time is not None and (publish_at is not None or row.failure):
        _check_time(time)
    post = row.post | fields
    answered = Item.objects.filter(pk=post["reply_to"]).first() if post["reply_to"] else None
    if answered and answered.is_private:
        post["visibility"] = Visibility.MENTIONED
    if fields.get("repliable_by"):
        _check_reply(answered, sender, post["repliable_by"])
    if post["visibility"] != row.post["visibility"]:
        _check_quote(Item.objects.filter(pk=post["quote_of"]).first(), sender, post["visibility"])
    _check(post)
    attaching.release(owner_id=sender.pk, ids=media_ids(row.post["content"]))
    row.awaits = _reserve_media(sender, post)
    row.post, row.publish_at, row.failure = post, time or _at_once(row.awaits), ""
    row.save(update_fields=["post", "publish_at", "awaits", "failure"])
    return row


@transaction.atomic
def cancel(*, sender: User, post_id: int) -> None:
    """Delete a scheduled post. Raises ScheduledPost.DoesNotExist."""
    row = ScheduledPost.objects.select_for_update().get(sender=sender, pk=post_id)
    attaching.release(owner_id=sender.pk, ids=media_ids(row.post["content"]))
    row.delete()


def _check_reply(answered: Item | None, sender: User, repliable_by: str | None) -> None:
    if answered:
        check_reply(answered.repost_of or answered, sender, repliable_by)


def _check_quote(quoted: Item | None, sender: User, visibility: str) -> None:
    if quoted:
        check_quote(quoted.repost_of or quoted, sender, visibility)


def _check(post: dict[str, Any]) -> None:
    check_content(post["type"], post["content"], post["title"])
    check_choice(post["visibility"], post.get("repliable_by"))
    is_new_mention = post["visibility"] == Visibility.MENTIONED and post["reply_to"] is None
    if is_new_mention and not mentions(str(post["content"].get("text", ""))):
        raise ContentError(_("Mention someone by @name. Only the people you mention can see it."), field="visibility")


def _check_time(publish_at: datetime) -> None:
    now = timezone.now()
    if publish_at < now + LEAD:
        minutes = LEAD.seconds // 60
        words = ngettext(
            "Choose a time at least %(count)d minute from now.",
            "Choose a time at least %(count)d minutes from now.",
            minutes,
        )
        raise PublishTimeError(words % {"count": minutes})
    if publish_at > now + FARTHEST:
        raise PublishTimeError(_("Choose a time within the next year."))


def _lock(sender: User) -> None:
    """Lock the sender's row, so that the cap holds and a repeated key waits."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=sender.pk)


def _reserve_media(sender: User, post: dict[str, Any]) -> int | None:
    """Keep the post's media for it. Returns the one that is still being converted."""
    item = Item(sender=sender, type=post["type"], content=post["content"], visibility=post["visibility"])
    rows = attachments.claim_media(item, takes_unfinished=True)
    attaching.reserve(rows, is_private=item.is_private)
    return next((row.pk for row in rows if row.state == MediaState.PROCESSING), None)


def _at_once(awaits: int | None) -> datetime | None:
    """The time of a post that comes out as soon as it can: none is known while it waits for its video."""
    return None if awaits else timezone.now()


# --- Publishing ------------------------------------------------------------------------------------------
def publish_due() -> int:
    """Publish the posts whose time has come."""
    if current().read_only_why:
        return 0
    due = ScheduledPost.objects.filter(publish_at__lte=Now(), failure="", awaits=None).order_by("publish_at")
    published, broken = 0, None
    for post_id in list(due.values_list("pk", flat=True)[:BATCH]):
        try:
            published += publish_scheduled(post_id=post_id)
        except OperationalError as error:  # tried again by the next run; others do not wait for it
            broken = error
    if broken:
        raise broken
    return published


@transaction.atomic
def publish_scheduled(*, post_id: int) -> bool:
    """Publish one post if it is due and nobody else has it. True if it is now published or held."""
    rows = ScheduledPost.objects.select_for_update(skip_locked=True, of=("self",)).select_related("sender")
    row = rows.filter(pk=post_id, publish_at__lte=Now(), failure="", awaits=None).first()
    if row is None:
        return False
    outcome = _publish(row)
    if isinstance(outcome, Failure):
        _fail(row, outcome)
        return False
    row.delete()
    if outcome.status == Status.IN_REVIEW:
        scheduled_ended.send(sender=ScheduledPost, user=row.sender, item=outcome)
    return True


@task("items.publish_ready")
def publish_ready(post_id: int) -> None:
    """Publish a post whose video is ready."""
    if not current().read_only_why:
        publish_scheduled(post_id=post_id)


@transaction.atomic
def end_waiting(medium_id: int) -> None:
    """Release the post that waits for a medium: it comes out now, at its time, or not."""
    row = (
        ScheduledPost.objects.select_for_update(of=("self",)).select_related("sender").filter(awaits=medium_id).first()
    )
    if row is None:
        return
    medium = MediaFile.objects.filter(pk=medium_id).first()
    if medium is not None and medium.state == MediaState.PROCESSING:
        return
    row.awaits = None
    row.save(update_fields=["awaits"])
    if medium is None or medium.state == MediaState.FAILED:
        _fail(row, Failure.VIDEO)
    elif row.publish_at is None:
        row.publish_at = timezone.now()
        row.save(update_fields=["publish_at"])
        publish_ready.delay_on_commit(row.pk)


def _fail(row: ScheduledPost, failure: Failure) -> None:
    row.failure = failure
    row.save(update_fields=["failure"])
    scheduled_ended.send(sender=ScheduledPost, user=row.sender, item=None)


def _publish(row: ScheduledPost) -> Item | Failure:
    fields: dict[str, Any] = {"idempotency_key": f"scheduled-{row.pk}"} | row.post
    sender = row.sender
    if not sender.is_active:
        return Failure.INACTIVE
    for name, gone in (("reply_to", Failure.REPLY_GONE), ("quote_of", Failure.QUOTE_GONE)):
        if fields[name] is not None:
            shown = Item.objects.visible_to(sender).select_related("repost_of").filter(pk=fields[name])
            fields[name] = shown.first()
            if fields[name] is None:
                return gone
    try:
        with transaction.atomic():
            attaching.release(owner_id=sender.pk, ids=media_ids(fields["content"]))
            return actions.publish(sender=sender, **fields)
    except (ContentError, NotQuotableError, NotRepliableError) as error:
        return next(failure for kind, failure in REFUSALS.items() if isinstance(error, kind))
    except OperationalError:
        raise
    except Exception:  # a fault of ours must not stop others, nor be tried for ever
        logger.exception("the scheduled post %s could not be published", row.pk)
        return Failure.ERROR


# --- Reading ---------------------------------------------------------------------------------------------
def scheduled_of(sender: User) -> list[ScheduledPost]:
    """The user's scheduled posts, the next first."""
    return list(
        ScheduledPost.objects.filter(sender=sender).order_by(F("publish_at").asc(nulls_first=True), "pk")[:MOST]
    )


def own_post(sender: User, post_id: int) -> ScheduledPost:
    """One of the user's scheduled posts. Raises ScheduledPost.DoesNotExist."""
    return ScheduledPost.objects.get(sender=sender, pk=post_id)


def files_of(sender: User, posts: Iterable[ScheduledPost]) -> dict[int, list[MediaFile]]:
    """The media of scheduled posts, by id."""
    ids = {post.pk: media_ids(post.post["content"]) for post in posts}
    wanted = [number for several in ids.values() for number in several]
    known = attaching.reserved(owner_id=sender.pk, ids=wanted) if wanted else {}
    return {post_id: [known[number] for number in several if number in known] for post_id, several in ids.items()}


def media_of(sender: User, posts: Iterable[ScheduledPost]) -> dict[int, list[OwnMedium]]:
    """The media of scheduled posts for their author, by id."""
    return {post_id: [own_medium(row) for row in rows] for post_id, rows in files_of(sender, posts).items()}
