"""Items as statuses: the bodies that the site's own reads return, in Mastodon's words.

A page of any length asks one statement for its accounts (clientapi.people), one for the answered senders where it holds
replies, and one for the reader's filters where one of them matches.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser
from msgspec import UNSET

from accounts.models import User
from clientapi import html
from clientapi.entities import (
    SHOWN_AS,
    Account,
    Attachment,
    Filter,
    FilterResult,
    Mention,
    Status,
    StatusEdit,
    Tag,
    moment,
)
from clientapi.people import People, people
from items.filters import Listed, filters_of
from items.hydrate import ItemBody
from items.profile import answered_senders
from items.versions import Version

CONTEXTS = ("home", "notifications", "public", "thread", "account")
"""Where the site's filters hold: wherever items are shown."""
NO_FILTERS: list[FilterResult] = []
Reader = User | AnonymousUser


class Words(NamedTuple):
    """The words of an item, of which the content is read once."""

    title: str
    url: str
    warning: str
    is_veiled: bool
    rendered: html.Rendered

    @classmethod
    def of(cls, item: ItemBody) -> "Words":
        """The words of this item."""
        fields = item.content_fields
        text, warning = fields.get("text", ""), fields.get("warning", "")
        warning = warning if isinstance(warning, str) else ""
        return cls(
            item.title,
            item.url if "url" in fields else "",
            warning,
            bool(warning) or fields.get("sensitive") is True,
            html.rendered(text if isinstance(text, str) else ""),
        )


class Presenter:
    """The common part of a page of items: accounts, answered senders and filters."""

    def __init__(self, items: Sequence[ItemBody], reader: Reader, pinned: Collection[str] | None = None) -> None:
        every = [one for item in items for one in (item, item.repost_of) if one is not None]
        self.said = {one.id: Words.of(one) for one in every if one.repost_of is None}
        names = {name for said in self.said.values() for name in said.rendered.names}
        self.people: People = people({one.sender.id for one in every}, names, reader)
        self.answered = answered_senders(every, reader)
        self.filters = _filters(every, reader)
        self.own = str(reader.pk or "")
        self.pinned = pinned

    def status(self, item: ItemBody) -> Status:
        """The status of an item, with its original where it is a repost."""
        original = item.repost_of
        if original is None:
            return self._status(item, item, None)
        return self._status(item, original, self._status(original, original, None))

    def _status(self, item: ItemBody, said: ItemBody, reblog: Status | None) -> Status:
        """The status of `item`, which says what `said` says."""
        accounts, words = self.people, self.said[said.id]
        text = words.rendered
        address = html.item_address(item.id)
        answered = self.answered.get(item.reply_to) if item.reply_to else None
        return Status(
            id=item.id,
            created_at=moment(item.created_at),
            in_reply_to_id=item.reply_to,
            in_reply_to_account_id=answered.id if answered else None,
            sensitive=words.is_veiled,
            spoiler_text=words.warning,
            visibility=SHOWN_AS[item.visibility],
            language=None,
            uri=address,
            url=address,
            replies_count=said.counts.replies,
            reblogs_count=said.counts.reposts,
            favourites_count=said.counts.likes,
            edited_at=moment(item.modified_at) if item.is_edited else None,
            favourited=item.liked,
            reblogged=item.reposted,
            muted=False,
            bookmarked=item.bookmarked,
            content=html.content(words, text, accounts.by_name),
            filtered=self._filtered(item) if item.filtered else NO_FILTERS,
            reblog=reblog,
            application=None,
            account=accounts.by_id[item.sender.id],
            media_attachments=[Attachment.of(medium) for medium in said.media],
            mentions=[_mention(accounts.by_name[name]) for name in text.names if name in accounts.by_name],
            tags=[_tag(tag) for tag in text.tags],
            emojis=[],
            card=None,
            poll=None,
            pinned=UNSET if self.pinned is None or item.sender.id != self.own else item.id in self.pinned,
        )

    def _filtered(self, item: ItemBody) -> list[FilterResult]:
        found = [self.filters[phrase] for phrase in item.filtered if phrase in self.filters]
        return [FilterResult(filter_of(one), [one.phrase], None) for one in found]


@lru_cache(html.KEPT)
def _tag(tag: str) -> Tag:
    return Tag(tag, tag, html.tag_address(tag))


@lru_cache(html.KEPT)
def _told(name: str, user_id: str, address: str) -> Mention:
    return Mention(user_id, name, address, name)


def _mention(account: Account) -> Mention:
    return _told(account.username, account.id, account.url)


def filter_of(listed: Listed) -> Filter:
    """A filter of the site, as one of Mastodon's with one word."""
    return Filter(
        id=str(listed.id),
        title=listed.phrase,
        context=list(CONTEXTS),
        expires_at=moment(listed.expires_at) if listed.expires_at else None,
        filter_action=listed.action,
    )


def _filters(items: Iterable[ItemBody], reader: Reader) -> dict[str, Listed]:
    """The reader's filters by their phrases, if one matches."""
    if not isinstance(reader, User) or not any(item.filtered for item in items):
        return {}
    return {one.phrase: one for one in filters_of(reader)}


def statuses(items: Sequence[ItemBody], reader: Reader, *, pinned: Collection[str] | None = None) -> list[Status]:
    """The statuses of items that the reader sees, in their order. `pinned`: the ids of the reader's own pins, where it
    is to be told which statuses are.
    """
    if not items:
        return []
    presenter = Presenter(items, reader, pinned)
    return [presenter.status(item) for item in items]


def edits(item: ItemBody, versions: Sequence[Version], reader: Reader) -> list[StatusEdit]:
    """The versions of an item, in their order."""
    texts = [html.rendered(version.text) for version in versions]
    known = people({item.sender.id}, {name for text in texts for name in text.names}, reader)
    attachments = [Attachment.of(medium) for medium in item.media]
    return [
        StatusEdit(
            content=html.content(version, text, known.by_name),
            spoiler_text=version.warning,
            sensitive=bool(version.warning) or version.content.get("sensitive") is True,
            created_at=moment(version.written_at),
            account=known.by_id[item.sender.id],
            media_attachments=attachments,
            emojis=[],
        )
        for version, text in zip(versions, texts, strict=True)
    ]
