from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from accounts.models import QuotableBy, RepliableBy, User
from accounts.rest.accounts import Refusal
from items import scheduling
from items.bodies import Object
from items.models import AUTHORED, ScheduledPost, Visibility
from items.rest.items import REFUSED, NewItem, resolve_ids
from items.text import TITLE_LENGTH
from media.objects import MediaObject
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
from web.times import Time


class ScheduledBody(msgspec.Struct):
    """A scheduled post. `failure`: why it was not published, else null."""

    id: str
    publish_at: Time
    failure: str | None
    type: str
    title: str
    content: Object
    extra_info: Object
    media: list[MediaObject]
    visibility: str
    reply_to: str | None
    quote_of: str | None
    quotable_by: str | None
    """Null: as the sender's settings say at the time."""
    repliable_by: str
    created_at: Time


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


def _bodies(posts: Iterable[ScheduledPost], sender: User) -> list[ScheduledBody]:
    posts = list(posts)
    media = scheduling.media_of(sender, posts)
    return [_body(post, media[post.pk]) for post in posts]


def _body(post: ScheduledPost, media: list[MediaObject]) -> ScheduledBody:
    written = post.post
    content, extra_info = (msgspec.Raw(msgspec.json.encode(written[name])) for name in ("content", "extra_info"))
    reply_to, quote_of = (str(written[name]) if written[name] else None for name in ("reply_to", "quote_of"))
    return ScheduledBody(
        id=str(post.pk),
        publish_at=post.publish_at,
        failure=post.failure or None,
        type=written["type"],
        title=written["title"],
        content=content,
        extra_info=extra_info,
        media=media,
        visibility=written["visibility"],
        reply_to=reply_to,
        quote_of=quote_of,
        quotable_by=written["quotable_by"],
        repliable_by=written.get("repliable_by") or RepliableBy.EVERYONE,
        created_at=post.created_at,
    )


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
        return FeedResponse(ScheduledPage(_bodies(page.shown, sender), as_text(page.last_id), page.has_more))

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
        return FeedResponse(_bodies([post], sender)[0], status=201)


class ScheduledPostView(ApiView):
    scopes = "statuses"

    @extend_schema(operation_id="read_scheduled", responses={200: ScheduledBody})
    def get(self, request: Request, scheduled_id: int) -> HttpResponse:
        """A scheduled post."""
        sender = authenticated_user(request)
        return FeedResponse(_bodies([scheduling.own_post(sender, scheduled_id)], sender)[0])

    @extend_schema(operation_id="edit_scheduled", request=ScheduledEdit, responses={200: ScheduledBody})
    def patch(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Change a scheduled post. Omitted fields stay. A failed one waits again."""
        sender = authenticated_user(request)
        post = scheduling.own_post(sender, scheduled_id)
        fields = body(request, ScheduledEdit)
        if fields:
            post = scheduling.change(sender=sender, post_id=post.pk, **fields)
        return FeedResponse(_bodies([post], sender)[0])

    @extend_schema(operation_id="cancel_scheduled", responses={204: None})
    def delete(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Delete a scheduled post."""
        scheduling.cancel(sender=authenticated_user(request), post_id=scheduled_id)
        return HttpResponse(status=204)
