"""Users in the admin: what may be edited there, and the verbs for what may not."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from knox.models import AuthToken

from accounts.actions import end_streams, revoke_token
from accounts.big_v import demote, make_big_v
from accounts.deactivation import deactivate, reactivate
from accounts.models import Deletion, User
from feedsite.admin import ReadOnlyAdmin
from feedsite.paginator import EstimatedPaginator

POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")
"""What makes somebody one who administrates."""
AT_ONCE = 1000
"""Users that one action changes, one by one."""


class CreationForm(AdminUserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta(AdminUserCreationForm.Meta):
        model = User


class ChangeForm(UserChangeForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta(UserChangeForm.Meta):
        model = User


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]  # not generic at run time
    """Writes the password and nothing else: counts, level and epoch change while the form is open. All that was opened
    with the old one ends.
    """

    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit=False)
        if commit:
            user.save(update_fields=["password"])
            AuthToken.objects.filter(user=user).delete()
            end_streams(user_id=user.pk)
        return user


def _is_super(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


class UserAdmin(DjangoUserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """relations.admin registers it, with the exact number of followers, which it can count."""

    form = ChangeForm
    add_form = CreationForm
    change_password_form = PasswordForm
    list_display = (
        "username",
        "display_name",
        "is_big_v",
        "level",
        "followers",
        "following_count",
        "last_seen_at",
        "is_active",
    )
    list_filter = ("is_big_v", "level", "is_active", "is_staff", "last_seen_at")
    search_fields = ("username", "display_name")
    search_help_text = "Part of a username or display name."
    ordering = ("-id",)
    show_full_result_count = False
    paginator = EstimatedPaginator
    actions = ("make_big_v", "demote", "deactivate", "reactivate")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Profile", {"fields": ("display_name", "bio", "email")}),
        ("Timeline", {"fields": ("is_big_v", "level", "last_seen_at", "followers", "following_count")}),
        ("Permissions", {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined", "deleted_at")}),
    )
    readonly_fields = (
        "is_big_v",
        "level",
        "last_seen_at",
        "followers",
        "following_count",
        "is_active",
        "last_login",
        "date_joined",
        "deleted_at",
    )

    @admin.display(description="followers", ordering="follower_count")
    def followers(self, user: User) -> int:
        return user.follower_count

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Who administrates is changed by superusers only; else to edit users would be to become one."""
        if obj is not None and obj != request.user and (obj.is_staff or obj.is_superuser) and not _is_super(request):
            return False
        return super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        return (*self.readonly_fields, *(() if _is_super(request) else POWERS))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Never: others' counts and threads hang on users. Deactivating hides all they said."""
        return False

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Write what was edited and nothing else: counts, level and epoch change while the form is open."""
        if not change:
            obj.save()
            return
        columns = {field.name for field in User._meta.concrete_fields}
        if edited := columns.intersection(form.changed_data):
            obj.save(update_fields=edited)

    @admin.action(description="Make big-V", permissions=["change"])
    def make_big_v(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._each(request, queryset, make_big_v, "{} made big-V.")

    @admin.action(description="Demote from big-V (backfills the followers' inboxes) …", permissions=["change"])
    def demote(self, request: HttpRequest, queryset: QuerySet[User]) -> TemplateResponse | None:
        """Asks first, and names how many inboxes are filled."""
        users = list(queryset.filter(is_big_v=True).order_by("pk")[:AT_ONCE])
        if not users:
            self.message_user(request, "None of them is big-V.", messages.WARNING)
            return None
        if "confirmed" in request.POST:
            self._each(
                request,
                User.objects.filter(pk__in=[user.pk for user in users]),
                demote,
                "{} being demoted: inboxes are being filled.",
            )
            return None
        followers = [self.followers(user) for user in users]
        context = self.admin_site.each_context(request) | {
            "title": "Demote from big-V",
            "opts": self.opts,
            "users": list(zip(users, followers, strict=True)),
            "total": sum(followers),
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/accounts/user/demote.html", context)

    @admin.action(description="Deactivate (hides them and all they said)", permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._each(request, queryset.exclude(pk=request.user.pk or 0), deactivate, "{} deactivated.")

    @admin.action(description="Reactivate (deleted accounts stay deleted)", permissions=["change"])
    def reactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._each(request, queryset, reactivate, "{} reactivated.")

    def _each(self, request: HttpRequest, queryset: QuerySet[User], verb: Any, message: str) -> None:
        changed = 0
        for user in queryset.order_by("pk")[:AT_ONCE]:
            if self.has_change_permission(request, user) and verb(user=user):
                changed += 1
                self.log_change(request, user, f"{verb.__name__} (action)")
        self.message_user(request, message.format(f"{changed} user{'' if changed == 1 else 's'}"))


@admin.register(Deletion)
class DeletionAdmin(ReadOnlyAdmin):
    """Deleted accounts of which something is left. Many attempts at one mean that a room fails to purge it."""

    list_display = ("user", "created_at", "tried_at", "attempts")
    ordering = ("-attempts", "created_at")


admin.site.unregister(Group)
admin.site.unregister(AuthToken)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin):
    """Roles are made by superusers only: whoever edits the groups they are in may do everything."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_super(request)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return _is_super(request)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return _is_super(request)


@admin.register(AuthToken)
class TokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """API tokens, to look at and to revoke. Knox's own page would issue some for others, to act in their name."""

    list_display = ("user", "created", "expiry")
    list_select_related = ("user",)
    search_fields = ("=user__username",)
    search_help_text = "The whole name of a user."
    ordering = ("-created",)
    show_full_result_count = False
    paginator = EstimatedPaginator
    fields = readonly_fields = ("user", "created", "expiry")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuthToken | None = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: AuthToken) -> None:
        revoke_token(digest=obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[AuthToken]) -> None:
        for digest in queryset.values_list("pk", flat=True):
            revoke_token(digest=digest)
