from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext

from media import attaching
from media.models import MediaFile, MediaState
from media.reasons import failure_of
from web.admin import Area, LogAdmin
from web.rest import parse_id


def thumbnails(media: Iterable[MediaFile], *, is_veiled: bool, is_unmarked: bool = False) -> SafeString:
    """Thumbnails from addresses for staff only. `is_veiled`: loaded on a click, and labelled sensitive unless
    `is_unmarked`.
    """
    context = {"media": list(media), "is_veiled": is_veiled, "is_unmarked": is_unmarked}
    return render_to_string("admin/media/shots.html", context)


class ShotList(ChangeList):
    """Rows about items, with their media in one query."""

    def get_results(self, request: HttpRequest) -> None:
        """Add the items' media."""
        super().get_results(request)
        self.result_list = rows = list(self.result_list)
        media = attaching.media_by_item(self.item_of(row) for row in rows)
        for row in rows:
            row.shots = media.get(self.item_of(row) or 0, [])

    def item_of(self, row: Any) -> int | None:
        """The id of the row's item."""
        return row.item_id  # type: ignore[no-any-return]


class MediaList(ChangeList):
    """One query reads the owners' names of a page."""

    def get_results(self, request: HttpRequest) -> None:
        """Add the owners' names."""
        super().get_results(request)
        self.result_list = rows = list(self.result_list)
        names = names_of(row.owner_id for row in rows)
        for row in rows:
            row.owner_name = names.get(row.owner_id)


def names_of(user_ids: Iterable[int]) -> dict[int, str]:
    """Usernames by id, in one query."""
    users = get_user_model().objects.filter(pk__in=set(user_ids))
    return dict(users.values_list("pk", "username"))


class MediaFileAdmin(LogAdmin):
    """Read-only list of media, each veiled. items.admin registers it."""

    area = Area.MODERATION
    rank = 7
    list_display = ("id", "shot", "kind", "use", "of_item", "of_owner", "size", "created_at", "standing")
    fields = (
        "id",
        "shot",
        "kind",
        "use",
        "standing",
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
    search_help_text = _("ID of a picture or video, of its post, or of its owner.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MediaFile]:
        """Leave out private mentions."""
        rows: QuerySet[MediaFile] = super().get_queryset(request)
        return rows.filter(is_private=False)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[MediaList]:
        """Use MediaList."""
        return MediaList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[MediaFile], search_term: str
    ) -> tuple[QuerySet[MediaFile], bool]:
        """Find by id of medium, item or owner."""
        if not search_term.strip():
            return queryset, False
        number = parse_id(search_term.strip()) or 0
        return queryset.filter(Q(pk=number) | Q(item_id=number) | Q(owner_id=number)), False

    @admin.display(description=_("picture"))
    def shot(self, medium: MediaFile) -> SafeString:
        """The veiled picture."""
        return thumbnails([medium], is_veiled=True, is_unmarked=True)

    @admin.display(description=_("post"))
    def of_item(self, medium: MediaFile) -> str:
        """Link to the item."""
        return _link("admin:items_item_change", medium.item_id) if medium.item_id else "-"

    @admin.display(description=_("owner"))
    def of_owner(self, medium: MediaFile) -> SafeString:
        """Link to the owner."""
        known = vars(medium)
        names = {medium.owner_id: known["owner_name"]} if "owner_name" in known else names_of([medium.owner_id])
        name = names.get(medium.owner_id)
        return _link("admin:accounts_user_change", medium.owner_id, f"@{name}" if name else None)

    @admin.display(description=_("state"))
    def standing(self, medium: MediaFile) -> Any:
        """Whether others may see it."""
        if medium.hidden_at:
            return _("hidden by moderators")
        if medium.state != MediaState.READY:
            return f"{medium.get_state_display()}: {failure_of(medium) or f'{medium.progress} %'}"
        return pgettext("medium", "withdrawn") if medium.withdrawn_at else _("shown")


def _link(name: str, key: int, words: str | None = None) -> SafeString:
    return format_html('<a href="{}">{}</a>', reverse(name, args=[key]), words or key)
