"""The buttons of an item with their counts.

A page shows them twenty times, and a template of as many tags takes a third of a millisecond each time.
"""

from functools import cache
from typing import NamedTuple

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, ngettext, pgettext
from django.utils.translation import gettext as _

from items.bodies import ItemBody
from web.icons import icon


class _Words(NamedTuple):
    """The words of the buttons in a language, as HTML."""

    reply: str
    repost: str
    undo_repost: str
    like: str
    unlike: str
    bookmark: str
    remove_bookmark: str


@cache
def _words(_language: str | None) -> _Words:
    words = (_("Reply"), _("Repost"), _("Undo repost"), _("Like"), _("Unlike"))
    return _Words(*map(escape, (*words, pgettext("act", "Bookmark"), _("Remove bookmark"))))


def buttons(item: ItemBody, here: str) -> SafeString:
    """The buttons of an item, whose address is `here`, for a member. Attributes that start with `data-other` belong to
    the other state of their button.
    """
    words = _words(get_language())
    parts = [_answers(item, here, words.reply)]
    if item.visibility != "self":
        titles = (words.repost, words.undo_repost)
        parts.append(_button("repost", here, item.counts.reposts, titles, "repost", is_on=item.reposted))
    titles, symbol = (words.like, words.unlike), "liked" if item.liked else "like"
    parts.append(_button("like", here, item.counts.likes, titles, symbol, is_on=item.liked))
    titles, symbol = (words.bookmark, words.remove_bookmark), "bookmarked" if item.bookmarked else "bookmark"
    parts.append(_button("bookmark", here, None, titles, symbol, is_on=item.bookmarked))
    return mark_safe("\n  ".join(parts))  # noqa: S308 (made of escaped parts)


def _answers(item: ItemBody, here: str, word: str) -> str:
    """The button that answers, and the number of replies, which leads to them."""
    write, count, label, number = f"{reverse('publish')}?reply_to={escape(item.id)}", item.counts.replies, "", ""
    if count:
        said = ngettext("%(count)s reply", "%(count)s replies", count) % {"count": count}
        label, number = f' aria-label="{escape(said)}"', f'<span class="number">{count}</span>'
    return (
        f'<span class="pair"><a class="act" data-act="reply" href="{write}" hx-get="{write}" hx-target="next .slot"'
        f' hx-swap="innerHTML" hx-sync="this:drop" title="{word}">{icon("reply")}<span class="hidden">{word}</span></a>'
        f'<a class="act replies" data-act="replies" href="{here}#replies"{label}>{number}</a></span>'
    )


UNDO = {"repost": "undo-repost", "like": "unlike", "bookmark": "remove-bookmark"}
"""The verbs that take back what a button did."""


def _button(verb: str, here: str, count: int | None, titles: tuple[str, str], symbol: str, *, is_on: bool) -> str:
    """A button that does `verb`, or where it is on, takes that back; `titles` name both. Without a `count` none is
    shown.
    """
    acts, (title, other) = ((UNDO[verb], verb), titles[::-1]) if is_on else ((verb, UNDO[verb]), titles)
    number = "" if count is None else f'<span class="number">{count or ""}</span>'
    space = "" if count is None else " "
    return (
        f'<button class="act {verb}" data-act="{verb}" formaction="{here}/{acts[0]}"'
        f' data-other-action="{here}/{acts[1]}" aria-pressed="{"true" if is_on else "false"}" title="{title}"'
        f' data-other-title="{other}">{icon(symbol)}<span class="hidden">{titles[0]}{space}</span>'
        f"{number}</button>"
    )
