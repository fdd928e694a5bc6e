"""Link cards and refused hosts in the admin."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop, ngettext

from accounts.models import User
from items.link_cards.actions import domain_of, host_of
from items.models import LinkCard, RefusedHost
from media.admin import thumbnails
from moderation import links
from moderation.rule_admin import HoldingRuleAdmin
from web.admin import ActedOnAdmin, Area


@admin.register(LinkCard)
class LinkCardAdmin(ActedOnAdmin):
    """Link cards, to look at and to remove."""

    area = Area.MODERATION
    rank = 8
    list_display = ("url", "title", "state", "error", "is_removed", "asked_at")
    list_filter = ("is_removed",)
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("url",)
    search_help_text = _("An address or a domain. Subdomains are found too.")
    actions = ("remove",)
    fields = ("url", "title", "description", "shot", "state", "error", "is_removed", "asked_at")
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LinkCard], search_term: str
    ) -> tuple[QuerySet[LinkCard], bool]:
        """The cards of a host, by the index."""
        host = host_of(search_term)
        return (queryset.filter(domain__startswith=domain_of(host)) if host else queryset), False

    @admin.display(description=_("title"))
    def title(self, card: LinkCard) -> str:
        """The title of the page."""
        return str((card.facts or {}).get("title", ""))

    @admin.display(description=_("description"))
    def description(self, card: LinkCard) -> str:
        """The words of the page about itself."""
        return str((card.facts or {}).get("description", ""))

    @admin.display(description=_("picture"))
    def shot(self, card: LinkCard) -> str:
        """The picture of the page, veiled."""
        return thumbnails([card.picture], is_veiled=True, is_unmarked=True) if card.picture else "-"

    @admin.action(description=_("Remove for good"), permissions=["change"])
    def remove(self, request: HttpRequest, queryset: QuerySet[LinkCard]) -> None:
        """Remove the chosen cards."""
        by: User = request.user  # type: ignore[assignment]
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            lambda card: links.remove_card(card=card, by=by),
            logged=gettext_noop("Removed."),
            done=lambda n: ngettext("%(count)s link preview removed.", "%(count)s link previews removed.", n),
            left=lambda n: ngettext(
                "%(count)s link preview was already removed.", "%(count)s link previews were already removed.", n
            ),
        )


class RefusedHostForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A refused host, also typed as an address."""

    def clean_host(self) -> str:
        """The host as links have it. Raises ValidationError."""
        if not (host := host_of(self.cleaned_data["host"])):
            raise forms.ValidationError(_("This isn't a domain. Type one like example.org."))
        return host


@admin.register(RefusedHost)
class RefusedHostAdmin(HoldingRuleAdmin):
    """Refused hosts. Posts show no link cards of their pages."""

    rank = 12
    form = RefusedHostForm
    fields = ("host", "note")
    list_display = ("host", "note", "created_at")
    search_fields = ("host", "note")
    ordering = ("host",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the caller may use the list's actions. A single host cannot be changed."""
        return obj is None and super().has_change_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: RefusedHost, form: Any, change: bool) -> None:
        """Refuse the host by `links.refuse_host`, which writes the log."""
        links.refuse_host(host=obj, by=request.user)  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: RefusedHost) -> None:
        """Accept the host again by `links.accept_host`, which writes the log."""
        links.accept_host(host=obj, by=request.user)  # type: ignore[arg-type]
