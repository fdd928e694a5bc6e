"""The verbs of link cards. At most `LINK_CARDS_AT_ONCE` pages are read at once, so hanging servers leave room for
pushes. The sender of the newest item with a link pays for reading its page (web.outbound).

See docs/decisions.md: Link cards are read by a worker.
"""

import hashlib
import time
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from items.bodies import LinkFacts
from items.content import link_in, text_in
from items.link_cards import pages
from items.links import HOST_LENGTH
from items.models import URL_LENGTH, CardState, Item, LinkCard, RefusedHost, Status, Visibility
from items.text import SpanKind, spans
from media import linked
from media.actions import MediaError
from media.decoder import DecoderBusyError
from media.files import StoreError
from media.models import MediaFile
from media.objects import facts_of_row
from storage import events
from storage.connections import fetch
from storage.queue import only_if_rows, task
from web.hosts import is_own
from web.outbound import OutboundError, OverBudgetError, charge_budget

AGAIN = timedelta(days=1)
"""How long a page is not read again after it was read or failed."""
SECONDS_ASKED = 60
"""Seconds after which a worker that reads a page is killed, and its claim ends."""
A_MINUTE_FOR_A_HOST = 20
"""Most pages of one host that are read in a minute."""
TURN_SECONDS = 5.0
"""Seconds after which a worker leaves the next page to another task."""
TOLD = 20
"""How many of the newest items with a card tell their open pages when it changes."""
SWEPT = 1_000
REMOVED = 100

ALONE = "SELECT FROM pg_advisory_xact_lock(hashtext('feedsite.linkcards'))"
"""Lock under which workers claim pages one after another, so that each counts the claims before it."""
CLAIM = """
    UPDATE items_linkcard SET state = 'asked', asked_at = now() WHERE id = (
        SELECT id FROM items_linkcard WHERE state = 'waiting' ORDER BY id DESC LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AND %(at_once)s > (
        SELECT count(*) FROM items_linkcard
        WHERE state = 'asked' AND asked_at > now() - make_interval(secs => %(seconds)s)
    )
    RETURNING id, url
"""


# --- Links -----------------------------------------------------------------------------------------------
def first_link(content: dict[str, Any]) -> str:
    """The address that gets the card, in one spelling, or ""."""
    in_text = (span.value for span in spans(text_in(content)) if span.kind == SpanKind.LINK)
    found = link_in(content) or next(in_text, "")
    try:
        parsed = parse_url(found) if 0 < len(found) <= URL_LENGTH else None
    except LocationParseError:
        return ""
    if parsed is None or not parsed.host or len(parsed.host) > HOST_LENGTH or is_own(parsed.host):
        return ""
    url = parsed._replace(fragment=None).url
    return url if len(url) <= URL_LENGTH else ""


def link_of(item: Item) -> str:
    """The address that gets an item's card, or ""."""
    if item.status != Status.PUBLISHED or item.visibility != Visibility.PUBLIC:
        return ""
    return "" if item.quote_of_id or item.media or item.content.get("media") else first_link(item.content)


def card_after_edit(item: Item, before: dict[str, Any]) -> int | None:
    """The card that an item keeps after an edit."""
    return item.link_card_id if first_link(item.content) == first_link(before) else None


def domain_of(host: str) -> str:
    """A host with its parts reversed, so that the hosts below it begin with it."""
    return ".".join([*reversed(host.lower().strip(".").split(".")), ""])


def _host(url: str) -> str:
    """The host of an address, or "". An IPv6 address is in brackets."""
    return parse_url(url).host or ""


def host_of(typed: str) -> str:
    """The host of what staff typed, or ""."""
    typed = typed.strip()
    try:
        return parse_url(typed if "://" in typed else f"https://{typed}").host or ""
    except LocationParseError:
        return ""


def is_refused(host: str) -> bool:
    """Whether staff refuse a host, or one above it."""
    parts = host.lower().strip(".").split(".")
    return RefusedHost.objects.filter(host__in=[".".join(parts[at:]) for at in range(len(parts))]).exists()


# --- Giving items their cards ----------------------------------------------------------------------------
def request_card(item: Item) -> None:
    """Have a worker give an item its card. The task may get lost."""
    if settings.LINK_CARDS and item.link_card_id is None and link_of(item):
        assign_card.delay_on_commit(item.pk)


@task("items.give_link_card")
def assign_card(item_id: int) -> None:
    """Give an item its card, and have its page read."""
    with transaction.atomic():
        item = Item.objects.select_for_update(no_key=True, of=("self",)).filter(pk=item_id).first()
        url = link_of(item) if item else ""
        if item is None or not url or not settings.LINK_CARDS or is_refused(_host(url)):
            return
        digest = hashlib.sha256(url.encode()).hexdigest()
        # Locked, so that no sweep takes it for unused.
        card, _made = LinkCard.objects.select_for_update().get_or_create(
            digest=digest, defaults={"url": url, "domain": domain_of(_host(url))}
        )
        Item.objects.filter(pk=item_id).update(link_card=card)
        if card.facts:
            _announce_cards([item])
        if _enqueue(card):
            read_waiting.delay_on_commit()


def _enqueue(card: LinkCard) -> bool:
    """Put a card's page in the queue of pages to read, unless it was read lately or its host is busy. True if it was
    put there.
    """
    lately = Q(state=CardState.WAITING) | Q(asked_at__gt=Now() - timedelta(minutes=1))
    if LinkCard.objects.filter(lately, domain=card.domain)[:A_MINUTE_FOR_A_HOST].count() == A_MINUTE_FOR_A_HOST:
        return False
    old = Q(asked_at=None) | Q(asked_at__lt=Now() - AGAIN)
    rows = LinkCard.objects.filter(old, pk=card.pk, is_removed=False).exclude(state=CardState.WAITING)
    return bool(rows.update(state=CardState.WAITING, asked_at=Now()))


# --- Reading pages ---------------------------------------------------------------------------------------
@task("items.read_link_pages")
@only_if_rows(
    "items.read_link_pages", "SELECT asked_at FROM items_linkcard WHERE state = 'waiting'", work="link previews"
)
def read_waiting() -> bool:
    """Read pages for a few seconds. True if there may be more, which another task reads."""
    until = time.monotonic() + TURN_SECONDS
    while time.monotonic() < until:
        with transaction.atomic():
            fetch(ALONE)
            claimed = fetch(CLAIM, {"at_once": settings.LINK_CARDS_AT_ONCE, "seconds": SECONDS_ASKED})
        if not claimed:
            return False
        ((card_id, url),) = claimed
        _read_page(card_id, url)
    read_waiting.delay()
    return True


def _read_page(card_id: int, url: str) -> None:
    row = LinkCard.objects.filter(pk=card_id)
    member = Item.objects.filter(link_card=card_id).order_by("-pk").values_list("sender", flat=True).first()
    if member is None:  # a later item with this link is read for its own sender
        row.update(state=CardState.DONE, asked_at=None)
        return
    try:
        page, end = pages.read(url, member=member)
        if is_refused(_host(end)):
            raise OutboundError("a refused host")
    except OverBudgetError as error:  # the next item with this link tries again
        row.update(state=CardState.DONE, asked_at=None, error=str(error))
        return
    except OutboundError as error:
        row.update(state=CardState.DONE, error=str(error)[:200])
        return
    picture, failure = _load_picture(page.pictures, member)
    _write_card(card_id, page, picture, failure)


def _load_picture(addresses: Iterable[str], member: int) -> tuple[MediaFile | None, str]:
    """The first picture that can be shown, and what was wrong with the last one."""
    failure = ""
    for address in addresses:
        if is_refused(host_of(address)):
            continue
        try:
            file = pages.read_picture(address, member=member)
            with charge_budget(member=member):
                picture = linked.store_picture(file)
        except (OutboundError, MediaError, DecoderBusyError, StoreError) as error:
            failure = f"picture: {error}"[:200]
            continue
        if min(picture.width, picture.height) > 1:  # others count readers
            return picture, ""
    return None, failure


@transaction.atomic
def _write_card(card_id: int, page: pages.RemotePage, picture: MediaFile | None, error: str) -> None:
    card = LinkCard.objects.select_for_update().filter(pk=card_id).first()
    if card is None:
        return
    card.state, card.error = CardState.DONE, error
    if not card.is_removed and not is_refused(_host(card.url)):
        shown = picture if picture and linked.mark_used(picture) else None
        before, card.picture = card.picture_id, shown
        facts = LinkFacts(
            card.url, page.title, page.description, page.site or _host(card.url), facts_of_row(shown) if shown else None
        )
        is_new, card.facts = card.facts != (made := msgspec.to_builtins(facts)), made
        if is_new:
            _announce_cards(_newest_items(card))
        card.save(update_fields=["state", "error", "facts", "picture"])
        _release_picture(before)
        return
    card.save(update_fields=["state", "error"])


def _newest_items(card: LinkCard) -> Iterable[Item]:
    return Item.objects.filter(link_card=card).order_by("-pk").only("pk", "visibility")[:TOLD]


def _announce_cards(items: Iterable[Item]) -> None:
    news = [events.Edited(item.pk, item.visibility) for item in items]
    transaction.on_commit(partial(events.announce, *news))


def _release_picture(picture_id: int | None) -> None:
    if picture_id:
        linked.remove_unless_used(picture_id, is_used=lambda: LinkCard.objects.filter(picture=picture_id).exists())


# --- Removing --------------------------------------------------------------------------------------------
@transaction.atomic
def remove(*, card: LinkCard) -> bool:
    """Remove a card for good. False if it was removed before."""
    card = LinkCard.objects.select_for_update().get(pk=card.pk)
    if card.is_removed:
        return False
    card.is_removed = True
    _clear_card(card)
    return True


def _clear_card(card: LinkCard) -> None:
    before, card.facts, card.picture, card.state = card.picture_id, None, None, CardState.DONE
    card.save(update_fields=["facts", "picture", "is_removed", "state"])
    _release_picture(before)
    _announce_cards(_newest_items(card))


@transaction.atomic
def refuse_host(*, host: RefusedHost) -> None:
    """Show no cards of a host. A worker removes them."""
    host.save()
    remove_refused.delay_on_commit(host.pk)


@task("items.remove_refused_cards")
def remove_refused(host_id: int) -> bool:
    """Empty some cards of a refused host. True if there may be more, which another task empties."""
    host = RefusedHost.objects.filter(pk=host_id).first()
    if host is None:
        return False
    with transaction.atomic():
        rows = LinkCard.objects.select_for_update().filter(
            Q(domain__startswith=domain_of(host.host)), facts__isnull=False
        )
        cards = list(rows.order_by("domain")[:REMOVED])
        for card in cards:
            _clear_card(card)
    if len(cards) < REMOVED:
        return False
    remove_refused.delay(host_id)
    return True


@transaction.atomic
def sweep() -> int:
    """Delete unused cards, the longest unchecked first. Those that staff removed stay, so they do not come back."""
    rows = LinkCard.objects.select_for_update(skip_locked=True).filter(checked_at__lt=Now() - AGAIN)
    seen = list(rows.order_by("checked_at").values_list("pk", flat=True)[:SWEPT])
    unused = LinkCard.objects.filter(~Exists(Item.objects.filter(link_card=OuterRef("pk"))), pk__in=seen)
    gone = list(unused.filter(is_removed=False).values_list("pk", "picture"))
    LinkCard.objects.filter(pk__in=[pk for pk, _picture in gone]).delete()
    LinkCard.objects.filter(pk__in=seen).update(checked_at=Now())
    for _pk, picture_id in gone:
        _release_picture(picture_id)
    return len(gone)
