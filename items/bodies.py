"""Items as readers get them, as JSON and on pages."""

from typing import Annotated, Any, Literal

import msgspec
from django.utils.translation import gettext, pgettext
from msgspec import UNSET, UnsetType

from accounts.cards import UserCard
from items.content import link_in, text_in
from items.models import was_edited
from items.text import poll_options
from media.objects import MediaObject, MediumFacts, object_from_facts
from web.times import Time

Object = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]


class Sender(UserCard):
    """An item's sender."""


class Counts(msgspec.Struct):
    """Counts of an item. A reply counts under the item that it answers and under the root."""

    likes: int
    replies: int
    reposts: int
    quotes: int = 0


class Quote(msgspec.Struct):
    """The item that another quotes.

    `item` is null if the reader may not see it, and inside a quoted item. `state` is `accepted`, `revoked` by its
    sender, `deleted`, or `unauthorized` for every other reason.
    """

    id: str
    item: "ItemBody | None"
    state: Annotated[
        Literal["accepted", "revoked", "deleted", "unauthorized"], msgspec.Meta(extra_json_schema={"type": "string"})
    ]


class Option(msgspec.Struct):
    """An answer of a poll. `votes` is null while the reader may not know it."""

    text: str
    votes: int | None


class Poll(msgspec.Struct):
    """A poll as its reader gets it. `voted`: the places of the reader's choices, from 0, or null."""

    options: list[Option]
    multiple: bool
    closes_at: Time
    closed: bool
    voters: int
    voted: list[int] | None


class LinkFacts(msgspec.Struct):
    """What a link card shows."""

    url: str
    title: str
    description: str
    site: str
    picture: MediumFacts | None


class LinkCardBody(msgspec.Struct):
    """The page that the first link of a public item leads to, as it names itself."""

    url: str
    title: str
    description: str
    site: str
    picture: MediaObject | None


_facts = msgspec.json.Decoder(LinkFacts)


def link_card(facts: str) -> LinkCardBody:
    """The card of an item from its column."""
    said = _facts.decode(facts)
    picture = object_from_facts(said.picture) if said.picture else None
    return LinkCardBody(said.url, said.title, said.description, said.site, picture)


class ItemBody(msgspec.Struct):
    """An item as a reader gets it. Ids are decimal strings, times UTC."""

    id: str
    type: str
    title: str
    content: Object
    extra_info: Object
    media: list[MediaObject]
    visibility: str
    sender: Sender
    created_at: Time
    modified_at: Time
    reply_to: str | None
    repost_of: "ItemBody | None"
    quote: Quote | None
    quotable_by: str
    """Who may quote the item while it is public: everyone, followers, nobody."""
    repliable_by: str
    """Who may reply in the item's thread, besides the sender of its first item: everyone, followers, mentioned,
    nobody.
    """
    can_reply: bool
    """Whether the reader may reply."""
    poll: Poll | None
    counts: Counts
    liked: bool
    reposted: bool
    bookmarked: bool
    """Whether the reader bookmarked the item. Nobody else learns of it."""
    reason: str | None
    link_card: LinkCardBody | None = None
    """The page that its first link leads to; null where there is none, or it was not read yet."""
    continued: bool | UnsetType = UNSET
    """True if it was published in a thread and is not its last item. Else unset."""
    status: str | UnsetType = UNSET
    """The item's status. Unset for all but its sender."""
    review: str | UnsetType = UNSET
    """While the status is `in_review`: why moderators check it first, and how long that takes lately."""
    filtered: list[str] = []
    """The phrases of the reader's filters that match the item or a repost's original (items.filters)."""
    filter_action: str | UnsetType = UNSET
    """What these filters ask for: warn or hide. Unset without a match."""

    @property
    def content_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.json.decode(self.content)
        return fields

    @property
    def text(self) -> str:
        """The text of the content."""
        return text_in(self.content_fields)

    @property
    def url(self) -> str:
        """The https link of the content, or ""."""
        return link_in(self.content_fields)

    @property
    def warning(self) -> str:
        """A warning under which the content is folded."""
        return text_in(self.content_fields, "warning")

    @property
    def is_sensitive(self) -> bool:
        """Whether the sender marked the pictures as sensitive."""
        return self.content_fields.get("sensitive") is True

    @property
    def removed(self) -> int:
        """Pictures removed by moderators. Others see 0, unless nothing else is left."""
        if self.type not in ("image", "video"):
            return 0
        named = self.content_fields.get("media")
        missing = len(named) - len(self.media) if isinstance(named, list) else 0
        is_told = self.status is not UNSET or not (self.media or self.words)
        return max(0, missing) if is_told else 0

    @property
    def is_veiled(self) -> bool:
        """Whether the pictures are hidden at first."""
        return self.is_sensitive or bool(self.warning)

    @property
    def words(self) -> str:
        """A short text, which reveals nothing under a warning or filter."""
        if self.filtered and not self.is_blurred:
            return gettext("Muted word: %(phrases)s") % {"phrases": pgettext("between names", ", ").join(self.filtered)}
        return self.warning or self.text or self.title or self.url or ", ".join(poll_options(self.content_fields))

    @property
    def is_blurred(self) -> bool:
        """Whether the reader's filters blur its pictures, and no more."""
        return self.filter_action == "blur"

    @property
    def is_hidden(self) -> bool:
        """Whether the reader's filters hide it."""
        return self.filter_action == "hide"

    @property
    def shown(self) -> "ItemBody":
        """The item that a card shows: a repost's original."""
        return self.repost_of or self

    @property
    def is_edited(self) -> bool:
        """Whether the item was edited."""
        return was_edited(self.created_at, self.modified_at)
