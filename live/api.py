from collections.abc import Mapping
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user, reader_of
from accounts.models import User
from live import actions
from live.hydrate import SessionBody, SessionPage, find_session, own_session, sessions_of, visible_session
from live.models import TITLE_LENGTH, LiveSession
from relations.visibility import visible_user
from web.openapi import EMPTY_BODY
from web.rest import (
    ApiView,
    FeedResponse,
    FlagField,
    MomentField,
    Nothing,
    NumberField,
    Problem,
    PublicApiView,
    StrictSerializer,
    TextField,
    body,
    parse_id,
)

URL_LENGTH = 2000
RATES: Mapping[str, str] = {"POST": "live", "PATCH": "live", "DELETE": "live"}


class StateProblem(msgspec.Struct):
    """The session's state does not allow this. `state` is the current one."""

    detail: str
    state: str


WRONG_STATE = OpenApiResponse(StateProblem, "The session's state does not allow that.")


@extend_schema_field({"type": "string", "nullable": True})
class MediumField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """A medium's id as text."""

    def to_internal_value(self, data: Any) -> int:
        """An id; 0 if invalid, which no medium has."""
        if not isinstance(data, str):
            raise serializers.ValidationError("Send the id of a picture as text, or null.")
        return parse_id(data) or 0

    def to_representation(self, value: int) -> str:
        """The id as text."""
        return str(value)


class NewSession(StrictSerializer):
    """A session to plan. An automatic one starts at `starts_at` and ends `minutes` later. `cover`: an unused picture of
    the caller.
    """

    title = TextField(max_length=TITLE_LENGTH)
    starts_at = MomentField()
    url = TextField(max_length=URL_LENGTH, allow_blank=True, default="")
    cover_url = TextField(max_length=URL_LENGTH, allow_blank=True, default="")
    cover = MediumField(source="cover_id", allow_null=True, default=None)
    automatic = FlagField(default=False)
    minutes = NumberField(default=60, min_value=1, max_value=actions.LONGEST_MINUTES)


class SessionEdit(StrictSerializer):
    """Changes of a session. `starts_at`, `automatic` and `minutes` cannot change after the start. `cover`: a picture,
    or null for none.
    """

    title = TextField(max_length=TITLE_LENGTH, required=False)
    starts_at = MomentField(required=False)
    url = TextField(max_length=URL_LENGTH, allow_blank=True, required=False)
    cover_url = TextField(max_length=URL_LENGTH, allow_blank=True, required=False)
    cover = MediumField(source="cover_id", allow_null=True, required=False)
    automatic = FlagField(required=False)
    minutes = NumberField(required=False, min_value=1, max_value=actions.LONGEST_MINUTES)


def session_response(session: LiveSession, reader: User, status: int = 200) -> FeedResponse:
    """The session as the reader sees it."""
    return FeedResponse(find_session(session.pk, reader), status=status)


class LiveSessionsView(ApiView):
    scopes = "statuses"
    rates = RATES

    @extend_schema(
        operation_id="create_live_session",
        request=NewSession,
        responses={201: SessionBody, 409: OpenApiResponse(Problem, "The caller has as many planned as one may.")},
    )
    def post(self, request: Request) -> HttpResponse:
        """Plan a session. It is in followers' feeds at once, unless moderators must review it first (`review`)."""
        host = authenticated_user(request)
        fields = body(request, NewSession)
        session = actions.create(host=host, now=timezone.now(), **fields)
        return session_response(session, host, 201)


class LiveSessionView(PublicApiView):
    scopes = "statuses"
    rates = RATES

    @extend_schema(operation_id="read_live_session", responses={200: SessionBody})
    def get(self, request: Request, session_id: int) -> HttpResponse:
        """One session in its current state."""
        return FeedResponse(visible_session(session_id, reader_of(request)))

    @extend_schema(
        operation_id="edit_live_session", request=SessionEdit, responses={200: SessionBody, 409: WRONG_STATE}
    )
    def patch(self, request: Request, session_id: int) -> HttpResponse:
        """Change your own session. Omitted fields stay."""
        session = own_session(session_id, authenticated_user(request))
        fields = body(request, SessionEdit)
        session = actions.edit(session=session, now=timezone.now(), **fields)
        return session_response(session, authenticated_user(request))

    @extend_schema(operation_id="cancel_live_session", responses={204: None, 409: WRONG_STATE})
    def delete(self, request: Request, session_id: int) -> HttpResponse:
        """Cancel your own upcoming session."""
        session = own_session(session_id, authenticated_user(request))
        actions.cancel(session=session, now=timezone.now())
        return HttpResponse(status=204)


class StartView(ApiView):
    scopes = "statuses"
    rates = RATES

    @extend_schema(
        operation_id="start_live_session", request=EMPTY_BODY, responses={200: SessionBody, 409: WRONG_STATE}
    )
    def post(self, request: Request, session_id: int) -> HttpResponse:
        """Go live with your own upcoming session, at any time."""
        session = own_session(session_id, authenticated_user(request))
        body(request, Nothing)
        session = actions.start(session=session, now=timezone.now())
        return session_response(session, authenticated_user(request))


class EndView(ApiView):
    scopes = "statuses"
    rates = RATES

    @extend_schema(operation_id="end_live_session", request=EMPTY_BODY, responses={200: SessionBody, 409: WRONG_STATE})
    def post(self, request: Request, session_id: int) -> HttpResponse:
        """End your own live session. It becomes a replay."""
        session = own_session(session_id, authenticated_user(request))
        body(request, Nothing)
        session = actions.end(session=session, now=timezone.now())
        return session_response(session, authenticated_user(request))


class ReminderView(ApiView):
    """The caller's reminder of a session."""

    scopes = "statuses"

    @extend_schema(operation_id="remind_of_live_session", request=None, responses={204: None, 409: WRONG_STATE})
    def put(self, request: Request, session_id: int) -> HttpResponse:
        """Get a notification when an upcoming session starts."""
        user = authenticated_user(request)
        actions.remind(user=user, session=LiveSession(pk=int(visible_session(session_id, user).id)))
        return HttpResponse(status=204)

    @extend_schema(operation_id="forget_live_reminder", responses={204: None})
    def delete(self, request: Request, session_id: int) -> HttpResponse:
        """Remove the reminder."""
        user = authenticated_user(request)
        if not actions.forget_reminder(user=user, session=LiveSession(pk=session_id)):
            visible_session(session_id, user)
        return HttpResponse(status=204)


class UserSessionsView(PublicApiView):
    scopes = "statuses"
    pages_of = SessionPage

    @extend_schema(operation_id="list_user_live_sessions")
    def get(self, request: Request, username: str) -> HttpResponse:
        """A user's upcoming, live and recorded sessions, newest first. Your own include cancelled and missed ones."""
        reader = reader_of(request)
        host = visible_user(username, reader)
        return FeedResponse(sessions_of(host, reader, **self.bounds))
