from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import display_for_value
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AccessToken, Grant, IDToken, RefreshToken

from accounts import joining_admin
from accounts.actions import delete_app, revoke_token
from accounts.levels import policy
from accounts.models import Deletion, Policy, User
from accounts.signing_in_models import OWN_APP, AppToken, ClientApp
from accounts.user_admin import PermissionsField, is_super
from web.admin import Area, QuickListAdmin, ReadOnlyAdmin, is_writing

__all__ = ["joining_admin"]  # imported to register its pages


@admin.register(Policy)
class LevelPolicyAdmin(QuickListAdmin):
    """The one row."""

    fields = ("push_level", "inbox_from")
    list_display = ("__str__", "push_level", "inbox_from")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return is_super(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return is_super(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return is_super(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """False: there is one policy."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: there is one policy."""
        return False

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Send initial values, so that only edited fields change."""
        return super().formfield_for_dbfield(db_field, request, show_hidden_initial=True, **kwargs)

    def save_model(self, request: HttpRequest, obj: Policy, form: Any, change: bool) -> None:
        """Save by the action, which draws a generation."""
        policy.change(**{name: form.cleaned_data[name] for name in form.changed_data})

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        """Log old and new values."""
        changes = [f"{name}: {form.initial[name]} → {form.cleaned_data[name]}" for name in form.changed_data]
        return [{"changed": {"fields": changes}}] if changes else []


@admin.register(Deletion)
class DeletionAdmin(ReadOnlyAdmin):
    """Deletions in progress. Many attempts mean that a package fails to purge."""

    list_display = ("user", "created_at", "tried_at", "attempts")
    ordering = ("-attempts", "created_at")


admin.site.unregister(Group)
for model in (ClientApp, AccessToken, Grant, IDToken, RefreshToken):
    admin.site.unregister(model)  # django-oauth-toolkit's pages could make tokens for others


@admin.register(Group)
class GroupAdmin(QuickListAdmin, DjangoGroupAdmin):
    """For superusers only: staff could otherwise give themselves everything."""

    area = Area.PEOPLE
    rank = 4

    def wants_proof(self, request: HttpRequest) -> bool:
        """Whether the request changes something, or opens a form that does."""
        return is_writing(request)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest | None = None, **kwargs: Any) -> Any:
        """Permissions in the reader's language."""
        if db_field.name == "permissions":
            kwargs["form_class"] = PermissionsField
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return is_super(request)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Superusers only."""
        return is_super(request)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Superusers only."""
        return is_super(request)


def shown_time(moment: datetime) -> str:
    """A time as in lists: detail pages show it raw."""
    return display_for_value(moment, "-")


class RevokedAdmin(QuickListAdmin):
    """Rows to view and revoke."""

    view_on_site = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """False: users issue tokens."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: rows are only revoked."""
        return False

    def revoke(self, obj: Any) -> None:
        """End the row's access."""
        raise NotImplementedError

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Revoke it."""
        self.revoke(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Revoke each."""
        for one in queryset:
            self.revoke(one)


@admin.register(AppToken)
class AppTokenAdmin(RevokedAdmin):
    """Tokens of the API and apps, without token and hash."""

    list_display = ("owner", "app", "granted", "created_at", "used_at", "expires_at")
    list_select_related = ("user", "application")
    search_fields = ("=user__username",)
    search_help_text = _("Full username.")
    ordering = ("-id",)
    fields = readonly_fields = list_display

    @admin.display(description=_("user"), empty_value="-")
    def owner(self, token: AppToken) -> User | None:
        """The user. None for an app's own token."""
        return token.user  # type: ignore[no-any-return]

    @admin.display(description=_("app"), empty_value="-")
    def app(self, token: AppToken) -> ClientApp | str | None:
        return gettext("API token") if token.application_id == OWN_APP else token.application

    @admin.display(description=_("scopes"))
    def granted(self, token: AppToken) -> str:
        """Granted scopes."""
        return str(token.scope)

    @admin.display(description=_("since"), ordering="created")
    def created_at(self, token: AppToken) -> str:
        """Time of issue."""
        return shown_time(token.created)

    @admin.display(description=_("last used"), ordering="updated", empty_value="-")
    def used_at(self, token: AppToken) -> str | None:
        """Last use, to the hour. Not recorded for API tokens."""
        return None if token.application_id == OWN_APP else shown_time(token.updated)

    @admin.display(description=_("until"), ordering="expires")
    def expires_at(self, token: AppToken) -> str:
        """When the token ends. Use extends it, except for API tokens."""
        return shown_time(token.expires)

    def revoke(self, obj: AppToken) -> None:
        """Revoke the token and end its streams."""
        revoke_token(token_id=obj.pk)


@admin.register(ClientApp)
class ClientAppAdmin(RevokedAdmin):
    """Self-registered apps. No secret is shown."""

    list_display = ("name", "website", "scopes", "created_at")
    search_fields = ("name",)
    ordering = ("-id",)
    fields = readonly_fields = (*list_display, "addresses", "held")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out the built-in app."""
        apps: QuerySet[Any] = super().get_queryset(request)
        return apps.exclude(pk=OWN_APP)

    @admin.display(description=_("since"), ordering="created")
    def created_at(self, app: ClientApp) -> str:
        """Time of registration."""
        return shown_time(app.created)

    @admin.display(description=_("redirect URIs"))
    def addresses(self, app: ClientApp) -> str:
        """Redirect addresses."""
        return str(app.redirect_uris)

    @admin.display(description=_("tokens"))
    def held(self, app: ClientApp) -> str:
        """Link to its tokens."""
        address = reverse("admin:accounts_apptoken_changelist", query={"application__id__exact": app.pk})
        return format_html('<a href="{}">{}</a>', address, _("Show"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name only the apps, not each token."""
        names = [str(one) for one in objs]
        return names, {self.opts.verbose_name_plural: len(names)}, set(), []

    def revoke(self, obj: ClientApp) -> None:
        """Remove the app."""
        delete_app(app_id=obj.pk)
