from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpResponse
from django.http.request import split_domain_port, validate_host
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from accounts.models import User
from accounts.signing_in.grants import (
    Grant,
    Ticket,
    TicketAuthentication,
    grant_of,
    issue_ticket,
    read_ticket,
    source_token_id,
)
from storage.events import Listener, Position
from stream.dialects import Dialect, ListenerProtocol
from stream.news import PAGES
from web.rest import MAX_POSITION, ApiView, OutageError, position, single_parameter

ITEM = OpenApiParameter(
    "item",
    {"type": "integer", "minimum": 1, "maximum": MAX_POSITION},
    description="Also tell of this item and of the replies to it: of a conversation's id, of its messages.",
)
SESSION = OpenApiParameter(
    "session",
    {"type": "integer", "minimum": 1, "maximum": MAX_POSITION},
    description="Also tell of this live session.",
)
LAST_EVENT_ID = OpenApiParameter(
    "last_event_id", str, description="Go on after this event; the header is meant for browsers, and wins."
)
LAST_EVENT_ID_HEADER = OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER)
WATCHED = ("item", "session")
"""The parameters that name an open page, in the order of `Listener`."""
TICKET = OpenApiParameter("ticket", str, description="As a redirect gave it.")


Answer = Callable[[Any, str], tuple[Any, bytes]]
"""Answers a message of a socket's client. Returns the connection's new hearer, and the bytes to write."""


class OpenStreamResponse(HttpResponse):
    """Tells the stream process to open a connection."""

    def __init__(
        self,
        grant: Grant,
        listener: ListenerProtocol,
        dialect: Dialect = PAGES,
        *,
        since: Position | None = None,
        origin: str = "",
        answer: Answer | None = None,
    ) -> None:
        super().__init__()
        self.grant = grant
        self.listener = listener
        self.dialect = dialect
        self.since = since
        self.origin = origin
        self.answer = answer


class StreamView(ApiView):
    """Decides who may listen. Only the stream process opens the connection."""

    authentication_classes = [*ApiView.authentication_classes, TicketAuthentication]

    @extend_schema(
        operation_id="stream",
        parameters=[ITEM, SESSION, LAST_EVENT_ID, LAST_EVENT_ID_HEADER, TICKET],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                {"type": "string"},
                "Events `item`, `edit`, `delete` (data: the item's id), `live` (data: id, state and version of a "
                "followed host's session), `notification`; `reset`: what happened up to here has to be asked for. "
                "A comment line every 15 seconds.",
            ),
            307: OpenApiResponse(None, "Where the stream is, with a ticket for it."),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """The events of the caller's home timeline, as they happen. Also new items of members of exclusive lists,
        marked `exclusive`.
        """
        reader, since = authenticated_user(request), last_event_id(request)
        listener = Listener(reader.pk, position(request, "item") or 0, position(request, "session") or 0)
        ticket = single_parameter(request.GET, "ticket")
        if getattr(request._request, "keeps_lines_open", False):
            origin = origin_of(read_ticket(ticket), reader)
            return OpenStreamResponse(grant_of(request, reader), listener, since=since, origin=origin)
        if not settings.STREAM_PORT or isinstance(request.auth, Ticket):
            raise OutageError
        host, _ = split_domain_port(request.get_host())
        query = {"ticket": issue_ticket(user=reader, origin=own_origin(request), token=source_token_id(request))}
        query |= {name: str(place) for name, place in zip(WATCHED, listener[1:], strict=True) if place}
        if since:
            query["last_event_id"] = str(since)
        place = f"{request.scheme}://{host}:{settings.STREAM_PORT}{request.path}?{urlencode(query)}"
        return HttpResponse(status=307, headers={"Location": place})


def own_origin(request: Request) -> str:
    """The request's origin, as browsers write it."""
    return f"{request.scheme}://{request.get_host()}"


def origin_of(ticket: Ticket | None, reader: User) -> str:
    """The ticket's origin, whose pages may read the stream. Empty for another user's ticket, or a foreign origin."""
    if ticket is None or ticket.user_id != reader.pk:
        return ""
    place = urlsplit(ticket.origin)
    if settings.STREAM_ORIGINS:
        is_ours = ticket.origin in settings.STREAM_ORIGINS
    else:
        is_ours = validate_host(place.hostname or "", settings.ALLOWED_HOSTS)
    return ticket.origin if is_ours else ""


def last_event_id(request: Request) -> Position | None:
    """The event after which to resume. Raises ValidationError."""
    text = single_parameter(request.GET, "last_event_id")
    text = request.headers.get("Last-Event-ID") or text
    try:
        return Position.parse(text) if text else None
    except ValueError:
        raise serializers.ValidationError({"last_event_id": ["The id of an event, as the stream sent it."]}) from None
