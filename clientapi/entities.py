"""Mastodon's entities, one struct each. Ids are strings, times have milliseconds."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
from django.conf import settings
from msgspec import UNSET, UnsetType

from accounts.avatars import avatar_url, banner_url, small_avatar_url
from accounts.models import QuotableBy, User
from clientapi import html
from items.bodies import ItemBody, LinkCardBody
from media.objects import MediaObject

KEPT = 4_096
"""Size of a process's cache of accounts."""
Visibility = Literal["public", "unlisted", "private", "direct"]
SHOWN_AS: dict[str, Visibility] = {
    "public": "public",
    "followers": "private",
    "mutuals": "private",
    "self": "private",
    "mentioned": "direct",
}
"""Mastodon's names of visibilities. It has none for mutuals and for oneself."""

QUOTABLE_BY: dict[str, str] = {
    "public": QuotableBy.EVERYONE,
    "followers": QuotableBy.FOLLOWERS,
    "nobody": QuotableBy.NOBODY,
}
QUOTE_POLICIES = {who: name for name, who in QUOTABLE_BY.items()}
"""Mastodon's names for who may quote."""


def time_text(when: datetime) -> str:
    """A time as text: UTC with milliseconds and Z."""
    return f"{(when if when.tzinfo is UTC else when.astimezone(UTC)).isoformat(timespec='milliseconds')[:-6]}Z"


def absolute(address: str) -> str:
    """The address with the site's host, if it has none."""
    return f"{settings.SITE_URL}{address}" if address.startswith("/") else address


# --- Accounts --------------------------------------------------------------------------------------------
class Field(msgspec.Struct):
    """A profile field. Links are not verified."""

    name: str
    value: str
    verified_at: str | None = None


class Approval(msgspec.Struct, gc=False, frozen=True):
    """Who may do something with another's post or account, and whether the caller may. Nobody approves single cases."""

    automatic: list[str] = []
    manual: list[str] = []
    current_user: str = "denied"


class Account(msgspec.Struct, gc=False):
    """A user's account, the same for all readers. `statuses_count` counts posts for followers up to 1,000, and may lag
    by minutes.
    """

    id: str
    username: str
    acct: str
    display_name: str
    locked: bool
    bot: bool
    discoverable: bool | None
    indexable: bool
    group: bool
    created_at: str
    note: str
    url: str
    uri: str
    avatar: str
    avatar_static: str
    header: str
    header_static: str
    followers_count: int
    following_count: int
    statuses_count: int
    last_status_at: str | None
    hide_collections: bool | None
    noindex: bool
    emojis: list[Any]
    roles: list[Any]
    fields: list[Field]
    avatar_description: str = ""
    header_description: str = ""
    show_media: bool = True
    show_media_replies: bool = True
    show_featured: bool = False
    feature_approval: Approval = Approval()

    @classmethod
    def of(cls, user: User, statuses_count: int) -> "Account":
        """The user's account."""
        return cls(*_account(AccountFacts.of(user), statuses_count))


class AccountFacts(NamedTuple):
    """What an account shows of its user. It is a cache key, so pictures and fields are JSON text."""

    id: int
    username: str
    display_name: str
    bio: str
    profile_fields: str
    is_locked: bool
    is_indexable: bool
    avatar: str | None
    banner: str | None
    date_joined: datetime
    follower_count: int
    following_count: int

    @classmethod
    def of(cls, user: User) -> "AccountFacts":
        """The facts of a loaded user."""
        kept = {name: getattr(user, name) for name in ("avatar", "banner", "profile_fields")}
        texts = {name: None if facts is None else msgspec.json.encode(facts).decode() for name, facts in kept.items()}
        facts = cls._make(texts[name] if name in texts else getattr(user, name) for name in cls._fields)
        return facts._replace(following_count=user.following_count - user.uncounted_followees)


@lru_cache(KEPT)
def account_of(facts: AccountFacts, statuses_count: int) -> Account:
    """The cached account of these facts. Shared, so never change it."""
    return Account(*_account(facts, statuses_count))


def _account(facts: AccountFacts, statuses_count: int) -> tuple[Any, ...]:
    name = facts.display_name or facts.username
    address = html.profile_address(facts.username)
    avatar = avatar_url(facts.avatar, facts.username, name)
    still = absolute(small_avatar_url(avatar))
    banner = msgspec.json.decode(facts.banner) if facts.banner else None
    header = absolute(banner_url(banner, facts.username))
    return (
        str(facts.id),
        facts.username,
        facts.username,
        name,
        facts.is_locked,
        False,
        facts.is_indexable,
        facts.is_indexable,
        False,
        time_text(facts.date_joined),
        html.html_without_mentions(facts.bio),
        address,
        address,
        absolute(avatar),
        still,
        header,
        header,
        facts.follower_count,
        facts.following_count,
        statuses_count,
        None,
        False,
        not facts.is_indexable,
        [],
        [],
        [Field(name, html.inline_html(value)) for name, value in _pairs(facts.profile_fields)],
    )


def _pairs(profile_fields: str) -> list[tuple[str, str]]:
    return [(one["name"], one["value"]) for one in msgspec.json.decode(profile_fields)]


class Source(msgspec.Struct):
    """The parts of an account that only its user sees and edits, as typed."""

    privacy: Visibility
    sensitive: bool
    language: str
    note: str
    fields: list[Field]
    follow_requests_count: int
    hide_collections: bool | None
    discoverable: bool | None
    indexable: bool
    attribution_domains: list[str] = []
    quote_policy: str = "public"


class Role(msgspec.Struct):
    """The role of an account, the same for all: apps get no moderator rights."""

    id: str
    name: str
    color: str
    permissions: str
    highlighted: bool
    collection_limit: int = 0


class CredentialAccount(Account, kw_only=True):
    """The caller's own account."""

    source: Source
    role: Role

    @classmethod
    def own(cls, user: User, statuses_count: int, waiting: int) -> "CredentialAccount":
        """The account of its own user. `waiting`: the number of follow requests."""
        source = Source(
            privacy=SHOWN_AS[user.post_visibility],
            sensitive=user.post_sensitive,
            language=user.post_language,
            note=user.bio,
            fields=[Field(one["name"], one["value"]) for one in user.profile_fields],
            follow_requests_count=waiting,
            hide_collections=False,
            discoverable=user.is_indexable,
            indexable=user.is_indexable,
            quote_policy=QUOTE_POLICIES[user.quotable_by],
        )
        role = Role(id="-99", name="", color="", permissions="0", highlighted=False)
        return cls(*_account(AccountFacts.of(user), statuses_count), source=source, role=role)


class MutedAccount(Account, kw_only=True):
    """A user whom the caller mutes."""

    mute_expires_at: str | None


class Relationship(msgspec.Struct):
    """The caller's relation to a user."""

    id: str
    following: bool
    showing_reblogs: bool
    notifying: bool
    languages: list[str] | None
    followed_by: bool
    blocking: bool
    blocked_by: bool
    muting: bool
    muting_notifications: bool
    requested: bool
    requested_by: bool
    domain_blocking: bool
    endorsed: bool
    note: str
    muting_expires_at: str | None


# --- Statuses --------------------------------------------------------------------------------------------
class Mention(msgspec.Struct, gc=False):
    """A mentioned user."""

    id: str
    username: str
    url: str
    acct: str


class Tag(msgspec.Struct, gc=False):
    """A hashtag. Its id is its canonical form."""

    id: str
    name: str
    url: str


class Attachment(msgspec.Struct):
    """A picture or video. `url` is null until a video is converted."""

    id: str
    type: str
    url: str | None
    preview_url: str | None
    remote_url: str | None
    preview_remote_url: str | None
    meta: dict[str, Any]
    description: str | None
    blurhash: str | None

    @classmethod
    def of(cls, medium: MediaObject) -> "Attachment":
        meta: dict[str, Any] = msgspec.to_builtins(medium.meta)
        if medium.is_video and medium.meta.duration is not None:
            meta["original"]["duration"] = medium.meta.duration
        return cls(
            medium.id,
            medium.type,
            absolute(medium.url) or None,
            absolute(medium.preview_url) if medium.has_still and medium.preview_url else None,
            None,
            None,
            meta,
            medium.description or None,
            medium.blurhash or None,
        )


class FilterKeyword(msgspec.Struct):
    """A word of a filter."""

    id: str
    keyword: str
    whole_word: bool


class Filter(msgspec.Struct):
    """A filter. `keywords` are filled only where the caller manages filters."""

    id: str
    title: str
    context: list[str]
    expires_at: str | None
    filter_action: str
    keywords: list[FilterKeyword] | UnsetType = UNSET
    statuses: list[Any] | UnsetType = UNSET


class FilterResult(msgspec.Struct):
    """A matching filter and its words."""

    filter: Filter
    keyword_matches: list[str] | None
    status_matches: list[str] | None


class Quote(msgspec.Struct):
    """A quote in a status. The quoted status is null unless the state is `accepted`."""

    state: str
    quoted_status: "Status | None"


class ShallowQuote(msgspec.Struct):
    """A quote inside a quoted status."""

    state: str
    quoted_status_id: str | None


class PollOption(msgspec.Struct):
    """An answer of a poll. `votes_count` is null if the caller may not know it."""

    title: str
    votes_count: int | None


class Poll(msgspec.Struct):
    """A poll. Its id is the status's."""

    id: str
    expires_at: str
    expired: bool
    multiple: bool
    votes_count: int
    voters_count: int
    options: list[PollOption]
    emojis: list[Any]
    voted: bool | UnsetType = UNSET
    own_votes: list[int] | UnsetType = UNSET

    @classmethod
    def of(cls, item: ItemBody, *, is_signed_in: bool) -> "Poll | None":
        """The poll of an item, or None. Only users get `voted` and `own_votes`. The sender counts as having voted."""
        poll = item.poll
        if poll is None:
            return None
        counts = [option.votes for option in poll.options]
        is_own = item.status is not UNSET
        return cls(
            item.id,
            time_text(poll.closes_at),
            poll.closed,
            poll.multiple,
            sum(count for count in counts if count is not None) or poll.voters,
            poll.voters,
            [PollOption(option.text, count) for option, count in zip(poll.options, counts, strict=True)],
            [],
            (is_own or poll.voted is not None) if is_signed_in else UNSET,
            (poll.voted or []) if is_signed_in else UNSET,
        )


class PreviewCard(msgspec.Struct):
    """The page of a status's first link."""

    url: str
    title: str
    description: str
    type: str
    author_name: str
    author_url: str
    provider_name: str
    provider_url: str
    html: str
    width: int
    height: int
    image: str | None
    embed_url: str
    blurhash: str | None
    authors: list[Any]
    missing_attribution: bool | None = None

    @classmethod
    def of(cls, card: LinkCardBody) -> "PreviewCard":
        """The card of an item."""
        picture, (scheme, host, *_) = card.picture, urlsplit(card.url)
        return cls(
            url=card.url,
            title=card.title,
            description=card.description,
            type="link",
            author_name="",
            author_url="",
            provider_name=card.site,
            provider_url=f"{scheme}://{host}",
            html="",
            width=picture.meta.original.width if picture else 0,
            height=picture.meta.original.height if picture else 0,
            image=absolute(picture.url) if picture else None,
            embed_url="",
            blurhash=picture.blurhash if picture else None,
            authors=[],
        )


class Status(msgspec.Struct):
    """An item as Mastodon's Status."""

    id: str
    created_at: str
    in_reply_to_id: str | None
    in_reply_to_account_id: str | None
    sensitive: bool
    spoiler_text: str
    visibility: Visibility
    language: str | None
    uri: str
    url: str
    replies_count: int
    reblogs_count: int
    favourites_count: int
    quotes_count: int
    edited_at: str | None
    favourited: bool
    reblogged: bool
    muted: bool
    bookmarked: bool
    content: str
    filtered: list[FilterResult]
    reblog: "Status | None"
    account: Account
    media_attachments: list[Attachment]
    mentions: list[Mention]
    tags: list[Tag]
    emojis: list[Any]
    card: PreviewCard | None
    poll: Poll | None
    quote: Quote | ShallowQuote | None
    quote_approval: Approval
    tagged_collections: list[Any]
    pinned: bool | UnsetType = UNSET
    text: str | UnsetType = UNSET
    """The text as typed. Only a deleted status has it, so that it can be rewritten."""


class Announcement(msgspec.Struct):
    """The site's announcement, with the times of its last change. Only users get `read`."""

    id: str
    content: str
    starts_at: str | None
    ends_at: str | None
    all_day: bool
    published: bool
    published_at: str
    updated_at: str
    read: bool | UnsetType
    mentions: list[Any]
    statuses: list[Any]
    tags: list[Any]
    emojis: list[Any]
    reactions: list[Any]


class StatusSource(msgspec.Struct):
    """A status as it was typed."""

    id: str
    text: str
    spoiler_text: str


class ConversationBody(msgspec.Struct):
    """Mastodon's Conversation."""

    id: str
    unread: bool
    accounts: list[Account]
    last_status: Status


class StatusEdit(msgspec.Struct):
    """A past or the present version of a status."""

    content: str
    spoiler_text: str
    sensitive: bool
    created_at: str
    account: Account
    media_attachments: list[Attachment]
    emojis: list[Any]
    poll: Any = UNSET


class Context(msgspec.Struct):
    """The statuses above and below one in its thread."""

    ancestors: list[Status]
    descendants: list[Status]
