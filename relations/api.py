"""Follow, block and mute, and the lists of followers and followees, over HTTP."""

from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.api import UserCard, reader_of, signed_in
from accounts.models import User
from relations import actions
from relations.people import Side, people_page
from relations.visibility import is_username, users_visible_to, visible_user
from web.openapi import PAGED
from web.rest import ApiView, ConflictError, FeedResponse, Problem, PublicApiView, limit, position


class UserPage(msgspec.Struct):
    """A part of a list of users. `last_id` is the id of the last relation that was looked at, not of a user."""

    items: list[UserCard]
    last_id: str | None
    has_more: bool


def user_or_404(username: str, reader: User | AnonymousUser) -> User:
    """The user of this name as far as `reader` may know of them. Raises NotFound, the same for every other name."""
    user = visible_user(username, reader)
    if user is None:
        raise exceptions.NotFound
    return user


class RelationView(ApiView):
    """PUT begins a relation to a user, DELETE ends it; doing it again changes nothing."""

    def begin(self, user: User, other: User) -> bool:
        """Begin the relation; True if it is new. Raises SelfRelationError and FollowCapError."""
        raise NotImplementedError

    def end(self, user: User, other: User) -> bool:
        """End the relation; True if there was one."""
        raise NotImplementedError

    def put(self, request: Request, username: str) -> HttpResponse:
        """Begin the relation to a user; again changes nothing."""
        user = signed_in(request)
        other = user_or_404(username, user)
        try:
            self.begin(user, other)
        except actions.SelfRelationError as error:
            raise exceptions.ParseError("That is you.") from error
        except actions.FollowCapError as error:
            raise ConflictError("You have reached the limit of follows.") from error
        return HttpResponse(status=204)

    def delete(self, request: Request, username: str) -> HttpResponse:
        """One's own relation can be ended though the other may not be seen any more."""
        user = signed_in(request)
        other = User.objects.named(username).first() if is_username(username) else None
        if other is None:
            raise exceptions.NotFound
        if other == user:
            raise exceptions.ParseError("That is you.")
        if not self.end(user, other) and not users_visible_to(user).filter(pk=other.pk).exists():
            raise exceptions.NotFound
        return HttpResponse(status=204)


NO_CONTENT: dict[Any, Any] = {204: None}
CAPPED: dict[Any, Any] = {204: None, 409: OpenApiResponse(Problem, "The caller follows as many as one may.")}


@extend_schema_view(
    put=extend_schema(operation_id="follow", request=None, responses=CAPPED),
    delete=extend_schema(operation_id="unfollow", responses=NO_CONTENT),
)
class FollowView(RelationView):
    """Read what a user publishes."""

    def begin(self, user: User, other: User) -> bool:
        """Follow the other."""
        return actions.follow(follower=user, followee=other)

    def end(self, user: User, other: User) -> bool:
        """Follow the other no more."""
        return actions.unfollow(follower=user, followee=other)


@extend_schema_view(
    put=extend_schema(operation_id="block", request=None, responses=NO_CONTENT),
    delete=extend_schema(operation_id="unblock", responses=NO_CONTENT),
)
class BlockView(RelationView):
    """Hide caller and user from each other."""

    def begin(self, user: User, other: User) -> bool:
        """Block the other."""
        return actions.block(blocker=user, blocked=other)

    def end(self, user: User, other: User) -> bool:
        """Block the other no more."""
        return actions.unblock(blocker=user, blocked=other)


@extend_schema_view(
    put=extend_schema(operation_id="mute", request=None, responses=NO_CONTENT),
    delete=extend_schema(operation_id="unmute", responses=NO_CONTENT),
)
class MuteView(RelationView):
    """Leave a user out of the caller's home."""

    def begin(self, user: User, other: User) -> bool:
        """Mute the other."""
        return actions.mute(muter=user, muted=other)

    def end(self, user: User, other: User) -> bool:
        """Mute the other no more."""
        return actions.unmute(muter=user, muted=other)


class FollowersView(PublicApiView):
    """The followers of a user, over HTTP."""

    @extend_schema(operation_id="list_followers", parameters=PAGED, responses={200: UserPage})
    def get(self, request: Request, username: str) -> HttpResponse:
        """The followers of a user, newest relation first."""
        reader, last_id, count = reader_of(request), position(request), limit(request)
        user = user_or_404(username, reader)
        return FeedResponse(user_page(user, "follower", reader, last_id, count))


class FollowingView(PublicApiView):
    """The followees of a user, over HTTP."""

    @extend_schema(operation_id="list_following", parameters=PAGED, responses={200: UserPage})
    def get(self, request: Request, username: str) -> HttpResponse:
        """The followees of a user, newest relation first."""
        reader, last_id, count = reader_of(request), position(request), limit(request)
        user = user_or_404(username, reader)
        return FeedResponse(user_page(user, "followee", reader, last_id, count))


def user_page(user: User, side: Side, reader: User | AnonymousUser, last_id: int | None, count: int) -> UserPage:
    """The followers or followees of a user whom `reader` may know of."""
    page = people_page(user, side, reader, last_id=last_id, limit=count)
    return UserPage(
        [UserCard.of(one) for one in page.people],
        None if page.last_id is None else str(page.last_id),
        page.has_more,
    )
