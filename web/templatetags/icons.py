"""The icons of the pages: symbols of one drawing (static/feedsite/icons.svg), in the colour of the text around them."""

from functools import cache

from django import template
from django.templatetags.static import static
from django.utils.html import format_html

register = template.Library()


@register.simple_tag
@cache
def icon(name: str) -> str:
    """The icon of this name, which says nothing to those who do not see it: a word stands beside it."""
    address = static("feedsite/icons.svg")
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', address, name)
