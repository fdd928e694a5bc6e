"""Users in the admin, for moderators."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from moderation import senders
from moderation.models import SenderKind, SenderRule
from relations.admin import CountedUserAdmin
from web.rest import parse_id

RELATED = [
    (_("posts"), "items_item", "sender__id__exact={id}"),
    (_("live sessions"), "live_livesession", "host__id__exact={id}"),
    (_("cases"), "moderation_case", "host__id__exact={id}&state=all"),
    (_("decisions"), "moderation_decision", "user__id__exact={id}"),
    (_("reports sent"), "moderation_report", "reporter__id__exact={id}"),
    (_("rule"), "moderation_senderrule", "user__id__exact={id}"),
    (_("follows"), "relations_follow", "follower__id__exact={id}"),
    (_("followers"), "relations_follow", "followee__id__exact={id}"),
    (_("blocks"), "relations_block", "blocker__id__exact={id}"),
    (_("blocked by"), "relations_block", "blocked__id__exact={id}"),
    (_("mutes"), "relations_mute", "muter__id__exact={id}"),
    (_("muted by"), "relations_mute", "muted__id__exact={id}"),
    (_("tokens"), "accounts_apptoken", "user__id__exact={id}"),
]
"""Lists on a user's page: title, list, query."""


class ModeratedUserAdmin(CountedUserAdmin):
    """Users with their rule and related lists."""

    list_display = (*CountedUserAdmin.list_display, "rule")
    readonly_fields = (*CountedUserAdmin.readonly_fields, "rule")
    change_form_template = "admin/accounts/user/moderated.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Users with their moderation rule."""
        rule = SenderRule.objects.filter(user=OuterRef("pk")).values("kind")
        users: QuerySet[User] = super().get_queryset(request)
        return users.annotate(rule_kind=Subquery(rule))

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Add the user's moderation rule to the page."""
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj is None else [*fieldsets, (_("Moderation"), {"fields": ("rule",)})]

    @admin.display(description=_("rule"))
    def rule(self, user: Any) -> Any:
        """The rule, in words."""
        return RULES.get(user.rule_kind, "-")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Add links to related lists."""
        user = User.objects.filter(pk=parse_id(object_id) or 0).first()
        related = {"related": self._related(request, user)} if user else {}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | related)

    def _related(self, request: HttpRequest, user: User) -> list[tuple[Any, str]]:
        lists = {
            f"{model._meta.app_label}_{model._meta.model_name}": one for model, one in admin.site._registry.items()
        }
        return [
            (title, f"{reverse(f'admin:{name}_changelist')}?{query.format(id=user.pk)}")
            for title, name, query in RELATED
            if lists[name].has_view_permission(request)
        ]

    def reactivate_one(self, request: HttpRequest, user: User) -> bool:
        """Reactivate a user. False if nothing changed. Lifting a ban needs the permission to decide."""
        if self.has_decide_permission(request) and senders.unban(user=user, by=request.user):  # type: ignore[arg-type]
            return True
        return senders.reactivate_unless_banned(user=user)


RULES = {
    SenderKind.BLACK: _("always review"),
    SenderKind.WHITE: _("trusted"),
    SenderKind.BAN: _("suspended"),
}
