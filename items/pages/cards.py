"""Cards: an item as a template shows it. Templates look nothing up."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import get_language, gettext_lazy, ngettext, pgettext
from django.utils.translation import gettext as _
from msgspec import UNSET

from accounts.models import QuotableBy, User
from accounts.people import Face, face, name_of, profile_address
from items.bodies import ItemBody, LinkCardBody, Poll, Quote, Sender
from items.content import link_in, text_in
from items.pages.addresses import item_address, tag_address
from items.pages.drawing import digest, drawn, facts_of, filled, slotted_moment
from items.pages.pictures import figures, ground
from items.pages.reading import (
    Moment,
    card_version,
    domain,
    excerpt,
    full_time,
    is_long,
    linked,
    moment,
    short_link,
    time_left,
)
from items.quotes import is_own_quotable, quote_policy
from items.search.query import Query
from items.text import mentions
from items.threads.threads import Branch
from items.versions import Version
from media.objects import MediaObject
from media.sources import sources
from relations.visibility import visible_names

WIDE_PIXELS, WIDE_ASPECT = 480, 1.4
"""From which width and aspect on the picture of a link card stands above its words."""
DESCRIPTION_LETTERS = 160
MENTION_SIGNS = tuple(sign.encode() for sign in "@\uff20")
"""One of these stands before each mention."""
Macro = Callable[..., str]
"""A macro of a template."""


LIMITS = {
    "followers": gettext_lazy("Only followers can reply."),
    "mentioned": gettext_lazy("Only people mentioned in the first post can reply."),
    "nobody": gettext_lazy("Only the author can reply."),
}
"""Sentences of who alone may reply."""


class CardWords(NamedTuple):
    """The words of cards in one language, as HTML."""

    new: str
    edited: str
    followers: str
    mutuals: str
    self: str
    mentioned: str
    in_review: str
    rejected: str
    in_reply: str
    filtered: str
    show: str
    hide: str
    sensitive: str
    read_on: str
    replies: str
    reply: str
    repost: str
    undo_repost: str
    like: str
    unlike: str
    bookmark: str
    remove_bookmark: str
    more: str
    quotes: str
    not_available: str
    vote: str
    answers: str
    several: str
    your_vote: str
    show_thread: str
    why: str


def card_words() -> CardWords:
    """The words of cards in the current language."""
    return _words(get_language())


@cache
def _words(_language: str | None) -> CardWords:
    words = (
        *(_("new"), _("edited"), _("followers only"), _("mutual follows only"), _("only you"), _("private")),
        *(_("in review"), _("removed"), _("In reply to a post"), _("Muted word:"), _("Show"), _("Hide")),
        *(_("Sensitive. Show"), _("Show more"), _("Replies"), _("Reply"), _("Repost"), _("Undo repost")),
        *(_("Like"), _("Unlike"), pgettext("act", "Bookmark"), _("Remove bookmark"), _("More")),
        *(_("Quotes another post"), _("This post isn't available.")),
        *(_("Vote"), _("Options"), _("Choose one or more."), _("Your vote"), _("Show thread")),
        _("Removed by moderators. See why"),
    )
    return CardWords(*map(escape, words))


@dataclass(frozen=True, slots=True)
class ContentHtml:
    """An item's content, as HTML."""

    title: SafeString | None
    is_headline: bool
    language: str
    text: SafeString | None
    is_folded: bool
    """Whether the text continues behind a link to `address`."""
    address: str
    link: str
    link_domain: str
    link_words: str
    warning: str
    filtered: str
    """The phrases of the reader's filters that it matches."""
    figures: SafeString | None
    pictures: int
    pictures_label: str
    ground: SafeString | None
    """Shown in place of sensitive pictures."""
    removed: str
    """The words about pictures removed by moderators."""
    quoted: "Quoted | None" = None
    poll: "PollCard | None" = None
    page: "LinkedPage | None" = None


class PollAnswer(NamedTuple):
    """An answer of a poll, with its share in percent."""

    text: str
    share: int
    votes: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class PollCard:
    """The poll of an item: a form while the reader may vote, else the numbers."""

    item_id: str
    address: str
    answers: list[PollAnswer]
    is_multiple: bool
    may_vote: bool
    shows_votes: bool
    voters: str
    """How many voted."""
    end: str
    """How long voting goes on, or that it ended."""
    closes_at: Moment


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """The page of the first link. Its host is shown, not the name that it gives itself."""

    address: str
    host: str
    title: str
    description: str
    picture: SafeString | None
    """`src` and `srcset` of its picture."""
    width: int
    height: int
    ground: SafeString | None
    is_wide: bool
    """Whether the picture stands above the words, and not beside them."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """An item inside one that quotes it: a link without `content`, not available without `address`."""

    id: str
    address: str
    sender: Face | None = None
    created: Moment | None = None
    content: ContentHtml | None = None


@dataclass
class Card:
    """An entry of a list (templates/items/_card.html). Facts are computed when a template asks for them."""

    page: "Cards"
    item: ItemBody
    answered: SafeString | None = None
    """Who the reply answers, if the answered item is not shown next to it."""
    answered_is_big_v: bool = False
    answers: str = ""
    """The address of the item that it answers."""
    others: int = 0
    """Further reposters."""
    is_whole: bool = False
    """Whether nothing is folded, and a single picture is large."""
    is_late: bool = False
    """Whether the item arrived below the top of an open page."""
    followable: User | None = None
    """The sender, if the card offers to follow them."""
    viewed_at: datetime | None = None
    """When the reader opened the item, in the reading history."""
    is_unwanted: bool = False
    """Whether it is in the list of what the reader is not interested in."""

    def __post_init__(self) -> None:
        self.shown = self.item.shown
        self.id, self.shown_id, self.counts = self.item.id, self.shown.id, self.shown.counts
        self.address = item_address(self.shown_id)

    def html(
        self,
        fixed: Macro,
        slots: Mapping[str, Macro],
        *,
        in_thread: bool,
        discovering: bool,
        place: str,
        further: Iterable[tuple[str, str]],
    ) -> SafeString:
        """The card as HTML. The macro `fixed` draws what is the same for all readers, those of `slots` the rest."""
        at = (in_thread, discovering, place, tuple(further))

        def draw() -> str:
            with self.page.slotted():
                return fixed(replace(self), *at)

        parts = drawn(self._key(at), draw)
        return filled(parts, slots, self)

    def _key(self, at: Hashable) -> Hashable | None:
        """What `fixed` shows. None: it shows what is for this reader alone, or changes by itself."""
        if self.is_whole or self.is_unwanted or self.viewed_at:
            return None
        about = (
            self.answered,
            self.answered_is_big_v,
            self.answers,
            self.others,
            self.is_own_repost,
            self.is_continued,
        )
        return self.page.key_of(self.item, at, about, self.is_late, self.followable is not None)

    def footer(self, buttons: Macro, out_of_band: bool) -> SafeString:
        """The buttons with their counts, drawn by `buttons`."""
        counts, shown = self.counts, self.shown
        key = (
            *(self.page.voice, self.shown_id, self.via_name and self.id, shown.visibility),
            *(counts.replies, counts.reposts, counts.likes, shown.liked, shown.reposted, shown.bookmarked),
            *(shown.can_reply, shown.repliable_by, self.is_quotable, out_of_band),
        )
        return filled(drawn(key, partial(buttons, self, out_of_band)), {}, self)

    def follow(self, unfilled: Macro, slots: Mapping[str, Macro]) -> SafeString:
        """The button that follows the sender, drawn by `unfilled`. `slots` draw what only the page knows."""
        person = self.followable
        key = person and (self.page.voice, person.username, person.is_locked, self.id)
        return filled(drawn(key, partial(unfilled, self)), slots, self)

    @property
    def version(self) -> int:
        """A number for scripts. The newer of two cards of a post has the higher one."""
        return card_version(self.shown.modified_at)

    @property
    def sender(self) -> Face:
        """Who wrote it."""
        return self.page.face(self.shown.sender)

    @cached_property
    def via(self) -> SafeString | None:
        """Who reposted it."""
        return _reposted_by(self.item.sender, self.others, is_own=self.is_own_repost) if self.via_name else None

    @property
    def is_own_repost(self) -> bool:
        """Whether the reader reposted it."""
        return bool(self.via_name) and self.page.is_of_reader(self.item)

    @property
    def via_name(self) -> str:
        """The username of who reposted it, or ""."""
        return self.item.sender.username if self.item.repost_of else ""

    @property
    def via_moment(self) -> Moment:
        """When it was reposted."""
        return self.page.moment(self.item.created_at)

    @cached_property
    def created(self) -> Moment:
        """When it was published."""
        return self.page.moment(self.shown.created_at)

    @property
    def edited(self) -> str:
        """The time of the last edit, or ""."""
        return full_time(self.shown.modified_at) if self.shown.is_edited else ""

    @property
    def visibility(self) -> str:
        """Who may see it."""
        return self.shown.visibility

    @property
    def status(self) -> str:
        """For the reader's own unpublished item: in_review or rejected."""
        return "" if self.shown.status is UNSET or self.shown.status == "published" else self.shown.status

    @property
    def review(self) -> str:
        """Why moderators check the reader's own item first, and how long that takes lately."""
        return self.shown.review or ""

    @cached_property
    def content(self) -> ContentHtml:
        """What it says."""
        return self.page.content(self.shown, is_whole=self.is_whole)

    @property
    def replies_label(self) -> str:
        """The number of replies."""
        return _replies(self.counts.replies)

    @property
    def can_reply(self) -> bool:
        """Whether the reader may reply."""
        return self.shown.can_reply

    @property
    def liked(self) -> bool:
        """Whether the reader likes it."""
        return self.shown.liked

    @property
    def reposted(self) -> bool:
        """Whether the reader reposted it."""
        return self.shown.reposted

    @property
    def bookmarked(self) -> bool:
        """Whether the reader bookmarked it."""
        return self.shown.bookmarked

    @property
    def limit(self) -> str:
        """Who alone may reply, or ""."""
        return str(LIMITS.get(self.shown.repliable_by, ""))

    @cached_property
    def is_quotable(self) -> bool:
        """Whether to offer quoting. True also if only followers may quote: the card does not know who follows."""
        return quote_policy(self.shown) != QuotableBy.NOBODY or self.page.may_quote_own(self.shown)

    @property
    def is_continued(self) -> bool:
        """Whether it was published with a reply that goes on, and has replies."""
        return self.shown.continued is True and self.counts.replies > 0

    @property
    def reason(self) -> str:
        """Why it is on the page."""
        return self.item.reason or ""

    @property
    def tag(self) -> str:
        """The followed hashtag, if that is the only reason why it is in home."""
        return self.reason[1:] if self.reason.startswith("#") else ""

    @property
    def tag_address(self) -> str:
        """The page of `tag`."""
        return tag_address(self.tag)

    @property
    def viewed(self) -> Moment | None:
        """When the reader opened it."""
        return self.page.moment(self.viewed_at) if self.viewed_at else None

    @property
    def reposts_label(self) -> SafeString:
        """The number of reposts."""
        return _counted(ngettext("%(count)s repost", "%(count)s reposts", self.counts.reposts), self.counts.reposts)

    @property
    def quotes_label(self) -> SafeString:
        """The number of quotes."""
        return _counted(ngettext("%(count)s quote", "%(count)s quotes", self.counts.quotes), self.counts.quotes)

    @property
    def likes_label(self) -> SafeString:
        """The number of likes."""
        return _counted(ngettext("%(count)s like", "%(count)s likes", self.counts.likes), self.counts.likes)


@dataclass(frozen=True, slots=True)
class ThreadCard:
    """A card in a thread, with links to further replies."""

    card: Card
    is_answer: bool
    """Whether it is nested under the reply before it."""
    further: list[tuple[str, str]]
    """Address and words of each link."""


class Cards:
    """Makes the cards of one page for its reader."""

    def __init__(
        self,
        reader: User | AnonymousUser,
        items: Iterable[ItemBody] = (),
        texts: Sequence[str] = (),
        *,
        sought: Query | None = None,
    ) -> None:
        """Take all items and texts of the page, so that the names in them are looked up at once."""
        self._reader = reader
        self._sought = sought
        self._faces: dict[str, Face] = {}
        self._has_figures = False
        self.moment: Callable[[datetime], Moment] = moment
        self._names: dict[str, bool] = {}
        self._texts = texts
        self._items = [*items]

    def of(
        self, items: Iterable[ItemBody], *, answered: Mapping[str, Sender] | None = None, keeps_hidden: bool = False
    ) -> list[Card]:
        """The cards of items. Filtered ones are left out, or folded with `keeps_hidden`."""
        senders = answered or {}
        shown = [item for item in items if keeps_hidden or not item.is_hidden]
        self._items += shown
        return [self.one(item, answered=senders.get(item.reply_to or "")) for item in shown]

    def one(self, item: ItemBody, *, answered: Sender | None = None, **facts: Any) -> Card:
        """The card of an item. `facts`: more fields of `Card`."""
        return Card(
            self,
            item,
            answered=_answered(answered) if answered else None,
            answered_is_big_v=answered is not None and answered.is_big_v,
            answers=item_address(item.reply_to) if item.reply_to else "",
            **facts,
        )

    @contextmanager
    def slotted(self) -> Iterator[None]:
        """Draw times whose ages are put in later."""
        self.moment = slotted_moment
        try:
            yield
        finally:
            self.moment = moment

    def key_of(self, item: ItemBody, *more: Hashable) -> Hashable | None:
        """The key of what a card shows to all readers. None: it is drawn each time."""
        shown = item.shown
        quoted = shown.quote.item if shown.quote else None
        if shown.poll or (quoted and quoted.poll):
            return None
        facts = facts_of(item)
        named: tuple[str, ...] = ()
        if any(sign in facts for sign in MENTION_SIGNS):
            named = tuple(name for text in _texts([item]) for name in mentions(text) if self._is_known_name(name))
        has_figures = bool(shown.media or (quoted and quoted.media))
        is_first, self._has_figures = has_figures and not self._has_figures, self._has_figures or has_figures
        return (digest(facts), self.voice, self._sought, is_first, named, *more)

    @cached_property
    def voice(self) -> Hashable:
        """What all cards of the page have in common: language, time zone, and whether the reader is a member."""
        return get_language(), get_current_timezone_name(), self._reader.is_authenticated

    def is_of_reader(self, item: ItemBody) -> bool:
        """Whether the reader is the item's sender."""
        return item.sender.username == self._reader.username

    def may_quote_own(self, item: ItemBody) -> bool:
        """Whether an item is the reader's, and may be quoted by them."""
        return is_own_quotable(item, self._reader.pk)

    def thread(self, asked: ItemBody, branches: Iterable[Branch], chain: Iterable[ItemBody] = ()) -> list[ThreadCard]:
        """The replies to an item and its chain. Filtered ones are folded if visible ones follow."""
        entries = []
        further = {item.id for item in chain}
        for branch in branches:
            answers = [answer for answer in branch.answers if not answer.item.is_hidden]
            if branch.item.is_hidden and not answers:
                continue
            card = self.one(branch.item)
            if branch.item.reply_to in further:
                card = replace(card, answered=SafeString(escape(_("In reply to a post"))))
            elif branch.item.reply_to != asked.shown.id:
                words = SafeString(escape(_("You can't see the post this replies to.")))
                card = replace(card, answered=words, answers="")
            entries.append(ThreadCard(card, False, []))
            entries += [
                ThreadCard(self.one(one.item), True, _more_replies_links(one.item, one.hidden)) for one in answers
            ]
            entries[-1].further.extend(_more_replies_links(branch.item, branch.hidden))
        return entries

    def content(self, item: ItemBody, *, is_whole: bool = False) -> ContentHtml:
        """An item's content. `is_whole`: not folded, a single picture large."""
        fields, media = item.content_fields, item.media
        filtered = "" if item.is_blurred else pgettext("between names", ", ").join(item.filtered)
        if item.is_blurred:
            fields = {**fields, "sensitive": True}
        said = self._content(item.title, fields, item.id, media, filtered, item.removed, item.type, is_whole=is_whole)
        if item.poll:
            is_own = item.sender.username == self._reader.username
            said = replace(said, poll=_poll(item, item.poll, may_vote=self._reader.is_authenticated and not is_own))
        if item.link_card:
            said = replace(said, link="", page=linked_page(item.link_card, has_picture=not item.is_veiled))
        return replace(said, quoted=self._quoted(item.quote)) if item.quote else said

    def _quoted(self, quote: Quote) -> Quoted:
        return self.quoted(quote.item) if quote.item else Quoted(quote.id, "")

    def quoted(self, item: ItemBody) -> Quoted:
        """An item inside one that quotes it."""
        content = self.content(msgspec.structs.replace(item, quote=None, link_card=None))
        if item.quote and item.quote.state == "accepted":
            content = replace(content, quoted=Quoted(item.quote.id, item_address(item.quote.id)))
        return Quoted(item.id, item_address(item.id), self.face(item.sender), self.moment(item.created_at), content)

    def version(self, said: Version) -> ContentHtml:
        """A version's full text, without pictures."""
        return self._content(said.title, said.content, "", (), "", 0, "", is_whole=True)

    def _content(
        self,
        title: str,
        fields: Mapping[str, Any],
        item_id: str,
        media: Iterable[MediaObject],
        filtered: str,
        removed: int,
        kind: str,
        *,
        is_whole: bool,
    ) -> ContentHtml:
        text, warning, link = text_in(fields), text_in(fields, "warning"), link_in(fields)
        is_folded = not is_whole and is_long(text)
        pictures = list(media)
        return ContentHtml(
            title=linked(title, self._is_known_name, self._sought) if title else None,
            is_headline=kind == "article",
            language=text_in(fields, "language"),
            text=linked(text, self._is_known_name, self._sought, is_folded=is_folded) if text else None,
            is_folded=is_folded,
            address=item_address(item_id),
            link=link,
            link_domain=domain(link) if link else "",
            link_words=short_link(link) if link else "",
            warning=warning,
            filtered=filtered,
            figures=self._figures(pictures, is_whole=is_whole) if pictures else None,
            pictures=len(pictures),
            pictures_label=ngettext("%(count)s picture", "%(count)s pictures", len(pictures)) % {"count": len(pictures)}
            if len(pictures) > 1
            else "",
            ground=ground(pictures[0]) if pictures and fields.get("sensitive") is True else None,
            removed=_removed(removed) if removed else "",
        )

    def linked(self, text: str) -> SafeString:
        """A text that is not an item's, as HTML."""
        return linked(text, self._is_known_name, self._sought)

    def _figures(self, pictures: list[MediaObject], *, is_whole: bool) -> SafeString:
        is_first, self._has_figures = not self._has_figures, True
        return figures(pictures, whole=is_whole, is_first=is_first)

    def face(self, sender: Sender) -> Face:
        found = self._faces.get(sender.username)
        if found is None:
            found = self._faces[sender.username] = face(sender)
        return found

    def _is_known_name(self, name: str) -> bool:
        """Whether a mention leads to a user whom the reader may know of. Looks up all names of the page at once."""
        name = name.lower()
        if name not in self._names:
            texts = chain(self._texts, _texts(self._items))
            asked = {name, *(one.lower() for text in texts for one in mentions(text))}
            found = visible_names(asked, self._reader)
            self._names |= {one: one in found for one in asked}
        return self._names[name]


def _poll(item: ItemBody, poll: Poll, *, may_vote: bool) -> PollCard:
    votes = [option.votes or 0 for option in poll.options]
    chosen = poll.voted or []
    answers = [
        PollAnswer(option.text, round(100 * count / (poll.voters or 1)), _votes(count), place in chosen)
        for place, (option, count) in enumerate(zip(poll.options, votes, strict=True))
    ]
    return PollCard(
        item_id=item.id,
        address=item_address(item.id),
        answers=answers,
        is_multiple=poll.multiple,
        may_vote=may_vote and not poll.closed and poll.voted is None,
        shows_votes=poll.options[0].votes is not None,
        voters=_voters(poll.voters),
        end=pgettext("poll", "ended") if poll.closed else time_left(poll.closes_at),
        closes_at=moment(poll.closes_at),
    )


def _voters(count: int) -> str:
    return ngettext("%(count)s person voted", "%(count)s people voted", count) % {"count": count}


def _votes(count: int) -> str:
    return ngettext("%(count)s vote", "%(count)s votes", count) % {"count": count}


def linked_page(card: LinkCardBody, *, has_picture: bool) -> LinkedPage:
    """The page of a link card for templates."""
    picture = card.picture if has_picture else None
    size = picture.meta.original if picture else None
    is_wide = size is not None and size.width >= WIDE_PIXELS and size.aspect >= WIDE_ASPECT
    return LinkedPage(
        address=card.url,
        host=domain(card.url),
        title=card.title,
        description=excerpt(card.description, DESCRIPTION_LETTERS),
        picture=sources(picture, "wide-link" if is_wide else "link") if picture else None,
        width=size.width if size else 0,
        height=size.height if size else 0,
        ground=ground(picture) if picture else None,
        is_wide=is_wide,
    )


def _texts(items: Iterable[ItemBody]) -> list[str]:
    shown = [item.shown for item in items]
    shown += [item.quote.item for item in shown if item.quote and item.quote.item]
    return [text for item in shown for text in (item.title, item.text)]


def _reposted_by(sender: Sender, others: int, *, is_own: bool) -> SafeString:
    if is_own:
        words = ngettext("You and %(count)s other reposted", "You and %(count)s others reposted", others)
        return format_html("{}", words % {"count": others} if others else _("You reposted"))
    who = name_of(sender, profile_address(sender.username))
    if not others:
        return SafeString(_("%(who)s reposted") % {"who": who})
    words = ngettext("%(who)s and %(count)s other reposted", "%(who)s and %(count)s others reposted", others)
    return SafeString(words % {"who": who, "count": others})


def _answered(sender: Sender) -> SafeString:
    return SafeString(escape(_("replying to @%(name)s") % {"name": sender.username}))


def _counted(words: str, count: int) -> SafeString:
    return SafeString(escape(words) % {"count": f"<b>{count}</b>"})


def _replies(count: int) -> str:
    return ngettext("%(count)s reply", "%(count)s replies", count) % {"count": count} if count else ""


def _more_replies_links(item: ItemBody, hidden: int) -> list[tuple[str, str]]:
    if not hidden:
        return []
    words = ngettext("Show %(count)s more reply", "Show %(count)s more replies", hidden) % {"count": hidden}
    return [(f"{item_address(item.id)}#replies", words)]


def _removed(count: int) -> str:
    words = ngettext("Moderators removed a picture.", "Moderators removed %(count)s pictures.", count)
    return words % {"count": count}
