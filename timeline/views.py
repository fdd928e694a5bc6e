"""Home, its count of new posts, a new member's first steps, and the reading position."""

from collections.abc import Iterable

from django.conf import settings
from django.core.exceptions import BadRequest, ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts.access import member_act, member_form, member_page
from accounts.actions import edit_preferences, edit_profile
from accounts.models import User
from items.hydrate import hydrate
from items.models import Status
from items.pages.cards import Card, Cards
from items.pages.forms import HomeForm
from items.tags.popular import active_tags
from relations.suggestions import suggestions
from timeline.forms import WelcomeForm
from timeline.home import HomePage, home_page, new_count
from timeline.late import late_arrivals, with_late
from timeline.position import forget_position, reading_state, resume_offer, save_position
from timeline.senders import Scope
from timeline.welcome import PEOPLE, people_for
from web.hashtags import canonical_tag
from web.pages import INVALID, PageRequest, next_page, show, wants_part, with_next
from web.rest import PAGE, parse_id, position

FOUND = 20
"""Users that the page of people suggests."""


@member_page
def home(request: PageRequest, reader: User) -> HttpResponse:
    """The home page, newest posts first. htmx asks for the next page by `last_id`.

    A page opened directly sets the reading position until site.js does. `late`: since when late arrivals count as new.
    """
    last_id, late = position(request), position(request, "late")
    state = reading_state(reader)
    page = home_page(reader, last_id=last_id, limit=PAGE)
    first = last_id is None
    held = hydrate(state.held, reader) if first else []
    top = int(page.items[0].id) if page.items else None
    arrived = late_arrivals(Scope.home_of(reader), page.items, since=late) if first else []
    context = {
        "page": page,
        "cards": cards_of(request, page, arrived),
        "is_first": first,
        "since_id": top if first and top else "",
        "at": state.now,
        "offer": resume_offer(reader, state) if first else None,
        "poll_seconds": settings.HOME_POLL_SECONDS,
        "of": reverse("home"),
        "asks": reverse("news"),
        "form": HomeForm.fresh(reader=reader),
        "held": Cards(reader).of((item for item in held if item.status == Status.IN_REVIEW), keeps_hidden=True),
        "suggestions": suggestions(reader, count=_proposal_count(reader)) if first and _proposal_count(reader) else [],
    }
    if top and state.is_due and request.method == "GET" and not wants_part(request):
        save_position(reader=reader, item_id=top)
    part = "timeline/_beginning.html" if first else "items/_more.html"
    if request.htmx.target == "held":  # htmx takes the strip of held posts out of the whole page
        part = ""
    response = show(request, "timeline/home.html", context, part=part)
    response["X-Feed-Source"] = ",".join(page.sources)
    return response


def cards_of(request: PageRequest, page: HomePage, arrived: Iterable[int]) -> list[Card]:
    """The cards of a page's visible items. `arrived`: ids of late arrivals."""
    late = {str(item_id) for item_id in arrived}
    cards = Cards(request.user, page.items)
    return [
        cards.one(item, others=page.others.get(item.id, 0), is_late=item.id in late)
        for item in page.items
        if not item.is_hidden
    ]


SETTLED = 5
"""From this number of followees on, home suggests no users."""
PROPOSED, PROPOSED_TO_NEWCOMERS = 3, 6


def _proposal_count(reader: User) -> int:
    if reader.hides_suggestions or reader.following_count >= SETTLED:
        return 0
    return PROPOSED if reader.following_count else PROPOSED_TO_NEWCOMERS


# --- First steps -----------------------------------------------------------------------------------------
@member_form
def welcome(request: PageRequest, reader: User) -> HttpResponse:
    """A new member's first page."""
    tags = active_tags(reader)
    form = WelcomeForm(tags, request.POST or None, initial={"display_name": reader.display_name})
    if not form.fields:
        return redirect(with_next("welcome-people", next_page(request)))
    if form.is_valid():
        try:
            edit_profile(user=reader, display_name=form.cleaned_data["display_name"])
        except ValidationError as error:
            form.add_error(None, error)
        else:
            interests = [("tag", tag) for tag in form.cleaned_data["interests"]]
            return redirect(with_next("welcome-people", next_page(request), *interests))
    context = {"form": form, "next": next_page(request)}
    return show(request, "timeline/welcome.html", context, status=INVALID if form.errors else 200)


@member_page
def welcome_people(request: PageRequest, reader: User) -> HttpResponse:
    """Propose people to follow, by the query's hashtags."""
    asked = (canonical_tag(tag) for tag in request.GET.getlist("tag")[:PEOPLE])
    people = people_for(reader, [tag for tag in asked if tag])
    return show(request, "timeline/welcome_people.html", {"people": people, "next": next_page(request)})


@member_act
def dismiss_suggestions(request: PageRequest, reader: User) -> HttpResponse:
    """Propose nobody on other pages any more."""
    edit_preferences(user=reader, hides_suggestions=True)
    return HttpResponse() if wants_part(request) else redirect("home")


@member_page
def find_people(request: PageRequest, reader: User) -> HttpResponse:
    """Propose people to follow, with a search box."""
    return show(request, "timeline/find_people.html", {"people": suggestions(reader, count=FOUND)})


@member_page
def news(request: PageRequest, reader: User) -> HttpResponse:
    """The number of new posts and late arrivals. 204 if the page already `shows` it."""
    since_id, at = position(request, "since_id"), position(request, "at")
    new = new_count(reader, since_id=since_id or 0, of_others=True)
    count, capped = with_late(new, Scope.home_of(reader), since=at, top=since_id)
    if request.GET.get("shows") == str(count):
        return HttpResponse(status=204)
    context = {
        "count": count,
        "capped": capped,
        "since_id": since_id or "",
        "at": at or "",
        "poll_seconds": settings.HOME_POLL_SECONDS,
        "of": reverse("home"),
        "asks": reverse("news"),
    }
    return show(request, "timeline/_news.html", context)


@member_act
def update_position(request: PageRequest, reader: User) -> HttpResponse:
    """Save the position (`item_id`), or stop offering it (`forget`)."""
    if "forget" in request.POST:
        forget_position(reader=reader)
        return HttpResponse() if wants_part(request) else redirect("home")
    item_id = parse_id(request.POST.get("item_id", ""))
    if item_id is None:
        raise BadRequest("item_id is not an id")
    save_position(reader=reader, item_id=item_id)
    return HttpResponse(status=204)
