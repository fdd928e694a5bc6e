from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from seen import export, forgetting
from seen.signals import room_filled
from seen.tasks import merge_user


@receiver(account_purged)
def forget_plays(sender: type[User], user: User, **kwargs: Any) -> int:
    """Delete a deleted account's plays. Returns how many entries there were."""
    return forgetting.forget([user.pk], now=timezone.now())


@receiver(export_requested)
def export_plays(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The played history in the reader's export."""
    return export.files(reader, now=timezone.now())


@receiver(room_filled)
def merge_early(sender: None, user_id: int, **kwargs: Any) -> None:
    """Have a worker merge the user's plays before their hour is over."""
    merge_user.delay(user_id)
