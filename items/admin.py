"""Items in the admin: to look at, to hide and to bring back.

The admin cannot edit what senders said, and nothing is removed.
"""

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import linebreaksbr
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from accounts.levels.admin import handle_column
from accounts.models import User
from items import actions, versions
from items.models import LISTED, Item
from items.query import parse
from items.reading import excerpt
from items.search import matching_items
from media import attaching
from media.admin import ShotList, shots
from web.admin import ModeratedAdmin, counted, is_list
from web.rest import parse_id

FOUND = 1_000
"""Items that words find, the newest."""


class ItemList(ShotList):
    """The items of a page, with their pictures."""

    def item_of(self, row: Any) -> int | None:
        """The id of the item."""
        return int(row.pk)


@admin.register(Item)
class ItemAdmin(ModeratedAdmin):
    """Items, to read, to hide and to bring back."""

    list_display = (
        "id",
        handle_column("sender", _("sender")),
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
    search_help_text = _(
        "An item's id, @name or the whole name of its sender, or words and #tags, as in the site's search."
    )
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
        """The beginning of title or text."""
        return excerpt(item.title or item.text, 80)

    @admin.display(description=_("words"))
    def said(self, item: Item) -> SafeString:
        """Title and text as people wrote them; then whatever else the item holds, a line each."""
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
        """All but private mentions, which staff see on the page of a case, if a person in it reports one."""
        items: QuerySet[Item] = super().get_queryset(request)
        return items.filter(visibility__in=LISTED)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ItemList]:
        """The list that reads the pictures of a page at once."""
        return ItemList

    @admin.display(description=_("pictures"))
    def small(self, item: Any) -> SafeString:
        """The item's pictures, in the list."""
        return shots(item.shots, is_veiled=item.is_sensitive)

    @admin.display(description=_("pictures"))
    def pictures(self, item: Item) -> str:
        """The item's pictures or its video, also those that others do not see."""
        media = attaching.all_of([item.pk]).get(item.pk)
        return shots(media, is_veiled=item.is_sensitive) if media else "-"

    @admin.display(description=_("in reply to"))
    def in_reply_to(self, item: Item) -> SafeString | str:
        """The item that this one answers, with a link."""
        return _link(item.reply_to_id)

    @admin.display(description=_("reposts"))
    def shows(self, item: Item) -> SafeString | str:
        """The item that this one reposts, with a link."""
        return _link(item.repost_of_id)

    def view_on_site(self, item: Item) -> str:
        """The address of the item's page."""
        return reverse("item", args=[item.pk])

    # --- Search
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Item], search_term: str
    ) -> tuple[QuerySet[Item], bool]:
        """Ids and senders are index look-ups; words are the site's own search, whatever the items' status."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Q(sender__in=list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True)))
        if term.startswith("@"):
            return queryset.filter(found), False
        matching, has_more = matching_items(parse(term), count=FOUND + 1)
        if has_more and is_list(request):
            words = gettext("More than %(count)s items hold these words; the newest are searched. Write more words.")
            if len(matching) <= FOUND:
                words = gettext("These words are frequent; only the newest items are searched. Write rarer words.")
            self.message_user(request, words % {"count": number_format(FOUND, force_grouping=True)}, messages.WARNING)
        if number := parse_id(term):
            matching.append(number)
        return queryset.filter(found | Q(pk__in=matching)), False

    # --- Permissions
    def has_add_permission(self, request: HttpRequest) -> bool:
        """False: users publish, on the site."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        """The actions of the list need it; an item's own page is to look at."""
        return obj is None and super().has_change_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        """Whether the request may see items; the permission to change them is enough."""
        return super().has_view_permission(request) or super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        """Never for good."""
        return False

    # --- Verbs
    @admin.action(description=_("Delete …"), permissions=["change"])
    def delete(self, request: HttpRequest, queryset: QuerySet[Item]) -> TemplateResponse | None:
        """Asks first."""
        items = self.chosen(request, queryset.select_related("sender"))
        if not items:
            return None
        if "confirmed" not in request.POST:
            return self.confirm(
                request,
                items,
                "delete",
                title=gettext("Delete items"),
                meaning=counted(
                    lambda n: ngettext(
                        "%(count)s item disappears for all readers, its author too, and from every thread. It stays "
                        "in the database: “Restore” publishes it again, also if it was held for review or rejected "
                        "before.",
                        "%(count)s items disappear for all readers, their authors too, and from every thread. They "
                        "stay in the database: “Restore” publishes them again, also those that were held for review or "
                        "rejected before.",
                        n,
                    ),
                    len(items),
                ),
                button=counted(lambda n: ngettext("Delete %(count)s item", "Delete %(count)s items", n), len(items)),
                name=lambda item: f"@{item.sender.username}: {self.excerpt(item)}",
            )
        self.each(
            request,
            items,
            lambda item: actions.delete(item=item),
            logged=gettext_noop("Deleted; it can be restored."),
            done=lambda n: ngettext("%(count)s item was deleted.", "%(count)s items were deleted.", n),
            left=lambda n: ngettext("%(count)s item was deleted before.", "%(count)s items were deleted before.", n),
        )
        return None

    @admin.action(description=_("Restore (publishes them again)"), permissions=["change"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Item]) -> None:
        """Publish the chosen items again."""
        self.each(
            request,
            self.chosen(request, queryset),
            lambda item: actions.restore(item=item),
            logged=gettext_noop("Restored."),
            done=lambda n: ngettext("%(count)s item was restored.", "%(count)s items were restored.", n),
            left=lambda n: ngettext(
                "%(count)s item was left as it is: published already, or a repost that was made again.",
                "%(count)s items were left as they are: published already, or reposts that were made again.",
                n,
            ),
        )

    @admin.action(description=_("Hide earlier versions"), permissions=["change"])
    def hide_versions(self, request: HttpRequest, queryset: QuerySet[Item]) -> None:
        """From all but the sender."""
        self.each(
            request,
            self.chosen(request, queryset),
            lambda item: versions.hide(item.pk) > 0,
            logged=gettext_noop("Earlier versions hidden."),
            done=lambda n: ngettext(
                "Earlier versions of %(count)s item were hidden.", "Earlier versions of %(count)s items were hidden.", n
            ),
            left=lambda n: ngettext(
                "%(count)s item had no earlier version to hide.", "%(count)s items had no earlier version to hide.", n
            ),
        )


def _link(item_id: Any) -> SafeString | str:
    if item_id is None:
        return "-"
    return format_html('<a href="{}">{}</a>', reverse("admin:items_item_change", args=[item_id]), item_id)
