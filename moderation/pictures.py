"""The verbs of moderators about single pictures of an item; the item itself stays.

See docs/decisions.md: A hidden picture keeps its row and loses its name.
"""

from collections.abc import Sequence

from django.db import transaction

from accounts.models import User
from items import hiding
from items.models import Item
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
            notifications.tell_of_pictures(item=item, text=note)
    return len(hidden)


@transaction.atomic
def show(*, item: Item, by: User, ids: Sequence[int] | None = None, note: str = "") -> int:
    """Show these hidden pictures of an item (None: all) again; how many were hidden."""
    shown = hiding.show_media(item=item, ids=ids)
    if shown:
        write(by, Verb.SHOW, item=item, note=note, after={"pictures": [str(number) for number in shown]})
    return len(shown)
