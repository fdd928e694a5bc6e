# ruff: noqa: RUF001 - Chinese sentences have Chinese commas
"""Messages of the demo's readers: conversations, and a request."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from accounts.models import User
from community.demo_pictures import PictureFile, log_failures, upload_picture
from items.attachments import attachments
from items.conversations import recipients
from items.conversations.conversations import mark_read
from items.models import Item, ItemType, Visibility
from media import attaching
from relations.models import Follow
from storage import ids

STRANGER = ""
"""Stands for somebody whom the first recipient does not follow."""


class Message(NamedTuple):
    """A message, `minutes` before the demo was made."""

    sender: str
    minutes: int
    text: str
    picture: PictureFile | None = None


class Talk(NamedTuple):
    """A conversation. Those of `unread` have not seen its last message."""

    to: tuple[str, ...]
    messages: tuple[Message, ...]
    unread: tuple[str, ...] = ()


TALKS = (
    Talk(
        ("oriel",),
        (
            Message("mira", 6120, "Your post came here again, and a rope. I am keeping both dry."),
            Message("oriel", 6055, "The rope is a present! For the bread basket on the balcony."),
            Message("mira", 6049, "Then the third floor will want one, too."),
        ),
    ),
    Talk(
        ("lin-wei", "tomas"),
        (
            Message("mira", 1750, "The night market is on Friday. Shall the three of us share a table?"),
            Message("tomas", 1738, "In. I bring the bell, the lamp and one terrible pun an hour."),
            Message("lin-wei", 1720, "我带茶和几张手写的诗，一首换一片面包。"),
            Message("mira", 1716, "A poem for a slice. That is the best price I was ever offered."),
            Message("tomas", 1702, "Six o'clock at the slipway, then. The early bridge gets the worm."),
        ),
    ),
    Talk(
        ("tomas",),
        (
            Message("mira", 1322, "You were right about the crust. Longer without the lid."),
            Message("tomas", 1317, "I only said it to get a slice."),
            Message(
                "mira",
                66,
                "Out of the oven just now. The straight one is yours.",
                PictureFile("bread", "Three loaves on a floured board. The left one is straight."),
            ),
            Message("tomas", 52, "That is not a loaf, that is a rise to fame."),
            Message("mira", 49, "One more and you get the crooked one."),
            Message("tomas", 6, "On my way. Ten minutes, headwind included. Is there butter?"),
        ),
        ("mira",),
    ),
    Talk(
        ("mira",),
        (
            Message(
                STRANGER,
                184,
                "Hello Mira, we have just moved in above the old chandlery. "
                "Do you keep two rye loaves for Saturday if one asks nicely?",
            ),
        ),
        ("mira",),
    ),
    Talk(
        ("lin-wei",),
        (
            Message("su-he", 420, "院子里的白菜长疯了，给你留了两棵。"),
            Message("lin-wei", 402, "太好了，我拿一首新诗换。"),
            Message("su-he", 398, "上次那首贴在冰箱上了，猫每天都看。"),
            Message("lin-wei", 391, "那这首写给猫。"),
            Message(
                "su-he",
                23,
                "今天江边的日落，你没来真可惜。",
                PictureFile("sea-evening", "平静的傍晚，江上一只帆船。"),
            ),
        ),
        ("lin-wei",),
    ),
)


def write_messages(users: Sequence[User], follows: Sequence[Follow], *, now: datetime, has_pictures: bool) -> None:
    """Write the conversations of people who are there."""
    people = {user.username: user for user in users}
    followed = {(follow.follower_id, follow.followee_id) for follow in follows}
    for talk in TALKS:
        recipient = people[talk.to[0]]
        strangers = (one for one in users[::-1] if one != recipient and (recipient.pk, one.pk) not in followed)
        people[STRANGER] = max(strangers, key=lambda one: bool(one.avatar))
        names = {*talk.to, *(message.sender for message in talk.messages)}
        if not names <= set(people):
            continue
        items: list[Item] = []
        for message in talk.messages:
            first = items[0] if items else None
            item = Item(sender=people[message.sender], visibility=Visibility.MENTIONED, reply_to=first, root=first)
            item.modified_at = now - timedelta(minutes=message.minutes)
            item.pk = ids.compose(item.modified_at, 1)  # posts have 0
            _write(item, message, () if first else talk.to, has_pictures=has_pictures)
            items.append(item)
        for name in names.difference(talk.unread):
            mark_read(reader=people[name], item_id=items[0].pk)


def _write(item: Item, message: Message, to: Sequence[str], *, has_pictures: bool) -> None:
    """As publishing does, but at the time of the item."""
    item.content = {"text": message.text}
    if message.picture and has_pictures:
        with log_failures():
            shown = upload_picture(item.sender_id, message.picture)
            item.type, item.content = ItemType.IMAGE, item.content | {"media": [str(shown.pk)]}
    recipient_ids = recipients.recipients_of(item, item.reply_to, to)
    pictures = attachments.claim_media(item)
    item.save(force_insert=True)
    recipients.write_participants(item, recipient_ids)
    attaching.assign_to_item(pictures, item_id=item.pk, is_private=True)
