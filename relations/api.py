from datetime import timedelta
from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.callers import authenticated_user, reader_of
from accounts.cards import UserCard
from accounts.models import User
from relations import actions
from relations.models import FollowRequest
from relations.people import BLOCKS, FOLLOWEES, FOLLOWERS, MUTES, REQUESTS, PeopleTable, mutes_among, people_page
from relations.visibility import users_visible_to, visible_user
from storage.paging import as_text
from web.openapi import EMPTY_BODY
from web.rest import (
    ApiView,
    FeedResponse,
    FlagField,
    NumberField,
    Problem,
    PublicApiView,
    StrictSerializer,
    body,
)
from web.times import Time

LONGEST_MUTE_SECONDS = 10 * 366 * 86_400


class UserPage(msgspec.Struct):
    """A page of users. `last_id` is the id of the last relation checked."""

    items: list[UserCard]
    last_id: str | None
    has_more: bool


def is_visible(user: User, reader: User) -> bool:
    """Whether the reader may know of the user."""
    return users_visible_to(reader).filter(pk=user.pk).exists()


class NoOptions(StrictSerializer):
    """No body, or an empty object."""


class FollowOptions(StrictSerializer):
    """Options of a follow. `reposts`: whether home shows the user's reposts. Omitted: unchanged, or true if new."""

    reposts = FlagField(required=False)


class MuteOptions(StrictSerializer):
    """A mute, in place of an existing one. `expires_in`: seconds until it ends, half a minute more or less.
    `notifications`: hide the user's notifications too.
    """

    expires_in = NumberField(required=False, allow_null=True, default=None, min_value=1, max_value=LONGEST_MUTE_SECONDS)
    notifications = FlagField(default=True)


class RelationView(ApiView):
    """PUT begins a relation to a user, DELETE ends it."""

    takes_bodies = frozenset({"PUT"})
    takes: type[StrictSerializer] = NoOptions

    def begin(self, user: User, other: User, **options: Any) -> bool:
        """Begin the relation. Raises SelfRelationError, FollowCapError, RequestCapError."""
        raise NotImplementedError

    def end(self, user: User, other: User) -> bool:
        raise NotImplementedError

    def begun(self, user: User, other: User) -> HttpResponse:
        """The answer after `begin`."""
        return HttpResponse(status=204)

    def put(self, request: Request, username: str) -> HttpResponse:
        """Begin the relation."""
        user = authenticated_user(request)
        other = visible_user(username, user)
        options = body(request, self.takes)
        self.begin(user, other, **options)
        return self.begun(user, other)

    def delete(self, request: Request, username: str) -> HttpResponse:
        """End one's own relation, even if the user is hidden."""
        user = authenticated_user(request)
        other = User.objects.named(username).get()
        if other == user:
            raise exceptions.ParseError("You can't do this to yourself.")
        if not self.end(user, other) and not is_visible(other, user):
            raise exceptions.NotFound
        return HttpResponse(status=204)


NO_CONTENT: dict[Any, Any] = {204: None}


class FollowRequested(msgspec.Struct):
    """A follow that waits for the user's approval: `requested`."""

    state: str


FOLLOWED: dict[Any, Any] = {
    202: OpenApiResponse(FollowRequested, "The account is locked: a request waits for its user."),
    204: None,
    409: OpenApiResponse(Problem, "The caller follows, or has asked to, as many as one may."),
}
RUNG: dict[Any, Any] = {
    204: None,
    409: OpenApiResponse(Problem, "The caller doesn't follow the user, or has as many bells as one may."),
}
ACCEPTED: dict[Any, Any] = {204: None, 409: OpenApiResponse(Problem, "The user follows as many as one may.")}


@extend_schema_view(
    put=extend_schema(operation_id="follow", request=FollowOptions, responses=FOLLOWED),
    delete=extend_schema(operation_id="unfollow", responses=NO_CONTENT),
)
class FollowView(RelationView):
    """Follow a user. With a locked account, PUT leaves a request and DELETE withdraws it."""

    scopes = "follows"
    takes = FollowOptions

    def begin(self, user: User, other: User, **options: Any) -> bool:
        """Follow, or ask to."""
        return actions.follow(follower=user, followee=other, **options)

    def begun(self, user: User, other: User) -> HttpResponse:
        """Answer 202 while the request waits, else as every relation."""
        if other.is_locked and FollowRequest.objects.filter(follower=user, followee=other).exists():
            return FeedResponse(FollowRequested("requested"), status=202)
        return super().begun(user, other)

    def end(self, user: User, other: User) -> bool:
        """Unfollow."""
        return actions.unfollow(follower=user, followee=other)


@extend_schema_view(
    put=extend_schema(operation_id="ring_bell", request=EMPTY_BODY, responses=RUNG),
    delete=extend_schema(operation_id="silence_bell", responses=NO_CONTENT),
)
class BellView(RelationView):
    """Notify the caller of each post of a user whom they follow."""

    scopes = "follows"

    def begin(self, user: User, other: User, **options: Any) -> bool:
        """Turn the bell on."""
        return actions.set_bell(follower=user, followee=other, rings=True)

    def end(self, user: User, other: User) -> bool:
        """Turn the bell off."""
        return actions.set_bell(follower=user, followee=other, rings=False)


@extend_schema_view(
    put=extend_schema(operation_id="block", request=EMPTY_BODY, responses=NO_CONTENT),
    delete=extend_schema(operation_id="unblock", responses=NO_CONTENT),
)
class BlockView(RelationView):
    """Hide caller and user from each other."""

    scopes = "blocks"

    def begin(self, user: User, other: User, **options: Any) -> bool:
        return actions.block(blocker=user, blocked=other)

    def end(self, user: User, other: User) -> bool:
        """Unblock."""
        return actions.unblock(blocker=user, blocked=other)


@extend_schema_view(
    put=extend_schema(operation_id="mute", request=MuteOptions, responses=NO_CONTENT),
    delete=extend_schema(operation_id="unmute", responses=NO_CONTENT),
)
class MuteView(RelationView):
    """Hide a user from the caller's home."""

    scopes = "mutes"
    takes = MuteOptions

    def begin(self, user: User, other: User, **options: Any) -> bool:
        seconds = options["expires_in"]
        lasts = None if seconds is None else timedelta(seconds=seconds)
        return actions.mute(muter=user, muted=other, lasts=lasts, notifications=options["notifications"])

    def end(self, user: User, other: User) -> bool:
        """Unmute."""
        return actions.unmute(muter=user, muted=other)


class FollowRequestsView(ApiView):
    """Requests to follow the caller."""

    scopes = "follows"
    pages_of = UserPage

    @extend_schema(operation_id="list_follow_requests")
    def get(self, request: Request) -> HttpResponse:
        """Users who ask to follow the caller, newest first."""
        reader = authenticated_user(request)
        return FeedResponse(user_page(reader.pk, REQUESTS, reader, **self.bounds))


class MutedCard(UserCard, kw_only=True):
    muted_until: Time | None
    """When the mute ends, if it has an end."""
    muting_notifications: bool
    """Whether it covers notifications."""


class MutedPage(msgspec.Struct):
    """Muted users. `last_id` is the id of the last mute checked."""

    items: list[MutedCard]
    last_id: str | None
    has_more: bool


class BlocksView(ApiView):
    scopes = "blocks"
    pages_of = UserPage

    @extend_schema(operation_id="list_blocks")
    def get(self, request: Request) -> HttpResponse:
        """Users whom the caller blocks, newest block first."""
        reader = authenticated_user(request)
        return FeedResponse(user_page(reader.pk, BLOCKS, reader, **self.bounds))


class MutesView(ApiView):
    scopes = "mutes"
    pages_of = MutedPage

    @extend_schema(operation_id="list_mutes")
    def get(self, request: Request) -> HttpResponse:
        """Users whom the caller mutes, newest mute first."""
        reader = authenticated_user(request)
        page = people_page(reader.pk, MUTES, reader, **self.bounds)
        found = mutes_among(reader, page.people)
        cards = [
            MutedCard(
                *msgspec.structs.astuple(UserCard.of(one)),
                muted_until=found[one.pk].expires_at,
                muting_notifications=found[one.pk].notifications,
            )
            for one in page.people
            if one.pk in found
        ]
        return FeedResponse(MutedPage(cards, as_text(page.last_id), page.has_more))


class FollowerView(ApiView):
    """A follower of the caller."""

    scopes = "follows"

    @extend_schema(operation_id="remove_follower", responses=NO_CONTENT)
    def delete(self, request: Request, username: str) -> HttpResponse:
        """Remove a follower, or their request."""
        user = authenticated_user(request)
        other = User.objects.named(username).get()
        if other == user:
            raise exceptions.ParseError("You can't do this to yourself.")
        if not actions.unfollow(follower=other, followee=user) and not is_visible(other, user):
            raise exceptions.NotFound
        return HttpResponse(status=204)


class AcceptView(ApiView):
    scopes = "follows"

    @extend_schema(operation_id="accept_follow_request", request=EMPTY_BODY, responses=ACCEPTED)
    def post(self, request: Request, username: str) -> HttpResponse:
        """Accept a request. 404 without one."""
        reader = authenticated_user(request)
        body(request, NoOptions)
        return _no_content_or_404(actions.accept(followee=reader, follower=visible_user(username, reader)))


class RejectView(ApiView):
    scopes = "follows"

    @extend_schema(operation_id="reject_follow_request", request=EMPTY_BODY, responses=NO_CONTENT)
    def post(self, request: Request, username: str) -> HttpResponse:
        """Reject a request. 404 without one."""
        reader = authenticated_user(request)
        body(request, NoOptions)
        return _no_content_or_404(actions.reject(followee=reader, follower=visible_user(username, reader)))


def _no_content_or_404(found: bool) -> HttpResponse:
    if not found:
        raise exceptions.NotFound
    return HttpResponse(status=204)


class FollowersView(PublicApiView):
    scopes = "accounts"
    pages_of = UserPage

    @extend_schema(operation_id="list_followers")
    def get(self, request: Request, username: str) -> HttpResponse:
        """The followers of a user, newest first."""
        reader = reader_of(request)
        user = visible_user(username, reader)
        return FeedResponse(user_page(user.pk, FOLLOWERS, reader, **self.bounds))


class FollowingView(PublicApiView):
    scopes = "accounts"
    pages_of = UserPage

    @extend_schema(operation_id="list_following")
    def get(self, request: Request, username: str) -> HttpResponse:
        """The followees of a user, newest first."""
        reader = reader_of(request)
        user = visible_user(username, reader)
        return FeedResponse(user_page(user.pk, FOLLOWEES, reader, **self.bounds))


def user_page(
    owner_id: int, listed: PeopleTable, reader: User | AnonymousUser, *, last_id: int | None, limit: int
) -> UserPage:
    """A page of the people whom `reader` may see."""
    page = people_page(owner_id, listed, reader, last_id=last_id, limit=limit)
    return UserPage(
        [UserCard.of(one) for one in page.people],
        as_text(page.last_id),
        page.has_more,
    )
