"""How people are shown: their names, and letters and colours in place of pictures."""

from typing import Protocol
from zlib import crc32

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

register = template.Library()

TINTS = 8
"""The colours of site.css, `.tint-0` to `.tint-7`."""


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


@register.simple_tag
def name_of(person: Person, address: str = "") -> SafeString:
    """A person's name, a link if there is an address, and the badge of a big-V. Every name is shown by it."""
    if address:
        return format_html('<a class="name" href="{}">{}</a>{}', address, isolated(person.name), badge_of(person))
    return format_html("{}{}", isolated(person.name), badge_of(person))


@register.filter
def isolated(name: str) -> SafeString:
    """A name in an element of its own writing direction, which reorders nothing of what stands around it."""
    return format_html("<bdi>{}</bdi>", name)


@register.simple_tag
def full_name_of(person: Person) -> SafeString:
    """The display name and the username, as the admin names people."""
    return format_html("{} (@{})", isolated(person.name), person.username)


@register.simple_tag
def handle_of(person: Person) -> SafeString:
    """The username of a user, and the badge of a big-V: the name by which the admin lists people."""
    return format_html("{}{}", person.username, badge_of(person))


@register.simple_tag
def badge_of(person: Person) -> SafeString:
    """The badge of a big-V, for places that show no name but what stands for it; of others nothing."""
    if not person.is_big_v:
        return SafeString()
    return format_html(
        '<svg class="icon badge" width="16" height="16" role="img" aria-label="{}"><use href="{}#badge"></use></svg>',
        _("Big-V"),
        static("feedsite/icons.svg"),
    )


@register.filter
def initial(name: str) -> str:
    """The first letter or digit of a name; a name of signs gives its first sign."""
    return next((letter for letter in name if letter.isalnum()), name[:1]).upper()


@register.filter
def tint(username: str) -> int:
    """The colour of a user, the same on every page."""
    return crc32(username.encode()) % TINTS
