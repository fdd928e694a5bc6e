"""The about page, stylesheet and icons of the site."""

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import pgettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.about import announcing, colours, legal
from accounts.about.logo import ICONS, render_icon
from accounts.about.site import current
from accounts.about.words import favicon_of
from accounts.models import User
from media.files import CACHING, StoreError
from web.pages import PageRequest, redirect_next, show, uncounted

PEOPLE = 8
"""Users shown on the page."""
LOOKED_AT = 32


@require_safe
def about(request: PageRequest) -> HttpResponse:
    """Description and rules. Strangers also see some people."""
    is_open = not request.user.is_authenticated and not current().is_for_members
    return show(request, "about/about.html", {"people": _most_followed() if is_open else []})


@require_safe
def terms(request: PageRequest) -> HttpResponse:
    """The terms of the site."""
    return show(request, "about/legal.html", {"legal": legal.terms(), "title": pgettext("legal", "Terms")})


@require_safe
def privacy(request: PageRequest) -> HttpResponse:
    """The privacy policy of the site."""
    return show(request, "about/legal.html", {"legal": legal.privacy(), "title": pgettext("legal", "Privacy")})


def _most_followed() -> list[User]:
    found = User.objects.active().order_by("-follower_count", "pk")[:LOOKED_AT]
    return [user for user in found if user.is_indexable][:PEOPLE]


@csrf_exempt
@require_POST
def dismiss_announcement(request: PageRequest) -> HttpResponse:
    """Hide the announcement in this browser. Without a CSRF token, so that strangers get the same page."""
    response = redirect_next(request, "home")
    announcing.dismiss(response, current().news)
    return response


@uncounted
@require_safe
def theme(request: HttpRequest, code: str) -> HttpResponse:
    """Stylesheet of an accent colour."""
    try:
        sheet = colours.accent_stylesheet(f"#{code}")
    except ValidationError:
        raise Http404 from None
    response = HttpResponse(sheet, content_type="text/css; charset=utf-8")
    response["Cache-Control"] = CACHING
    return response


@uncounted
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Lead to the icon, for those who ask without having read a page."""
    return redirect(favicon_of(current()))


@uncounted
@require_safe
def icon(request: HttpRequest, logo_id: int, name: str) -> HttpResponse:
    """A PNG icon of the uploaded logo."""
    facts = current().logo
    if facts is None or facts["id"] != str(logo_id) or name not in ICONS:
        raise Http404
    try:
        drawn = render_icon(f"{facts['name']}.{facts['ext']}", name)
    except (FileNotFoundError, StoreError):
        raise Http404 from None
    return HttpResponse(drawn, content_type="image/png", headers={"Cache-Control": CACHING})
