"""`about` and `announcement` for every template."""

from typing import Any

from django.http import HttpRequest

from accounts.about import announcing
from accounts.about.site import current


def site(request: HttpRequest) -> dict[str, Any]:
    """The site, and the announcement unless dismissed."""
    here = current()
    return {"about": here, "announcement": announcing.undismissed_news(request, here.news)}
