from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ORDER_VAR, ChangeList
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm, UserChangeForm
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Case, IntegerField, QuerySet, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from accounts import addresses, passwords
from accounts.actions import write_password
from accounts.deactivation import deactivate, reactivate
from accounts.levels_admin import BigVAdmin
from accounts.models import User
from accounts.people import full_name_of, isolated
from accounts.signing_in import second_factors
from web.admin import Area, is_list, is_writing, sentence_with_count
from web.rest import parse_id

POWERS = ("is_staff", "is_superuser", "groups", "user_permissions")
"""Fields that give powers."""
FOUND = 1_000
"""Most users found by a part of a name."""


class NormalizedPasswordMixin:
    """Reads passwords in the form that is kept (accounts.passwords), before rules see them."""

    cleaned_data: dict[str, Any]

    def clean_password1(self) -> str:
        return passwords.normalized(self.cleaned_data["password1"])

    def clean_password2(self) -> str:
        """The password, again."""
        return passwords.normalized(self.cleaned_data["password2"])


class CreationForm(NormalizedPasswordMixin, AdminUserCreationForm):  # type: ignore[type-arg]  # not generic at run time
    """A new user."""

    class Meta(AdminUserCreationForm.Meta):
        model = User


class ChangeForm(UserChangeForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta(UserChangeForm.Meta):
        model = User
        widgets: ClassVar[dict[str, Any]] = {"bio": forms.Textarea(attrs={"rows": 3})}


class PasswordByAdminForm(NormalizedPasswordMixin, AdminPasswordChangeForm):  # type: ignore[type-arg]  # not generic at run time
    """Writes only the password: other columns change meanwhile."""

    def save(self, commit: bool = True) -> User:
        """Set the password and end tokens."""
        user: User = super().save(commit=False)
        if commit:
            with transaction.atomic():
                write_password(user=user, hashed=user.password)
        return user


class PermissionsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """Permissions of the admin's models."""

    def __init__(self, **options: Any) -> None:
        rows = ContentType.objects.get_for_models(*admin.site._registry, for_concrete_models=False).values()
        options["queryset"] = options["queryset"].filter(content_type__in=list(rows)).select_related("content_type")
        super().__init__(**options)

    def label_from_instance(self, obj: Any) -> str:
        """The name in the reader's language."""
        verb, _separator, model = obj.codename.partition("_")
        name = VERBS[verb] if verb in VERBS and model == obj.content_type.model else gettext(obj.name)
        return f"{obj.content_type.app_labeled_name}: {name}"


VERBS = {"add": _("add"), "change": _("change"), "delete": _("delete"), "view": _("view")}


def _has_powers(user: User) -> bool:
    """Whether the user has more rights than readers, even if deactivated."""
    return user.is_staff or user.is_superuser or user.user_permissions.exists() or user.groups.exists()


def is_super(request: HttpRequest) -> bool:
    """Whether a superuser asks."""
    return bool(getattr(request.user, "is_superuser", False))


class UserList(ChangeList):
    """Sorts ties by followers as the index does."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[User]) -> list[Any]:
        """An order that an index has."""
        ordering = super().get_ordering(request, queryset)
        return ["follower_count", "pk"] if ordering[:2] == ["follower_count", "-id"] else ordering


class UserAdmin(BigVAdmin, DjangoUserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Users. operation.admin registers it."""

    area = Area.PEOPLE
    rank = 2
    shortcuts = ((_("Big accounts"), "is_big_v__exact=1"),)
    form = ChangeForm
    add_form = CreationForm
    change_password_form = PasswordByAdminForm
    list_display: tuple[str, ...] = (
        "username",
        "is_big_v",
        "id",
        "shown_name",
        "level",
        "followers",
        "following_count",
        "last_seen_at",
        "is_active",
    )
    list_filter = ("is_big_v", "level", "is_active", "is_staff", "last_seen_at")
    search_fields = ("id", "username", "email", "display_name")
    search_help_text = _("ID, email, or part of a name. Exact matches come first.")
    ordering = ("-id",)
    actions = ("moderate", "deactivate", "reactivate", "forget_factors")
    moderated_as = "users"
    fieldsets = (
        (None, {"fields": ("username", "id", "password")}),
        (_("Profile"), {"fields": ("display_name", "bio", "profile_fields", "email")}),
        (_("Timeline"), {"fields": ("is_big_v", "level", "last_seen_at", "followers", "following_count")}),
        (_("Permissions"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        (_("Dates"), {"fields": ("last_login", "date_joined", "deleted_at")}),
    )
    readonly_fields: ClassVar[tuple[str, ...]] = (
        "id",
        "profile_fields",
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

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["accounts/big_v.css"]}

    @admin.display(description=_("display name"), ordering="display_name")
    def shown_name(self, user: User) -> str:
        """The display name, isolated from text around it."""
        return isolated(user.display_name) if user.display_name else ""

    @admin.display(description=_("followers"), ordering="follower_count")
    def followers(self, user: User) -> int:
        """The follower count without staged changes."""
        return user.follower_count

    def get_list_display(self, request: HttpRequest) -> Any:
        """Columns, perhaps with big-V buttons."""
        columns = super().get_list_display(request)
        return [self.big_v_column(request) if column == "is_big_v" else column for column in columns]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Use UserList."""
        return UserList

    # --- Search
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[User], search_term: str
    ) -> tuple[QuerySet[User], bool]:
        """Search by index. A part of names finds at most `FOUND`."""
        term = search_term.strip().removeprefix("@")
        if not term:
            return queryset, False
        exact = [*User.objects.named(term).values_list("pk", flat=True)]
        exact += User.objects.with_email(term).values_list("pk", flat=True)[:FOUND]
        if number := parse_id(term):
            exact.append(number)
        called = list(User.objects.called(term).values_list("pk", flat=True)[: FOUND + 1])
        if len(called) > FOUND and is_list(request):
            words = gettext("More than %(count)s users match. Only some are listed. Type more of the name.")
            self.message_user(request, words % {"count": number_format(FOUND, force_grouping=True)}, messages.WARNING)
        found = queryset.filter(pk__in=[*exact, *called])
        if ORDER_VAR in request.GET:
            return found, False
        first = Case(
            When(pk__in=exact, then=0), When(username__istartswith=term, then=1), default=2, output_field=IntegerField()
        )
        return found.order_by(first, *found.query.order_by), False

    # --- Permissions
    def wants_proof(self, request: HttpRequest) -> bool:
        """Whether the request changes something, or opens a form that does."""
        return is_writing(request) and self.has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Only superusers change accounts with powers."""
        if obj is not None and obj != request.user and not is_super(request) and _has_powers(obj):
            return False
        return super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Only superusers edit powers."""
        return (*self.readonly_fields, *(() if is_super(request) else POWERS))

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Without change permission, hide password and powers."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        hidden = {"password", *POWERS}
        return [
            (title, {**options, "fields": [field for field in options["fields"] if field not in hidden]})
            for title, options in fieldsets
        ]

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Permissions in the reader's language."""
        if db_field.name == "user_permissions":
            kwargs["form_class"] = PermissionsField
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """False: others' counts and threads refer to users."""
        return False

    def view_on_site(self, user: User) -> str:
        """The user's profile."""
        return reverse("profile", args=[user.username])

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Write only edited columns: others change meanwhile."""
        if not change:
            obj.save()
            return
        columns = {field.name for field in User._meta.concrete_fields}
        if edited := columns.intersection(form.changed_data):
            obj.save(update_fields=edited)
        if "email" in form.changed_data:
            addresses.confirm_entered(user=obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002 (Django's)
        """Set another's password. One's own is changed on the site's page, which asks for the current one."""
        if id == str(request.user.pk):
            return redirect("settings-password")
        return super().user_change_password(request, id, form_url)

    # --- Verbs
    @admin.action(description=_("Deactivate …"), permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> TemplateResponse | None:
        """Deactivate the chosen users, after a confirmation."""
        users = self.chosen(request, queryset)
        if "confirmed" not in request.POST:
            may = self.if_permitted(request, lambda user: user.is_active and user != request.user)
            users = self.changeable_rows(request, users, may, left=self._not_deactivated)
            if not users:
                return None
            return self.confirm(
                request,
                users,
                "deactivate",
                title=gettext("Deactivate users"),
                meaning=sentence_with_count(
                    lambda n: ngettext(
                        "%(count)s user is logged out everywhere. Their profile and posts are hidden until you "
                        "reactivate the account. This isn't a suspension, and the log of decisions doesn't show it.",
                        "%(count)s users are logged out everywhere. Their profiles and posts are hidden until you "
                        "reactivate the accounts. This isn't a suspension, and the log of decisions doesn't show it.",
                        n,
                    ),
                    len(users),
                ),
                button=sentence_with_count(
                    lambda n: ngettext("Deactivate %(count)s user", "Deactivate %(count)s users", n), len(users)
                ),
                name=full_name_of,
            )
        self.apply_to_each(
            request,
            users,
            self.if_permitted(request, lambda user: user != request.user and deactivate(user=user)),
            logged=gettext_noop("Deactivated."),
            done=lambda n: ngettext("%(count)s user deactivated.", "%(count)s users deactivated.", n),
            left=self._not_deactivated,
        )
        return None

    @admin.action(description=_("Reactivate"), permissions=["change"])
    def reactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Reactivate the chosen users."""
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            self.if_permitted(request, lambda user: self.reactivate_one(request, user)),
            logged=gettext_noop("Reactivated."),
            done=lambda n: ngettext("%(count)s user is active again.", "%(count)s users are active again.", n),
            left=lambda n: ngettext(
                "%(count)s user not changed: active, deleted, or suspended. Lifting a suspension needs a moderator.",
                "%(count)s users not changed: active, deleted, or suspended. Lifting a suspension needs a moderator.",
                n,
            ),
        )

    @admin.action(description=_("Turn off two-step login …"), permissions=["change"])
    def forget_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> TemplateResponse | None:
        """Remove the second factors of the chosen users, after a confirmation."""
        users = self.chosen(request, queryset)
        may = self.if_permitted(request, second_factors.has_factor)
        if "confirmed" not in request.POST:
            users = self.changeable_rows(request, users, may, left=self._without_factors)
            if not users:
                return None
            return self.confirm(
                request,
                users,
                "forget_factors",
                title=gettext("Turn off two-step login"),
                meaning=gettext(
                    "They'll log in with just their password, and we'll email them about it. Do this only if "
                    "you're sure the owner of the account asked for it."
                ),
                button=gettext("Turn off two-step login"),
                name=full_name_of,
            )
        self.apply_to_each(
            request,
            users,
            self.if_permitted(request, lambda user: second_factors.remove_all(user=user)),
            logged=gettext_noop("Turned off two-step login."),
            done=lambda n: ngettext(
                "Two-step login is off for %(count)s user.", "Two-step login is off for %(count)s users.", n
            ),
            left=self._without_factors,
        )
        return None

    @staticmethod
    def _without_factors(count: int) -> str:
        return ngettext(
            "%(count)s user not changed: no two-step login, or only superusers can change them.",
            "%(count)s users not changed: no two-step login, or only superusers can change them.",
            count,
        )

    def reactivate_one(self, request: HttpRequest, user: User) -> bool:
        """Reactivate a user. False if already active."""
        return reactivate(user=user)

    @staticmethod
    def _not_deactivated(count: int) -> str:
        return ngettext(
            "%(count)s user not changed: already inactive, yourself, or only superusers can change them.",
            "%(count)s users not changed: already inactive, yourself, or only superusers can change them.",
            count,
        )
