"""Pages by max_id, since_id and min_id, with a Link header.

`max_id` goes down, exclusive, like the site's `last_id`. `since_id` cuts this page off. `min_id` goes up: the entries
directly above it. In the Link `next` is first, because some clients read no further.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode

from django.conf import settings
from django.utils.encoding import escape_uri_path
from rest_framework.request import Request

from clientapi.params import Params
from web.rest import FeedResponse

STATUSES, MOST_STATUSES = 20, 40
PEOPLE, MOST_PEOPLE = 40, 80
ABOVE = ("since_id", "min_id")
PAGING = ("max_id", *ABOVE)


@dataclass(frozen=True, slots=True)
class PageParams:
    """The page that a request asks for."""

    limit: int
    max_id: int | None = None
    since_id: int | None = None
    min_id: int | None = None

    @property
    def goes_up(self) -> bool:
        """Whether the page is the one above `min_id`."""
        return self.min_id is not None

    @property
    def above(self) -> int:
        """The id above which all shown entries are."""
        return max(self.since_id or 0, self.min_id or 0)

    def link_ids(
        self, newest: int | None, oldest: int | None, last: int | None, has_more: bool
    ) -> tuple[int | None, int | None]:
        """The ids of the Link's `next` and `prev`. `last` is the last id checked."""
        if self.min_id is not None:
            return (oldest if oldest is not None else self.min_id + 1), last
        return (last if has_more else None), newest


def page_params(params: Params, *, default: int = STATUSES, most: int = MOST_STATUSES) -> PageParams:
    """The page that the parameters ask for. Raises InvalidError and Problem."""
    limit = params.number("limit", least=1, most=10**9, default=default) or default
    return PageParams(min(limit, most), params.id("max_id"), params.cursor("since_id"), params.cursor("min_id"))


def paged_answer(
    request: Request,
    entries: Any,
    *,
    next_id: object = None,
    prev_id: object = None,
    headers: dict[str, str] | None = None,
) -> FeedResponse:
    """Answer with entries and a Link to the pages beside them. `page_params` has checked the request's parameters.

    `next_id`: where something may follow. `prev_id`: the first entry, or None for the request's lower bound.
    """
    links = []
    if prev_id is None:
        given = [request.query_params.get(name, "").strip() for name in ABOVE]
        prev_id = max(map(int, filter(None, given)), default=None)
    address = _address(request)
    if next_id is not None:
        links.append(f'<{address}max_id={quote_plus(str(next_id))}>; rel="next"')
    if prev_id is not None:
        links.append(f'<{address}min_id={quote_plus(str(prev_id))}>; rel="prev"')
    named = dict(headers or {})
    if links:
        named["Link"] = ", ".join(links)
    return FeedResponse(entries, headers=named)


def _address(request: Request) -> str:
    kept = [(name, value) for name, values in request.query_params.lists() if name not in PAGING for value in values]
    return f"{settings.SITE_URL}{escape_uri_path(request.path)}?{urlencode(kept)}{'&' if kept else ''}"
