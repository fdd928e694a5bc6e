from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.signing_in.places import agent_of
from clientapi.errors import ClientView, caller_of
from clientapi.oauth.bearer import AppAuthentication, BearerToken
from clientapi.params import Params
from notifications.models import Kind, PushPolicy, PushSubscription
from notifications.push import actions
from notifications.push.actions import Device, DeviceHolder, PushChoice
from web.rest import FeedResponse

ALERTS = {
    "mention": (Kind.MENTION, Kind.REPLY),
    "quote": (Kind.QUOTE,),
    "follow": (Kind.FOLLOW,),
    "follow_request": (Kind.FOLLOW_REQUEST,),
    "poll": (Kind.POLL,),
    "status": (Kind.POST,),
}
"""Mastodon's alerts that the site pushes, and its kinds."""
KEY_LENGTH = 200


class Alerts(msgspec.Struct):
    """Which notifications are pushed."""

    mention: bool
    quote: bool
    follow: bool
    follow_request: bool
    poll: bool
    status: bool
    reblog: bool = False
    favourite: bool = False
    update: bool = False
    quoted_update: bool = False
    admin_sign_up: bool = msgspec.field(name="admin.sign_up", default=False)
    admin_report: bool = msgspec.field(name="admin.report", default=False)


class Subscription(msgspec.Struct):
    """Mastodon's WebPushSubscription."""

    id: str
    endpoint: str
    standard: bool
    alerts: Alerts
    policy: str
    server_key: str

    @classmethod
    def of(cls, row: PushSubscription) -> "Subscription":
        alerts = {name: kinds[0] in row.kinds for name, kinds in ALERTS.items()}
        return cls(str(row.pk), row.endpoint, row.is_standard, Alerts(**alerts), row.policy, row.server_key)


class SubscriptionView(ClientView):
    """The subscription of the caller's token."""

    scopes = "push"

    def get(self, request: Request) -> HttpResponse:
        """Return the subscription. Raises NotFound."""
        return FeedResponse(Subscription.of(_own(request)))

    def post(self, request: Request) -> HttpResponse:
        """Push notifications to the app from now on."""
        user, params = caller_of(request), Params(request)
        asked = params.part("subscription")
        keys = asked.part("keys")
        language = user.language or settings.LANGUAGE_CODE
        device = Device(
            asked.text("endpoint", most=actions.ENDPOINT_LENGTH),
            keys.text("p256dh", most=KEY_LENGTH),
            keys.text("auth", most=KEY_LENGTH),
            asked.flag("standard"),
            agent_of(request._request),
            language,
        )
        row = actions.subscribe(user=user, holder=_holder(request), device=device, choice=_choice(params))
        return FeedResponse(Subscription.of(row))

    def put(self, request: Request) -> HttpResponse:
        """Change which notifications are pushed."""
        row = _own(request)
        choice = _choice(Params(request))
        actions.change(user=caller_of(request), subscription_id=row.pk, choice=choice)
        return FeedResponse(Subscription.of(_own(request)))

    def delete(self, request: Request) -> HttpResponse:
        """End the subscription."""
        row = _holder(request).subscription(caller_of(request))
        if row is not None:
            actions.unsubscribe(user=caller_of(request), subscription_id=row.pk)
        return FeedResponse({})


def _holder(request: Request) -> DeviceHolder:
    token: Any = request.auth
    assert isinstance(token, BearerToken)  # noqa: S101 (caller_of)
    return DeviceHolder(token_id=token.token_id, app_token=AppAuthentication().token_of(request._request) or "")


def _own(request: Request) -> PushSubscription:
    """The subscription of the caller's token. Raises NotFound."""
    row = _holder(request).subscription(caller_of(request))
    if row is None:
        raise exceptions.NotFound
    return row


def _choice(params: Params) -> PushChoice:
    """Which notifications to push. An unnamed alert is off. Some libraries send the policy beside the data."""
    data = params.part("data")
    alerts = data.part("alerts")
    kinds = [kind for name, named in ALERTS.items() if alerts.flag(name) for kind in named]
    return PushChoice(
        kinds, (data if "policy" in data else params).choice("policy", PushPolicy.values, default=PushPolicy.ALL)
    )
