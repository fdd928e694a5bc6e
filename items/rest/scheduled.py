from collections.abc import Mapping
from operator import attrgetter

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from accounts.models import QuotableBy, RepliableBy
from accounts.rest.accounts import Refusal
from items import scheduling
from items.models import AUTHORED, Visibility
from items.rest.items import REFUSED, NewItem, resolve_ids
from items.rest.scheduled_bodies import ScheduledBody, scheduled_bodies
from items.text import TITLE_LENGTH
from storage.paging import as_text, below, part_of
from web.openapi import IDEMPOTENCY_KEY
from web.rest import (
    ApiView,
    FeedResponse,
    MomentField,
    ObjectField,
    Problem,
    StrictSerializer,
    TextField,
    body,
    idempotency_key,
)


class ScheduledPage(msgspec.Struct):
    """Scheduled posts, the last scheduled first."""

    items: list[ScheduledBody]
    last_id: str | None
    has_more: bool


class NewScheduled(NewItem):
    """A post to publish at `publish_at`, from 5 minutes to 366 days from now."""

    publish_at = MomentField()


class ScheduledEdit(StrictSerializer):
    """Changes of a scheduled post. Omitted fields stay as they are."""

    publish_at = MomentField(required=False)
    type = serializers.ChoiceField(AUTHORED, required=False)
    title = TextField(max_length=TITLE_LENGTH, allow_blank=True, required=False)
    content = ObjectField(required=False)
    extra_info = ObjectField(required=False)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    quotable_by = serializers.ChoiceField(QuotableBy.choices, required=False, allow_null=True)
    repliable_by = serializers.ChoiceField(RepliableBy.choices, required=False)


class ScheduledPostsView(ApiView):
    scopes = "statuses"
    pages_of = ScheduledPage
    rates: Mapping[str, str] = {"POST": "publish"}

    @extend_schema(operation_id="list_scheduled")
    def get(self, request: Request) -> HttpResponse:
        """The caller's scheduled posts, the last scheduled first."""
        sender = authenticated_user(request)
        own = sorted(scheduling.scheduled_of(sender), key=attrgetter("pk"), reverse=True)
        found = [post for post in own if post.pk < below(self.bounds["last_id"])]
        page = part_of(found, self.bounds["limit"], attrgetter("pk"))
        return FeedResponse(ScheduledPage(scheduled_bodies(page.shown, sender), as_text(page.last_id), page.has_more))

    @extend_schema(
        operation_id="schedule",
        parameters=[IDEMPOTENCY_KEY],
        request=NewScheduled,
        responses={
            201: ScheduledBody,
            403: OpenApiResponse(Refusal, REFUSED),
            404: OpenApiResponse(Problem, "The caller may not see the quoted item."),
            409: OpenApiResponse(Problem, "The key was used for something else, or the caller has too many."),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        """Schedule a post. Rules and audiences are asked at its time."""
        sender = authenticated_user(request)
        fields = body(request, NewScheduled)
        resolve_ids(fields, sender)
        post = scheduling.schedule(sender=sender, idempotency_key=idempotency_key(request), **fields)
        return FeedResponse(scheduled_bodies([post], sender)[0], status=201)


class ScheduledPostView(ApiView):
    scopes = "statuses"

    @extend_schema(operation_id="read_scheduled", responses={200: ScheduledBody})
    def get(self, request: Request, scheduled_id: int) -> HttpResponse:
        """A scheduled post."""
        sender = authenticated_user(request)
        return FeedResponse(scheduled_bodies([scheduling.own_post(sender, scheduled_id)], sender)[0])

    @extend_schema(operation_id="edit_scheduled", request=ScheduledEdit, responses={200: ScheduledBody})
    def patch(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Change a scheduled post. Omitted fields stay. A failed one waits again."""
        sender = authenticated_user(request)
        post = scheduling.own_post(sender, scheduled_id)
        fields = body(request, ScheduledEdit)
        if fields:
            post = scheduling.change(sender=sender, post_id=post.pk, **fields)
        return FeedResponse(scheduled_bodies([post], sender)[0])

    @extend_schema(operation_id="cancel_scheduled", responses={204: None})
    def delete(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Delete a scheduled post."""
        scheduling.cancel(sender=authenticated_user(request), post_id=scheduled_id)
        return HttpResponse(status=204)
