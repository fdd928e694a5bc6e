from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts.access import member_page
from accounts.models import User
from items.completing import completions
from items.emoji import GROUPS, SHOWN, emoji_named, emoji_of_group
from items.pages.cards import Cards
from items.pages.open_pages import OpenPage, open_page
from items.profiles.profile import answered_senders
from items.search.query import QUERY_LENGTH, parse
from items.search.search import search_items
from items.search.user_search import search_users
from items.tags.popular import popular_tags
from items.tags.tags import tag_page
from relations.tags import follows_tag
from relations.views import person_cards
from web import rates
from web.hashtags import known_tag
from web.pages import INVALID, PageRequest, show, too_many
from web.rest import position, single_parameter
from web.strict_json import check_text

FIRST_PEOPLE = 5
ALL_PEOPLE = 50
NOTHING_SOUGHT: dict[str, Any] = {
    "is_first": True,
    "page": None,
    "people": [],
    "popular": [],
    "sought": None,
    "too_long": "",
}
"""The search page without a query."""


@require_safe
@open_page
def tag(request: PageRequest, name: str) -> OpenPage:
    """The items with a hashtag. Other spellings redirect to the canonical one."""
    canonical = known_tag(name)
    if canonical != name:
        return OpenPage(redirect("tag", canonical))
    last_id = position(request)
    page = tag_page(canonical, request.user, last_id=last_id)
    context = {
        "tag": canonical,
        "follows": follows_tag(request.user, canonical),
        "page": page,
        "cards": Cards(request.user).of(page.items),
        "is_first": last_id is None,
    }
    return OpenPage(show(request, "items/tag.html", context, part="items/_more.html"), page.items)


@member_page
def complete(request: PageRequest, reader: User) -> HttpResponse:
    """Completions, for complete.js."""
    found = completions(_search_query(request), reader)
    return show(request, "items/_completions.html", {"completions": found})


@member_page
def emoji(request: PageRequest, reader: User) -> HttpResponse:
    """Emoji with a name, or of a group, for the picker."""
    asked, group = _search_query(request), request.GET.get("group", "")
    found = emoji_named(asked, SHOWN) if asked else emoji_of_group(group if group in GROUPS else GROUPS[0])
    context = {"found": found, "groups": [] if asked else [emoji_of_group(one)[0] for one in GROUPS]}
    return show(request, "items/_emoji.html", context)


@require_safe
def search(request: PageRequest) -> HttpResponse:
    """Matching people and items; without a query, popular hashtags."""
    last_id, asked = position(request), _search_query(request)
    if not asked or len(asked) > QUERY_LENGTH:
        context: dict[str, Any] = NOTHING_SOUGHT | {
            "q": asked,
            "too_long": asked,
            "longest": QUERY_LENGTH,
            "popular": [] if asked else popular_tags(request.user),
        }
        return show(request, "items/search.html", context, status=INVALID if asked else 200)
    wait = rates.hit("search", str(request.user.pk or rates.address(request)))
    if wait is not None:
        return too_many(request, wait)
    query = parse(asked)
    only_people, only_posts = (request.GET.get("show") == one for one in ("people", "posts"))
    context = NOTHING_SOUGHT | {"q": asked, "sought": query, "only_people": only_people, "is_first": last_id is None}
    context |= {"only_posts": only_posts, "tab": urlencode({"q": asked})}
    context["more"] = urlencode({"q": asked, "show": "posts"} if only_posts else {"q": asked})
    if only_people or (last_id is None and not only_posts):
        wanted = ALL_PEOPLE if only_people else FIRST_PEOPLE
        found = search_users(query, request.user, limit=wanted + 1)
        context["people"] = person_cards(request.user, found[:wanted])
        context["more_people"] = not only_people and len(found) > wanted
    if not only_people:
        page = search_items(query, request.user, last_id=last_id)
        answered = answered_senders(page.items, request.user)
        context |= {"page": page, "cards": Cards(request.user, sought=query).of(page.items, answered=answered)}
    return show(request, "items/search.html", context, part="" if only_people else "items/_more.html")


def _search_query(request: PageRequest) -> str:
    asked = single_parameter(request.GET, "q").strip()
    try:
        check_text(asked)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return asked
