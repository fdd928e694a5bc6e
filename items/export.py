from collections.abc import Iterator
from datetime import datetime
from itertools import starmap
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from items.bodies import Counts
from items.hydrate import counts
from items.models import Filter
from items.scheduling import scheduled_of
from items.versions import own_versions
from items.visibility import VISIBLE, for_mentioned
from relations.rules import READER, may_be_named
from storage.connections import stream

OWN = f"""
    SELECT i.id, i.type, i.title, i.content::text, i.extra_info::text, i.visibility, i.status, i.created_at,
        i.published_at, i.modified_at, i.reply_to_id, i.repost_of_id,
        i.quote_of_id, i.quotable_by, i.repliable_by, {counts("i")},
        CASE WHEN jsonb_typeof(i.content->'media') = 'array'
            THEN greatest(0, jsonb_array_length(i.content->'media') - jsonb_array_length(i.media)) ELSE 0 END,
        CASE WHEN {for_mentioned("i")} THEN ARRAY(
            SELECT u.username FROM items_participant p JOIN accounts_user u ON u.id = p.user_id
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND u.id <> i.sender_id AND u.is_active
            ORDER BY u.id) END,
        (SELECT c.facts->>'url' FROM items_linkcard c WHERE c.id = i.link_card_id)
    FROM items_item i WHERE i.sender_id = %(reader)s AND i.status <> 'deleted' ORDER BY i.id
"""
LIKES, BOOKMARKS = (
    f"""
    SELECT i.id, s.username, l.created_at FROM {table} l
    JOIN items_item i ON i.id = l.item_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE l.user_id = %(reader)s AND {VISIBLE} ORDER BY l.id
    """
    for table in ("items_like", "items_bookmark")
)
# Also in removed conversations and requests.
MESSAGES = f"""
    SELECT p.conversation_id, ARRAY(
            SELECT u.username FROM items_participant other JOIN accounts_user u ON u.id = other.user_id
            WHERE other.conversation_id = p.conversation_id AND u.id <> {READER} AND {may_be_named("u", READER)}
            ORDER BY u.id),
        i.id, s.username, i.type, i.title, i.content::text, i.created_at, i.modified_at
    FROM items_participant p CROSS JOIN LATERAL (
        SELECT p.conversation_id AS id UNION ALL SELECT id FROM items_item WHERE conversation_id = p.conversation_id
    ) message JOIN items_item i ON i.id = message.id JOIN accounts_user s ON s.id = i.sender_id
    WHERE p.user_id = {READER} AND {VISIBLE} ORDER BY p.conversation_id, i.id
"""


MUTED_THREADS = f"""
    SELECT i.id, s.username, m.created_at FROM items_mutedthread m
    JOIN items_item i ON i.id = m.root_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE m.user_id = %(reader)s AND {VISIBLE} ORDER BY m.root_id
"""


HIDDEN_REPLIES = f"""
    SELECT i.id, s.username, h.created_at FROM items_hiddenreply h
    JOIN items_item i ON i.id = h.reply_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE h.user_id = %(reader)s AND {VISIBLE} ORDER BY h.reply_id
"""


VOTES = f"""
    SELECT i.id, s.username, ARRAY(SELECT i.content->'poll'->'options'->>place FROM unnest(v.choices::int[]) AS place),
        v.created_at
    FROM items_vote v JOIN items_item i ON i.id = v.item_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE v.user_id = %(reader)s AND {VISIBLE} ORDER BY v.item_id
"""


class FilterRow(msgspec.Struct):
    """A phrase of a filter. `contexts` empty: everywhere."""

    filter_id: str
    title: str
    phrase: str
    whole_word: bool
    contexts: list[str]
    action: str
    expires_at: datetime | None
    since: datetime


class ScheduledRow(msgspec.Struct):
    """A scheduled post. `failure`: why it was not published."""

    publish_at: datetime | None
    failure: str
    post: dict[str, Any]


class OwnItem(msgspec.Struct):
    """An item as its sender wrote it."""

    id: str
    type: str
    title: str
    content: msgspec.Raw
    extra_info: msgspec.Raw
    visibility: str
    status: str
    created_at: datetime
    published_at: datetime | None
    modified_at: datetime
    reply_to: str | None
    repost_of: str | None
    quote_of: str | None
    quotable_by: str
    repliable_by: str
    counts: Counts
    removed_media: int
    """Number of the item's pictures removed by moderators."""
    to: list[str] | None
    """Usernames of the people who can read a private mention. Null for other items."""
    link_card: str | None
    """The address of the page in its link card."""


class MutedThreadRow(msgspec.Struct):
    """A muted conversation, by its first post."""

    item_id: str
    by: str
    since: datetime


class HiddenReplyRow(msgspec.Struct):
    """A reply that the user took out of a thread of theirs."""

    item_id: str
    by: str
    hidden_at: datetime


class BookmarkRow(msgspec.Struct):
    """A bookmark."""

    item_id: str
    by: str
    kept_at: datetime


class MessageRow(msgspec.Struct):
    """A message of a conversation. `users`: the others in it."""

    conversation: str
    users: list[str]
    item_id: str
    by: str
    type: str
    title: str
    content: msgspec.Raw
    created_at: datetime
    modified_at: datetime


class LikeRow(msgspec.Struct):
    """A like."""

    item_id: str
    by: str
    liked_at: datetime


class VoteRow(msgspec.Struct):
    """A vote of the user in a poll."""

    item_id: str
    by: str
    choices: list[str]
    voted_at: datetime


def _own_item(
    item_id: int,
    kind: str,
    title: str,
    content: str,
    extra_info: str,
    visibility: str,
    status: str,
    created_at: datetime,
    published_at: datetime | None,
    modified_at: datetime,
    reply_to_id: int | None,
    repost_of_id: int | None,
    quote_of_id: int | None,
    quotable_by: str,
    repliable_by: str,
    counted: list[int],
    removed_media: int,
    to: list[str] | None,
    link_card: str | None,
) -> OwnItem:
    return OwnItem(
        id=str(item_id),
        type=kind,
        title=title,
        content=msgspec.Raw(content.encode()),
        extra_info=msgspec.Raw(extra_info.encode()),
        visibility=visibility,
        status=status,
        created_at=created_at,
        published_at=published_at,
        modified_at=modified_at,
        reply_to=str(reply_to_id) if reply_to_id else None,
        repost_of=str(repost_of_id) if repost_of_id else None,
        quote_of=str(quote_of_id) if quote_of_id else None,
        quotable_by=quotable_by,
        repliable_by=repliable_by,
        counts=Counts(*counted),
        removed_media=removed_media,
        to=to,
        link_card=link_card,
    )


def _rows(user: User) -> Iterator[OwnItem]:
    return starmap(_own_item, stream(OWN, {"reader": user.pk}))


def _likes(user: User) -> Iterator[LikeRow]:
    return (LikeRow(str(item_id), by, liked_at) for item_id, by, liked_at in stream(LIKES, {"reader": user.pk}))


def _messages(user: User) -> Iterator[MessageRow]:
    for conversation, users, item_id, by, kind, title, content, *times in stream(MESSAGES, {"reader": user.pk}):
        yield MessageRow(str(conversation), users, str(item_id), by, kind, title, msgspec.Raw(content.encode()), *times)


def _filters(user: User) -> Iterator[FilterRow]:
    columns = ("group", "pk", "title", "phrase", "whole_word", "contexts", "action", "expires_at", "created_at")
    rows = Filter.objects.filter(owner=user).order_by("pk").values_list(*columns)
    return (FilterRow(str(group or pk), *rest) for group, pk, *rest in rows.iterator())


def _muted_threads(user: User) -> Iterator[MutedThreadRow]:
    rows = stream(MUTED_THREADS, {"reader": user.pk})
    return (MutedThreadRow(str(item_id), by, since) for item_id, by, since in rows)


def _hidden_replies(user: User) -> Iterator[HiddenReplyRow]:
    rows = stream(HIDDEN_REPLIES, {"reader": user.pk})
    return (HiddenReplyRow(str(item_id), by, hidden_at) for item_id, by, hidden_at in rows)


def _bookmarks(user: User) -> Iterator[BookmarkRow]:
    return (BookmarkRow(str(item_id), by, kept_at) for item_id, by, kept_at in stream(BOOKMARKS, {"reader": user.pk}))


def _votes(user: User) -> Iterator[VoteRow]:
    rows = stream(VOTES, {"reader": user.pk})
    return (VoteRow(str(item_id), by, choices, voted_at) for item_id, by, choices, voted_at in rows)


def _scheduled(user: User) -> Iterator[ScheduledRow]:
    return (ScheduledRow(one.publish_at, one.failure, one.post) for one in scheduled_of(user))


def files(user: User) -> list[ExportFile]:
    """The items' part of a user's data export."""
    return [
        ExportFile("items.jsonl", _("All your posts, also those in review or removed by moderators."), _rows(user)),
        ExportFile("edits.jsonl", _("Earlier versions of posts you edited."), own_versions(user)),
        ExportFile("likes.jsonl", _("The posts you liked that you can still see."), _likes(user)),
        ExportFile("votes.jsonl", _("Your votes in polls you can still see."), _votes(user)),
        ExportFile("scheduled.jsonl", _("The posts you scheduled."), _scheduled(user)),
        ExportFile("filters.jsonl", _("The words you muted."), _filters(user)),
        ExportFile("muted-conversations.jsonl", _("The threads you muted."), _muted_threads(user)),
        ExportFile("hidden_replies.jsonl", _("The replies you hid in your threads."), _hidden_replies(user)),
        ExportFile("bookmarks.jsonl", _("The posts you bookmarked that you can still see."), _bookmarks(user)),
        ExportFile("conversations.jsonl", _("The private mentions you can see, by conversation."), _messages(user)),
    ]
