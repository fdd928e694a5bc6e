from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from community.archives import actions, export


@receiver(account_purged)
def forget_archives(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Delete at most `limit` rows of a deleted account."""
    return actions.purge(user=user, limit=limit)


@receiver(export_requested)
def export_archives(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The user's imports, for their export."""
    return export.files(reader)
