"""Scopes of tokens: what each allows, and which views they open."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from oauth2_provider.scopes import BaseScopes

from web.credentials import ANY_SCOPE

DEFAULT = "read"
"""Scope of an app that names none."""
FOLLOWS = frozenset({"blocks", "follows", "mutes"})
"""Parts of `read` and `write` covered by the old scope `follow`."""

WORDS: dict[str, Any] = {
    "read": _("See everything you see, including your lists, muted words and notifications"),
    "write": _("Do everything as you: post, delete, like, follow, and edit your profile"),
    "follow": _("Follow, mute and block people"),
    "push": _("Get your push notifications"),
    "profile": _("See who you are"),
    "read:accounts": _("See people's profiles"),
    "read:blocks": _("See who you block"),
    "read:bookmarks": _("See your bookmarks"),
    "read:favourites": _("See your likes"),
    "read:filters": _("See your muted words"),
    "read:follows": _("See who you follow"),
    "read:lists": _("See your lists"),
    "read:mutes": _("See who you mute"),
    "read:notifications": _("See your notifications"),
    "read:search": _("Search on your behalf"),
    "read:statuses": _("See all posts you can see"),
    "write:accounts": _("Edit your profile"),
    "write:blocks": _("Block people"),
    "write:bookmarks": _("Bookmark posts"),
    "write:conversations": _("Mute threads and remove conversations"),
    "write:favourites": _("Like posts"),
    "write:filters": _("Manage muted words"),
    "write:follows": _("Follow people"),
    "write:lists": _("Manage lists"),
    "write:media": _("Upload pictures and videos"),
    "write:mutes": _("Mute people"),
    "write:notifications": _("Clear your notifications"),
    "write:reports": _("Report people to the moderators"),
    "write:statuses": _("Publish, edit and delete posts"),
}
"""Every scope and what it allows, in the order of the authorize page."""


def parsed(text: str) -> list[str]:
    """Distinct scopes in a text, unknown ones too."""
    return list(dict.fromkeys(text.replace("+", " ").split()))


def known_scopes(text: str) -> list[str]:
    """Distinct known scopes in a text. Apps also name other servers' scopes."""
    return [scope for scope in parsed(text) if scope in WORDS]


def drop_unknown(text: str) -> str:
    """The text without unknown scopes. If all are unknown they stay, to be refused later."""
    return " ".join(known_scopes(text)) or text


def covers(held: Collection[str], scope: str) -> bool:
    """Whether held scopes include a scope. `read` includes all `read:…`."""
    kind, _separator, part = scope.partition(":")
    return scope in held or kind in held or ("follow" in held and part in FOLLOWS)


def are_within(asked: Iterable[str], held: Collection[str]) -> bool:
    """Whether all asked scopes are known and covered by `held`."""
    return all(scope in WORDS and covers(held, scope) for scope in asked)


class Scopes(BaseScopes):  # type: ignore[misc]  # without types
    """The scopes as django-oauth-toolkit asks for them."""

    def get_all_scopes(self) -> Mapping[str, Any]:
        """Every scope with its words."""
        return WORDS

    def get_available_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The app's scopes, and those that they include."""
        held = parsed(application.scopes) if application is not None else WORDS
        return [scope for scope in WORDS if covers(held, scope)]

    def get_default_scopes(self, application: Any = None, request: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        """The scopes of an app that names none."""
        return [DEFAULT]


# --- Views -----------------------------------------------------------------------------------------------
PROFILE = ("profile", "read", "read:accounts")
"""Each of these scopes lets an app know its user."""


def needed(scopes: str, *, is_reading: bool) -> str:
    """The scope that a view with these `scopes` (web.rest.ApiView) needs for reading or writing."""
    if scopes in WORDS:
        return scopes
    return f"{'read' if is_reading else 'write'}:{scopes}".removesuffix(":")


def grants_access(held: Collection[str], scopes: str | None, *, is_reading: bool) -> bool:
    """Whether these scopes open a view with these `scopes` for reading or writing."""
    if scopes is None or scopes == ANY_SCOPE:
        return scopes is not None
    if scopes == "profile":
        return not set(PROFILE).isdisjoint(held)
    return covers(held, needed(scopes, is_reading=is_reading))
