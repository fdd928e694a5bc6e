from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext, ngettext_lazy, pgettext
from django.utils.translation import gettext_lazy as _
from msgspec import UNSET

from accounts.cards import UserCard
from accounts.people import name_of, profile_address
from items.bodies import ItemBody
from items.models import Visibility
from notifications.feed import Entry
from web.languages import isolate


def sentence(entry: Entry) -> SafeString:
    """The sentence of an entry, with links."""
    if entry.kind in OF_MODERATION:
        sentences = OF_MODERATION[entry.kind]
        return format_html("{}", sentences.get(entry.detail, sentences[""]))
    if entry.kind == "picture":
        return format_html("{}", _pictures_removed_text(entry))
    if entry.kind == "scheduled" and entry.item:
        return format_html("{}", gettext("Your scheduled post is in review"))
    if entry.kind == "scheduled":
        words = gettext("A scheduled post wasn't published. {link}See why{end}")
        return format_html(words, link=format_html('<a href="{}">', reverse("scheduled")), end=SafeString("</a>"))
    count = max(entry.count, 3) if entry.capped else entry.count
    return format_html(words_of(entry.kind, entry.item, count), people=_people_links(entry))


SENTENCES = {
    "like": ngettext_lazy("{people} liked your post", "{people} liked your post"),
    "repost": ngettext_lazy("{people} reposted your post", "{people} reposted your post"),
    "reply": ngettext_lazy("{people} replied to you", "{people} replied to you"),
    "quote": ngettext_lazy("{people} quoted your post", "{people} quoted your post"),
    "mention": ngettext_lazy("{people} mentioned you", "{people} mentioned you"),
    "follow": ngettext_lazy("{people} followed you", "{people} followed you"),
    "follow_request": ngettext_lazy("{people} wants to follow you", "{people} want to follow you"),
    "follow_accepted": ngettext_lazy("{people} accepted your follow request", "{people} accepted your follow request"),
    "live": ngettext_lazy("{people} went live", "{people} went live"),
    "post": ngettext_lazy("{people} posted", "{people} posted"),
}
OF_REPLIES = {
    "like": ngettext_lazy("{people} liked your reply", "{people} liked your reply"),
    "repost": ngettext_lazy("{people} reposted your reply", "{people} reposted your reply"),
}
PRIVATE = {
    "mention": ngettext_lazy("{people} sent you a message", "{people} sent you a message"),
    "reply": ngettext_lazy("{people} replied to you privately", "{people} replied to you privately"),
}


OF_MODERATION = {
    "warning": {
        "": _("This site's moderators sent you a warning"),
        "reject": _("Moderators removed your post"),
        "reject_session": _("Moderators removed your live session"),
        "end": _("Moderators ended your live session"),
        "hide": _("Moderators removed the cover of your live session"),
        "list": _("Moderators now review your posts before others see them"),
        "ban": _("Moderators suspended your account"),
        "grant": _("Moderators accepted your appeal"),
        "deny": _("Moderators rejected your appeal"),
    },
    "report": {
        "": _("Moderators reviewed what you reported and found no violation. Thanks for looking out for others"),
        "reviewed": _("Moderators reviewed what you reported. Thanks for looking out for others"),
        "done": _("Moderators reviewed what you reported and took action. Thanks for looking out for others"),
    },
    "case": {
        "": _("A new report waits for moderators"),
        "appeal": _("A new appeal waits for moderators"),
    },
}
"""Sentences by kind and detail."""


def words_of(kind: str, item: ItemBody | None, count: int) -> str:
    """The words for what a number of people did; `{people}` stands for them."""
    if kind == "poll":
        is_own = item and item.status is not UNSET
        return gettext("Your poll has ended") if is_own else gettext("A poll you voted in has ended")
    if item and item.reply_to and kind in OF_REPLIES:
        return str(OF_REPLIES[kind] % count)
    if item and item.visibility == Visibility.MENTIONED and kind in PRIVATE:
        return str(PRIVATE[kind] % count)
    return str(SENTENCES[kind] % count)


def act_sentence(kind: str, item: ItemBody | None, name: str) -> str:
    """The sentence of what one person did, as plain text."""
    return words_of(kind, item, 1).format(people=pgettext("one person", "{first}").format(first=isolate(name)))


def _pictures_removed_text(entry: Entry) -> str:
    count = entry.item.removed if entry.item else 0
    if not count:
        return gettext("Your post shows its pictures again. Moderators had removed them")
    return ngettext(
        "Moderators removed a picture from your post", "Moderators removed %(count)s pictures from your post", count
    ) % {"count": count}


def _people_links(entry: Entry) -> SafeString:
    first, second, *_rest = [*map(_link, entry.actors), SafeString()]
    if entry.capped and entry.count == 1:
        return format_html(gettext("{first} and others"), first=first)
    if entry.count == 1:
        return format_html(pgettext("one person", "{first}"), first=first)
    if entry.capped:
        words = ngettext("{first} and more than {count} other", "{first} and more than {count} others", entry.others)
        return format_html(words, first=first, count=entry.others)
    if entry.count == 2:
        return format_html(gettext("{first} and {second}"), first=first, second=second)
    words = ngettext("{first} and {count} other", "{first} and {count} others", entry.others)
    return format_html(words, first=first, count=entry.others)


def _link(card: UserCard) -> SafeString:
    return name_of(card, profile_address(card.username))
