"""Notifications over HTTP, and the marks up to which the caller has read."""

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.models import User
from clientapi import notices
from clientapi.entities import moment
from clientapi.errors import ClientView, InvalidError, caller_of
from clientapi.paging import MOST_PEOPLE, PEOPLE, answer, wanted
from clientapi.params import Params
from notifications import actions
from notifications.models import ReadMark
from notifications.ungrouped import ToldAct
from storage import ids
from storage.queue import enqueue
from timeline.models import ReadingPosition
from timeline.position import note_position
from web.rest import FeedResponse, parse_id

TYPES = 50
"""Names of types that a call may give."""


class NotificationsView(ClientView):
    """The caller's notifications, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """Acts of others that concern the caller, newest first. Reading marks nothing as read."""
        reader, params = caller_of(request), Params(request)
        chosen = notices.Chosen(
            frozenset(params.words("types")[:TYPES]),
            frozenset(params.words("exclude_types")[:TYPES]),
            params.id("account_id"),
        )
        page = notices.page(reader, wanted(params, default=PEOPLE, most=MOST_PEOPLE), chosen)
        shown = notices.presented(page.acts, reader)
        return answer(request, shown, next_id=page.next_id, prev_id=page.prev_id)


class UnreadView(ClientView):
    """How many notifications are unread, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The number of those that are newer than the mark."""
        return FeedResponse({"count": notices.unread(caller_of(request))})


class NotificationView(ClientView):
    """One notification, over HTTP."""

    def get(self, request: Request, notification_id: str) -> HttpResponse:
        """The notification of this id."""
        reader = caller_of(request)
        shown = notices.presented([notice_or_404(notification_id, reader)], reader)
        if not shown:  # the account was deleted meanwhile
            raise exceptions.NotFound
        return FeedResponse(shown[0])


def notice_or_404(text: str, reader: User) -> ToldAct:
    """The notification of this id. Raises NotFound."""
    number = parse_id(text)
    found = notices.one(reader, number) if number else None
    if found is None:
        raise exceptions.NotFound
    return found


class ClearView(ClientView):
    """All of the caller's notifications, which are put away, over HTTP."""

    def post(self, request: Request) -> HttpResponse:
        """Put all away but what moderators tell, which apps are not shown; a worker goes on where they are many."""
        reader = caller_of(request)
        rest = actions.put_away(user=reader)
        if rest is not None:
            enqueue("notifications.put_away", reader.pk, rest)
        return FeedResponse({})


class DismissView(ClientView):
    """One notification, which is put away, over HTTP."""

    def post(self, request: Request, notification_id: str) -> HttpResponse:
        """Put the notification of this id away."""
        reader = caller_of(request)
        actions.put_away_act(user=reader, act_id=notice_or_404(notification_id, reader).id)
        return FeedResponse({})


# --- Marks -----------------------------------------------------------------------------------------------
class Marker(msgspec.Struct):
    """Up to where the caller has read a timeline."""

    last_read_id: str
    version: int
    updated_at: str


def _markers(reader: User) -> dict[str, Marker]:
    found = {}
    position = ReadingPosition.objects.filter(reader=reader).first()
    if position is not None:
        found["home"] = Marker(str(position.item_id), 0, moment(position.updated_at))
    mark = ReadMark.objects.filter(user=reader).first()
    if mark is not None and mark.up_to:
        found["notifications"] = Marker(str(mark.up_to), 0, moment(ids.moment(mark.up_to)))
    return found


class MarkersView(ClientView):
    """The caller's marks, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The marks of these timelines, as far as there are any."""
        asked = Params(request).words("timeline")
        return FeedResponse({name: mark for name, mark in _markers(caller_of(request)).items() if name in asked})

    def post(self, request: Request) -> HttpResponse:
        """Set marks: of home the place at which the site offers to go on, of notifications what is unread."""
        reader, params = caller_of(request), Params(request)
        named: dict[str, int] = {
            name: number for name in ("home", "notifications") if (number := params.part(name).id("last_read_id"))
        }
        if not named:
            raise InvalidError("Validation failed: home[last_read_id] or notifications[last_read_id] must be sent")
        if "home" in named:
            note_position(reader=reader, item_id=named["home"])
        if "notifications" in named:
            actions.mark_read(user=reader, up_to=named["notifications"])
        found = _markers(reader)
        return FeedResponse({name: found[name] for name in named if name in found})
