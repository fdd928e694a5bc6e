"""The sentences of notifications."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from msgspec import UNSET

from accounts.cards import UserCard
from accounts.people import name_of, profile_address
from items.bodies import ItemBody
from items.models import Visibility
from notifications.feed import Entry


def sentence(entry: Entry) -> SafeString:
    """The sentence of an entry, with links to its first actors."""
    if entry.kind == "warning":
        return format_html("{}", _("The moderators of this site warn you"))
    if entry.kind == "picture":
        return format_html("{}", _removed(entry))
    return format_html(words_of(entry.kind, entry.item), people=_people(entry))


def words_of(kind: str, item: ItemBody | None) -> str:
    """The words for what people did; `{people}` stands for them."""
    is_reply = bool(item and item.reply_to)
    match kind:
        case "like":
            words = _("{people} liked your reply") if is_reply else _("{people} liked your post")
        case "repost":
            words = _("{people} reposted your reply") if is_reply else _("{people} reposted your post")
        case "reply":
            words = _("{people} replied to you")
        case "quote":
            words = _("{people} quoted you")
        case "mention" if item and item.visibility == Visibility.MENTIONED:
            words = _("{people} wrote to you privately")
        case "mention":
            words = _("{people} mentioned you")
        case "poll" if item and item.status is not UNSET:
            words = _("Your poll has ended")
        case "poll":
            words = _("A poll you voted in has ended")
        case "follow":
            words = _("{people} followed you")
        case "follow_request":
            words = _("{people} asked to follow you")
        case "follow_accepted":
            words = _("{people} accepted your request to follow")
        case _:
            words = _("{people} went live")
    return words


def said_of(kind: str, item: ItemBody | None, name: str) -> str:
    """The sentence of what one person did, as plain text."""
    return words_of(kind, item).format(people=pgettext("one person", "{first}").format(first=name))


def _removed(entry: Entry) -> str:
    count = entry.item.removed if entry.item else 0
    if not count:
        return _("Moderators had removed pictures of your post; they are shown again")
    return ngettext(
        "Moderators removed a picture of your post", "Moderators removed %(count)s pictures of your post", count
    ) % {"count": count}


def _people(entry: Entry) -> SafeString:
    first, second, *_rest = [*map(_link, entry.actors), SafeString()]
    if entry.capped and entry.count <= 2:
        return format_html(_("{first} and others"), first=first)
    if entry.count == 1:
        return format_html(pgettext("one person", "{first}"), first=first)
    names = {"first": first, "second": second, "count": entry.others}
    if entry.count == 2:
        return format_html(_("{first} and {second}"), **names)
    if entry.capped:
        return format_html(_("{first}, {second} and more than {count} others"), **names)
    words = ngettext("{first}, {second} and {count} other", "{first}, {second} and {count} others", entry.others)
    return format_html(words, **names)


def _link(card: UserCard) -> SafeString:
    return name_of(card, profile_address(card.username))
