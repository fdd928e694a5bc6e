import re
from collections.abc import Mapping
from typing import Any

from django.urls import URLPattern, URLResolver

from feedsite import urls

API = "api/v1/"


def _patterns(resolver: URLResolver, prefix: str = "") -> list[tuple[str, URLPattern]]:
    found = []
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            found += _patterns(each, prefix + str(each.pattern))
        else:
            found.append((prefix, each))
    return found


def _is_of_clients(resolver: URLResolver) -> bool:
    return str(getattr(resolver.urlconf_name, "__name__", "")).startswith("clientapi.")


ROOMS = [each for each in urls.urlpatterns if isinstance(each, URLResolver) and not str(each.pattern)]
client_patterns: list[tuple[str, URLPattern]] = [
    pattern for room in ROOMS if _is_of_clients(room) for pattern in _patterns(room)
]
_routes = {f"{prefix}{each.pattern}" for prefix, each in client_patterns}
client_patterns = [
    (prefix, each)
    for prefix, each in client_patterns
    if not (route := f"{prefix}{each.pattern}").endswith("/") or route.removesuffix("/") not in _routes
]
"""Each with its prefix, without those that only have a slash at the end. tests/clientapi visits them."""
ROOMS = [room for room in ROOMS if not _is_of_clients(room)]
ALL = [pattern for room in ROOMS for pattern in _patterns(room)]
api_patterns: list[URLPattern] = [each for prefix, each in ALL if prefix == API]
api_routes: list[str] = [str(each.pattern) for each in api_patterns]
"""API routes without their prefix."""
page_patterns: list[URLPattern] = [each for prefix, each in ALL if prefix != API]
page_patterns += [each for _prefix, each in client_patterns if each.name]
page_names: list[str] = [str(each.name) for each in page_patterns]


def address_of(pattern: URLPattern, values: Mapping[str, Any], prefix: str = "") -> str:
    """The address of a route, with these values of its parameters. Where the route lists choices, the first."""
    route = re.sub(r"<\w+:(\w+)>", lambda found: str(values[found[1]]), str(pattern.pattern))
    route = re.sub(
        r"\(\?P<(\w+)>([^()]*)\)",
        lambda found: found[2].split("|")[0] if "|" in found[2] else str(values[found[1]]),
        route,
    )
    return "/" + prefix + route.removeprefix("^").removesuffix("$").removesuffix(r"\Z").replace("\\", "")
