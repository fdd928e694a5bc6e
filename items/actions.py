"""The verbs that change items. A bool result says whether anything changed."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import review
from accounts.models import QuotableBy, RepliableBy, User
from items import idempotency, new_rows, polls, versions
from items.attachments import attachments
from items.conversations import recipients
from items.counts import stage
from items.link_cards import actions as link_cards
from items.models import Bookmark, Item, ItemType, Status, Visibility, is_within
from items.profiles import pins
from items.quotes import audience_fits, check_quote, too_wide_text
from items.search.indexing import index, search_fields
from items.signals import (
    item_edited,
    item_held,
    item_imported,
    item_liked,
    item_published,
    item_submitted,
    item_tagged,
    item_withdrawn,
)
from items.text import ContentError, check_content
from items.threads.replying import check_choice, check_reply, of_reply_error, repliers_of
from items.versions import Version
from media import attaching
from media.models import MediaFile
from media.offering import reports_blocked_media
from relations.rules import bells_of
from storage import events, ids
from storage.connections import fetch
from web.refusals import NotOwnError, RefusalError

ID_ATTEMPTS = 3
LATER = Greatest(Now(), F("modified_at") + ids.MILLISECOND, F("created_at") + ids.MILLISECOND)
"""A time of modification after all others of the item, whatever the clock did (storage.ids)."""


@cache
def _insert_sql(columns: str = "", values: str = "") -> str:
    others = "".join(f", {name} AS ({row.statement})" for name, row in new_rows.ROWS.items())
    return f"""
    WITH new AS (
        INSERT INTO items_item ({columns}
            sender_id, type, title, content, extra_info, media, status, visibility, reply_to_id, root_id, repost_of_id,
            quote_of_id, quotable_by, repliable_by, repliers, conversation_id)
        VALUES ({values}
            %(sender)s, %(type)s, %(title)s, %(content)s, %(extra_info)s, %(media)s, %(status)s, %(visibility)s,
            %(reply_to)s, %(root)s, %(repost_of)s, %(quote_of)s, %(quotable_by)s, %(repliable_by)s,
            %(repliers)s, %(conversation)s)
        ON CONFLICT (id) DO NOTHING
        RETURNING id, created_at, modified_at, content::text, extra_info::text, sender_id, status, visibility,
            reply_to_id
    ),
    words AS (
        INSERT INTO items_itemdocument (item_id, document) SELECT id, %(document)s::tsvector FROM new
        WHERE %(document)s <> ''
    ),
    tags AS (INSERT INTO items_itemtag (tag, item_id) SELECT unnest(%(tags)s::text[]), id FROM new){others}
    SELECT id, created_at, modified_at, EXISTS ({bells_of("%(sender)s")}), content, extra_info FROM new
    """


# The first free one of a millisecond's 4096 ids.
FREE_ID = """
    SELECT id FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS id
    WHERE NOT EXISTS (SELECT FROM items_item i WHERE i.id = id.id) LIMIT 1
"""
LIKE = """
    WITH liked AS (
        INSERT INTO items_like (user_id, item_id) VALUES (%(user)s, %(item)s) ON CONFLICT DO NOTHING RETURNING item_id
    ), staged AS (
        INSERT INTO items_countchange (item_id, likes, replies, circle_replies, reposts)
        SELECT item_id, 1, 0, 0, 0 FROM liked
    )
    SELECT item_id FROM liked
"""
UNLIKE = """
    WITH unliked AS (
        DELETE FROM items_like WHERE user_id = %(user)s AND item_id = %(item)s RETURNING item_id, uncounted
    ), staged AS (
        INSERT INTO items_countchange (item_id, likes, replies, circle_replies, reposts)
        SELECT item_id, -1, 0, 0, 0 FROM unliked WHERE uncounted IS NULL
    )
    SELECT item_id FROM unliked
"""
BOOKMARK = """
    INSERT INTO items_bookmark (user_id, item_id) VALUES (%(user)s, %(item)s) ON CONFLICT DO NOTHING RETURNING id
"""


# --- Publishing ------------------------------------------------------------------------------------------
@reports_blocked_media
@transaction.atomic
def publish(
    *,
    sender: User,
    content: dict[str, Any],
    type: str = ItemType.TEXT,  # noqa: A002 (the field's name)
    title: str = "",
    extra_info: dict[str, Any] | None = None,
    visibility: str = Visibility.PUBLIC,
    reply_to: Item | None = None,
    quote_of: Item | None = None,
    quotable_by: str | None = None,
    repliable_by: str | None = None,
    addressed: Sequence[str] = (),
    idempotency_key: str = "",
) -> Item:
    """Publish an item. When this returns, it is in every follower's home.

    A reply to a private mention goes to the same people, whatever `visibility` says. One that is `addressed` to
    usernames is a private mention for them, whomever its text names. Raises ContentError, NotQuotableError,
    NotRepliableError, IdempotencyConflictError, IdempotencyGoneError, StrangersError.
    """
    check_content(type, content, title)
    reply_to, quote_of = _original(reply_to), _original(quote_of)
    if addressed or (reply_to and reply_to.is_private):
        visibility = Visibility.MENTIONED
    check_choice(visibility, repliable_by)
    fields: dict[str, Any] = {
        "type": type,
        "title": title,
        "content": content,
        "extra_info": extra_info or {},
        "visibility": visibility,
        "reply_to_id": reply_to.pk if reply_to else None,
    }
    chosen = {
        "quote_of_id": quote_of and quote_of.pk,
        "quotable_by": quotable_by,
        "repliable_by": repliable_by,
    }
    fields |= {name: value for name, value in chosen.items() if value}
    fingerprint = idempotency.fingerprint_of(fields | ({"addressed": [*addressed]} if addressed else {}))
    if idempotency_key and (published := idempotency.published_under(idempotency_key, sender, fingerprint)):
        return published
    root_id = check_reply(reply_to, sender, fields.pop("repliable_by", None)) if reply_to else None
    if quote_of:
        check_quote(quote_of, sender, visibility)
    fields.setdefault("quotable_by", sender.quotable_by)
    fields["content"] = polls.with_end_time(type, content)
    item = Item(sender=sender, root_id=root_id, **fields)
    item.repliers = repliers_of(item)
    pictures = attachments.claim_media(item)
    people = recipients.recipients_of(item, reply_to, addressed) if item.is_private else []  # counts strangers
    reasons = _hold_reasons(item)
    if reasons:
        item.status = Status.IN_REVIEW
    item = _insert(item)
    polls.create_tally(item)
    if item.is_private:
        recipients.write_participants(item, people)
    if pictures:
        attaching.assign_to_item(pictures, item_id=item.pk, is_private=item.is_private)
    if idempotency_key:
        idempotency.store_key(idempotency_key, item, fingerprint)
    if reasons:
        item_held.send(sender=Item, item=item, reasons=reasons)
    else:
        stage(item, 1)
        link_cards.request_card(item)
        item_published.send(sender=Item, item=item, again=False)
    return item


class PlaceError(RefusalError):
    """A post of a thread is refused. `error`: why, `place`: the post's, from 0."""

    def __init__(self, place: int, error: RefusalError) -> None:
        super().__init__(str(error))
        self.place, self.error = place, error
        self.status, self.code, self.wait = error.status, error.code, error.wait

    @property
    def words(self) -> str:
        """The post's."""
        return self.error.words

    def body(self) -> dict[str, Any]:
        """The error of the post, at its place."""
        inner = self.error.body()
        return {"items": {str(self.place): inner}} | ({} if self.error.field else inner)


@reports_blocked_media
@transaction.atomic
def publish_thread(
    *,
    sender: User,
    posts: Sequence[dict[str, Any]],
    visibility: str = Visibility.PUBLIC,
    repliable_by: str | None = None,
    idempotency_key: str = "",
) -> list[Item]:
    """Publish posts of which each replies to the one before: all or none. `posts`: arguments of `publish`.

    Only the first may reply to something else. Raises PlaceError, IdempotencyConflictError, IdempotencyGoneError.
    """
    common: dict[str, Any] = {"sender": sender, "visibility": visibility}
    ids = [post | {name: post[name].pk for name in ("reply_to", "quote_of") if post.get(name)} for post in posts]
    fingerprint = idempotency.fingerprint_of({"posts": ids, "visibility": visibility, "repliable_by": repliable_by})
    keys = idempotency.keys_of_thread(idempotency_key, len(posts))
    if idempotency_key and (first := idempotency.published_under(idempotency_key, sender, fingerprint)):
        return [first, *(_published_again(key, sender, fingerprint) for key in keys[1:])]
    published: list[Item] = []
    for place, (post, key) in enumerate(zip(posts, keys, strict=True)):
        links: dict[str, Any] = {"reply_to": published[-1]} if published else {"repliable_by": repliable_by}
        try:
            item = publish(**common, **post | links)
        except RefusalError as error:
            raise PlaceError(place, error) from (error.__cause__ or error)
        if key:
            idempotency.store_key(key, item, fingerprint)
        published.append(item)
    continued = [item.pk for item in published[:-1]]
    Item.objects.filter(pk__in=continued).update(is_continued=True)
    return published


def _published_again(key: str, sender: User, fingerprint: str) -> Item:
    item = idempotency.published_under(key, sender, fingerprint)
    if item is None:
        raise idempotency.IdempotencyGoneError
    return item


def _original(item: Item | None) -> Item | None:
    return item.repost_of or item if item else None


class AudienceError(RefusalError, ValueError):
    """A private mention does not allow this: an earlier date, a repost, or another audience. Nor a quote, for more
    people than may know of what it quotes.
    """


class PrivateRepostError(AudienceError):
    """A private mention cannot be reposted."""

    status = HTTPStatus.FORBIDDEN
    sentence = "Private mentions can't be reposted."


class PastTimeError(ValueError):
    """The time is in the future or before 2000, or its millisecond has no free id."""


class HeldError(Exception):
    """A rule would hold the item, for these `reasons`."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = reasons


@reports_blocked_media
@transaction.atomic
def publish_past(
    *,
    sender: User,
    content: dict[str, Any],
    written_at: datetime,
    modified_at: datetime | None = None,
    type: str = ItemType.TEXT,  # noqa: A002 (the field's name)
    visibility: str = Visibility.PUBLIC,
    extra_info: dict[str, Any] | None = None,
    reply_to: Item | None = None,
    quote_of: Item | None = None,
) -> Item:
    """Publish at an original time. Nobody is notified. Raises ContentError, PastError, AudienceError,
    NotQuotableError, NotRepliableError, and HeldError instead of holding.
    """
    check_content(type, content, "")
    if visibility == Visibility.MENTIONED or (reply_to and reply_to.is_private):
        raise AudienceError("A private mention can't have an earlier date.")
    root_id = check_reply(reply_to, sender) if reply_to else None
    if quote_of:
        check_quote(quote_of, sender, visibility)
    item = Item(
        sender=sender,
        type=type,
        content=content,
        extra_info=extra_info or {},
        visibility=visibility,
        reply_to_id=reply_to.pk if reply_to else None,
        root_id=root_id,
        quote_of_id=quote_of.pk if quote_of else None,
        quotable_by=sender.quotable_by,
    )
    pictures = attachments.claim_media(item)
    if reasons := _hold_reasons(item):
        raise HeldError(reasons)
    item = _insert_past(item, written_at, modified_at or written_at)
    if pictures:
        attaching.assign_to_item(pictures, item_id=item.pk)
    stage(item, 1)
    item_imported.send(sender=Item, item=item)
    return item


@transaction.atomic
def repost(*, sender: User, item: Item) -> tuple[Item, bool]:
    """Repost an item. Returns whether it is new, too."""
    if item.is_private:
        raise PrivateRepostError
    original_id = item.repost_of_id or item.pk
    mine = Item.objects.published().filter(sender=sender, repost_of=original_id)
    if there := mine.first():
        return there, False
    new = Item(sender=sender, type=ItemType.REPOST, repost_of_id=original_id)
    try:
        with transaction.atomic():
            new = _insert(new)
    except IntegrityError as error:
        if "item_repost_once" not in str(error):
            raise
        return mine.get(), False
    stage(new, 1)
    item_published.send(sender=Item, item=new, again=False)
    return new, True


def undo_repost(*, sender: User, item: Item) -> bool:
    """Delete the sender's repost of an item."""
    mine = Item.objects.published().filter(sender=sender, repost_of=item.repost_of_id or item.pk).first()
    return delete(item=mine) if mine else False


def _hold_reasons(item: Item) -> list[str]:
    answers = item_submitted.send(sender=Item, item=item)
    return [reason for _, reasons in answers for reason in reasons or ()]


def _insert(item: Item) -> Item:
    params = _columns(item)
    # The id sequence repeats after 4096. If the clock stepped back, an id may exist: then no row comes back.
    for _attempt in range(ID_ATTEMPTS):
        if rows := fetch(_insert_sql(), params):
            return _mark_saved(item, rows)
    raise IntegrityError(f"{ID_ATTEMPTS} ids were in use already")


def _insert_past(item: Item, written_at: datetime, modified_at: datetime) -> Item:
    try:
        first = ids.compose(written_at, 0)
    except ValueError as error:
        raise PastTimeError from error
    if written_at >= timezone.now():
        raise PastTimeError
    params = _columns(item) | {"modified_at": max(written_at, min(modified_at, timezone.now()))}
    for _attempt in range(ID_ATTEMPTS):  # another call may take the same id
        free = fetch(FREE_ID, {"first": first or 1, "last": first + 2**ids.SEQUENCE_BITS - 1})
        if not free:
            break
        statement = _insert_sql("id, modified_at,", "%(id)s, %(modified_at)s,")
        if rows := fetch(statement, params | {"id": free[0][0]}):
            return _mark_saved(item, rows)
    raise PastTimeError


def _mark_saved(item: Item, rows: list[tuple[Any, ...]]) -> Item:
    ((item.id, item.created_at, item.modified_at, item.may_ring, *stored),) = rows
    item.stored = stored[0], stored[1]
    item._state.adding, item._state.db = False, DEFAULT_DB_ALIAS
    return item


def _columns(item: Item) -> dict[str, Any]:
    return {name: value for row in new_rows.ROWS.values() for name, value in row.params().items()} | {
        **search_fields(item),
        "sender": item.sender_id,
        "type": item.type,
        "title": item.title,
        "content": json.dumps(item.content),
        "extra_info": json.dumps(item.extra_info),
        "media": json.dumps(item.media),
        "status": item.status,
        "visibility": item.visibility,
        "reply_to": item.reply_to_id,
        "root": item.root_id,
        "repost_of": item.repost_of_id,
        "quote_of": item.quote_of_id,
        "quotable_by": item.quotable_by,
        "repliable_by": item.repliable_by,
        "repliers": item.repliers,
        "conversation": item.conversation_id,
    }


# --- Changing what is published --------------------------------------------------------------------------
@transaction.atomic
def edit(
    *,
    item: Item,
    title: str | None = None,
    content: dict[str, Any] | None = None,
    extra_info: dict[str, Any] | None = None,
) -> Item:
    """Change an item. None leaves a field unchanged. Raises ContentError, RepostError, PollFixedError.

    New names in a private mention add nobody. A rejected item goes back into review, and a published one if a rule
    gives a reason. If that is only a new account's links, it raises ContentError.
    """
    item = _lock(item)
    if item.repost_of_id:
        raise RepostError("Reposts can't be edited.")
    before = Version(item.title, item.content, item.modified_at, is_hidden=item.status != Status.PUBLISHED)
    if content is not None:
        content = polls.edited_content(item, content)
        check_content(item.type, content, item.title if title is None else title)
        item.content = attachments.reorder_media(item, content)
    if title is not None:
        item.title = title
    if extra_info is not None:
        item.extra_info = extra_info
    reasons = _hold_reasons(item) or (["resubmitted"] if item.status == Status.REJECTED else [])
    if item.status == Status.PUBLISHED and review.only_links(reasons):
        raise ContentError(_("New accounts can't add links to a published post. Write a new post instead."))
    if (item.title, item.content) != (before.title, before.content):
        versions.store_version(item.pk, before)
    item.link_card_id = link_cards.card_after_edit(item, before.content)
    Item.objects.filter(pk=item.pk).update(
        title=item.title,
        content=item.content,
        extra_info=item.extra_info,
        link_card=item.link_card_id,
        repliers=repliers_of(item),
        modified_at=LATER,
    )
    item.refresh_from_db(fields=["modified_at"])
    has_new_tags = index(item)
    if reasons and item.status != Status.DELETED:
        _withdraw(item, Status.IN_REVIEW)
        item_held.send(sender=Item, item=item, reasons=reasons)
    elif item.status == Status.PUBLISHED:
        link_cards.request_card(item)
        item_edited.send(sender=Item, item=item, visibility_before=item.visibility)
        if has_new_tags:
            item_tagged.send(sender=Item, item=item)
    return item


@transaction.atomic
def renew_media(*, item_id: int) -> None:
    """Copy changed descriptions into the item. A new reason, except links, holds it."""
    rows = Item.objects.select_for_update(no_key=True, of=("self",)).select_related("sender")
    item = rows.filter(pk=item_id).first()
    if item is None:
        return
    attachments.refresh_facts(item)
    reasons = _hold_reasons(item) if item.status == Status.PUBLISHED else []
    changes: dict[str, Any] = {"media": item.media}
    if item.status != Status.PUBLISHED:
        changes["modified_at"] = LATER  # so a moderator with an older page is told
    Item.objects.filter(pk=item.pk).update(**changes)
    if reasons and not review.only_links(reasons):
        _withdraw(item, Status.IN_REVIEW)
        item_held.send(sender=Item, item=item, reasons=reasons)
    elif item.status == Status.PUBLISHED:
        item_edited.send(sender=Item, item=item, visibility_before=item.visibility)


class RepostError(RefusalError, ValueError):
    """A repost can only be published and deleted."""


@transaction.atomic
def delete(*, item: Item) -> bool:
    """Soft-delete an item."""
    return _withdraw(_lock(item), Status.DELETED)


@transaction.atomic
def delete_to_rewrite(*, item: Item) -> list[MediaFile]:
    """Soft-delete an item of the author's, and let them use its media again. Returns these: none of a held post."""
    item = _lock(item)
    was_published = item.status == Status.PUBLISHED
    return attaching.offer_again(item.pk) if _withdraw(item, Status.DELETED) and was_published else []


@transaction.atomic
def hold(*, item: Item, reasons: list[str]) -> bool:
    """Put a published item into review. Empty `reasons`: its case is open already, so `item_held` is not sent."""
    item = _lock(item)
    if item.status != Status.PUBLISHED:
        return False
    _withdraw(item, Status.IN_REVIEW)
    versions.hide_versions(item.pk)
    if reasons:
        item_held.send(sender=Item, item=item, reasons=reasons)
    return True


@transaction.atomic
def reject(*, item: Item) -> bool:
    """Hide an item from everyone but its sender."""
    item = _lock(item)
    versions.hide_versions(item.pk)
    return item.status != Status.DELETED and _withdraw(item, Status.REJECTED)


@transaction.atomic
def approve(*, item: Item) -> bool:
    """Publish a held or rejected item."""
    item = _lock(item)
    may_be = item.status in (Status.IN_REVIEW, Status.REJECTED) and not item.sender.deleted_at
    return may_be and _publish_again(item)


@transaction.atomic
def restore(*, item: Item) -> bool:
    """Publish an item again, unless its sender is deleted or has reposted the original again."""
    item = _lock(item)
    if item.status == Status.PUBLISHED or item.sender.deleted_at:
        return False
    if item.repost_of_id:
        again = Item.objects.published().filter(sender=item.sender_id, repost_of=item.repost_of_id)
        if again.exists():
            return False
    return _publish_again(item)


@transaction.atomic
def change_visibility(*, item: Item, visibility: str) -> bool:
    """Change an item's audience. Raises RepostError and AudienceError.

    A wider one delivers it again, because windows may lack it. A narrower one gives its files new addresses.
    """
    item = _lock(item)
    before = item.visibility
    is_wider = not is_within(visibility, before)
    _check_audience(item, visibility, is_wider=is_wider)
    if before == visibility:
        return False
    is_published = item.status == Status.PUBLISHED
    if is_published:
        stage(item, -1)
    item.visibility = visibility
    reasons = _hold_reasons(item) if is_published and before == Visibility.SELF else []
    item.save(update_fields=["visibility"])
    if is_wider:  # the old versions were for fewer people
        versions.hide_versions(item.pk)
    if reasons:
        # An item that only its sender sees counts nowhere, and rules ignore it.
        item.status, item.link_card = Status.IN_REVIEW, None
        item.save(update_fields=["status", "link_card"])
        attachments.withdraw(item)
        item_withdrawn.send(sender=Item, item=item)
        item_held.send(sender=Item, item=item, reasons=reasons)
    elif is_published:
        stage(item, 1)
        if visibility != Visibility.PUBLIC:
            pins.unpin(item_id=item.pk)
        link_cards.request_card(item)
        if is_wider:
            Item.objects.filter(pk=item.pk).update(published_at=Now())
            item_published.send(sender=Item, item=item, again=True)
        else:
            attachments.withdraw(item)
        item_edited.send(sender=Item, item=item, visibility_before=before)
    return True


def _check_audience(item: Item, visibility: str, *, is_wider: bool) -> None:
    if item.repost_of_id:
        raise RepostError("A repost has the same audience as its original.")
    if Visibility.MENTIONED in (item.visibility, visibility):
        raise AudienceError("You can't change who a private mention is for.")
    if (
        is_wider
        and item.quote_of
        and not item.is_quote_revoked
        and not audience_fits(item.quote_of, item.sender, visibility)
    ):
        raise AudienceError(too_wide_text())


@transaction.atomic
def revise(
    *,
    item: Item,
    visibility: str | None = None,
    quotable_by: str | None = None,
    repliable_by: str | None = None,
    **words: Any,
) -> Item:
    """Change an item's audience, who may quote and answer it, and its words (`edit`). Raises what these verbs raise.

    The narrower audience is the first to see the new words.
    """
    item = _lock(item)
    is_narrower = visibility is not None and is_within(visibility, item.visibility)
    if visibility and is_narrower:
        change_visibility(item=item, visibility=visibility)
    if quotable_by:
        change_quotable(item=item, quotable_by=quotable_by)
    if repliable_by:
        change_repliable(item=item, repliable_by=repliable_by)
    if words:
        item = edit(item=item, **words)
    if visibility and not is_narrower:
        change_visibility(item=item, visibility=visibility)
    return item


def change_quotable(*, item: Item, quotable_by: str) -> None:
    """Choose who may quote an item. Existing quotes stay."""
    if item.repost_of_id:
        raise RepostError("Quote the original, not the repost.")
    Item.objects.filter(pk=item.pk).update(quotable_by=QuotableBy(quotable_by))


@transaction.atomic
def change_repliable(*, item: Item, repliable_by: str) -> None:
    """Choose who may reply in an item's thread. Existing replies stay. Raises RepostError, and ContentError for a reply
    that shall differ from its root and for a private mention that shall limit its people.
    """
    item = _lock(item)
    if item.repost_of_id:
        raise RepostError("Reply to the original, not the repost.")
    if item.root:
        if repliable_by != item.root.repliable_by:
            raise of_reply_error()
        return
    check_choice(item.visibility, repliable_by)
    item.repliable_by = RepliableBy(repliable_by)
    Item.objects.filter(pk=item.pk).update(repliable_by=item.repliable_by, repliers=repliers_of(item))
    if item.status == Status.PUBLISHED:
        transaction.on_commit(partial(events.announce, events.Edited(item.pk, item.visibility)))


@transaction.atomic
def revoke_quote(*, quote: Item) -> bool:
    """Stop a quote from showing the item it quotes."""
    quote = _lock(quote)
    if quote.quote_of_id is None or quote.is_quote_revoked:
        return False
    is_published = quote.status == Status.PUBLISHED
    if is_published:
        stage(quote, -1)
    quote.is_quote_revoked = True
    quote.save(update_fields=["is_quote_revoked"])
    if is_published:
        stage(quote, 1)
        item_edited.send(sender=Item, item=quote, visibility_before=quote.visibility)
    return True


def _lock(item: Item) -> Item:
    return Item.objects.select_for_update(no_key=True, of=("self",)).select_related("sender").get(pk=item.pk)


def _withdraw(item: Item, status: Status) -> bool:
    before = item.status
    if before == status:
        return False
    item.status, item.link_card = status, None
    item.save(update_fields=["status", "link_card"])
    attachments.withdraw(item)
    if before == Status.PUBLISHED:
        stage(item, -1)
        pins.unpin(item_id=item.pk)
        item_withdrawn.send(sender=Item, item=item)
    return True


def _publish_again(item: Item) -> bool:
    """Publish an item again and deliver it again, because windows may have dropped it."""
    item.status = Status.PUBLISHED
    item.published_at = Now()  # the database's clock
    item.save(update_fields=["status", "published_at"])
    attachments.restore(item)
    item.refresh_from_db(fields=["published_at"])
    stage(item, 1)
    link_cards.request_card(item)
    item_published.send(sender=Item, item=item, again=True)
    return True


# --- Taking back -----------------------------------------------------------------------------------------
def undo_act(*, user: User, item_id: int, undo: Callable[[Item], bool]) -> Item:
    """Undo the user's act on an item, even if they no longer see it. Raises Item.DoesNotExist if nothing changed and
    they do not see it.
    """
    item = Item.objects.select_related("repost_of").get(pk=item_id)
    if not undo(item):
        Item.objects.visible_to(user).only("pk").get(pk=item_id)
    return item


def delete_own(*, user: User, item_id: int) -> None:
    """Delete the user's item. Raises Item.DoesNotExist and NotOwnError."""
    item = undo_act(user=user, item_id=item_id, undo=lambda item: item.sender_id == user.pk and delete(item=item))
    if item.sender_id != user.pk:
        raise NotOwnError


# --- Likes -----------------------------------------------------------------------------------------------
@transaction.atomic
def like(*, user: User, item: Item, is_past: bool = False) -> bool:
    """Like an item, or a repost's original. `is_past`: notify nobody."""
    item = item.repost_of or item
    new = bool(fetch(LIKE, {"user": user.pk, "item": item.pk}))
    if new and not is_past:
        item_liked.send(sender=Item, item=item, user=user)
    return new


@transaction.atomic
def unlike(*, user: User, item: Item) -> bool:
    """Remove a like."""
    item = item.repost_of or item
    return bool(fetch(UNLIKE, {"user": user.pk, "item": item.pk}))


# --- Bookmarks -------------------------------------------------------------------------------------------
def bookmark(*, user: User, item: Item) -> bool:
    """Bookmark an item, or a repost's original."""
    return bool(fetch(BOOKMARK, {"user": user.pk, "item": item.repost_of_id or item.pk}))


def remove_bookmark(*, user: User, item: Item) -> bool:
    gone, _deleted = Bookmark.objects.filter(user=user, item=item.repost_of_id or item.pk).delete()
    return bool(gone)
