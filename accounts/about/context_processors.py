"""For every template: the site itself, and what it announces."""

from typing import Any

from django.http import HttpRequest

from accounts.about import announcing
from accounts.about.site import current


def site(request: HttpRequest) -> dict[str, Any]:
    """`about`, the site, whose name stands on every page, and `announcement`, which this browser has not dismissed."""
    here = current()
    return {"about": here, "announcement": announcing.for_browser(request, here.news)}
