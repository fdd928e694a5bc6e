"""`explain_home USER`: the windows of a home, what would serve its next page, and why an item is, or is not, in it."""

from collections.abc import Iterator
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import override

from accounts.models import User
from timeline.explain import PAGE, explain_home
from timeline.explanation import Explanation, ItemVerdict, Window
from web.rest import parse_id


class Command(BaseCommand):
    """`explain_home USER`: explains a home, and an item in it."""

    help = "Explain a reader's home: windows, outboxes, pending deliveries, what serves the next page. Changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """The reader, an item, and the form of the output."""
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--item", metavar="ID", help="why the reader does, or does not, see this item")
        parser.add_argument("--json", action="store_true", help="one line of JSON")

    def handle(self, *args: Any, username: str, item: str | None, json: bool, **options: Any) -> None:
        """Print the explanation. Raises CommandError for an unknown user or a wrong id."""
        reader = User.objects.named(username.removeprefix("@")).first()
        if reader is None:
            raise CommandError(f"There is no user {username}.")
        item_id = None if item is None else parse_id(item)
        if item is not None and item_id is None:
            raise CommandError(f"{item!r} is no id of an item.")
        found = explain_home(reader, item_id=item_id)
        if json:
            self.stdout.write(msgspec.json.encode(found).decode())
            return
        with override("en"):
            for line in lines(found):
                self.stdout.write(line)


def lines(found: Explanation) -> Iterator[str]:
    """The explanation for a terminal."""
    reader, page = found.reader, found.next_page
    seen = f"{reader.last_seen_at:%Y-%m-%d %H:%M} UTC" if reader.last_seen_at else "never"
    state = "" if reader.is_active else "; DEACTIVATED"
    yield f"@{reader.username} ({reader.id}): level {reader.level}, seen {seen}, follows {reader.following}{state}"
    yield f"policy: pushes from level {found.policy.push_level}, inboxes from {found.policy.inbox_from} followees"
    yield f"inbox: {_window(found.inbox)}"
    yield f"big-Vs followed: {found.big_vs}{f'. Their outboxes: {found.about_merging}' if found.big_vs else ''}"
    for box in found.outboxes:
        yield f"  @{box.username}: {_window(box.outbox)}"
    if found.big_vs > len(found.outboxes):
        yield f"  and {found.big_vs - len(found.outboxes)} more"
    capped = " of the newest of the site; there are more" if found.is_pending_capped else ""
    items = f": {', '.join(found.pending_items)}" if found.pending_items else ""
    parked = f", {found.parked} of them given up" if found.parked else ""
    yield f"pending deliveries: {found.pending}{capped}{parked}{items}"
    yield (
        f"next page: {','.join(page.sources) or 'none'} ({page.about}) {page.items} of {PAGE} items, "
        f"statements: {page.statements}, round trips to Redis: {page.round_trips}, {page.milliseconds} ms"
    )
    if found.item:
        yield from _item(found.item)


def _window(window: Window) -> str:
    if window.entries is None:
        return str(window.about)
    return (
        f"{window.about}; {window.entries} entries above {window.floor or 'no floor'}, "
        f"epoch {window.epoch} (expected {window.expected_epoch}), push generation {window.pushes}, "
        f"{'this' if window.is_of_this_run else 'another'} run, {window.bytes} bytes, lives {window.seconds_to_live} s"
    )


def _item(item: ItemVerdict) -> Iterator[str]:
    about = f" by @{item.sender}, {item.status}, {item.visibility}" if item.sender else ""
    yield f"item {item.id}{about}: {'shown' if item.is_shown else 'NOT shown'}"
    for name, reason in zip(item.reasons, item.about, strict=True):
        into = f" ({item.folded_into})" if name == "folded" and item.folded_into else ""
        yield f"  {name}: {reason}{into}"
    if item.place:
        yield f"  {item.place}: {item.about_place}"
    if item.stands_for:
        yield f"  stands for {item.stands_for} more reposts"
    if item.sender:
        held = {True: "yes", False: "no", None: "not known"}
        yield (
            f"  pending: {held[item.is_pending]}{' (given up)' if item.is_parked else ''}; in the inbox: "
            f"{held[item.in_inbox]}; in the outbox: {held[item.in_outbox]}; above the inbox's floor: "
            f"{held[item.is_above_floor]}"
        )
