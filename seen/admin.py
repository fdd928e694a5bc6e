from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from seen.models import MergeRun
from web.admin import LogAdmin


@admin.register(MergeRun)
class MergeRunAdmin(LogAdmin):
    """Merges of plays, read-only."""

    list_display = ("started_at", "node", "task_shard", "users", "plays", "seconds", "error")
    list_filter = (("error", admin.EmptyFieldListFilter),)
    search_fields = ("=task_shard",)
    search_help_text = _("Number of a task shard.")
