"""Pages that are open to strangers, so that one post seen by 100,000 costs little.

Strangers with the same language, time zone and theme get the same bytes, if requested twice within `KEPT`. This serves
only requests without a session, query or message. Shared caches may keep these for `SHARED`.

A process has copies of the last pages that it read from the cache server. `OpenPageMiddleware` answers with them before
the layers that concern members. Each answer is counted and verified.

See docs/decisions.md: Pages for strangers are cached and verified.
"""

import gzip
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec

import msgspec
from django.conf import settings
from django.core import signing
from django.core.cache import cache
from django.core.exceptions import DisallowedHost
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.templatetags.static import static
from django.urls import Resolver404
from django.utils import timezone, translation
from django.utils.cache import get_conditional_response, patch_cache_control, patch_vary_headers

from accounts.about import announcing
from accounts.about.site import current
from accounts.access import READER_HEADER
from accounts.locale import browser_language, browser_zone
from items.bodies import ItemBody
from items.hydrate import QUOTING
from items.pages.recent import Recent
from items.visibility import quoted_visible, visible
from relations.rules import STRANGER
from storage import keys
from storage.connections import fetch, id_array
from web import rates
from web.compression import takes
from web.pages import PageRequest, View, theme
from web.requests import find_view
from web.rest import scope_of

P = ParamSpec("P")

KEPT = timedelta(seconds=15)
SHARED = timedelta(seconds=10)
"""How long shared caches may keep a page. They cannot check whether it is still valid."""
LARGEST_BYTES = 200_000
"""Larger compressed pages are not cached."""
COMPRESSION = 5
ASKED = "asked"
"""Cached in place of a page that was requested once."""
NEAR = 32
"""Pages of which a process has a copy."""
MESSAGES_COOKIE = "messages"
"""Django's cookie for messages that the next page shows."""

STANDS = f"""
    SELECT (
        SELECT count(*) FROM unnest(%(items)s::bigint[], %(versions)s::timestamptz[], %(media)s::text[])
            AS shown (id, version, media)
        JOIN items_item i ON i.id = shown.id JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.modified_at = shown.version AND {visible("i", "s", STRANGER)} AND shown.media = coalesce((
            SELECT string_agg((facts->>'name') || md5(coalesce(facts->>'description', '')), ' ' ORDER BY place)
            FROM jsonb_array_elements(i.media) WITH ORDINALITY AS medium (facts, place)), '')
    ), (
        SELECT count(*) FROM unnest(%(quotes)s::bigint[]) AS quoting (id) JOIN ({QUOTING}) ON i.id = quoting.id
        WHERE {quoted_visible("i", "o", "os", STRANGER)}
    ), (
        SELECT count(*) FROM items_item i JOIN items_linkcard c ON c.id = i.link_card_id
        WHERE i.id = ANY(%(cards)s::bigint[]) AND c.facts IS NOT NULL
    ), (
        SELECT count(*) FROM accounts_user u WHERE u.id = ANY(%(people)s::bigint[]) AND u.is_active
    )
"""


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A response, and the items and users that it shows."""

    response: HttpResponse
    items: Sequence[ItemBody] = ()
    people: Sequence[int] = ()


class CachedPage(msgspec.Struct):
    """A cached page: its compressed bytes, and what must be unchanged. It is signed for its cache key."""

    body: bytes
    headers: dict[str, str]
    nonce: str
    counts: tuple[int, int, int, int]
    """How many items, quotes, cards and people it has."""
    shown: dict[str, str]
    """What `STANDS` compares, as PostgreSQL's arrays: psycopg's dump of lists takes longer than all else."""
    until: float
    """When it is too old, by the clock of the process that made it."""

    def is_current(self) -> bool:
        """Whether strangers may still see everything on it, unchanged."""
        return fetch(STANDS, self.shown) == [self.counts]


near: Recent[CachedPage] = Recent(NEAR)
"""Copies of pages that this process read from the cache server, by cache key."""
_static = lru_cache(NEAR)(static)


class OpenPageMiddleware:
    """Answers strangers with the process's copies of pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with a copy if there is one, still valid, and the stranger has not called too often."""
        if len(near) and is_stranger(request) and READER_HEADER not in request.headers:
            with suppress(DisallowedHost, Resolver404, DatabaseError):  # the other layers know what to say
                response = self._answer(request)
                if response is not None:
                    return response
        return self.get_response(request)

    @staticmethod
    def _answer(request: HttpRequest) -> HttpResponseBase | None:
        if current().is_for_members:
            return None
        language = browser_language(request)
        kept = near.get(keys.page(_digest(request, language, str(browser_zone(request)))))
        if kept is None or kept.until < time.time():
            return None
        find_view(request)
        if rates.CountedCall(scope_of({}, "GET"), rates.address(request)).wait is not None or not kept.is_current():
            return None
        response = _again(request, kept)
        response.headers.setdefault("Content-Language", language)
        response.headers.setdefault("Content-Length", str(len(response.content)))
        return response


def open_page(view: Callable[Concatenate[PageRequest, P], OpenPage]) -> View[P]:
    """Answer strangers from the cache, others by the view."""

    @wraps(view)
    def answer(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not is_stranger(request):
            response = view(request, *args, **kwargs).response
            patch_cache_control(response, private=True, no_cache=True)
            return response
        key = keys.page(_digest(request, translation.get_language(), str(timezone.get_current_timezone())))
        found = cache.get(key)
        kept = _read_cached(key, found)
        if kept is not None and kept.is_current():
            near.put(key, kept)
            return _again(request, kept)
        page = view(request, *args, **kwargs)
        if page.response.status_code != 200 or page.response.cookies:
            return page.response
        nonce = str(request.csp_nonce)  # type: ignore[attr-defined]
        _share(page.response, nonce)
        if found is None:
            cache.set(key, ASKED, KEPT.total_seconds())
        else:
            _write_cached(key, nonce, page)
        return _unless_known(request, page.response)

    return answer


def is_stranger(request: HttpRequest) -> bool:
    """Whether a request has no session and is for a whole page."""
    return (
        request.method in ("GET", "HEAD")
        and not request.META.get("QUERY_STRING")
        and request.headers.get("HX-Request") != "true"
        and settings.SESSION_COOKIE_NAME not in request.COOKIES
        and MESSAGES_COOKIE not in request.COOKIES
    )


# --- Keeping ---------------------------------------------------------------------------------------------
def _digest(request: HttpRequest, language: str | None, zone: str) -> str:
    parts = (
        request.scheme,
        request.get_host(),
        request.path,
        language,
        zone,
        theme(request)["theme"],
        announcing.undismissed_news(request, current().news),
        _static("feedsite/pages.css"),  # changes with each version of the static files
    )
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]


def _read_cached(key: str, found: Any) -> CachedPage | None:
    if not isinstance(found, str) or found == ASKED:
        return None
    try:
        kept = msgspec.json.decode(_signer(key).unsign(found), type=CachedPage)
    except (signing.BadSignature, msgspec.MsgspecError):
        return None
    return kept if kept.until >= time.time() else None


def _signer(key: str) -> signing.Signer:
    return signing.Signer(salt=f"items.open_pages {key}")


def _share(response: HttpResponse, nonce: str) -> None:
    """Name the page, and let shared caches keep it."""
    response.headers["ETag"] = _etag(response.content, nonce)
    response.headers["Cache-Control"] = f"public, max-age=0, s-maxage={int(SHARED.total_seconds())}"
    patch_vary_headers(response, ["Accept-Encoding", "Accept-Language", "Cookie", "HX-Request"])


def _write_cached(key: str, nonce: str, page: OpenPage) -> None:
    body = gzip.compress(page.response.content, COMPRESSION, mtime=0)
    if len(body) > LARGEST_BYTES:
        return
    shown = {int(item.id): item for item in _all(page.items)}
    quotes = [item_id for item_id, item in shown.items() if item.quote and item.quote.item]
    cards = [item_id for item_id, item in shown.items() if item.link_card]
    people = set(page.people)
    kept = CachedPage(
        body=body,
        headers=dict(page.response.headers),
        nonce=nonce,
        counts=(len(shown), len(quotes), len(cards), len(people)),
        shown={
            "items": id_array(shown),
            "versions": _text_array(item.modified_at.isoformat() for item in shown.values()),
            "media": _text_array(map(_media, shown.values())),
            "quotes": id_array(quotes),
            "cards": id_array(cards),
            "people": id_array(people),
        },
        until=time.time() + KEPT.total_seconds(),
    )
    cache.set(key, _signer(key).sign(msgspec.json.encode(kept).decode()), KEPT.total_seconds())


def _all(items: Iterable[ItemBody]) -> Iterable[ItemBody]:
    for item in items:
        yield item
        if item.repost_of is not None:
            yield item.repost_of
        if item.shown.quote and item.shown.quote.item:
            yield item.shown.quote.item


def _text_array(texts: Iterable[str]) -> str:
    quoted = (text.replace("\\", r"\\").replace('"', r"\"") for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


def _media(item: ItemBody) -> str:
    return " ".join(
        medium.name + hashlib.md5(medium.description.encode(), usedforsecurity=False).hexdigest()
        for medium in item.media
    )


def _etag(body: bytes, nonce: str) -> str:
    """The ETag of a page without its nonce. It is weak, because the page is compressed."""
    text = body.replace(nonce.encode(), b"") if nonce else body
    return f'W/"{hashlib.sha256(text).hexdigest()[:32]}"'


# --- Answering -------------------------------------------------------------------------------------------
def _again(request: HttpRequest, kept: CachedPage) -> HttpResponse:
    request.csp_nonce.adopt(kept.nonce)  # type: ignore[attr-defined]
    is_compressed = takes(request, "gzip")
    response = HttpResponse(kept.body if is_compressed else gzip.decompress(kept.body), headers=kept.headers)
    if is_compressed:
        response.headers["Content-Encoding"] = "gzip"
    return _unless_known(request, response)


def _unless_known(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response, or 304 if the client has the page."""
    return get_conditional_response(request, etag=response.headers["ETag"], response=response) or response
