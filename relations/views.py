from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpResponse, HttpResponseNotAllowed
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext
from django.views.decorators.http import require_safe
from django_htmx.http import trigger_client_event

from accounts.access import member_form, member_page
from accounts.models import User
from relations import actions
from relations.forms import MuteForm, NoteForm
from relations.models import FollowRequest
from relations.people import BELLS, BLOCKS, FOLLOWEES, FOLLOWERS, MUTES, REQUESTS, PeopleTable, mutes_among, people_page
from relations.visibility import find_user, followed_among, profile_relation, visible_user
from web.pages import INVALID, PageRequest, next_page, redirect_next, show, show_toast, wants_part, with_undo
from web.rest import PAGE, position

VERBS: dict[str, Callable[[User, User], bool]] = {
    "follow": lambda reader, other: actions.follow(follower=reader, followee=other),
    "unfollow": lambda reader, other: actions.unfollow(follower=reader, followee=other),
    "block": lambda reader, other: actions.block(blocker=reader, blocked=other),
    "unblock": lambda reader, other: actions.unblock(blocker=reader, blocked=other),
    "mute": lambda reader, other: actions.mute(muter=reader, muted=other),
    "unmute": lambda reader, other: actions.unmute(muter=reader, muted=other),
    "accept": lambda reader, other: actions.accept(followee=reader, follower=other),
    "reject": lambda reader, other: actions.reject(followee=reader, follower=other),
    "remove": lambda reader, other: actions.unfollow(follower=other, followee=reader),
    "show-reposts": lambda reader, other: actions.show_reposts(follower=reader, followee=other, reposts=True),
    "hide-reposts": lambda reader, other: actions.show_reposts(follower=reader, followee=other, reposts=False),
    "bell": lambda reader, other: actions.set_bell(follower=reader, followee=other, rings=True),
    "silence": lambda reader, other: actions.set_bell(follower=reader, followee=other, rings=False),
}
ENDS = frozenset({"unfollow", "silence", "unblock", "unmute", "remove"})
DECIDED = {
    "accept": gettext_lazy("@%(name)s follows you now."),
    "reject": gettext_lazy("You declined @%(name)s's request."),
    "remove": gettext_lazy("@%(name)s no longer follows you."),
    "unmute": gettext_lazy("You unmuted @%(name)s."),
    "unblock": gettext_lazy("You unblocked @%(name)s."),
    "silence": gettext_lazy("Posts by @%(name)s no longer notify you."),
}
"""Messages after a button in one of the reader's own lists."""
UNDOES = frozenset({"unmute", "unblock", "silence"})
REQUEST_VERBS = frozenset({"accept", "reject"})
OFFERS = {REQUESTS: "decide", BLOCKS: "unblock", MUTES: "unmute", BELLS: "silence"}
"""The buttons in one's own lists. Other lists offer to follow."""
TURNED_AWAY = {
    "mute": gettext_lazy("You muted @%(name)s."),
    "block": gettext_lazy("You blocked @%(name)s."),
}
"""Messages after a choice in a card's menu."""


@member_form
def relate(request: PageRequest, reader: User, username: str, verb: str) -> HttpResponse:
    """Begin or end a relation, even to a user no longer visible. Without JavaScript a page asks before a block."""
    if request.method != "POST":
        return _confirm_block(request, reader, username, verb)
    person = find_user(username, reader)
    is_visible = person is not None
    if person is None:
        person = (User.objects.all() if verb in ENDS else User.objects.none()).named(username).get()
    has_changed, error = _try_verb(reader, person, verb)
    if not (has_changed or error or is_visible):
        raise Http404
    if not is_visible:  # the answer reveals nothing about the other user
        return HttpResponse() if wants_part(request) else redirect_next(request, "home")
    if request.POST.get("card") and not error and verb in TURNED_AWAY:
        return _hidden_person_response(request, person, verb)
    if verb in DECIDED and (verb not in UNDOES or request.POST.get("listed")):
        return _decision_response(request, reader, person, verb, error)
    if not wants_part(request):
        if error:
            messages.error(request, error)
        return redirect_next(request, "profile", person.username)
    return _profile_part(request, reader, person, error)


def _confirm_block(request: PageRequest, reader: User, username: str, verb: str) -> HttpResponse:
    if verb != "block":
        return HttpResponseNotAllowed(["POST"])
    context = {"person": visible_user(username, reader), "next": next_page(request)}
    return show(request, "relations/block.html", context)


def _try_verb(reader: User, person: User, verb: str) -> tuple[bool, str]:
    try:
        has_changed = VERBS[verb](reader, person)
    except actions.SelfRelationError:
        return False, _("You can't do this to yourself.")
    except actions.RequesterCapError:
        return False, _("@%(name)s can't follow more people.") % {"name": person.username}
    except actions.FollowCapError:
        return False, _("You've reached the limit of follows. Unfollow someone first.")
    except actions.RequestCapError:
        return False, _("You have too many open follow requests. Withdraw some first.")
    except actions.NotFollowedError:
        return False, _("Follow @%(name)s first.") % {"name": person.username}
    except actions.BellCapError:
        return False, _("You've reached the limit of people whose posts notify you. Turn one off first.")
    if verb in REQUEST_VERBS and not has_changed:
        return False, _("This request is gone.")
    return has_changed, ""


def _profile_part(request: PageRequest, reader: User, person: User, error: str) -> HttpResponse:
    stands = profile_relation(person, reader)
    context = {
        "person": person,
        "stands": stands,
        "following": stands.following,
        "requested": stands.requested,
    }
    # The profile shows everything, lists only a button.
    target = request.htmx.target or ""
    part = "relations/_standing.html" if target == "standing" else "relations/_follow.html"
    if target.startswith("standing-"):
        context["place"] = target.removeprefix("standing-")
    response = show(request, part, context, status=INVALID if error else 200)
    return show_toast(response, error, is_problem=True) if error else response


def _hidden_person_response(request: PageRequest, person: User, verb: str) -> HttpResponse:
    said = TURNED_AWAY[verb] % {"name": person.username}
    undo = reverse("relate", args=[person.username, f"un{verb}"])
    if not wants_part(request):
        messages.success(request, with_undo(said, undo))
        return redirect_next(request, "profile", person.username)
    detail = {
        "username": person.username,
        "blocked": verb == "block",
        "profile": reverse("profile", args=[person.username]),
        "said": said,
        "undo": undo,
    }
    return trigger_client_event(HttpResponse(), "turned-away", detail)


def _decision_response(request: PageRequest, reader: User, person: User, verb: str, error: str) -> HttpResponse:
    said = error or DECIDED[verb] % {"name": person.username}
    if wants_part(request):
        return _decided_part(request, reader, person, said, is_problem=bool(error))
    (messages.error if error else messages.success)(request, said)
    if verb in REQUEST_VERBS:
        return redirect_next(request, "follow-requests")
    return redirect_next(request, "followers", reader.username)


def _decided_part(request: PageRequest, reader: User, person: User, said: str, *, is_problem: bool) -> HttpResponse:
    if not is_problem:
        return show(request, "relations/_decided.html", {"said": said})
    response = HttpResponse(status=INVALID)  # a request that is gone has no buttons
    if profile_relation(person, reader).requested_by:
        response = show(request, "relations/_decide.html", {"person": person}, status=INVALID)
    return show_toast(response, said, is_problem=True)


@member_page
def requests(request: PageRequest, reader: User) -> HttpResponse:
    """Users who ask to follow the reader."""
    return _people_page(request, reader, REQUESTS, _("Follow requests"), template="relations/requests.html")


@member_page
def mutes(request: PageRequest, reader: User) -> HttpResponse:
    """Users whom the reader mutes, newest first."""
    return _people_page(request, reader, MUTES, _("Muted"), template="relations/turned_away.html")


@member_page
def bells(request: PageRequest, reader: User) -> HttpResponse:
    """Users whose posts notify the reader, newest first."""
    return _people_page(request, reader, BELLS, _("Post notifications"), template="relations/bells.html")


@member_page
def blocks(request: PageRequest, reader: User) -> HttpResponse:
    """Users whom the reader blocks, newest first."""
    return _people_page(request, reader, BLOCKS, _("Blocked"), template="relations/turned_away.html")


@member_form
def mute_with_options(request: PageRequest, reader: User, username: str) -> HttpResponse:
    """Mute with options."""
    person = visible_user(username, reader)
    form = MuteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        fields = form.cleaned_data
        try:
            actions.mute(muter=reader, muted=person, lasts=fields["lasts"], notifications=fields["notifications"])
        except actions.SelfRelationError:
            form.add_error(None, _("You can't do this to yourself."))
        else:
            undo = reverse("relate", args=[person.username, "unmute"])
            messages.success(request, with_undo(TURNED_AWAY["mute"] % {"name": person.username}, undo))
            return redirect_next(request, "profile", person.username)
    context = {"person": person, "form": form}
    return show(request, "relations/mute_for.html", context, status=INVALID if form.errors else 200)


@member_form
def note(request: PageRequest, reader: User, username: str) -> HttpResponse:
    """The reader's private note about a user."""
    person = visible_user(username, reader)
    before = {"text": profile_relation(person, reader).note}
    form = NoteForm(request.POST if request.method == "POST" else None, initial=before)
    if form.is_valid():
        try:
            actions.write_note(owner=reader, subject=person, text=form.cleaned_data["text"])
        except actions.SelfRelationError:
            form.add_error(None, _("You can't do this to yourself."))
        else:
            return redirect_next(request, "profile", person.username)
    context = {"person": person, "form": form}
    return show(request, "relations/note.html", context, status=INVALID if form.errors else 200)


@require_safe
def hover_card(request: PageRequest, username: str) -> HttpResponse:
    """What stands beside a name that the mouse points at (hover.js). 404 for a user whom the reader blocks, too."""
    person = visible_user(username, request.user)
    stands = profile_relation(person, request.user)
    if stands.blocking:
        raise Http404
    context = {"person": person, "stands": stands}
    return show(request, "relations/_hover_card.html", context)


@require_safe
def followers(request: PageRequest, username: str) -> HttpResponse:
    """A user's followers, newest first."""
    person = visible_user(username, request.user)
    return _people_page(request, person, FOLLOWERS, _("Followers"))


@require_safe
def following(request: PageRequest, username: str) -> HttpResponse:
    """A user's followees, newest first."""
    person = visible_user(username, request.user)
    return _people_page(request, person, FOLLOWEES, pgettext("list of people", "Following"))


def _people_page(
    request: PageRequest, person: User, listed: PeopleTable, title: str, template: str = "relations/people.html"
) -> HttpResponse:
    last_id = position(request)
    page = people_page(person.pk, listed, request.user, last_id=last_id, limit=PAGE)
    people = person_cards(request.user, page.people)
    if listed is MUTES:
        muted = mutes_among(person, page.people)
        people = [card | {"mute": muted.get(card["person"].pk)} for card in people]
    offer = OFFERS.get(listed, "")
    if listed is FOLLOWERS and person == request.user:
        offer = "remove"
    context = {
        "person": person,
        "title": title,
        "people": people,
        "offer": offer,
        "last_id": page.last_id if page.has_more else None,
        "is_first": last_id is None,
    }
    return show(request, template, context, part="relations/_more.html")


def person_cards(reader: User | AnonymousUser, people: list[User]) -> list[dict[str, Any]]:
    """People for relations/_person.html, with the reader's follows and requests."""
    ids = [one.pk for one in people]
    followed = followed_among(reader, ids) if ids and isinstance(reader, User) else set()
    requested = _requested_among(reader, people)
    return [{"person": one, "following": one.pk in followed, "requested": one.pk in requested} for one in people]


def _requested_among(reader: User | AnonymousUser, people: list[User]) -> set[int]:
    locked = [one for one in people if one.is_locked]
    if not locked or not isinstance(reader, User):
        return set()
    asked = FollowRequest.objects.filter(follower=reader, followee__in=locked)
    return set(asked.values_list("followee_id", flat=True))
