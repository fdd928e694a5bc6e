from typing import Any

from accounts.models import User
from items import actions
from items.models import Item, ItemType
from media import actions as media
from tests.support.pictures import jpeg, upload


def sent(owner: User, data: bytes | None = None, **fields: Any) -> str:
    return str(media.upload(owner_id=owner.pk, file=upload(data or jpeg()), **fields).pk)


def posted(owner: User, *ids: str, **content: Any) -> Item:
    return actions.publish(sender=owner, type=ItemType.IMAGE, content={"media": list(ids), **content})
