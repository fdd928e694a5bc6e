from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, account_recounted, export_requested
from relations import export, importing, purge, recounting


@receiver(account_purged)
def purge_relations(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Remove at most `limit` relations of a deleted account."""
    return purge.purge(user_id=user.pk, limit=limit) + importing.purge(user=user)


@receiver(account_recounted)
def recount_follows(
    sender: type[User], user_id: int, is_hidden: bool, places: dict[str, int], limit: int, **kwargs: Any
) -> bool:
    """Recount at most `limit` followers and followees of a hidden or shown account."""
    return recounting.recount(user_id, places, limit, is_hidden=is_hidden)


@receiver(export_requested)
def export_relations(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """Relations' part of the data export."""
    return export.files(reader)
