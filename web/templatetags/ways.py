"""Ways between the pages."""

from typing import Any

from django import template
from django.http import HttpRequest

from web.pages import ENTRANCES, next_page

register = template.Library()


@register.simple_tag(takes_context=True)
def came_from(context: dict[str, Any]) -> str:
    """Where a stranger goes on after signing in: this page, on the pages that sign in the one before; "" for home."""
    request: HttpRequest = context["request"]
    match = request.resolver_match
    if match is None or match.url_name == "first-admin":
        return ""
    address = next_page(request) if match.url_name in ENTRANCES else request.get_full_path()
    return "" if address == "/" else address
