from typing import Any

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from discover import feed
from items.bodies import ItemBody
from web.rest import PAGE, PAGE_LIMIT, ApiView, FeedResponse, StrictSerializer, TextField, body

REQUEST_ID_LENGTH = 64
FEED_SOURCE = OpenApiParameter(
    "X-Feed-Source",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="What served the page: cache, recall, issued (a repeated call); no-dedup where what the caller has "
    "seen within the week was not known.",
)


class DiscoverItem(ItemBody, kw_only=True):
    """An item with `update_time` of the smart feed protocol: `modified_at` in whole seconds since 1970."""

    update_time: int


class DiscoverData(msgspec.Struct):
    """A page of the feed. If `has_more` is false, `load_more` starts a new recall."""

    items: list[DiscoverItem]
    has_more: bool


class DiscoverAnswer(msgspec.Struct):
    """The envelope of the smart feed protocol. `code` is 0."""

    code: int
    msg: str
    data: DiscoverData


class CountField(serializers.IntegerField):
    """How many items to list."""

    def to_internal_value(self, data: Any) -> int:
        """The number, at most `PAGE_LIMIT`. Raises ValidationError."""
        if not isinstance(data, int) or isinstance(data, bool) or data < 1:
            raise serializers.ValidationError("Send a whole number from 1. More than 100 count as 100.")
        return min(data, PAGE_LIMIT)


class PullSerializer(StrictSerializer):
    """One pull of the feed. Repeating a `request_id` within a day returns the same page."""

    action = serializers.ChoiceField(choices=["refresh", "load_more"])
    limit = CountField(default=PAGE, min_value=1)
    request_id = TextField(max_length=REQUEST_ID_LENGTH, required=False)


class DiscoverView(ApiView):
    scopes = "read:statuses"
    only_reads = True
    rates = {"POST": "discover"}

    @extend_schema(
        operation_id="pull_discover", parameters=[FEED_SOURCE], request=PullSerializer, responses={200: DiscoverAnswer}
    )
    def post(self, request: Request) -> HttpResponse:
        """Items that the caller may like and has not seen. `refresh` starts a new recall, `load_more` continues."""
        reader, pull = authenticated_user(request), body(request, PullSerializer)
        serve = feed.refresh if pull["action"] == "refresh" else feed.load_more
        page = serve(reader, limit=pull["limit"], request_id=pull.get("request_id"))
        return FeedResponse(
            DiscoverAnswer(0, "success", DiscoverData([_discover_item(one) for one in page.items], page.has_more)),
            headers={"X-Feed-Source": ",".join(page.sources)},
        )


def _discover_item(one: ItemBody) -> DiscoverItem:
    return DiscoverItem(*msgspec.structs.astuple(one), update_time=int(one.modified_at.timestamp()))
