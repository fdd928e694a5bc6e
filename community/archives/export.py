from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from community.archives.models import ArchiveImport


class ArchiveImportRow(msgspec.Struct):
    """An uploaded archive and its outcome."""

    uploaded_at: datetime
    state: str
    posts: int
    media: int
    left_out: dict[str, int]
    notes: list[list[str]]
    lists: dict[str, Any] | None
    """Progress of each list, by name."""


def files(user: User) -> list[ExportFile]:
    """The file of the user's imports."""
    return [ExportFile("archive_imports.jsonl", _("The archives you imported from other sites."), _rows(user))]


def _rows(user: User) -> Iterator[ArchiveImportRow]:
    columns = ("created_at", "state", "brought", "media", "left_out", "notes", "lists")
    return (
        ArchiveImportRow(*row) for row in ArchiveImport.objects.filter(user=user).order_by("pk").values_list(*columns)
    )
