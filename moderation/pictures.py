"""The verbs of moderators about single pictures of an item; the item itself stays.

See docs/decisions.md: A hidden picture keeps its row and loses its name.
"""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.utils import translation
from django.utils.translation import ngettext

from accounts.models import User
from items import hiding
from items.models import Item
from items.templatetags.reading import excerpt
from moderation.actions import ABOUT_LETTERS
from moderation.log import write
from moderation.models import Verb
from notifications import actions as notifications


@transaction.atomic
def hide(*, item: Item, by: User, ids: Sequence[int] | None = None, note: str = "") -> int:
    """Hide these pictures of an item (None: all), and tell its sender why; how many were shown before."""
    hidden = hiding.hide_media(item=item, ids=ids)
    if hidden:
        write(by, Verb.HIDE, item=item, note=note, after={"pictures": [str(number) for number in hidden]})
        if item.sender.is_active:
            notifications.warn(user=item.sender, text=_told(item, len(hidden), note))
    return len(hidden)


@transaction.atomic
def show(*, item: Item, by: User, ids: Sequence[int] | None = None, note: str = "") -> int:
    """Show these hidden pictures of an item (None: all) again; how many were hidden."""
    shown = hiding.show_media(item=item, ids=ids)
    if shown:
        write(by, Verb.SHOW, item=item, note=note, after={"pictures": [str(number) for number in shown]})
    return len(shown)


def _told(item: Item, count: int, note: str) -> str:
    """The sender's notification, in the sender's language."""
    with translation.override(item.sender.language or settings.LANGUAGE_CODE):
        words = ngettext(
            "A picture of your post was removed.", "%(count)s pictures of your post were removed.", count
        ) % {"count": count}
    lines = [words, note, f"“{excerpt(item.text, ABOUT_LETTERS)}”" if item.text else ""]
    return "\n".join(filter(None, lines))
