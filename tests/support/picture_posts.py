from typing import Any

from accounts.models import User
from items import actions
from items.models import Item, ItemType
from media.processing import upload_at_once
from tests.support.pictures import jpeg, upload


def sent(owner: User, data: bytes | None = None, **fields: Any) -> str:
    return str(upload_at_once(owner_id=owner.pk, file=upload(data or jpeg()), **fields).pk)


def posted(owner: User, *ids: str, **content: Any) -> Item:
    return actions.publish(sender=owner, type=ItemType.IMAGE, content={"media": list(ids), **content})
