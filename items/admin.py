"""Items in the admin: read, delete and restore."""

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import linebreaksbr
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from accounts import review
from accounts.levels_admin import handle_column
from accounts.models import User
from accounts.user_admin import is_super
from items import actions, versions
from items.models import LISTED, OPEN_TO_ALL, Item
from items.pages.reading import excerpt
from items.search.query import parse
from items.search.search import matching_items
from media import attaching
from media.admin import MediaFileAdmin, ShotList, thumbnails
from media.models import FACES, MediaFile
from web.admin import ActedOnAdmin, Area, ModeratedAdmin, is_list, sentence_with_count
from web.rest import parse_id

FOUND = 1_000
"""Number of newest items that a search by words finds."""


class ItemList(ShotList):
    """The items of a page, with their pictures."""

    def item_of(self, row: Any) -> int | None:
        """The item's id."""
        return int(row.pk)


@admin.register(Item)
class ItemAdmin(ModeratedAdmin, ActedOnAdmin):
    """Items to read, delete and restore."""

    area = Area.MODERATION
    rank = 5
    list_display = (
        "id",
        handle_column("sender", _("author")),
        "excerpt",
        "small",
        "status",
        "visibility",
        "type",
        "created_at",
    )
    list_filter = ("status", "visibility", "type")
    list_select_related = ("sender",)
    ordering = ("-id",)
    sortable_by = ("id",)
    search_fields = ("id", "sender__username", "text")
    search_help_text = _("Post ID, full username of the author, or words and #tags as in the site's search.")
    actions = ("moderate", "delete", "restore", "hide_versions")
    moderated_as = "items"
    fields = (
        "id",
        "sender",
        "said",
        "pictures",
        "type",
        "status",
        "visibility",
        "in_reply_to",
        "shows",
        "created_at",
        "published_at",
        "modified_at",
    )
    readonly_fields = fields

    # --- Columns
    @admin.display(description=_("words"))
    def excerpt(self, item: Item) -> str:
        """The beginning of the title or text."""
        return excerpt(item.title or item.text, 80)

    @admin.display(description=_("words"))
    def said(self, item: Item) -> SafeString:
        """Title, text and other fields, one per line."""
        more = {key: value for key, value in (item.content | item.extra_info).items() if key not in ("text", "media")}
        lines = [
            (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for key, value in more.items()
        ]
        return format_html(
            "{}{}{}",
            format_html("<strong>{}</strong><br>", item.title) if item.title else "",
            linebreaksbr(item.text),
            format_html_join("", '<div class="help">{}: {}</div>', lines),
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Item]:
        """All but private mentions. Only superusers list what is not for all: others read it by a case."""
        items: QuerySet[Item] = super().get_queryset(request)
        return items.filter(visibility__in=LISTED) if is_super(request) else items.filter(OPEN_TO_ALL)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ItemList]:
        """Reads a page's pictures in one query."""
        return ItemList

    @admin.display(description=_("pictures"))
    def small(self, item: Any) -> SafeString:
        """The item's pictures, in the list."""
        return thumbnails(item.shots, is_veiled=item.is_sensitive)

    @admin.display(description=_("pictures"))
    def pictures(self, item: Item) -> str:
        """The item's media, hidden ones too."""
        media = attaching.media_by_item([item.pk]).get(item.pk)
        return thumbnails(media, is_veiled=item.is_sensitive) if media else "-"

    @admin.display(description=_("in reply to"))
    def in_reply_to(self, item: Item) -> SafeString | str:
        """A link to the answered item."""
        return _link(item.reply_to_id)

    @admin.display(description=_("reposts"))
    def shows(self, item: Item) -> SafeString | str:
        """A link to the reposted item."""
        return _link(item.repost_of_id)

    def view_on_site(self, item: Item) -> str:
        """The item's page."""
        return reverse("item", args=[item.pk])

    # --- Search
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Item], search_term: str
    ) -> tuple[QuerySet[Item], bool]:
        """Find items by id, sender or words, in every status."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Q(sender__in=list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True)))
        if term.startswith("@"):
            return queryset.filter(found), False
        matching, has_more = matching_items(parse(term), count=FOUND + 1)
        if has_more and is_list(request):
            words = gettext("More than %(count)s posts match. Only the newest are searched. Add more words.")
            if len(matching) <= FOUND:
                words = gettext("These words are very common. Only the newest posts are searched. Try rarer words.")
            self.message_user(request, words % {"count": number_format(FOUND, force_grouping=True)}, messages.WARNING)
        if number := parse_id(term):
            matching.append(number)
        return queryset.filter(found | Q(pk__in=matching)), False

    # --- Permissions
    def has_delete_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        """False: nothing is removed for good."""
        return False

    # --- Verbs
    def chosen(self, request: HttpRequest, queryset: QuerySet[Item]) -> list[Item]:
        """The chosen items whose authors the caller may judge."""
        items = super().chosen(request, queryset.select_related("sender"))
        return self.changeable_rows(
            request,
            items,
            lambda item: review.may_judge(item.sender, request.user),  # type: ignore[arg-type]
            left=review.not_judged_message,
        )

    @admin.action(description=_("Delete …"), permissions=["change"])
    def delete(self, request: HttpRequest, queryset: QuerySet[Item]) -> TemplateResponse | None:
        """Delete items, after a confirmation."""
        items = self.chosen(request, queryset)
        if not items:
            return None
        if "confirmed" not in request.POST:
            return self.confirm(
                request,
                items,
                "delete",
                title=gettext("Delete posts"),
                meaning=sentence_with_count(
                    lambda n: ngettext(
                        "%(count)s post disappears for everyone, its author too, and from every thread. It stays in "
                        "the database. “Restore” publishes it again, even if it was held or rejected before.",
                        "%(count)s posts disappear for everyone, their authors too, and from every thread. They stay "
                        "in the database. “Restore” publishes them again, even if they were held or rejected before.",
                        n,
                    ),
                    len(items),
                ),
                button=sentence_with_count(
                    lambda n: ngettext("Delete %(count)s post", "Delete %(count)s posts", n), len(items)
                ),
                name=lambda item: f"@{item.sender.username}: {self.excerpt(item)}",
            )
        self.apply_to_each(
            request,
            items,
            lambda item: actions.delete(item=item),
            logged=gettext_noop("Deleted. It can be restored."),
            done=lambda n: ngettext("%(count)s post deleted.", "%(count)s posts deleted.", n),
            left=lambda n: ngettext("%(count)s post was already deleted.", "%(count)s posts were already deleted.", n),
        )
        return None

    @admin.action(description=_("Restore (publish again)"), permissions=["change"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Item]) -> None:
        """Publish items again."""
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            lambda item: actions.restore(item=item),
            logged=gettext_noop("Restored."),
            done=lambda n: ngettext("%(count)s post restored.", "%(count)s posts restored.", n),
            left=lambda n: ngettext(
                "%(count)s post not changed: already published, or a repost that was made again.",
                "%(count)s posts not changed: already published, or reposts that were made again.",
                n,
            ),
        )

    @admin.action(description=_("Hide earlier versions"), permissions=["change"])
    def hide_versions(self, request: HttpRequest, queryset: QuerySet[Item]) -> None:
        """Hide earlier versions from others."""
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            lambda item: versions.hide_versions(item.pk) > 0,
            logged=gettext_noop("Earlier versions hidden."),
            done=lambda n: ngettext(
                "Earlier versions of %(count)s post hidden.", "Earlier versions of %(count)s posts hidden.", n
            ),
            left=lambda n: ngettext(
                "%(count)s post has no earlier versions to hide.",
                "%(count)s posts have no earlier versions to hide.",
                n,
            ),
        )


@admin.register(MediaFile)
class ItemMediaAdmin(MediaFileAdmin):
    """Pictures and videos. Only superusers list those of posts that are not for all, and those that nothing uses."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[MediaFile]:
        """The rows that the caller may list."""
        rows = super().get_queryset(request)
        if is_super(request):
            return rows
        is_open = Exists(Item.objects.filter(OPEN_TO_ALL, pk=OuterRef("item_id")))
        return rows.filter(is_open | Q(item_id=None, use__in=FACES) | Q(session_id__isnull=False))


def _link(item_id: Any) -> SafeString | str:
    if item_id is None:
        return "-"
    return format_html('<a href="{}">{}</a>', reverse("admin:items_item_change", args=[item_id]), item_id)
