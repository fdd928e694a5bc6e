from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from seen import export, forgetting


@receiver(account_purged)
def forget_plays(sender: type[User], user: User, **kwargs: Any) -> int:
    """Delete a deleted account's plays. Returns how many entries there were."""
    return forgetting.forget([user.pk], now=timezone.now())


@receiver(export_requested)
def export_plays(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The played history in the reader's export."""
    return export.files(reader, now=timezone.now())
