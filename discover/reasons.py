"""Why an item was recommended: from a code to words in the reader's language.

| code | meaning |
|---|---|
| `liked` | liked by people with similar likes |
| `follows:N` | N followees of the reader follow the sender |
| `similar` | people with similar follows follow the sender |
| `sender` | the reader liked or answered the sender's posts |
| `follower` | the sender follows the reader |
| `tag:NAME`, `words:WORD` | the hashtag or word with the largest weight |
| `popular`, `fresh` | many people like it now, or it is new: the same for all readers |
| `followed` | the reader follows the sender; comes last |
"""

from collections.abc import Callable

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from web.letters import COMPLEX, UNSPACED, compiled

PART_OF_A_WORD = compiled(f"{UNSPACED}|{COMPLEX}")
"""Scripts without spaces are indexed in pairs of letters (items.search.words), which may be no words."""


def words(code: str) -> str:
    """A reason in the current language. An unknown or empty code gives general words."""
    kind, _colon, detail = code.partition(":")
    if kind in PLAIN and not detail:
        return PLAIN[kind]()
    if kind == "follows" and detail.isascii() and detail.isdigit():
        text = ngettext("Followed by {count} person you follow", "Followed by {count} people you follow", int(detail))
        return text.format(count=int(detail))
    if kind == "tag" and detail:
        return _("Because of #{tag}").format(tag=detail)
    if kind == "words" and detail:
        if PART_OF_A_WORD.search(detail):
            return _("Similar to posts you read")
        return _("Similar to posts you read: {word}").format(word=detail)
    return _("Recommended")


PLAIN: dict[str, Callable[[], str]] = {
    "liked": lambda: _("Liked by people with your taste"),
    "similar": lambda: _("Followed by people who follow the same accounts"),
    "sender": lambda: _("You liked or replied to their posts"),
    "follower": lambda: _("They follow you"),
    "popular": lambda: _("Popular now"),
    "fresh": lambda: _("New"),
    "followed": lambda: _("You follow them"),
}
