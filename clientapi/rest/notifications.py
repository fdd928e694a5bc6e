import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.models import User
from clientapi.accounts.people import accounts_by_id
from clientapi.entities import time_text
from clientapi.errors import ClientView, InvalidError, caller_of
from clientapi.notifications import groups, notices
from clientapi.paging import MOST_PEOPLE, PEOPLE, page_params, paged_answer
from clientapi.params import Params
from notifications import actions
from notifications.models import ReadMark
from storage import ids
from timeline.models import ReadingPosition
from timeline.position import save_position
from web.rest import FeedResponse

EXPANSIONS = ("full", "partial_avatars")
TYPES = 50
"""Maximum types in a call."""


class NotificationsView(ClientView):
    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """List the notifications. Marks nothing as read."""
        reader, params = caller_of(request), Params(request)
        page = notices.page(reader, page_params(params, default=PEOPLE, most=MOST_PEOPLE), _notice_filter(params))
        shown = notices.presented(page.acts, reader)
        return paged_answer(request, shown, next_id=page.next_id, prev_id=page.prev_id)


def _notice_filter(params: Params) -> notices.NoticeFilter:
    return notices.NoticeFilter(
        frozenset(params.words("types")[:TYPES]),
        frozenset(params.words("exclude_types")[:TYPES]),
        params.id("account_id"),
    )


class UnreadView(ClientView):
    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """Return the number."""
        params = Params(request)
        return FeedResponse(
            {"count": min(len(notices.unread_among(caller_of(request), _notice_filter(params))), _most(params))}
        )


class NotificationView(ClientView):
    scopes = "notifications"

    def get(self, request: Request, notification_id: int) -> HttpResponse:
        """Return the notification."""
        reader = caller_of(request)
        shown = notices.presented([notices.find_notice(reader, notification_id)], reader)
        if not shown:  # the account has been deleted since
            raise exceptions.NotFound
        return FeedResponse(shown[0])


class ClearView(ClientView):
    scopes = "notifications"

    def post(self, request: Request) -> HttpResponse:
        """Delete all except messages of moderators, maybe by a worker."""
        reader = caller_of(request)
        rest = actions.delete_batch(user=reader)
        if rest is not None:
            actions.continue_delete.delay(reader.pk, rest)
        return FeedResponse({})


class DismissView(ClientView):
    scopes = "notifications"

    def post(self, request: Request, notification_id: int) -> HttpResponse:
        """Delete the notification."""
        reader = caller_of(request)
        actions.delete_act(user=reader, act_id=notices.find_notice(reader, notification_id).id)
        return FeedResponse({})


# --- Groups ----------------------------------------------------------------------------------------------
class GroupsView(ClientView):
    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """List the groups. Marks nothing as read."""
        reader, params = caller_of(request), Params(request)
        asked = page_params(params, default=PEOPLE, most=MOST_PEOPLE)
        grouped = _grouped(params)
        is_partial = params.choice("expand_accounts", EXPANSIONS, default=EXPANSIONS[0]) != EXPANSIONS[0]
        found, page = groups.page(reader, asked, _notice_filter(params), grouped)
        body = groups.presented(found, reader, is_partial=is_partial)
        return paged_answer(request, body, next_id=page.next_id, prev_id=page.prev_id)


def _grouped(params: Params) -> frozenset[str]:
    return frozenset(params.words("grouped_types")[:TYPES]) if "grouped_types" in params else groups.GROUPED


class GroupView(ClientView):
    scopes = "notifications"

    def get(self, request: Request, group_key: str) -> HttpResponse:
        """Return the group."""
        reader = caller_of(request)
        body = groups.presented([groups.find_group(reader, group_key)], reader)
        if not body.notification_groups:  # the account has been deleted since
            raise exceptions.NotFound
        return FeedResponse(body)


class GroupAccountsView(ClientView):
    scopes = "notifications"

    def get(self, request: Request, group_key: str) -> HttpResponse:
        """List the accounts, newest act first."""
        found = groups.find_group(caller_of(request), group_key)
        names = list(dict.fromkeys(str(act.actor_id) for act in found.every))
        accounts = accounts_by_id(names)
        return FeedResponse([accounts[name] for name in names if name in accounts])


class DismissGroupView(ClientView):
    scopes = "notifications"

    def post(self, request: Request, group_key: str) -> HttpResponse:
        """Delete the group's notifications."""
        reader = caller_of(request)
        for act in groups.find_group(reader, group_key).every:
            actions.delete_act(user=reader, act_id=act.id)
        return FeedResponse({})


class UnreadGroupsView(ClientView):
    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """Return the number."""
        reader, params = caller_of(request), Params(request)
        chosen, grouped = _notice_filter(params), _grouped(params)
        keys = {groups.key_of(act, grouped) for act in notices.unread_among(reader, chosen)}
        return FeedResponse({"count": min(len(keys), _most(params))})


def _most(params: Params) -> int:
    return params.number("limit", least=1, most=10**9, default=notices.UNREAD_CAP) or notices.UNREAD_CAP


# --- Marks -----------------------------------------------------------------------------------------------
class Marker(msgspec.Struct):
    """How far a timeline is read."""

    last_read_id: str
    version: int
    updated_at: str


def _markers(reader: User) -> dict[str, Marker]:
    found = {}
    position = ReadingPosition.objects.filter(reader=reader).first()
    if position is not None:
        found["home"] = Marker(str(position.item_id), 0, time_text(position.updated_at))
    mark = ReadMark.objects.filter(user=reader).first()
    if mark is not None and mark.up_to:
        found["notifications"] = Marker(str(mark.up_to), 0, time_text(ids.moment(mark.up_to)))
    return found


class MarkersView(ClientView):
    """How far the caller has read home and notifications."""

    scopes = "statuses"

    def get(self, request: Request) -> HttpResponse:
        """Return the existing marks."""
        asked = Params(request).words("timeline")
        return FeedResponse({name: mark for name, mark in _markers(caller_of(request)).items() if name in asked})

    def post(self, request: Request) -> HttpResponse:
        """Set home's position, and the read mark of notifications."""
        reader, params = caller_of(request), Params(request)
        named: dict[str, int] = {
            name: number for name in ("home", "notifications") if (number := params.part(name).id("last_read_id"))
        }
        if not named:
            raise InvalidError("Validation failed: home[last_read_id] or notifications[last_read_id] must be sent")
        if "home" in named:
            save_position(reader=reader, item_id=named["home"])
        if "notifications" in named:
            actions.mark_read(user=reader, up_to=named["notifications"])
        found = _markers(reader)
        return FeedResponse({name: found[name] for name in named if name in found})
