"""Notifications over HTTP, and the marks up to which the caller has read."""

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.models import User
from clientapi import groups, notices
from clientapi.entities import moment
from clientapi.errors import ClientView, InvalidError, caller_of
from clientapi.paging import MOST_PEOPLE, PEOPLE, answer, wanted
from clientapi.params import Params
from clientapi.people import accounts_by_id
from notifications import actions
from notifications.models import ReadMark
from notifications.ungrouped import ToldAct
from storage import ids
from storage.queue import enqueue
from timeline.models import ReadingPosition
from timeline.position import note_position
from web.rest import FeedResponse, parse_id

EXPANSIONS = ("full", "partial_avatars")
TYPES = 50
"""Names of types that a call may give."""


class NotificationsView(ClientView):
    """The caller's notifications, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """Acts of others that concern the caller, newest first. Reading marks nothing as read."""
        reader, params = caller_of(request), Params(request)
        page = notices.page(reader, wanted(params, default=PEOPLE, most=MOST_PEOPLE), _chosen(params))
        shown = notices.presented(page.acts, reader)
        return answer(request, shown, next_id=page.next_id, prev_id=page.prev_id)


def _chosen(params: Params) -> notices.Chosen:
    return notices.Chosen(
        frozenset(params.words("types")[:TYPES]),
        frozenset(params.words("exclude_types")[:TYPES]),
        params.id("account_id"),
    )


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


# --- Groups ----------------------------------------------------------------------------------------------
class GroupsView(ClientView):
    """The caller's notifications by groups, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """Groups of acts of others that concern the caller, newest first. Reading marks nothing as read."""
        reader, params = caller_of(request), Params(request)
        asked = wanted(params, default=PEOPLE, most=MOST_PEOPLE)
        grouped = _grouped(params)
        is_partial = params.choice("expand_accounts", EXPANSIONS, default=EXPANSIONS[0]) != EXPANSIONS[0]
        found, page = groups.page(reader, asked, _chosen(params), grouped)
        body = groups.presented(found, reader, is_partial=is_partial)
        return answer(request, body, next_id=page.next_id, prev_id=page.prev_id)


def _grouped(params: Params) -> frozenset[str]:
    """The types that the caller wants grouped."""
    return frozenset(params.words("grouped_types")[:TYPES]) if "grouped_types" in params else groups.GROUPED


class GroupView(ClientView):
    """One group of notifications, over HTTP."""

    def get(self, request: Request, group_key: str) -> HttpResponse:
        """The group of this key."""
        reader = caller_of(request)
        body = groups.presented([group_or_404(group_key, reader)], reader)
        if not body.notification_groups:  # the account was deleted meanwhile
            raise exceptions.NotFound
        return FeedResponse(body)


def group_or_404(key: str, reader: User) -> groups.Group:
    """The group of this key. Raises NotFound."""
    found = groups.one(reader, key)
    if found is None:
        raise exceptions.NotFound
    return found


class GroupAccountsView(ClientView):
    """The people of a group of notifications, over HTTP."""

    def get(self, request: Request, group_key: str) -> HttpResponse:
        """Their accounts, the newest act's first."""
        found = group_or_404(group_key, caller_of(request))
        names = list(dict.fromkeys(str(act.actor_id) for act in found.every))
        accounts = accounts_by_id(names)
        return FeedResponse([accounts[name] for name in names if name in accounts])


class DismissGroupView(ClientView):
    """A group of notifications, which is put away, over HTTP."""

    def post(self, request: Request, group_key: str) -> HttpResponse:
        """Put the acts of the group away."""
        reader = caller_of(request)
        for act in group_or_404(group_key, reader).every:
            actions.put_away_act(user=reader, act_id=act.id)
        return FeedResponse({})


class UnreadGroupsView(ClientView):
    """How many groups of notifications are unread, over HTTP."""

    def get(self, request: Request) -> HttpResponse:
        """The number of groups with an act newer than the mark."""
        reader, params = caller_of(request), Params(request)
        limit = params.number("limit", least=1, most=10**9, default=notices.UNREAD_CAP) or notices.UNREAD_CAP
        chosen, grouped = _chosen(params), _grouped(params)
        keys = {groups.key_of(act, grouped) for act in notices.unread_among(reader, chosen)}
        return FeedResponse({"count": min(len(keys), limit)})


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
