"""For every template: the site itself."""

from typing import Any

from django.http import HttpRequest

from about.site import current


def site(request: HttpRequest) -> dict[str, Any]:
    """`site`, whose name stands on every page."""
    return {"site": current()}
