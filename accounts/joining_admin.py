from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from accounts.joining import applications, invitations
from accounts.joining_models import Application, Invitation
from accounts.levels_admin import handle_column
from web.admin import ActingAdmin, Area, ReadOnlyAdmin, sentence_with_count

SHOWN = 200
"""Characters of a reason in the list."""


@admin.register(Application)
class ApplicationAdmin(ReadOnlyAdmin, ActingAdmin):
    """Waiting applications, oldest first."""

    area = Area.PEOPLE
    rank = 1
    list_display = ("username", "display_name", "email", "beginning", "created_at")
    fields = readonly_fields = ("username", "display_name", "email", "reason", "created_at")
    ordering = ("created_at", "id")
    actions = ("approve", "reject")
    change_form_template = "admin/accounts/application.html"

    def waiting(self, request: HttpRequest) -> QuerySet[Application]:
        """All of them."""
        return Application.objects.all()

    @admin.display(description=_("reason"))
    def beginning(self, application: Application) -> str:
        """The beginning of the reason."""
        reason = application.reason
        return reason if len(reason) <= SHOWN else f"{reason[:SHOWN]}…"

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether the request may decide."""
        return request.user.has_perm("accounts.decide_application")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Add the decision's buttons."""
        context = (extra_context or {}) | {"may_decide": self.has_decide_permission(request), "application": object_id}
        return super().change_view(request, object_id, form_url, context)

    @admin.action(description=_("Approve"), permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Application]) -> None:
        """Create accounts for the chosen applications."""

        def verb(application: Application) -> bool:
            try:
                return applications.approve(application_id=application.pk) is not None
            except ValidationError as error:
                self.message_user(request, f"{application.username}: {' '.join(error.messages)}", messages.ERROR)
                return False

        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            verb,
            logged=gettext_noop("Approved."),
            done=lambda n: ngettext("%(count)s account created.", "%(count)s accounts created.", n),
            left=_unchanged_message,
        )

    @admin.action(description=_("Reject …"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Application]) -> HttpResponse | None:
        """Reject the chosen applications, after a confirmation."""
        rows = self.chosen(request, queryset)
        if not rows:
            return None
        if "confirmed" not in request.POST:
            return self.confirm(
                request,
                rows,
                "reject",
                title=gettext("Reject applications"),
                meaning=sentence_with_count(
                    lambda n: ngettext(
                        "%(count)s application will be deleted. Its username becomes free again.",
                        "%(count)s applications will be deleted. Their usernames become free again.",
                        n,
                    ),
                    len(rows),
                ),
                button=gettext("Reject"),
                name=lambda row: row.username,
            )
        self.apply_to_each(
            request,
            rows,
            lambda row: applications.reject(application_id=row.pk),
            logged=gettext_noop("Rejected."),
            done=lambda n: ngettext("%(count)s application rejected.", "%(count)s applications rejected.", n),
            left=_unchanged_message,
        )
        return None


def _unchanged_message(count: int) -> str:
    return ngettext(
        "%(count)s application not changed: already decided, or the username is taken.",
        "%(count)s applications not changed: already decided, or the usernames are taken.",
        count,
    )


@admin.register(Invitation)
class InvitationAdmin(ActingAdmin):
    """All invitations, newest first."""

    area = Area.PEOPLE
    rank = 3
    list_display = ("id", handle_column("made_by", _("created by")), "uses", "most_uses", "expires_at", "state")
    list_select_related = ("made_by",)
    search_fields = ("=made_by__username", "=code")
    search_help_text = _("Full username, or a code.")
    ordering = ("-id",)
    sortable_by = ("id",)
    fields = readonly_fields = (
        "link",
        "made_by",
        "created_at",
        "uses",
        "most_uses",
        "expires_at",
        "revoked_at",
        "came",
    )
    actions = ("revoke",)

    @admin.display(description=_("state"))
    def state(self, invitation: Invitation) -> Any:
        """Whether the invitation works, in words."""
        if invitation.is_good:
            return _("valid")
        return _("revoked") if invitation.revoked_at else _("expired or used up")

    @admin.display(description=_("link"))
    def link(self, invitation: Invitation) -> SafeString:
        """The address to open."""
        return format_html("<code>{}</code>", reverse("invite", args=[invitation.code]))

    @admin.display(description=_("joined with it"))
    def came(self, invitation: Invitation) -> str:
        """Users who joined by it."""
        users = invitation.invited.select_related("user").order_by("user_id")[:100]
        return ", ".join(f"@{row.user.username}" for row in users) or "-"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """False: invitations are made in the settings."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: an invitation can only be revoked."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: who joined by it must stay known."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether it may revoke others' invitations."""
        return request.user.has_perm("accounts.change_invitation")

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        """Revoke the chosen invitations."""
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            lambda row: invitations.revoke(invitation_id=row.pk),
            logged=gettext_noop("Revoked."),
            done=lambda n: ngettext("%(count)s invitation revoked.", "%(count)s invitations revoked.", n),
            left=lambda n: ngettext("%(count)s was already revoked.", "%(count)s were already revoked.", n),
        )
