"""Relations in the admin, to look at; and users, with the followers that only this room can count."""

from typing import Any

from django.contrib import admin
from django.db.models import F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from accounts.admin import UserAdmin
from accounts.models import User
from feedsite.admin import LogAdmin
from relations.models import Block, Follow, FollowerCountChange, Mute


@admin.register(User)
class CountedUserAdmin(UserAdmin):
    """Users with the exact number of their followers: what is folded and what is staged since, in the one query."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        staged = FollowerCountChange.objects.filter(user=OuterRef("pk")).values("user").values(sum=Sum("change"))
        exact = F("follower_count") + Coalesce(Subquery(staged), 0)
        users: QuerySet[User] = super().get_queryset(request)
        return users.annotate(exact_followers=exact)

    @admin.display(description="followers", ordering="exact_followers")
    def followers(self, user: Any) -> int:
        return int(user.exact_followers)


class PairAdmin(LogAdmin):
    """Pairs of user ids, newest first, to look at. A search is for the id of either user."""

    sortable_by = ("id",)
    search_help_text = "The id of one of the two users."
    sides: tuple[str, str]

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return ("id", *self.sides, "created_at")

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return self.sides

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if not (term.isascii() and term.isdigit() and len(term) < 19):
            return queryset.none(), False
        first, second = self.sides
        return queryset.filter(**{first: term}) | queryset.filter(**{second: term}), False


@admin.register(Follow)
class FollowAdmin(PairAdmin):
    sides = ("follower_id", "followee_id")


@admin.register(Block)
class BlockAdmin(PairAdmin):
    sides = ("blocker_id", "blocked_id")


@admin.register(Mute)
class MuteAdmin(PairAdmin):
    sides = ("muter_id", "muted_id")
