"""Moving's receivers of the signals from below."""

from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from community.archives import actions, export


@receiver(account_purged)
def forget_archives(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Remove what is known of a deleted account's imports, at most `limit`; returns their number."""
    return actions.purge(user=user, limit=limit)


@receiver(export_requested)
def export_archives(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The file of the reader's imports, for their own data."""
    return export.files(reader)
