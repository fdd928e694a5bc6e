"""Lists, filters, pins and bookmarks of the demo's readers."""

from collections import Counter
from collections.abc import Sequence

from accounts.models import User
from items import actions
from items.filters import filters
from items.models import FilterAction, Item, Like, Visibility
from items.profiles import pins
from relations import lists
from relations.models import Follow

LISTS = {"mira": "Neighbours", "tomas": "Two wheels", "lin-wei": "江边的朋友"}
"""The title of each reader's list."""
FILTERS = {
    "mira": ("herring", FilterAction.WARN),
    "tomas": ("tuba", FilterAction.HIDE),
    "lin-wei": ("电车地图", FilterAction.WARN),
}
MEMBERS = 5
KEPT = 3
"""Bookmarks per reader."""


def add_lists_and_pins(
    users: Sequence[User], items: Sequence[Item], follows: Sequence[Follow], likes: Sequence[Like]
) -> None:
    """Create lists, filters and bookmarks. Readers to log in as and big-Vs also pin their most liked post."""
    liked = Counter(like.item_id for like in likes)
    posts = [item for item in items if item.visibility == Visibility.PUBLIC and not (item.reply_to or item.repost_of)]
    posts.sort(key=lambda item: (-liked[item.pk], item.pk))
    for user in users:
        if user.is_big_v or user.username in LISTS:
            _pin_most_liked(user, posts)
        if user.username in LISTS:
            _create_list(user, users, follows)
            phrase, action = FILTERS[user.username]
            filters.create(owner=user, phrase=phrase, whole_word=True, action=action)
            for item in [item for item in posts if item.sender_id != user.pk][:KEPT]:
                actions.bookmark(user=user, item=item)


def _pin_most_liked(user: User, posts: Sequence[Item]) -> None:
    for item in [item for item in posts if item.sender_id == user.pk][:1]:
        pins.pin(item=item)


def _create_list(owner: User, users: Sequence[User], follows: Sequence[Follow]) -> None:
    """Create the owner's list. It has no big-Vs: their posts would fill it."""
    followed = {follow.followee_id for follow in follows if follow.follower_id == owner.pk}
    made = lists.create(owner=owner, title=LISTS[owner.username])
    for user in [user for user in users if user.pk in followed and not user.is_big_v][:MEMBERS]:
        lists.add(owner=owner, list_id=made.pk, member=user)
