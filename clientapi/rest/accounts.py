from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import IO, Any

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts import faces
from accounts.actions import edit_preferences
from accounts.callers import reader_of
from accounts.models import PostedTo, User
from accounts.presenting import FacesError, update_profile
from accounts.profile_fields import TEXT_LENGTH, Pair
from clientapi.accounts.people import accounts_of, list_people, people_answer, post_counts
from clientapi.accounts.relationships import ASKED, relationships
from clientapi.entities import QUOTABLE_BY, Account, CredentialAccount, MutedAccount, time_text
from clientapi.errors import ClientView, InvalidError, OpenView, caller_of
from clientapi.paging import MOST_PEOPLE, PEOPLE, page_params, paged_answer
from clientapi.params import Params
from clientapi.rest.lists import list_of
from clientapi.statuses import timelines
from clientapi.statuses.presenting import Reader, statuses
from items.profiles.profile import item_count
from media.actions import MediaError
from media.models import Use
from relations import actions, lists
from relations.api import LONGEST_MUTE_SECONDS, is_visible
from relations.models import NOTE_LENGTH
from relations.people import BLOCKS, FOLLOWEES, FOLLOWERS, MUTES, REQUESTS, PeopleTable, mutes_among, waiting_requests
from relations.visibility import profile_relation, users_visible_to, visible_user
from web import uploads
from web.hosts import is_own
from web.rest import FeedResponse

BIO_LENGTH, NAME_LENGTH = 500, 50
POSTED_TO = {"public": PostedTo.PUBLIC, "private": PostedTo.FOLLOWERS}
"""Mastodon's names of the first choice of who may see a post."""
FILES = {"avatar": Use.AVATAR, "header": Use.BANNER}


def own_account(user: User) -> CredentialAccount:
    """The caller's account."""
    return CredentialAccount.own(user, post_counts.of([user.pk])[user.pk], waiting_requests(user))


def local_name_of(acct: str) -> str:
    """The username in `name@domain`. Empty if the domain is another site's."""
    name, _at, domain = acct.strip().lstrip("@").partition("@")
    return name if not domain or is_own(domain) else ""


def shown_account(user: User, reader: Reader) -> Account:
    """The account with exact counts, for its own page."""
    account = Account.of(user, item_count(user, reader))
    counts = profile_relation(user, reader)
    account.followers_count, account.following_count = counts.followers, counts.following_count
    return account


# --- One's own account -----------------------------------------------------------------------------------
class OwnAccountView(ClientView):
    scopes = "profile"

    def get(self, request: Request) -> HttpResponse:
        """Return the account."""
        return FeedResponse(own_account(caller_of(request)))


class ProfileView(ClientView):
    scopes = "accounts"
    rates: Mapping[str, str] = {"PATCH": "upload"}
    takes_files = {"PATCH": uploads.one_medium_bytes}

    def patch(self, request: Request) -> HttpResponse:
        """Change the profile, indexing, and the defaults of new posts."""
        user, params = caller_of(request), Params(request)
        params.refuse("bot", "hide_collections", "attribution_domains", "avatar_description", "header_description")
        for name in FILES:
            if name not in params.files and not params.is_blank(name):
                raise InvalidError(f"Validation failed: {name} must be a file")
        preferences = _preferences(params)
        with ExitStack() as stack:
            files: dict[Use, IO[bytes]] = {
                use: stack.enter_context(params.files[name].open("rb"))
                for name, use in FILES.items()
                if name in params.files
            }
            _update_profile(user, params, files)
        if preferences:
            edit_preferences(user=user, **preferences)
        return FeedResponse(own_account(User.objects.get(pk=user.pk)))


def _preferences(params: Params) -> dict[str, Any]:
    """The preferences that a request sets. Raises InvalidError."""
    source = params.part("source")
    named = [params.flag(name) for name in ("discoverable", "indexable") if not params.is_blank(name)]
    fields = {
        "is_indexable": all(named) if named else None,
        "quotable_by": QUOTABLE_BY.get(source.choice("quote_policy", QUOTABLE_BY)),
        "post_visibility": POSTED_TO.get(source.choice("privacy", POSTED_TO)),
        "post_sensitive": None if source.is_blank("sensitive") else source.flag("sensitive"),
        "post_language": source.language("language"),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _update_profile(user: User, params: Params, files: dict[Use, IO[bytes]]) -> None:
    name = params.text("display_name", most=NAME_LENGTH, default=user.display_name)
    bio = params.text("note", most=BIO_LENGTH, default=user.bio)
    is_locked = None if params.is_blank("locked") else params.flag("locked")
    fields = _fields(params) if "fields_attributes" in params else None
    if (name, bio) == (user.display_name, user.bio) and is_locked is None and fields is None and not files:
        return
    try:
        update_profile(
            user=user, display_name=name, bio=bio, fields=fields, files=files, removed=(), is_locked=is_locked
        )
    except FacesError as error:
        use, reason = next(iter(error.reasons.items()))
        if isinstance(reason, MediaError):
            reason.field = use
        raise reason from error


def _fields(params: Params) -> list[Pair]:
    parts = params.parts("fields_attributes")
    return [(one.text("name", most=TEXT_LENGTH), one.text("value", most=TEXT_LENGTH)) for one in parts]


class FaceView(ClientView):
    """The caller's avatar or header."""

    scopes = "accounts"
    use = Use.AVATAR

    def delete(self, request: Request) -> HttpResponse:
        """Remove the picture, and return the account."""
        return FeedResponse(own_account(faces.remove_face(user=caller_of(request), use=self.use)))


# --- Others ----------------------------------------------------------------------------------------------
class AccountView(OpenView):
    scopes = "accounts"

    def get(self, request: Request, account_id: int) -> HttpResponse:
        """Return the account. Raises NotFound."""
        reader = reader_of(request)
        return FeedResponse(shown_account(users_visible_to(reader).get(pk=account_id), reader))


class AccountsView(OpenView):
    """Several accounts by id."""

    scopes = "accounts"

    def get(self, request: Request) -> HttpResponse:
        """Return the visible accounts."""
        ids = Params(request).ids("id", most=MOST_PEOPLE, some=True)
        found = {user.pk: user for user in users_visible_to(reader_of(request)).filter(pk__in=ids)}
        return FeedResponse(accounts_of(found[one] for one in ids if one in found))


class LookupView(OpenView):
    """An account by its name."""

    scopes = "accounts"

    def get(self, request: Request) -> HttpResponse:
        """Return the account. Raises NotFound."""
        reader = reader_of(request)
        user = visible_user(local_name_of(Params(request).text("acct", most=300)), reader)
        return FeedResponse(shown_account(user, reader))


class RelationshipsView(ClientView):
    """The caller's relations to other users."""

    scopes = "follows"

    def get(self, request: Request) -> HttpResponse:
        """Return the relations."""
        return FeedResponse(relationships(caller_of(request), Params(request).ids("id", most=ASKED, some=True)))


class StatusesView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, account_id: int) -> HttpResponse:
        """List the statuses, newest first."""
        reader, params = reader_of(request), Params(request)
        owner = users_visible_to(reader).get(pk=account_id)
        asked, kinds = page_params(params), _kinds(params)
        is_of_pins = params.flag("pinned")
        page = (
            timelines.pinned(owner, reader, asked) if is_of_pins else timelines.of_account(owner, reader, asked, kinds)
        )
        return paged_answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


def _kinds(params: Params) -> timelines.Kinds:
    return timelines.Kinds(
        only_media=params.flag("only_media"),
        with_replies=not params.flag("exclude_replies"),
        with_reposts=not params.flag("exclude_reblogs"),
        tag=params.text("tagged", most=100).removeprefix("#"),
    )


class FollowersView(OpenView):
    scopes = "accounts"
    listed = FOLLOWERS

    def get(self, request: Request, account_id: int) -> HttpResponse:
        """List the accounts, newest relation first."""
        reader = reader_of(request)
        return people_answer(request, users_visible_to(reader).get(pk=account_id).pk, self.listed, reader)


class FollowingView(FollowersView):
    """The accounts that an account follows."""

    listed = FOLLOWEES


class ListsOfAccountView(ClientView):
    """Those of the caller's lists that have an account as member."""

    scopes = "lists"

    def get(self, request: Request, account_id: int) -> HttpResponse:
        """Return the lists."""
        reader = caller_of(request)
        user = users_visible_to(reader).get(pk=account_id)
        found = lists.sorted_by_title(one for one in lists.lists_of(reader, person_id=user.pk) if one.has_person)
        return FeedResponse([list_of(one) for one in found])


# --- Relations -------------------------------------------------------------------------------------------
class RelationView(ClientView):
    """Base of views that change the caller's relation to an account."""

    is_end = False
    """True if the call ends the relation. Then it also works on users whom the caller can no longer see."""

    def act(self, reader: User, other: User, params: Params) -> bool:
        """Change the relation. True if anything changed."""
        raise NotImplementedError

    def post(self, request: Request, account_id: int) -> HttpResponse:
        """Change the relation and return it."""
        reader, params = caller_of(request), Params(request)
        other = (User.objects.all() if self.is_end else users_visible_to(reader)).get(pk=account_id)
        if other.pk == reader.pk:
            raise InvalidError("Validation failed: You can't do this to yourself")
        has_changed = self.act(reader, other, params)
        if self.is_end and not has_changed and not is_visible(other, reader):
            raise exceptions.NotFound
        found = relationships(reader, [other.pk])
        if not found:
            raise exceptions.NotFound
        return FeedResponse(found[0])


class FollowView(RelationView):
    """Follow an account, or ask a locked one."""

    scopes = "follows"

    def act(self, reader: User, other: User, params: Params) -> bool:
        """Follow, or ask a locked account."""
        params.refuse("languages")
        reposts = None if params.is_blank("reblogs") else params.flag("reblogs")
        bell = None if params.is_blank("notify") else params.flag("notify")
        return actions.follow(follower=reader, followee=other, reposts=reposts, bell=bell)


class NoteView(RelationView):
    """The caller's private note about an account."""

    scopes = "accounts"

    def act(self, reader: User, other: User, params: Params) -> bool:
        """Write the note. An empty one removes it."""
        actions.write_note(owner=reader, subject=other, text=params.text("comment", most=NOTE_LENGTH))
        return True


class UnfollowView(RelationView):
    scopes = "follows"
    is_end = True

    def act(self, reader: User, other: User, params: Params) -> bool:
        """Unfollow, or withdraw the request."""
        return actions.unfollow(follower=reader, followee=other)


class RemoveFollowerView(RelationView):
    scopes = "follows"
    is_end = True

    def act(self, reader: User, other: User, params: Params) -> bool:
        """End the other user's follow."""
        return actions.unfollow(follower=other, followee=reader)


class BlockView(RelationView):
    scopes = "blocks"

    def act(self, reader: User, other: User, params: Params) -> bool:
        return actions.block(blocker=reader, blocked=other)


class UnblockView(RelationView):
    scopes = "blocks"
    is_end = True

    def act(self, reader: User, other: User, params: Params) -> bool:
        return actions.unblock(blocker=reader, blocked=other)


class MuteView(RelationView):
    scopes = "mutes"

    def act(self, reader: User, other: User, params: Params) -> bool:
        """Mute, for `duration` seconds if given."""
        seconds = params.number("duration", least=0, most=LONGEST_MUTE_SECONDS, default=0)
        lasts = timedelta(seconds=seconds) if seconds else None
        notifications = params.flag("notifications", default=True)
        return actions.mute(muter=reader, muted=other, lasts=lasts, notifications=notifications)


class UnmuteView(RelationView):
    scopes = "mutes"
    is_end = True

    def act(self, reader: User, other: User, params: Params) -> bool:
        return actions.unmute(muter=reader, muted=other)


# --- One's own lists of people ---------------------------------------------------------------------------
class OwnPeopleView(ClientView):
    """A list of people that only its owner sees."""

    listed: PeopleTable

    def get(self, request: Request) -> HttpResponse:
        """List the accounts, newest relation first."""
        reader = caller_of(request)
        return people_answer(request, reader.pk, self.listed, reader)


class BlocksView(OwnPeopleView):
    scopes = "blocks"
    listed = BLOCKS


class RequestsView(OwnPeopleView):
    """Accounts that ask to follow."""

    scopes = "follows"
    listed = REQUESTS


class MutesView(ClientView):
    scopes = "mutes"

    def get(self, request: Request) -> HttpResponse:
        """List muted accounts, and when each mute ends."""
        reader = caller_of(request)
        asked = page_params(Params(request), default=PEOPLE, most=MOST_PEOPLE)
        found, next_id, prev_id = list_people(reader.pk, MUTES, reader, asked)
        ends = mutes_among(reader, found)
        people = [user for user in found if user.pk in ends]
        entries = [
            MutedAccount(**msgspec.structs.asdict(account), mute_expires_at=_mute_end(ends[user.pk]))
            for user, account in zip(people, accounts_of(people), strict=True)
        ]
        return paged_answer(request, entries, next_id=next_id, prev_id=prev_id)


def _mute_end(mute: Any) -> str | None:
    return time_text(mute.expires_at) if mute.expires_at else None


class DecisionView(ClientView):
    """Base of views that decide on a follow request."""

    decide: Callable[..., bool]

    def post(self, request: Request, account_id: int) -> HttpResponse:
        """Accept or reject the request. 404 without one."""
        reader = caller_of(request)
        other = users_visible_to(reader).get(pk=account_id)
        if not type(self).decide(followee=reader, follower=other):
            raise exceptions.NotFound
        return FeedResponse(relationships(reader, [other.pk])[0])


class AcceptView(DecisionView):
    scopes = "follows"
    decide = staticmethod(actions.accept)


class RejectView(DecisionView):
    scopes = "follows"
    decide = staticmethod(actions.reject)
