import io
from collections.abc import Callable
from typing import Any

from accounts.models import User
from community.archives import actions, importing
from community.archives.models import ArchiveImport
from items.models import Item
from tests.support.archives import zipped


def brought(user: User, files: dict[str, bytes], pack: Callable[..., io.BytesIO] = zipped, **how: Any) -> ArchiveImport:
    made = actions.begin(user=user, file=pack(files), **how)
    for _ in range(1_000):
        if importing.run(made.pk):
            break
        ArchiveImport.objects.update(tried_at=None)
    made.refresh_from_db()
    return made


def posts_of(user: User) -> list[Item]:
    return list(Item.objects.filter(sender=user).order_by("pk"))
