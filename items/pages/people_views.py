from django.http import HttpResponse
from django.views.decorators.http import require_safe

from items.likes.people import LIKERS, REPOSTERS
from items.profiles.profile import visible_item
from relations.people import PeopleTable, people_page
from relations.views import person_cards
from web.pages import PageRequest, show
from web.rest import PAGE, position


@require_safe
def likers(request: PageRequest, item_id: int) -> HttpResponse:
    """Who likes an item, newest like first."""
    return _people(request, item_id, LIKERS)


@require_safe
def reposters(request: PageRequest, item_id: int) -> HttpResponse:
    """Who reposted an item, newest accounts first."""
    return _people(request, item_id, REPOSTERS)


def _people(request: PageRequest, item_id: int, listed: PeopleTable) -> HttpResponse:
    item = visible_item(item_id, request.user).shown
    last_id = position(request)
    page = people_page(int(item.id), listed, request.user, last_id=last_id, limit=PAGE)
    context = {
        "item": item,
        "shows_likers": listed is LIKERS,
        "people": person_cards(request.user, page.people),
        "last_id": page.last_id if page.has_more else None,
        "is_first": last_id is None,
    }
    return show(request, "items/people.html", context, part="relations/_more.html")
