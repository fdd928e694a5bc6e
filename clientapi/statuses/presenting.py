"""Items as statuses.

A page needs at most four statements: for accounts, senders of replied-to items, filters, and pins if it has own items.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from msgspec import UNSET

from accounts.cards import UserCard
from accounts.models import QuotableBy, User
from clientapi import html
from clientapi.accounts.people import People, accounts_by_id, people
from clientapi.entities import (
    QUOTE_POLICIES,
    SHOWN_AS,
    Account,
    Approval,
    Attachment,
    ConversationBody,
    Filter,
    FilterResult,
    Mention,
    Poll,
    PreviewCard,
    Quote,
    ShallowQuote,
    Status,
    StatusEdit,
    Tag,
    time_text,
)
from items.bodies import ItemBody
from items.content import link_in, text_in
from items.conversations.conversations import Conversation, people_of
from items.filters.filters import FilterRule, OwnedFilter, compiled_rules
from items.models import Context, Visibility
from items.profiles.pins import pinned_ids
from items.profiles.profile import answered_senders
from items.quotes import is_own_quotable, quote_policy
from items.text import poll_options
from items.threads.muting import muted_among
from items.versions import Version
from relations.visibility import followed_among

CONTEXTS = tuple(context.value for context in Context)
"""Where the site's filters apply: everywhere."""
NONE: list[Any] = []
"""An empty list, shared by all statuses and never changed."""
Reader = User | AnonymousUser


class StatusTexts(NamedTuple):
    """The texts of an item."""

    title: str
    url: str
    warning: str
    is_veiled: bool
    language: str | None
    rendered: html.Rendered
    tags: list[Tag]
    plain: str
    """The HTML without links of mentions."""

    @classmethod
    def of(cls, item: ItemBody) -> "StatusTexts":
        """The texts of an item. Short ones are cached."""
        content = bytes(item.content)
        return (_kept_words if len(content) <= html.KEPT_LENGTH else _parse_texts)(item.title, content)


def _parse_texts(title: str, content: bytes) -> StatusTexts:
    fields = msgspec.json.decode(content)
    warning = text_in(fields, "warning")
    rendered = html.rendered(text_in(fields))
    words = StatusTexts(
        title=title,
        url=link_in(fields),
        warning=warning,
        is_veiled=bool(warning) or fields.get("sensitive") is True,
        language=text_in(fields, "language") or None,
        rendered=rendered,
        tags=[_tag(tag) for tag in rendered.tags],
        plain="",
    )
    return words._replace(plain=html.content(words, rendered, ()))


_kept_words = lru_cache(html.KEPT)(_parse_texts)


@lru_cache(html.KEPT)
def _facts(item_id: str, created_at: datetime, modified_at: datetime, is_edited: bool) -> tuple[str, str, str | None]:
    return html.item_address(item_id), time_text(created_at), time_text(modified_at) if is_edited else None


class Presenter:
    """Turns a page's items into statuses. Holds what they share: accounts, replied-to senders, filters."""

    def __init__(self, items: Sequence[ItemBody], reader: Reader) -> None:
        quoted = [item.shown.quote.item for item in items if item.shown.quote]
        every = [one for item in [*items, *quoted] if item for one in (item, item.repost_of) if one is not None]
        self.said = {one.id: StatusTexts.of(one) for one in every if one.repost_of is None}
        names = {name for said in self.said.values() if said.rendered.names for name in said.rendered.names}
        self.people: People = people({one.sender.id: one.sender for one in every}, names, reader)
        self.answered = {item_id: sender.id for item_id, sender in answered_senders(every, reader).items()}
        self.filters = _filters(every, reader)
        self.own = str(reader.pk or "")
        self.addressed = _private_recipients(every, reader)
        self.pinned = pinned_ids(reader) if any(one.sender.id == self.own for one in every) else frozenset[str]()
        self.muted = muted_among((one.id for one in every), reader) if isinstance(reader, User) else frozenset()
        self.quotable: Collection[str] = _quotable((one for one in every if one.repost_of is None), reader)

    def names(self, item: ItemBody) -> dict[str, str]:
        """The ids of mentioned accounts that the reader may know of, by name."""
        known = self.people.by_name
        said = (item.shown, item.shown.quote.item if item.shown.quote else None)
        names = (name for one in said if one for name in self.said[one.id].rendered.names)
        return {name: known[name].id for name in names if name in known}

    def for_readers(
        self,
        hidden: Collection[str],
        answered: Mapping[str, str],
        quotable: Collection[str],
        muted: frozenset[str],
    ) -> "Presenter":
        """This presenter for readers who may not know of the names in `hidden`.

        `answered`: visible replied-to items with senders. `quotable`: items that they may quote. `muted`: items of
        muted threads.
        """
        other = copy(self)
        other.people = self.people.without(hidden) if hidden else self.people
        other.answered = dict(answered)
        other.quotable, other.muted = quotable, muted
        return other

    def status(self, item: ItemBody) -> Status:
        """An item as a status. A repost includes its original."""
        original = item.repost_of
        if original is None:
            return self._status(item, item, None)
        return self._status(item, original, self._status(original, original, None))

    def _status(self, item: ItemBody, said: ItemBody, reblog: Status | None, *, is_inside: bool = False) -> Status:
        accounts, words = self.people, self.said[said.id]
        text = words.rendered
        address, created_at, edited_at = _facts(item.id, item.created_at, item.modified_at, item.is_edited)
        counts = said.counts
        content = html.content(words, text, accounts.by_name) if text.names else words.plain
        if said.quote and said.quote.state == "accepted":
            content = html.quote_paragraph(said.quote.id) + content
        return Status(
            id=item.id,
            created_at=created_at,
            in_reply_to_id=item.reply_to,
            in_reply_to_account_id=self.answered.get(item.reply_to) if item.reply_to else None,
            sensitive=words.is_veiled,
            spoiler_text=words.warning,
            visibility=SHOWN_AS[item.visibility],
            language=words.language,
            uri=address,
            url=address,
            replies_count=counts.replies,
            reblogs_count=counts.reposts,
            favourites_count=counts.likes,
            quotes_count=counts.quotes,
            edited_at=edited_at,
            favourited=item.liked,
            reblogged=item.reposted,
            muted=said.id in self.muted,
            bookmarked=item.bookmarked,
            content=content,
            filtered=self._filtered(item) if item.filtered else NONE,
            reblog=reblog,
            account=accounts.by_id[item.sender.id],
            media_attachments=[Attachment.of(medium) for medium in said.media] if said.media else NONE,
            mentions=self.addressed.get(said.id) or (self._mentions(text.names) if text.names else NONE),
            tags=words.tags,
            emojis=NONE,
            card=PreviewCard.of(said.link_card) if said.link_card else None,
            poll=Poll.of(said, is_signed_in=bool(self.own)) if said.poll else None,
            quote=self._quote(item, is_inside=is_inside) if item.quote else None,
            quote_approval=_approval(quote_policy(said), is_allowed=said.id in self.quotable),
            tagged_collections=NONE,
            pinned=item.id in self.pinned if item.sender.id == self.own else UNSET,
        )

    def _quote(self, item: ItemBody, *, is_inside: bool) -> Quote | ShallowQuote | None:
        quote = item.quote
        if quote is None:
            return None
        if is_inside:
            return ShallowQuote(quote.state, quote.id if quote.state == "accepted" else None)
        return Quote(quote.state, self._status(quote.item, quote.item, None, is_inside=True) if quote.item else None)

    def _mentions(self, names: Iterable[str]) -> list[Mention]:
        known = self.people.by_name
        return [_mention(known[name]) for name in names if name in known]

    def _filtered(self, item: ItemBody) -> list[FilterResult]:
        return filter_results(rule for rule in self.filters if rule.phrase in item.filtered)


def _quotable(items: Iterable[ItemBody], reader: Reader) -> frozenset[str]:
    """The ids of the items that the reader may quote. At most one statement."""
    if not isinstance(reader, User):
        return frozenset()
    found = []
    asked: dict[str, list[str]] = {}
    for item in items:
        who = quote_policy(item)
        if is_own_quotable(item, reader.pk) or who == QuotableBy.EVERYONE:
            found.append(item.id)
        elif who == QuotableBy.FOLLOWERS:
            asked.setdefault(item.sender.id, []).append(item.id)
    for sender_id in followed_among(reader, map(int, asked)) if asked else ():
        found += asked[str(sender_id)]
    return frozenset(found)


@lru_cache(html.KEPT)
def _approval(who: str, *, is_allowed: bool) -> Approval:
    policy = QUOTE_POLICIES[who]
    return Approval([] if policy == "nobody" else [policy], [], "automatic" if is_allowed else "denied")


def _private_recipients(items: Iterable[ItemBody], reader: Reader) -> dict[str, list[Mention]]:
    """The people of each private mention, whom apps show as mentioned."""
    senders = {item.id: item.sender.id for item in items if item.visibility == Visibility.MENTIONED}
    if not senders or not isinstance(reader, User):
        return {}
    own = UserCard.of(reader)
    return {
        item_id: [
            _mention_entity(card.username, card.id, html.profile_address(card.username))
            for card in (own, *others)
            if card.id != senders[item_id]
        ]
        for item_id, others in people_of(list(map(int, senders)), reader).items()
    }


@lru_cache(html.KEPT)
def _tag(tag: str) -> Tag:
    return Tag(tag, tag, html.tag_address(tag))


@lru_cache(html.KEPT)
def _mention_entity(name: str, user_id: str, address: str) -> Mention:
    return Mention(user_id, name, address, name)


def _mention(account: Account) -> Mention:
    return _mention_entity(account.username, account.id, account.url)


def filter_of(listed: OwnedFilter | FilterRule) -> Filter:
    """A filter as Mastodon's Filter, without its words."""
    return Filter(
        id=str(listed.group if isinstance(listed, FilterRule) else listed.id),
        title=listed.title or listed.phrase,
        context=list(listed.contexts or CONTEXTS),
        expires_at=time_text(listed.expires_at) if listed.expires_at else None,
        filter_action=listed.action,
    )


def filter_results(met: Iterable[FilterRule]) -> list[FilterResult]:
    """The filters of matched phrases, oldest first."""
    now, results = timezone.now(), dict[int, FilterResult]()
    for rule in met:
        if rule.is_in_force(now):
            result = results.setdefault(rule.group, FilterResult(filter_of(rule), [], None))
            result.keyword_matches = [*(result.keyword_matches or ()), rule.phrase]
    return list(results.values())


def _filters(items: Iterable[ItemBody], reader: Reader) -> list[FilterRule]:
    if not isinstance(reader, User) or not any(item.filtered for item in items):
        return []
    return list(compiled_rules(reader))


def statuses(items: Sequence[ItemBody], reader: Reader) -> list[Status]:
    """The items as statuses for this reader."""
    if not items:
        return []
    presenter = Presenter(items, reader)
    return [presenter.status(item) for item in items]


def conversations(found: Sequence[Conversation], reader: User) -> list[ConversationBody]:
    """The reader's conversations as Mastodon's."""
    accounts = accounts_by_id({card.id for one in found for card in one.users})
    shown = statuses([one.last_item for one in found], reader)
    return [
        ConversationBody(
            one.id,
            one.unread,
            # Apps expect at least one account. If nobody is left, use the sender of the last message.
            [accounts[card.id] for card in one.users if card.id in accounts] or [status.account],
            status,
        )
        for one, status in zip(found, shown, strict=True)
    ]


def edits(item: ItemBody, versions: Sequence[Version], reader: Reader) -> list[StatusEdit]:
    """The versions of an item, in their order."""
    texts = [html.rendered(version.text) for version in versions]
    known = people({item.sender.id: item.sender}, {name for text in texts for name in text.names}, reader)
    attachments = [Attachment.of(medium) for medium in item.media]
    return [
        StatusEdit(
            content=html.content(version, text, known.by_name),
            spoiler_text=version.warning,
            sensitive=bool(version.warning) or version.content.get("sensitive") is True,
            created_at=time_text(version.written_at),
            account=known.by_id[item.sender.id],
            media_attachments=attachments,
            emojis=[],
            poll={"options": [{"title": title} for title in poll_options(version.content)]}
            if "poll" in version.content
            else UNSET,
        )
        for version, text in zip(versions, texts, strict=True)
    ]
