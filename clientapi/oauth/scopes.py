"""Scopes of tokens: what each allows, and which address needs which.

Apps can use only the addresses in `NEEDS`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _
from oauth2_provider.scopes import BaseScopes

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


def known(text: str) -> list[str]:
    """Distinct known scopes in a text. Apps also name other servers' scopes."""
    return [scope for scope in parsed(text) if scope in WORDS]


def reduced(text: str) -> str:
    """The text without unknown scopes. If all are unknown they stay, to be refused later."""
    return " ".join(known(text)) or text


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


# --- Addresses -------------------------------------------------------------------------------------------
ANY = ""
"""Any token opens the address."""


class Need(NamedTuple):
    """The scope that an address needs for reading, and for writing. None: no token opens it."""

    read: str | None = None
    write: str | None = None
    open_to_strangers: bool = False


def _of(part: str) -> Need:
    return Need(f"read:{part}", f"write:{part}")


STATUSES, ACCOUNTS, FOLLOWS_OF, LISTS = _of("statuses"), _of("accounts"), _of("follows"), _of("lists")
NOTIFICATIONS, FILTERS, MEDIA = _of("notifications"), _of("filters"), Need("write:media", "write:media")
LIKES, BOOKMARKS, BLOCKS, MUTES = _of("favourites"), _of("bookmarks"), _of("blocks"), _of("mutes")
PUSH = Need("push", "push")
SEARCH, REPORTS, OPEN, NONE = Need("read:search"), Need(None, "write:reports"), Need(ANY, ANY), Need()

POPULAR = Need("read:statuses", open_to_strangers=True)
NEWS = Need("read:accounts", open_to_strangers=True)

OWN: dict[str, Need] = {
    "site": OPEN,
    "stream": NONE,
    "users": NONE,
    "users/me": Need("read:accounts", "write:accounts"),
    "users/me/avatar": ACCOUNTS,
    "users/me/banner": ACCOUNTS,
    "users/me/password": NONE,
    "users/me/sessions": NONE,
    "users/me/delete": NONE,
    "users/me/export": NONE,
    "auth/token": NONE,
    "auth/password-reset": NONE,
    "users/<str:username>": Need("read:accounts"),
    "users/<str:username>/items": Need("read:statuses"),
    "users/<str:username>/live": Need("read:statuses"),
    "users/<str:username>/followers": Need("read:accounts"),
    "users/<str:username>/following": Need("read:accounts"),
    "users/<str:username>/follow": FOLLOWS_OF,
    "users/<str:username>/follower": FOLLOWS_OF,
    "users/<str:username>/report": REPORTS,
    "users/<str:username>/block": BLOCKS,
    "users/<str:username>/mute": MUTES,
    "me/blocks": BLOCKS,
    "me/mutes": MUTES,
    "me/suggestions": Need("read:accounts"),
    "me/follow-requests": FOLLOWS_OF,
    "me/follow-requests/<str:username>/accept": FOLLOWS_OF,
    "me/follow-requests/<str:username>/reject": FOLLOWS_OF,
    "me/tags": FOLLOWS_OF,
    "me/lists": LISTS,
    "me/lists/<str:list_id>": LISTS,
    "me/lists/<str:list_id>/members": LISTS,
    "me/lists/<str:list_id>/members/<str:username>": LISTS,
    "me/lists/<str:list_id>/timeline": LISTS,
    "me/lists/<str:list_id>/timeline/new": LISTS,
    "me/scheduled": STATUSES,
    "me/scheduled/<str:scheduled_id>": STATUSES,
    "me/filters": FILTERS,
    "me/filters/<str:filter_id>": FILTERS,
    "me/notifications": NOTIFICATIONS,
    "me/notifications/unread": NOTIFICATIONS,
    "me/notifications/read": NOTIFICATIONS,
    "me/push": PUSH,
    "me/media": MEDIA,
    "me/media/<str:media_id>": MEDIA,
    "me/media/<str:media_id>/captions": MEDIA,
    "me/bookmarks": BOOKMARKS,
    "me/likes": LIKES,
    "me/conversations": Need("read:statuses"),
    "me/conversations/requests": Need("read:statuses"),
    "me/conversations/<str:conversation_id>": Need(None, "write:conversations"),
    "me/conversations/<str:conversation_id>/accept": Need(None, "write:conversations"),
    "me/conversations/<str:conversation_id>/read": Need(None, "write:conversations"),
    "me/history": Need("read", "write"),  # broader scopes: no narrower one mentions history to the user
    "items": STATUSES,
    "items/<str:item_id>": STATUSES,
    "items/<str:item_id>/like": LIKES,
    "items/<str:item_id>/pin": ACCOUNTS,
    "items/<str:item_id>/mute": MUTES,
    "items/<str:item_id>/bookmark": BOOKMARKS,
    "items/<str:item_id>/repost": STATUSES,
    "items/<str:item_id>/replies": STATUSES,
    "items/<str:item_id>/quotes": STATUSES,
    "items/<str:item_id>/vote": STATUSES,
    "items/<str:item_id>/likes": STATUSES,
    "items/<str:item_id>/reposts": STATUSES,
    "items/<str:item_id>/quotes/<str:quote_id>": STATUSES,
    "items/<str:item_id>/report": REPORTS,
    "items/<str:item_id>/not-interested": STATUSES,
    "search": SEARCH,
    "tags/trending": Need("read:statuses"),
    "tags/<str:tag>/items": Need("read:statuses"),
    "timeline/home": Need("read:statuses"),
    "timeline/home/new": Need("read:statuses"),
    "discover/feed": Need(None, "read:statuses"),
    "live/feed": Need("read:statuses"),
    "live/sessions": STATUSES,
    "live/sessions/<str:session_id>": STATUSES,
    "live/sessions/<str:session_id>/start": STATUSES,
    "live/sessions/<str:session_id>/end": STATUSES,
    "live/sessions/<str:session_id>/reminder": STATUSES,
    "live/sessions/<str:session_id>/report": REPORTS,
    "seen/plays": STATUSES,
    "seen/plays/batch": NONE,
    "seen/issued": STATUSES,
    "seen/filter": Need(None, "read:statuses"),
}
"""The site's own API under /api/v1/. Apps cannot change a password, end sessions or delete an account."""
CLIENTS: dict[str, Need] = {
    "apps": Need(None, ANY),
    "apps/verify_credentials": OPEN,
    "instance": OPEN,
    "instance/": OPEN,
    "instance/rules": OPEN,
    "instance/extended_description": OPEN,
    "instance/peers": OPEN,
    "instance/activity": OPEN,
    "instance/domain_blocks": OPEN,
    "instance/translation_languages": OPEN,
    "streaming": Need(ANY),  # the scope depends on the stream (clientapi.streaming.streams)
    "streaming/": Need(ANY),
    "streaming/health": OPEN,
    "streaming/<path:path>": Need(ANY),
    "timelines/home": Need("read:statuses"),
    "timelines/public": Need("read:statuses"),
    "timelines/tag/<str:tag>": Need("read:statuses"),
    "timelines/list/<str:list_id>": Need("read:lists"),
    "statuses": STATUSES,
    "statuses/<str:status_id>": STATUSES,
    "statuses/<str:status_id>/context": Need("read:statuses"),
    "statuses/<str:status_id>/source": Need("read:statuses"),
    "statuses/<str:status_id>/history": Need("read:statuses"),
    "statuses/<str:status_id>/favourited_by": Need("read:accounts"),
    "statuses/<str:status_id>/reblogged_by": Need("read:accounts"),
    "statuses/<str:status_id>/quotes": Need("read:statuses"),
    "polls/<str:poll_id>": Need("read:statuses"),
    "polls/<str:poll_id>/votes": Need(None, "write:statuses"),
    "statuses/<str:status_id>/quotes/<str:quote_id>/revoke": Need(None, "write:statuses"),
    "statuses/<str:status_id>/interaction_policy": Need(None, "write:statuses"),
    "statuses/<str:status_id>/favourite": Need(None, "write:favourites"),
    "statuses/<str:status_id>/unfavourite": Need(None, "write:favourites"),
    "statuses/<str:status_id>/reblog": Need(None, "write:statuses"),
    "statuses/<str:status_id>/unreblog": Need(None, "write:statuses"),
    "statuses/<str:status_id>/bookmark": Need(None, "write:bookmarks"),
    "statuses/<str:status_id>/unbookmark": Need(None, "write:bookmarks"),
    "statuses/<str:status_id>/pin": Need(None, "write:accounts"),
    "statuses/<str:status_id>/unpin": Need(None, "write:accounts"),
    "statuses/<str:status_id>/mute": Need(None, "write:mutes"),
    "statuses/<str:status_id>/unmute": Need(None, "write:mutes"),
    "bookmarks": Need("read:bookmarks"),
    "favourites": Need("read:favourites"),
    "media": Need(None, "write:media"),
    "media/<str:media_id>": MEDIA,
    "accounts": Need("read:accounts"),
    "accounts/verify_credentials": Need("profile"),
    "accounts/update_credentials": Need(None, "write:accounts"),
    "accounts/relationships": Need("read:follows"),
    "accounts/lookup": Need("read:accounts"),
    "accounts/search": Need("read:accounts"),
    "accounts/familiar_followers": Need("read:follows"),
    "accounts/<str:account_id>": Need("read:accounts"),
    "accounts/<str:account_id>/statuses": Need("read:statuses"),
    "accounts/<str:account_id>/followers": Need("read:accounts"),
    "accounts/<str:account_id>/following": Need("read:accounts"),
    "accounts/<str:account_id>/lists": Need("read:lists"),
    "accounts/<str:account_id>/featured_tags": Need("read:accounts"),
    "accounts/<str:account_id>/endorsements": Need("read:accounts"),
    "accounts/<str:account_id>/identity_proofs": Need("read:accounts"),
    "accounts/<str:account_id>/follow": Need(None, "write:follows"),
    "accounts/<str:account_id>/unfollow": Need(None, "write:follows"),
    "accounts/<str:account_id>/remove_from_followers": Need(None, "write:follows"),
    "accounts/<str:account_id>/block": Need(None, "write:blocks"),
    "accounts/<str:account_id>/unblock": Need(None, "write:blocks"),
    "accounts/<str:account_id>/mute": Need(None, "write:mutes"),
    "accounts/<str:account_id>/unmute": Need(None, "write:mutes"),
    "blocks": Need("read:blocks"),
    "mutes": Need("read:mutes"),
    "follow_requests": Need("read:follows"),
    "follow_requests/<str:account_id>/authorize": Need(None, "write:follows"),
    "follow_requests/<str:account_id>/reject": Need(None, "write:follows"),
    "notifications": Need("read:notifications"),
    "notifications/unread_count": Need("read:notifications"),
    "notifications/clear": Need(None, "write:notifications"),
    "notifications/<str:notification_id>": Need("read:notifications"),
    "notifications/<str:notification_id>/dismiss": Need(None, "write:notifications"),
    "push/subscription": PUSH,
    "markers": STATUSES,
    "lists": LISTS,
    "lists/<str:list_id>": LISTS,
    "lists/<str:list_id>/accounts": LISTS,
    "filters": FILTERS,
    "filters/<str:filter_id>": FILTERS,
    "preferences": Need("read:accounts"),
    "reports": REPORTS,
    "reports/": REPORTS,
    "trends": POPULAR,
    "trends/tags": POPULAR,
    "trends/statuses": POPULAR,
    "trends/links": POPULAR,
    "suggestions": Need("read:accounts"),
    "tags/<str:tag>": Need("read:statuses"),
    "tags/<str:tag>/follow": Need(None, "write:follows"),
    "tags/<str:tag>/unfollow": Need(None, "write:follows"),
    "announcements": NEWS,
    "announcements/<str:announcement_id>/dismiss": Need(None, "write:accounts"),
    "custom_emojis": OPEN,
    "directory": OPEN,
    "conversations": Need("read:statuses"),
    "conversations/": Need("read:statuses"),
    "conversations/<str:conversation_id>": Need(None, "write:conversations"),
    "conversations/<str:conversation_id>/read": Need(None, "write:conversations"),
    "domain_blocks": Need("read:blocks"),
    "endorsements": Need("read:accounts"),
    "featured_tags": Need("read:accounts"),
    "featured_tags/suggestions": Need("read:accounts"),
    "followed_tags": Need("read:follows"),
    "scheduled_statuses": Need("read:statuses"),
    "scheduled_statuses/<str:scheduled_id>": STATUSES,
}
"""Mastodon's API under /api/v1/."""
SECOND: dict[str, Need] = {
    "instance": OPEN,
    "instance/": OPEN,
    "media": Need(None, "write:media"),
    "notifications": Need("read:notifications"),
    "notifications/unread_count": Need("read:notifications"),
    "notifications/<str:group_key>": Need("read:notifications"),
    "notifications/<str:group_key>/accounts": Need("read:notifications"),
    "notifications/<str:group_key>/dismiss": Need(None, "write:notifications"),
    "search": SEARCH,
    "suggestions": Need("read:accounts"),
    "filters": FILTERS,
    "filters/<str:filter_id>": FILTERS,
    "filters/<str:filter_id>/keywords": FILTERS,
    "filters/<str:filter_id>/statuses": FILTERS,
    "filters/keywords/<str:filter_id>": FILTERS,
}
"""Mastodon's API under /api/v2/."""
NEEDS: dict[str, Need] = {
    **{f"api/v1/{route}": need for route, need in OWN.items()},
    **{f"api/v1/{route}": need for route, need in CLIENTS.items()},
    **{f"api/v2/{route}": need for route, need in SECOND.items()},
}
PROFILE = ("profile", "read", "read:accounts")
"""Each of these scopes lets an app know its user."""


def opens(held: Collection[str], route: str, *, is_reading: bool) -> bool:
    """Whether these scopes open a route for reading or writing."""
    need = NEEDS.get(route, NONE)
    scope = need.read if is_reading else need.write
    if scope is None:
        return False
    if scope == "profile":
        return not set(PROFILE).isdisjoint(held)
    return scope == ANY or covers(held, scope)


def opens_to_strangers(route: str) -> bool:
    """Whether a token without the scope counts as a stranger."""
    return NEEDS.get(route, NONE).open_to_strangers
