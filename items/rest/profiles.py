import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.callers import reader_of
from accounts.rest.accounts import ProfileField, fields_of
from items.bodies import ItemBody
from items.listing import ItemPage
from items.profiles.pins import pinned_items
from items.profiles.profile import item_count, profile_page
from relations.visibility import profile_relation, visible_user
from web.rest import FeedResponse, PublicApiView
from web.times import Time


class ProfileCounts(msgspec.Struct):
    """Counts of a profile. `items` counts published ones that the caller may see."""

    followers: int
    following: int
    items: int


class Profile(msgspec.Struct):
    """A user as the caller sees them."""

    id: str
    username: str
    display_name: str
    bio: str
    fields: list[ProfileField]
    is_big_v: bool
    is_locked: bool
    """Whether the user approves each follower."""
    avatar_url: str
    banner_url: str
    created_at: Time
    counts: ProfileCounts
    following: bool
    followed_by: bool
    blocking: bool
    muting: bool
    pinned: list[ItemBody]
    """Pinned posts, last pinned first, at most 5. They are in the user's items too."""
    hiding_reposts: bool
    """Whether the caller follows without the user's reposts."""
    requested: bool
    """Whether the caller has asked to follow the user."""
    requested_by: bool
    """Whether the user has asked to follow the caller."""
    muted_until: Time | None
    """When the caller's mute ends, if it has an end."""
    muting_notifications: bool
    """Whether the caller's mute covers notifications."""
    bell: bool
    """Whether the caller is notified of each post of the user."""


class ProfileView(PublicApiView):
    scopes = "accounts"

    @extend_schema(operation_id="read_user", responses={200: Profile})
    def get(self, request: Request, username: str) -> HttpResponse:
        """A user, with the caller's relation to them."""
        reader = reader_of(request)
        user = visible_user(username, reader)
        stands = profile_relation(user, reader)
        return FeedResponse(
            Profile(
                id=str(user.pk),
                username=user.username,
                display_name=user.display_name,
                bio=user.bio,
                fields=fields_of(user),
                is_big_v=user.is_big_v,
                is_locked=user.is_locked,
                avatar_url=user.avatar_url,
                banner_url=user.banner_url,
                created_at=user.date_joined,
                counts=ProfileCounts(stands.followers, stands.following_count, item_count(user, reader)),
                following=stands.following,
                followed_by=stands.followed_by,
                blocking=stands.blocking,
                muting=stands.muting,
                pinned=pinned_items(user, reader),
                hiding_reposts=stands.hiding_reposts,
                requested=stands.requested,
                requested_by=stands.requested_by,
                muted_until=stands.muted_until,
                muting_notifications=stands.muting_notifications,
                bell=stands.bell,
            )
        )


class ProfileItemsView(PublicApiView):
    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="list_user_items")
    def get(self, request: Request, username: str) -> HttpResponse:
        """Posts and reposts of a user, newest first."""
        reader = reader_of(request)
        user = visible_user(username, reader)
        return FeedResponse(profile_page(user, reader, **self.bounds))
