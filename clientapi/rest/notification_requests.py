"""Strangers' first private mentions as notification requests, and the policy for them.

The site's own rule is the only one: strangers' messages wait in Requests, or are not taken (`User.takes_requests`).
"""

from collections.abc import Callable
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.actions import edit_preferences
from accounts.models import User
from clientapi.entities import Account, Status, time_text
from clientapi.errors import NOT_OFFERED, ClientView, InvalidError, caller_of
from clientapi.paging import MOST_PEOPLE, PEOPLE, page_params, paged_answer
from clientapi.params import Params
from clientapi.statuses.presenting import conversations as presented
from items.conversations import conversations
from items.conversations.conversations import Conversation
from storage import ids
from storage.paging import below
from web.rest import FeedResponse

COUNTED = 100
"""Requests are counted up to this number, as in Mastodon."""
ALWAYS = {
    "for_not_following": "accept",
    "for_not_followers": "accept",
    "for_new_accounts": "accept",
    "for_limited_accounts": "accept",
}
MENTIONS = {"filter": True, "drop": False}
"""`takes_requests` for each value of `for_private_mentions`."""


class NotificationRequest(msgspec.Struct):
    """A stranger's conversation that waits for the caller's decision."""

    id: str
    created_at: str
    updated_at: str
    account: Account
    notifications_count: str
    last_status: Status


def _requests(found: list[Conversation], reader: User) -> list[NotificationRequest]:
    counts = conversations.message_counts([int(one.id) for one in found], reader)
    return [
        NotificationRequest(
            id=one.id,
            created_at=time_text(ids.moment(int(one.id))),
            updated_at=one.last_status.created_at,
            account=one.last_status.account,
            notifications_count=str(counts.get(int(one.id), 0)),
            last_status=one.last_status,
        )
        for one in presented(found, reader)
    ]


def _waiting(reader: User, request_id: int) -> Conversation:
    """The request with this id. Raises NotFound and MissingError."""
    if conversations.request_of(request_id, reader) != request_id:
        raise exceptions.NotFound
    return conversations.conversation_of(reader, request_id)


def _summary(reader: User) -> dict[str, int]:
    found = conversations.conversations_page(reader, requests=True, limit=COUNTED).items
    counts = conversations.message_counts([int(one.id) for one in found], reader)
    return {"pending_requests_count": len(found), "pending_notifications_count": sum(counts.values())}


def _chosen(params: Params) -> bool | None:
    """The choice that a request makes, by the names of either version."""
    for name, value in ALWAYS.items():
        params.choice(name, (value,))
    params.refuse("filter_not_following", "filter_not_followers", "filter_new_accounts", "for_bots")
    if not params.flag("filter_private_mentions", default=True):
        raise InvalidError(f"Validation failed: filter_private_mentions=false {NOT_OFFERED}")
    return MENTIONS.get(params.choice("for_private_mentions", MENTIONS))


class PolicyView(ClientView):
    """The policy, version 2."""

    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """Return the policy."""
        return FeedResponse(self._shown(caller_of(request)))

    def patch(self, request: Request) -> HttpResponse:
        """Choose whether strangers' messages wait or are not taken. Refuses what the site has no rule for."""
        reader = caller_of(request)
        takes_requests = _chosen(Params(request))
        if takes_requests is not None:
            reader = edit_preferences(user=reader, takes_requests=takes_requests)
        return FeedResponse(self._shown(reader))

    put = patch

    def _shown(self, reader: User) -> dict[str, Any]:
        mentions = "filter" if reader.takes_requests else "drop"
        return ALWAYS | {"for_private_mentions": mentions, "summary": _summary(reader)}


class FirstPolicyView(PolicyView):
    """The policy, version 1: filter or not."""

    def _shown(self, reader: User) -> dict[str, Any]:
        flags = {name.replace("for_", "filter_"): False for name in ALWAYS if name != "for_limited_accounts"}
        return flags | {"filter_private_mentions": True, "summary": _summary(reader)}


class RequestsView(ClientView):
    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """List the requests, newest first. Page ids are ids of messages."""
        reader, asked = caller_of(request), page_params(Params(request), default=PEOPLE, most=MOST_PEOPLE)
        found, place, has_more = conversations.page_between(
            reader,
            requests=True,
            below=below(asked.max_id),
            above=asked.above,
            upward=asked.goes_up,
            limit=asked.limit,
        )
        next_id, prev_id = asked.link_ids(place.newest_id, place.oldest_id, place.last_id, has_more)
        return paged_answer(request, _requests(found, reader), next_id=next_id, prev_id=prev_id)


class RequestView(ClientView):
    scopes = "notifications"

    def get(self, request: Request, request_id: int) -> HttpResponse:
        """Return the request."""
        reader = caller_of(request)
        return FeedResponse(_requests([_waiting(reader, request_id)], reader)[0])


class DecideView(ClientView):
    """Base of views that decide on one request, or on several by `id[]`."""

    scopes = "notifications"
    decide: Callable[..., object]

    def post(self, request: Request, request_id: int | None = None) -> HttpResponse:
        """Decide. 404 if one is no waiting request."""
        reader = caller_of(request)
        params = Params(request)
        if request_id is None and "id" not in params:
            raise InvalidError("Validation failed: id must be sent")
        asked = [request_id] if request_id is not None else params.ids("id", most=MOST_PEOPLE)
        for found in [_waiting(reader, one) for one in asked]:
            type(self).decide(reader=reader, conversation_id=int(found.id))
        return FeedResponse({})


class AcceptView(DecideView):
    """The request becomes a conversation."""

    decide = staticmethod(conversations.accept)


class DismissView(DecideView):
    """The request is removed until the next message."""

    decide = staticmethod(conversations.hide_conversation)


class MergedView(ClientView):
    """Whether accepted requests are in the list already: they always are."""

    scopes = "notifications"

    def get(self, request: Request) -> HttpResponse:
        """Return true."""
        return FeedResponse({"merged": True})
