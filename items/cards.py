"""Cards: an item as a template shows it, with the facts that its page knows beside the item itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from accounts.models import User
from items.bodies import ItemBody, Sender


@dataclass(frozen=True, slots=True)
class Card:
    """An entry of a list, for `items/_item.html`."""

    item: ItemBody
    others: int = 0
    """How many more followed senders reposted the same item close by; home folds their reposts into this entry."""
    answered: Sender | None = None
    """The sender whose item this reply answers, where the two do not stand together and the reader may see both."""
    viewed_at: datetime | None = None
    """When the reader opened the item, in the list of those that they opened."""
    is_late: bool = False
    """Whether the item reached an open page below its top, after the page was made."""
    is_pinned: bool | None = None
    """Whether the reader's own post is pinned on their profile, where the card offers to change that."""
    followable: User | None = None
    """The sender, where the card offers to follow them."""


def cards(
    items: Iterable[ItemBody], *, answered: Mapping[str, Sender] | None = None, keeps_hidden: bool = False
) -> list[Card]:
    """The cards of items, in their order, without those that the reader's filters hide, unless `keeps_hidden`: these
    are folded then. `answered`: by the id that a reply answers, its sender.
    """
    senders = answered or {}
    return [
        Card(item, answered=senders.get(item.reply_to or "")) for item in items if keeps_hidden or not item.is_hidden
    ]
