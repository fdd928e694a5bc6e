"""The page on the site itself, and the stylesheet of its colour."""

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.about import announcing, colours
from accounts.about.site import current
from accounts.models import User
from media.files import CACHING
from web.pages import PageRequest, go_on, show, uncounted

PEOPLE = 8
"""Users whom the page shows."""
LOOKED_AT = 32


@require_safe
def about(request: PageRequest) -> HttpResponse:
    """The site's words on itself: what it is for, its rules, and who runs it. Strangers meet some of its people."""
    is_open = not request.user.is_authenticated and not current().is_for_members
    return show(request, "about/about.html", {"people": _people() if is_open else []})


def _people() -> list[User]:
    """The most followed users who may be listed outside."""
    found = User.objects.active().order_by("-follower_count", "pk")[:LOOKED_AT]
    return [user for user in found if user.is_indexable][:PEOPLE]


@csrf_exempt
@require_POST
def dismiss_announcement(request: PageRequest) -> HttpResponse:
    """Let this browser show the announcement of the moment no more.

    Its form has no token, so that all strangers can be shown the same page (items/open_pages.py); all that another site
    can do by it is to hide the announcement.
    """
    response = go_on(request, "home")
    announcing.dismiss(response, current().news)
    return response


@uncounted
@require_safe
def theme(request: HttpRequest, code: str) -> HttpResponse:
    """The stylesheet of an accent colour. The address says all, so that no statement is made, and what it says stays
    the same.
    """
    try:
        sheet = colours.sheet(f"#{code}")
    except ValidationError:
        raise Http404 from None
    response = HttpResponse(sheet, content_type="text/css; charset=utf-8")
    response["Cache-Control"] = CACHING
    return response
