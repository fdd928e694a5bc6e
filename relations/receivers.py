from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from relations import export, importing, purge


@receiver(account_purged)
def purge_relations(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Remove at most `limit` relations of a deleted account."""
    return purge.purge(user_id=user.pk, limit=limit) + importing.purge(user=user)


@receiver(export_requested)
def export_relations(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """Relations' part of the data export."""
    return export.files(reader)
