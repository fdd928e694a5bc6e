"""Facts about the texts of a page, for every template."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from accounts.models import User
from items.bodies import ItemBody
from items.text import mentions
from relations.visibility import visible_names


class Names:
    """Which mentioned names lead to a profile that the reader may see. The names of all items of a page are asked for
    at once, when the first text with a mention is shown.
    """

    def __init__(self, reader: User | AnonymousUser) -> None:
        self._reader = reader
        self._known: dict[str, bool] = {}

    def leads(self, name: str, around: Iterable[ItemBody]) -> bool:
        """Whether `name` leads to a profile; `around` are the items of the page, in which others may be mentioned."""
        name = name.lower()
        if name not in self._known:
            shown = [item.shown for item in around]
            asked = {
                name,
                *(one.lower() for item in shown for text in (item.title, item.text) for one in mentions(text)),
            }
            found = visible_names(asked, self._reader)
            self._known |= {one: one in found for one in asked}
        return self._known[name]


def names(request: HttpRequest) -> dict[str, Any]:
    """`mentioned_names`, which asks nothing before a text with a mention is shown."""
    return {"mentioned_names": Names(getattr(request, "user", None) or AnonymousUser())}
