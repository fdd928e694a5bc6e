"""Pictures and videos in the admin, and how its pages show those of other rows."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from media import attaching
from media.models import MediaFile
from web.admin import LogAdmin
from web.rest import parse_id


def shots(media: Iterable[MediaFile], *, is_veiled: bool) -> SafeString:
    """Small pictures for staff, by the addresses that only they may ask for; `is_veiled`: each is shown by a press.

    A veiled picture is loaded when it is shown.
    """
    return render_to_string("admin/media/shots.html", {"media": list(media), "is_veiled": is_veiled})


class ShotList(ChangeList):
    """Rows about items, with the media of all items of a page by one statement."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and the media of its items."""
        super().get_results(request)
        self.result_list = rows = list(self.result_list)
        media = attaching.all_of(self.item_of(row) for row in rows)
        for row in rows:
            row.shots = media.get(self.item_of(row) or 0, [])

    def item_of(self, row: Any) -> int | None:
        """The id of the item that a row is about, or is."""
        return row.item_id  # type: ignore[no-any-return]


@admin.register(MediaFile)
class MediaFileAdmin(LogAdmin):
    """Pictures and videos, to look at; each is veiled, since a list says nothing of what they show."""

    list_display = ("id", "shot", "kind", "use", "of_item", "of_owner", "size", "created_at", "state")
    fields = (
        "id",
        "shot",
        "kind",
        "use",
        "state",
        "of_item",
        "of_owner",
        "description",
        "width",
        "height",
        "size",
        "duration",
        "sha256",
        "created_at",
        "hidden_at",
    )
    readonly_fields = fields
    sortable_by = ("id",)
    search_fields = ("=id", "=item_id", "=owner_id")
    search_help_text = _("The id of a picture or video, of its item, or of its owner.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[MediaFile], search_term: str
    ) -> tuple[QuerySet[MediaFile], bool]:
        """The media of an id, of an item or of an owner: each an index look-up."""
        if not search_term.strip():
            return queryset, False
        number = parse_id(search_term.strip()) or 0
        return queryset.filter(Q(pk=number) | Q(item_id=number) | Q(owner_id=number)), False

    @admin.display(description=_("picture"))
    def shot(self, medium: MediaFile) -> SafeString:
        """The picture, veiled."""
        return shots([medium], is_veiled=True)

    @admin.display(description=_("item"))
    def of_item(self, medium: MediaFile) -> str:
        """The item that uses it, with a link."""
        return _link("admin:items_item_change", medium.item_id) if medium.item_id else "-"

    @admin.display(description=_("owner"))
    def of_owner(self, medium: MediaFile) -> SafeString:
        """The owner of the medium, with a link."""
        return _link("admin:accounts_user_change", medium.owner_id)

    @admin.display(description=_("state"))
    def state(self, medium: MediaFile) -> Any:
        """Whether others may see it."""
        if medium.hidden_at:
            return _("hidden by moderators")
        return _("withdrawn") if medium.withdrawn_at else _("shown where it is used")


def _link(name: str, key: int) -> SafeString:
    return format_html('<a href="{}">{}</a>', reverse(name, args=[key]), key)
