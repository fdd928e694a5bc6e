"""How people are shown: their names and their avatars."""

from typing import NamedTuple, Protocol

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.avatars import drawn_url, letter_of_name, tint
from accounts.avatars import small as small_url


class Person(Protocol):
    """A user, or a card of one."""

    @property
    def name(self) -> str:
        """The name that people read."""
        ...

    @property
    def username(self) -> str:
        """The username."""
        ...

    @property
    def is_big_v(self) -> bool:
        """Whether the user has the badge."""
        ...

    @property
    def avatar_url(self) -> str:
        """The address of the avatar; empty where it is not known."""
        ...


class Face(NamedTuple):
    """A person as a card shows them, in plain strings."""

    address: str
    name: str
    username: str
    is_big_v: bool
    small: str
    """The address of the small avatar."""
    large: str
    tint: int
    letter: str
    """The letter of a drawn avatar; empty where it is a picture."""


def face(person: Person) -> Face:
    """The face of a person."""
    drawn = drawn_url(person.username, person.name)
    large = person.avatar_url or drawn
    names = (profile_address(person.username), person.name, person.username)
    letter = letter_of_name(person.name) if large == drawn else ""
    return Face(*names, person.is_big_v, small_url(large), large, tint(person.username), letter)


def profile_address(username: str) -> str:
    """The address of a user's profile; usernames need no quoting (accounts/naming.py)."""
    return f"/@{username}"


def name_of(person: Person, address: str = "") -> SafeString:
    """A person's name, a link if there is an address, and the badge of a big-V. Every name is shown by it."""
    if address:
        return format_html('<a class="name" href="{}">{}{}</a>', address, isolated(person.name), badge_of(person))
    return format_html("{}{}", isolated(person.name), badge_of(person))


def isolated(name: str) -> SafeString:
    """A name in an element of its own writing direction, which reorders nothing of what stands around it."""
    return format_html("<bdi>{}</bdi>", name)


def full_name_of(person: Person) -> SafeString:
    """The display name and the username, as the admin names people."""
    return format_html("{} (@{})", isolated(person.name), person.username)


def handle_of(person: Person) -> SafeString:
    """The username of a user, and the badge of a big-V: the name by which the admin lists people."""
    return format_html("{}{}", person.username, badge_of(person))


def badge_of(person: Person) -> SafeString:
    """The badge of a big-V, for places that show no name but what stands for it; of others nothing."""
    if not person.is_big_v:
        return SafeString()
    return badge()


def badge() -> SafeString:
    """The badge of a big-V."""
    return format_html(
        '<svg class="icon badge" width="16" height="16" role="img" aria-label="{}"><use href="{}#badge"></use></svg>',
        _("Big account"),
        static("feedsite/icons.svg"),
    )


def lock_of(person: Person) -> SafeString:
    """The sign of an account whose user decides on each follower; of others, and where it is not known, nothing."""
    if not getattr(person, "is_locked", False):
        return SafeString()
    return format_html(
        '<svg class="icon lock" width="16" height="16" role="img" aria-label="{}"><use href="{}#lock"></use></svg>',
        _("Decides on each follower"),
        static("feedsite/icons.svg"),
    )


def avatar(person: Person, size: int = 42) -> SafeString:
    """The avatar of a person, `size` pixels wide unless the style sheet says otherwise. It says nothing to readers who
    do not see it: the name stands beside it. Its place is kept, in the person's colour, until it is loaded. One that is
    a letter is drawn by site.css, without a request.
    """
    drawn = drawn_url(person.username, person.name)
    large = person.avatar_url or drawn
    letter = letter_of_name(person.name)
    if letter and large == drawn:
        form = '<span class="avatar tint-{}" data-letter="{}" aria-hidden="true"></span>'
        return format_html(form, tint(person.username), letter)
    small = small_url(large)
    sources = (
        SafeString() if small == large else format_html(' srcset="{} 160w, {} 400w" sizes="{}px"', small, large, size)
    )
    return format_html(
        '<img class="avatar tint-{}" src="{}"{} width="{}" height="{}" alt="" loading="lazy" decoding="async">',
        tint(person.username),
        small,
        sources,
        size,
        size,
    )
