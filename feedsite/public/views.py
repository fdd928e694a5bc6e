from collections.abc import Iterable, Sequence

from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.about.site import current
from accounts.models import User
from discover.popular import popular_items
from feedsite.public import atom, installing, sitemap
from feedsite.public.column import column_of
from items.bodies import ItemBody
from items.newest import newest_page
from items.pages.cards import Cards
from items.pages.open_pages import OpenPage, open_page
from items.pages.previews import DESCRIPTION_LETTERS, Preview
from items.pages.reading import excerpt
from items.search.query import QUERY_LENGTH
from items.tags.popular import popular_tags
from relations.visibility import visible_user
from timeline.views import home
from web.headers import nonce
from web.pages import PageRequest, show, uncounted, wants_part
from web.rest import position, single_parameter

COLUMN_SECONDS = 60
"""How long browsers cache the column."""
POPULAR = 5
"""Popular posts on the front page."""
LOOKED_AT = 20
"""Popular posts searched for pictures."""
PICTURES = 6
"""Maximum posts with pictures on the front page, in rows of `ROW`."""
ROW = 3
XML = "application/xml"
SHORTLY = "private, max-age=60"
"""Cache time of sitemap and manifest. Short, because the site may become members-only."""
CLOSED = ("/admin/", "/api/", "/settings", "/search", "/login", "/signup", "/logout", "/notifications", "/history")
"""Paths closed to search engines."""


@require_safe
def front(request: PageRequest) -> HttpResponseBase:
    """Home for members, the front page for strangers."""
    return home(request) if isinstance(request.user, User) else stranger_front(request)


@open_page
def stranger_front(request: PageRequest) -> OpenPage:
    """The front page: popular and new posts, and how to join."""
    last_id = position(request)
    page = newest_page(request.user, last_id=last_id)
    cards = Cards(request.user, page.items)
    context = {"page": page, "cards": cards.of(page.items), "is_first": last_id is None}
    if wants_part(request):
        return OpenPage(show(request, "items/_more.html", context))
    found = popular_items(request.user, count=LOOKED_AT) if last_id is None else []
    popular, pictured = found[:POPULAR], _picture_posts([*found, *page.items]) if last_id is None else []
    context |= {"popular": cards.of(popular), "tags": popular_tags(request.user), "pictured": pictured}
    if last_id is None:
        site = current()
        words = excerpt(site.summary or _("Posts from people you follow, newest first."), DESCRIPTION_LETTERS)
        context["preview"] = Preview("website", site.name, words, "/")
    return OpenPage(show(request, "public/front.html", context), [*popular, *pictured, *page.items])


def _picture_posts(items: Sequence[ItemBody]) -> list[ItemBody]:
    found: dict[str, ItemBody] = {}
    for item in items:
        if item.media and item.media[0].has_still and not item.is_veiled:
            found.setdefault(item.sender.id, item)
    return list(found.values())[: min(len(found), PICTURES) // ROW * ROW]


@require_safe
@open_page
def atom_feed(request: PageRequest, username: str) -> OpenPage:
    """The user's public posts, as strangers see them."""
    person = visible_user(username, AnonymousUser())
    items = atom.entries_of(person)
    text = atom.feed_of(person, items, _site(request), request.path)
    response = HttpResponse(text, content_type="application/atom+xml; charset=utf-8")
    if not person.is_indexable:
        response.headers["X-Robots-Tag"] = "noindex"
    return OpenPage(response, items, [person.pk])


@require_safe
def column(request: PageRequest) -> HttpResponse:
    """The column beside a page. It is a page of its own without JavaScript."""
    at, name, query = (single_parameter(request.GET, key) for key in ("at", "name", "q"))
    found = column_of(request.user, at=at, name=name, query=query[:QUERY_LENGTH])
    response = show(request, "public/column.html", {"column": found}, part="public/_column.html")
    response.headers["Cache-Control"] = f"private, max-age={COLUMN_SECONDS}"
    return response


# --- For search engines ----------------------------------------------------------------------------------
@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    """robots.txt: what search engines may not read."""
    lines = [f"Disallow: {path}" for path in CLOSED]
    lines.append(f"Sitemap: {_site(request)}/sitemap.xml")
    if current().is_for_members:
        lines = ["Disallow: /"]
    return HttpResponse("\n".join(["User-agent: *", *lines, ""]), content_type="text/plain; charset=utf-8")


@require_safe
def sitemap_index(request: HttpRequest) -> HttpResponse:
    """The parts of the sitemap."""
    posts = (reverse("sitemap-posts", args=[first_id]) for first_id in sitemap.post_parts())
    people = (reverse("sitemap-people", args=[number]) for number in sitemap.people_parts())
    parts = (f"<sitemap><loc>{_site(request)}{path}</loc></sitemap>" for path in (*posts, *people))
    return _xml("sitemapindex", parts)


@require_safe
def sitemap_posts(request: HttpRequest, first_id: int) -> HttpResponse:
    """A part of the sitemap with posts."""
    entries = sitemap.posts_of(first_id)
    if entries is None:
        raise Http404
    site = _site(request)
    return _xml(
        "urlset",
        (
            f"<url><loc>{site}/items/{entry.id}</loc><lastmod>{entry.changed_at:%Y-%m-%dT%H:%M:%SZ}</lastmod></url>"
            for entry in entries
        ),
    )


@require_safe
def sitemap_people(request: HttpRequest, number: int) -> HttpResponse:
    """A part of the sitemap with profiles."""
    if number not in sitemap.people_parts():
        raise Http404
    site = _site(request)
    return _xml("urlset", (f"<url><loc>{site}/@{entry.username}</loc></url>" for entry in sitemap.people_of(number)))


def _xml(root: str, parts: Iterable[str]) -> HttpResponse:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{space}">{"".join(parts)}</{root}>\n'
    return HttpResponse(text, content_type=XML, headers={"Cache-Control": SHORTLY})


# --- For browsers ----------------------------------------------------------------------------------------
@require_safe
def manifest(request: HttpRequest) -> JsonResponse:
    """The manifest that makes the site an installable application."""
    response = JsonResponse(installing.manifest_of(current()), content_type="application/manifest+json")
    response.headers["Cache-Control"] = SHORTLY
    return response


@uncounted
@require_safe
def worker(request: HttpRequest) -> HttpResponse:
    """The service worker's script. Its Content-Security-Policy holds for what it fetches."""
    response = HttpResponse(installing.worker_of(current()), content_type="text/javascript; charset=utf-8")
    response.headers["Content-Security-Policy"] = "default-src 'none'; connect-src 'self'"
    response.headers["Cache-Control"] = "no-cache"
    return response


@uncounted
@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """The page for readers without a connection."""
    response = HttpResponse(render_to_string("public/offline.html", nonce(request)))
    response.headers["Cache-Control"] = "no-cache"
    return response


def _site(request: HttpRequest) -> str:
    return escape(f"{request.scheme}://{request.get_host()}")
