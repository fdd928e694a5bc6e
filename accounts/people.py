"""Names and avatars as HTML."""

from functools import cache
from typing import NamedTuple, Protocol

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts.avatars import avatar_sources, drawn_url, letter_of_name, tint


class Person(Protocol):
    """A user or a card."""

    @property
    def name(self) -> str:
        """Display name, else username."""
        ...

    @property
    def username(self) -> str: ...

    @property
    def is_big_v(self) -> bool:
        """Whether the user has the badge."""
        ...

    @property
    def avatar_url(self) -> str:
        """Address of the avatar, or "" if unknown."""
        ...


class Face(NamedTuple):
    """A person for a card, as plain strings."""

    address: str
    name: str
    username: str
    is_big_v: bool
    sources: SafeString
    """`src` and `srcset` of the avatar. "" for a letter."""
    tint: int
    letter: str
    """Letter of a drawn avatar. "" for a picture."""


CARD_PIXELS = 42
"""How wide the avatar of a card is drawn."""


def face(person: Person) -> Face:
    """The person's face."""
    drawn = drawn_url(person.username, person.name)
    large = person.avatar_url or drawn
    names = (profile_address(person.username), person.name, person.username)
    letter = letter_of_name(person.name) if large == drawn else ""
    sources = SafeString() if letter else avatar_sources(large, CARD_PIXELS)
    return Face(*names, person.is_big_v, sources, tint(person.username), letter)


def profile_address(username: str) -> str:
    """The profile's address. Usernames need no quoting (accounts/naming.py)."""
    return f"/@{username}"


def name_of(person: Person, address: str = "") -> SafeString:
    """The name with its badge, linked if there is an address."""
    if address:
        return format_html('<a class="name" href="{}">{}{}</a>', address, isolated(person.name), badge_of(person))
    return format_html("{}{}", isolated(person.name), badge_of(person))


def isolated(name: str) -> SafeString:
    """A name in <bdi>."""
    return format_html("<bdi>{}</bdi>", name)


def full_name_of(person: Person) -> SafeString:
    """Display name and username, for the admin."""
    return format_html("{} (@{})", isolated(person.name), person.username)


def badged_username(person: Person) -> SafeString:
    """Username and badge, for the admin."""
    return format_html("{}{}", person.username, badge_of(person))


def badge_of(person: Person) -> SafeString:
    """The badge of a big-V, else nothing."""
    if not person.is_big_v:
        return SafeString()
    return big_v_badge()


def big_v_badge() -> SafeString:
    """The badge of big-Vs, with a tooltip."""
    return _badge(get_language())


@cache
def _badge(_language: str | None) -> SafeString:
    form = (
        '<svg class="icon badge" width="16" height="16" role="img" aria-label="{}"><title>{}</title>'
        '<use href="{}#badge"/></svg>'
    )
    return format_html(
        form,
        _("Big account"),
        _("Many people follow this account. It isn't a sign of verification."),
        static("feedsite/icons.svg"),
    )


def lock_of(person: Person) -> SafeString:
    """The lock of an account that approves followers."""
    if not getattr(person, "is_locked", False):
        return SafeString()
    return format_html(
        '<svg class="icon lock" width="16" height="16" role="img" aria-label="{}"><use href="{}#lock"/></svg>',
        _("Approves followers"),
        static("feedsite/icons.svg"),
    )


def avatar(person: Person, size: int = CARD_PIXELS) -> SafeString:
    """The avatar, hidden from screen readers: the name stands beside it."""
    drawn = drawn_url(person.username, person.name)
    large = person.avatar_url or drawn
    letter = letter_of_name(person.name)
    if letter and large == drawn:
        form = '<span class="avatar tint-{}" data-letter="{}" aria-hidden="true"></span>'
        return format_html(form, tint(person.username), letter)
    return format_html(
        '<img class="avatar tint-{}" {} width="{}" height="{}" alt="" loading="lazy" decoding="async">',
        tint(person.username),
        avatar_sources(large, size),
        size,
        size,
    )
