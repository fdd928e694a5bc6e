"""The pages of relations: follow, mute and block, and the lists of followers and followees."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from accounts.access import signed_in
from accounts.models import User
from relations import actions
from relations.models import Follow
from relations.people import Side, people_page
from relations.visibility import is_username, standing, visible_user
from web.pages import INVALID, PageRequest, go_on, limited, position, show, wants_part
from web.rest import PAGE

VERBS: dict[str, Callable[[User, User], bool]] = {
    "follow": lambda reader, other: actions.follow(follower=reader, followee=other),
    "unfollow": lambda reader, other: actions.unfollow(follower=reader, followee=other),
    "block": lambda reader, other: actions.block(blocker=reader, blocked=other),
    "unblock": lambda reader, other: actions.unblock(blocker=reader, blocked=other),
    "mute": lambda reader, other: actions.mute(muter=reader, muted=other),
    "unmute": lambda reader, other: actions.unmute(muter=reader, muted=other),
}


ENDS = frozenset({"unfollow", "unblock", "unmute"})
TURNED_AWAY = {
    "mute": gettext_lazy("@%(name)s is muted. You can undo this on their profile."),
    "block": gettext_lazy("@%(name)s is blocked. You can undo this on their profile."),
}
"""The words for a reader who did it in the menu of a card."""


def user_or_404(username: str, reader: User | AnonymousUser) -> User:
    """The user of this name as far as `reader` may know of them; else the same page as for every other name."""
    user = visible_user(username, reader)
    if user is None:
        raise Http404
    return user


@require_POST
@signed_in
@limited("write")
def relate(request: PageRequest, reader: User, username: str, verb: str) -> HttpResponse:
    """Begin or end a relation; doing it again changes nothing. One's own relation can be ended though the other may not
    be seen any more.
    """
    person = visible_user(username, reader)
    is_visible = person is not None
    if person is None and verb in ENDS and is_username(username):
        person = User.objects.named(username).first()
    if person is None:
        raise Http404
    error = ""
    try:
        if not VERBS[verb](reader, person) and not is_visible:
            raise Http404
    except actions.SelfRelationError:
        error = _("That is you.")
    except actions.FollowCapError:
        error = _("You have reached the limit of follows.")
    if not is_visible:  # the reader's own relation is ended, and no fact of the other user is told
        return HttpResponse() if wants_part(request) else go_on(request, "home")
    if request.POST.get("card") and not error and verb in TURNED_AWAY:
        return _turned_away(request, person, verb)
    if not wants_part(request):
        if error:
            messages.error(request, error)
        return go_on(request, "profile", person.username)
    return _part(request, reader, person, error)


def _part(request: PageRequest, reader: User, person: User, error: str) -> HttpResponse:
    """How the reader stands to the person now, for the part of the page that asks."""
    stands = standing(person, reader)
    context = {"person": person, "stands": stands, "following": stands.following, "error": error}
    # The profile has the element that shows everything; lists have a button each.
    target = request.htmx.target or ""
    part = "relations/_standing.html" if target == "standing" else "relations/_follow.html"
    if target.startswith("standing-"):
        context["place"] = target.removeprefix("standing-")
    return show(request, part, context, status=INVALID if error else 200)


def _turned_away(request: PageRequest, person: User, verb: str) -> HttpResponse:
    """The answer to a mute or block from a card's menu: htmx hears which user's cards leave the page."""
    said = TURNED_AWAY[verb] % {"name": person.username}
    if not wants_part(request):
        messages.success(request, said)
        return go_on(request, "profile", person.username)
    detail = {
        "username": person.username,
        "blocked": verb == "block",
        "profile": reverse("profile", args=[person.username]),
        "said": said,
    }
    return trigger_client_event(HttpResponse(), "turned-away", detail)


@require_safe
def followers(request: PageRequest, username: str) -> HttpResponse:
    """The page of a user's followers, newest first."""
    person = user_or_404(username, request.user)
    return _people(request, person, "follower", _("Followers"))


@require_safe
def following(request: PageRequest, username: str) -> HttpResponse:
    """The page of a user's followees, newest first."""
    person = user_or_404(username, request.user)
    return _people(request, person, "followee", pgettext("list of people", "Following"))


def _people(request: PageRequest, person: User, side: Side, title: str) -> HttpResponse:
    last_id = position(request)
    page = people_page(person, side, request.user, last_id=last_id, limit=PAGE)
    followed = followed_among(request.user, page.people)
    context = {
        "person": person,
        "title": title,
        "people": [{"person": one, "following": one.pk in followed} for one in page.people],
        "last_id": page.last_id if page.has_more else None,
        "is_first": last_id is None,
    }
    return show(request, "relations/people.html", context, part="relations/_more.html")


def followed_among(reader: User | AnonymousUser, people: list[User]) -> set[int]:
    """The ids of those among `people` whom the reader follows."""
    if not isinstance(reader, User):
        return set()
    follows = Follow.objects.filter(follower=reader, followee__in=people)
    return set(follows.values_list("followee_id", flat=True))
