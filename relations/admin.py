"""Relations in the admin, read-only."""

from typing import Any

from django.contrib import admin
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.levels_admin import Cost
from accounts.models import User
from accounts.people import badge_of
from accounts.user_admin import UserAdmin
from relations.followers import reach_of
from relations.models import Block, Follow, FollowerCountChange, FollowRequest, Mute
from web.admin import Area, LogAdmin
from web.rest import parse_id


class CountedUserAdmin(UserAdmin):
    """Users with exact numbers of followers, sorted by the folded one."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Users with their exact number of followers."""
        staged = FollowerCountChange.objects.filter(user=OuterRef("pk")).values("user").values(sum=Sum("change"))
        exact = F("follower_count") + Coalesce(Subquery(staged), 0)
        users: QuerySet[User] = super().get_queryset(request)
        return users.annotate(exact_followers=exact)

    @admin.display(description=_("followers"), ordering="follower_count")
    def followers(self, user: Any) -> int:
        """The exact number of followers."""
        return int(user.exact_followers)

    def cost(self, user: Any) -> Cost:
        """The estimated deliveries of a post."""
        found, followers = reach_of(user.pk), self.followers(user)
        share = followers / max(found.seen, 1)
        return Cost(round(found.as_ordinary * share), round(found.as_big_v * share))


class PairAdmin(LogAdmin):
    """Pairs of users, newest first, read-only."""

    area = Area.PEOPLE
    rank = 5
    sortable_by = ("id",)
    search_help_text = _("Full username or ID of one of the two.")
    sides: tuple[str, str]

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """The columns: both sides and the time."""
        return ("id", "first", "second", "created_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The fields: both sides and the time."""
        return ("id", *self.sides, "created_at")

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """The columns of both users, for the search field."""
        return self.sides

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The pairs with both users."""
        pairs: QuerySet[Any] = super().get_queryset(request)
        return pairs.select_related(*self.sides)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Pairs with this user on either side, by index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        users = list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True))
        if number := parse_id(term):
            users.append(number)
        first, second = self.sides
        return queryset.filter(Q(**{f"{first}__in": users}) | Q(**{f"{second}__in": users})), False

    def _user_link(self, user: User) -> SafeString:
        address = reverse("admin:accounts_user_change", args=[user.pk])
        return format_html('<a href="{}">@{}</a>{} ({})', address, user.username, badge_of(user), user.pk)


@admin.register(Follow)
class FollowAdmin(PairAdmin):
    sides = ("follower", "followee")

    @admin.display(description=_("follower"))
    def first(self, follow: Follow) -> SafeString:
        """The follower."""
        return self._user_link(follow.follower)

    @admin.display(description=_("follows"))
    def second(self, follow: Follow) -> SafeString:
        """The followee."""
        return self._user_link(follow.followee)


@admin.register(FollowRequest)
class FollowRequestAdmin(PairAdmin):
    sides = ("follower", "followee")

    @admin.display(description=_("follower"))
    def first(self, request: FollowRequest) -> SafeString:
        """Who asks."""
        return self._user_link(request.follower)

    @admin.display(description=_("asks to follow"))
    def second(self, request: FollowRequest) -> SafeString:
        """Who is asked."""
        return self._user_link(request.followee)


@admin.register(Block)
class BlockAdmin(PairAdmin):
    sides = ("blocker", "blocked")

    @admin.display(description=_("blocker"))
    def first(self, block: Block) -> SafeString:
        """Who blocks."""
        return self._user_link(block.blocker)

    @admin.display(description=_("blocked user"))
    def second(self, block: Block) -> SafeString:
        """Who is blocked."""
        return self._user_link(block.blocked)


@admin.register(Mute)
class MuteAdmin(PairAdmin):
    sides = ("muter", "muted")

    @admin.display(description=_("muter"))
    def first(self, mute: Mute) -> SafeString:
        """Who mutes."""
        return self._user_link(mute.muter)

    @admin.display(description=_("muted user"))
    def second(self, mute: Mute) -> SafeString:
        """Who is muted."""
        return self._user_link(mute.muted)
