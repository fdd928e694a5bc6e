"""Scheduled statuses, also those whose publishing failed. A new time lets these wait again."""

from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework.request import Request

from accounts.models import User
from clientapi.entities import QUOTE_POLICIES, SHOWN_AS, Attachment, time_text
from clientapi.errors import ClientView, InvalidError, caller_of, empty_answer
from clientapi.paging import page_params, paged_answer
from clientapi.params import Params
from items import scheduling
from items.models import ScheduledPost
from items.text import poll_end
from storage.paging import below
from web.rest import FeedResponse


class ScheduledParams(msgspec.Struct):
    """What a scheduled status will be, by the names of the request."""

    text: str
    media_ids: list[str] | None
    sensitive: bool | None
    spoiler_text: str | None
    visibility: str
    in_reply_to_id: int | None
    quoted_status_id: str | None
    quote_approval_policy: str | None
    language: str | None
    poll: dict[str, Any] | None
    scheduled_at: None = None
    idempotency: None = None
    application_id: int = 0
    with_rate_limit: bool = False


class ScheduledStatus(msgspec.Struct):
    """A status that waits for its time."""

    id: str
    scheduled_at: str
    params: ScheduledParams
    media_attachments: list[Attachment]


def scheduled_statuses(posts: Iterable[ScheduledPost], sender: User) -> list[ScheduledStatus]:
    """The scheduled posts as Mastodon's. One query, if they have media."""
    posts = list(posts)
    media = scheduling.media_of(sender, posts)
    return [
        ScheduledStatus(
            str(post.pk),
            time_text(_time(post)),
            _params(post, sender),
            [Attachment.of(one) for one in media[post.pk]],
        )
        for post in posts
    ]


def _params(row: ScheduledPost, sender: User) -> ScheduledParams:
    post, content = row.post, row.post["content"]
    return ScheduledParams(
        text=content.get("text", ""),
        media_ids=content.get("media") or None,
        sensitive=content.get("sensitive"),
        spoiler_text=content.get("warning"),
        visibility=SHOWN_AS[post["visibility"]],
        in_reply_to_id=post["reply_to"],
        quoted_status_id=str(post["quote_of"]) if post["quote_of"] else None,
        quote_approval_policy=QUOTE_POLICIES[post["quotable_by"] or sender.quotable_by],
        language=content.get("language") or None,
        poll=_poll(content["poll"], _time(row)) if "poll" in content else None,
    )


def _time(post: ScheduledPost) -> datetime:
    """The post's time. One that comes out when its video is ready is always due."""
    return post.publish_at or post.created_at


def _poll(poll: dict[str, Any], publish_at: datetime) -> dict[str, Any]:
    """The poll as a request has it."""
    lasts = poll["closes_in"] if "closes_in" in poll else int((poll_end(poll) - publish_at).total_seconds())
    is_multiple = poll.get("multiple", False)
    return {"options": poll["options"], "expires_in": lasts, "multiple": is_multiple, "hide_totals": False}


def scheduled_at(params: Params) -> datetime | None:
    """The time for publishing, or None if not sent. Without a zone it is UTC. Raises InvalidError."""
    text = params.text("scheduled_at", most=64).strip()
    if not text:
        return None
    try:
        sent = datetime.fromisoformat(text)
        return sent.replace(tzinfo=UTC) if sent.tzinfo is None else sent.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidError("Validation failed: Scheduled at is not a time in ISO 8601") from error


class ScheduledStatusesView(ClientView):
    scopes = "statuses"

    def get(self, request: Request) -> HttpResponse:
        """List the scheduled statuses, the last scheduled first."""
        sender, asked = caller_of(request), page_params(Params(request))
        own = [post for post in scheduling.scheduled_of(sender) if asked.above < post.pk < below(asked.max_id)]
        found = sorted(own, key=attrgetter("pk"), reverse=not asked.goes_up)
        shown = sorted(found[: asked.limit], key=attrgetter("pk"), reverse=True)
        newest, oldest = (shown[0].pk, shown[-1].pk) if shown else (None, None)
        last = newest if asked.goes_up else oldest
        next_id, prev_id = asked.link_ids(newest, oldest, last, len(found) > asked.limit)
        return paged_answer(request, scheduled_statuses(shown, sender), next_id=next_id, prev_id=prev_id)


class ScheduledStatusView(ClientView):
    scopes = "statuses"
    takes_bodies = frozenset({"PUT"})

    def get(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Return the status."""
        sender = caller_of(request)
        return FeedResponse(scheduled_statuses([scheduling.own_post(sender, scheduled_id)], sender)[0])

    def put(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Change the time."""
        sender = caller_of(request)
        post = scheduling.own_post(sender, scheduled_id)
        publish_at = scheduled_at(Params(request))
        if publish_at:
            post = scheduling.change(sender=sender, post_id=post.pk, publish_at=publish_at)
        return FeedResponse(scheduled_statuses([post], sender)[0])

    def delete(self, request: Request, scheduled_id: int) -> HttpResponse:
        """Delete the scheduled status."""
        scheduling.cancel(sender=caller_of(request), post_id=scheduled_id)
        return empty_answer()
