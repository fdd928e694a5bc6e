"""The Discover tab: the recommended feed as a page.

An item that the feed returns stays away for a week, so the page must never ask twice. A *walk* begins with a refresh,
and page N has the request id `WALK.N`. Every form says which page it wants, so a repeated request gets the same page.

A cookie has the browser's walk for `CANDIDATES_TTL`. A walk in the address would waste twenty posts with each visit.
Pages that the open page fetched by itself wait in a second cookie.
"""

import re
import secrets
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django_htmx.http import reswap, trigger_client_event

from accounts.access import member_form
from accounts.models import User
from discover import feed
from discover.feed import FeedPage
from discover.issued_pages import KEPT
from discover.reasons import words
from items.models import Item
from items.pages.cards import Card, Cards
from relations.people import followable_among
from relations.suggestions import suggestions
from web import rates
from web.pages import PageRequest, is_prefetch, show, too_many, wants_part
from web.rest import PAGE, parse_id, single_parameter

WALK = re.compile(r"[A-Za-z0-9_-]{22}")
PAGES = 10_000
CURRENT = "discover"
COMING = "discover_next"
"""The cookies. templates/timeline/_tabs.html reads the second one too."""


def new_walk() -> str:
    """A random name for a new walk."""
    return secrets.token_urlsafe(16)


@member_form
def discover(request: PageRequest, reader: User) -> HttpResponse:
    """The Discover tab. POST asks for a page of a walk, GET also for the browser's current one.

    Prefetching is refused, because nobody may look at the page.
    """
    if request.method == "HEAD" or is_prefetch(request):
        return HttpResponse(status=200 if request.method == "HEAD" else 503, headers={"Cache-Control": "no-store"})
    wait = rates.hit("discover", str(reader.pk))
    if wait is not None:
        return too_many(request, wait)
    asked = request.POST if request.method == "POST" else request.GET
    walk, number = _requested_walk(asked), _page_number(asked)
    if request.method != "POST":
        return _full_page(request, reader, walk, number)
    if walk is None:
        raise BadRequest("walk is missing")
    if number > 1:
        return _next_part(request, reader, walk, number)
    if "quiet" in asked:
        return _fetch_fresh(request, reader, walk)
    return _refresh_part(request, reader, walk)


# --- Parameters ------------------------------------------------------------------------------------------
def _requested_walk(asked: QueryDict) -> str | None:
    walk = single_parameter(asked, "walk")
    if walk and not WALK.fullmatch(walk):
        raise BadRequest("walk is none of this site's")
    return walk or None


def _page_number(asked: QueryDict) -> int:
    text = single_parameter(asked, "page")
    number = parse_id(text) if text else 1
    if number is None or number > PAGES:
        raise BadRequest("page is not the number of one")
    return number


def _cookie_walk(request: PageRequest, name: str) -> str | None:
    """The walk in a cookie. A malformed one is ignored."""
    walk = request.COOKIES.get(name, "")
    return walk if WALK.fullmatch(walk) else None


def _load_page(reader: User, walk: str, number: int) -> FeedPage:
    ask = feed.refresh if number == 1 else feed.load_more
    return ask(reader, limit=PAGE, request_id=f"{walk}.{number}", now=timezone.now())


# --- Answers ---------------------------------------------------------------------------------------------
def _full_page(request: PageRequest, reader: User, asked: str | None, number: int) -> HttpResponse:
    """The whole page. If a page was fetched for an absent reader, their next visit begins with it."""
    coming = _cookie_walk(request, COMING)
    for walk in filter(None, (asked or _cookie_walk(request, CURRENT), coming, new_walk())):
        page = _load_page(reader, walk, number)
        if page.items or number > 1:
            break  # else its items were deleted since
    coming = coming if coming != walk else None
    context = _context(request, reader, page, walk, number) | {"coming": coming, "next_walk": coming or new_walk()}
    if not page.items and number == 1:
        context["is_bare"] = not _has_others_posts(reader)
        context["suggestions"] = suggestions(reader) if context["is_bare"] else []
    response = _answer(request, "discover/discover.html", context, page)
    _remember_walk(request, response, walk, page)
    if not coming:
        response.delete_cookie(COMING, samesite="Lax")
    return response


def _next_part(request: PageRequest, reader: User, walk: str, number: int) -> HttpResponse:
    if not wants_part(request):
        return redirect(f"{reverse('discover')}?{urlencode({'walk': walk, 'page': number})}")
    page = _load_page(reader, walk, number)
    response = _answer(request, "discover/_more.html", _context(request, reader, page, walk, number), page)
    _remember_walk(request, response, walk, page)
    return response


def _refresh_part(request: PageRequest, reader: User, walk: str) -> HttpResponse:
    page = _load_page(reader, walk, 1)
    count = len(page.items)
    said = ngettext("%(count)s more post", "%(count)s more posts", count) if count else _("Nothing new right now.")
    said %= {"count": count}
    if not wants_part(request):
        messages.info(request, said)
        response: HttpResponse = redirect("discover")
    else:
        context = _context(request, reader, page, walk, 1) | {"next_walk": new_walk()}
        template = "discover/_beginning.html" if count else "discover/_nothing.html"
        response = _answer(request, template, context, page)
        trigger_client_event(response, "refreshed", {"said": said, "count": count}, after="settle")
        if not count:
            reswap(response, "none")
    if count:
        _set_walk_cookie(response, CURRENT, walk)
    response.delete_cookie(COMING, samesite="Lax")
    return response


def _fetch_fresh(request: PageRequest, reader: User, walk: str) -> HttpResponse:
    """Fetch new items for an open page, which shows a badge. They wait under their walk."""
    page = _load_page(reader, walk, 1)
    context = {"coming": walk if page.items else None, "next_walk": walk if page.items else new_walk()}
    response = _answer(request, "discover/_fresh.html", context | _poll_context(), page)
    if page.items:
        _set_walk_cookie(response, COMING, walk)
    return response


def _context(request: PageRequest, reader: User, page: FeedPage, walk: str, number: int) -> dict[str, object]:
    return {
        "page": page,
        "is_popular": bool(page.items) and number == 1 and page.items[0].reason == words("popular"),
        "cards": _cards(request, reader, page),
        "walk": walk,
        "number": number,
        "next_number": number + 1,
        "discovering": True,
    } | _poll_context()


def _cards(request: PageRequest, reader: User, page: FeedPage) -> list[Card]:
    senders = followable_among(reader, {int(item.shown.sender.id) for item in page.items})
    for item in page.items:
        if item.reason == words("popular"):
            item.reason = None  # the heading says so, once
    cards = Cards(request.user, page.items)
    return [
        cards.one(item, followable=senders.get(int(item.shown.sender.id))) for item in page.items if not item.is_hidden
    ]


def _poll_context() -> dict[str, object]:
    return {"refresh_seconds": settings.DISCOVER_REFRESH_SECONDS}


def _answer(request: PageRequest, template: str, context: dict[str, object], page: FeedPage) -> HttpResponse:
    response = show(request, template, context)
    response["X-Feed-Source"] = ",".join(page.sources)
    return response


def _remember_walk(request: PageRequest, response: HttpResponse, walk: str, page: FeedPage) -> None:
    """Keep the walk in the cookie. Viewing an issued page again does not extend the cookie's life."""
    if page.items and (walk != _cookie_walk(request, CURRENT) or "issued" not in page.sources):
        _set_walk_cookie(response, CURRENT, walk)


def _set_walk_cookie(response: HttpResponse, name: str, walk: str) -> None:
    life = settings.CANDIDATES_TTL if name == CURRENT else KEPT
    response.set_cookie(name, walk, max_age=life, secure=settings.HTTPS, httponly=True, samesite="Lax")


def _has_others_posts(reader: User) -> bool:
    return Item.objects.public_posts().visible_to(reader).exclude(sender=reader).exists()
