"""A user in one line."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from accounts.avatars import avatar_url
from accounts.models import User


class UserCard(msgspec.Struct):
    """A user in one line."""

    id: str
    username: str
    display_name: str
    is_big_v: bool
    avatar_url: str = ""

    @classmethod
    def of(cls, user: User) -> Self:
        """The user's card."""
        return cls(str(user.pk), user.username, user.display_name, user.is_big_v, user.avatar_url)

    @classmethod
    def from_row(
        cls,
        user_id: int | str,
        username: str,
        display_name: str,
        is_big_v: bool,
        avatar: Mapping[str, Any] | str | None,
    ) -> Self:
        """A card from columns. `avatar`: JSON, perhaps as text."""
        url = avatar_url(avatar, username, display_name or username)
        return cls(str(user_id), username, display_name, is_big_v, url)

    @property
    def name(self) -> str:
        """Display name, else username."""
        return self.display_name or self.username
