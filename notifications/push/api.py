"""The push subscription of the calling session or token over HTTP."""

from http import HTTPStatus

import msgspec
from django.http import HttpResponse
from django.utils.translation import get_language
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from accounts.signing_in.places import agent_of
from accounts.signing_in.tokens import token_id_of
from notifications.models import PUSHED, PushSubscription, PushWords
from notifications.push import actions
from notifications.push.actions import Device, DeviceHolder, PushChoice
from notifications.push.encryption import public_key
from web.rest import ApiView, FeedResponse, Problem, StrictSerializer, TextField, body

KEY_LENGTH = 100


class KeysBody(StrictSerializer):
    """The keys of a device, as browsers have them."""

    p256dh = TextField(max_length=KEY_LENGTH)
    auth = TextField(max_length=KEY_LENGTH)


class SubscriptionBody(StrictSerializer):
    """Where a device takes messages, its keys, kinds and whose words. Omitted kinds and words stay."""

    endpoint = TextField(max_length=actions.ENDPOINT_LENGTH)
    keys = KeysBody()
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=[kind.value for kind in PUSHED]), required=False, max_length=len(PUSHED)
    )
    words = serializers.ChoiceField(choices=PushWords.values, required=False)


class OwnSubscription(msgspec.Struct):
    """A push subscription. `words` says whose words messages hold: all, open (no private mentions), none."""

    endpoint: str
    kinds: list[str]
    words: str

    @classmethod
    def of(cls, row: PushSubscription) -> "OwnSubscription":
        return cls(row.endpoint, row.kinds, row.words)


class Push(msgspec.Struct):
    """The site's key for push services, and the caller's subscription."""

    key: str
    subscription: OwnSubscription | None


def holder_of(request: Request) -> DeviceHolder:
    """The session or token by which a call is made."""
    token_id = token_id_of(request) or getattr(request.auth, "token_id", None)  # an app's (clientapi.oauth.bearer)
    if token_id:
        return DeviceHolder(token_id=token_id)
    return DeviceHolder(session_key=request._request.session.session_key)


class PushView(ApiView):
    """The push subscription of the caller's session or token."""

    scopes = "push"

    @extend_schema(operation_id="get_push", responses={200: Push})
    def get(self, request: Request) -> HttpResponse:
        """The site's key, and where the caller's messages go."""
        row = holder_of(request).subscription(authenticated_user(request))
        return FeedResponse(Push(public_key(), OwnSubscription.of(row) if row else None))

    @extend_schema(
        operation_id="subscribe_push", request=SubscriptionBody, responses={201: OwnSubscription, 409: Problem}
    )
    def post(self, request: Request) -> HttpResponse:
        """Push to this device from now on."""
        user, fields = authenticated_user(request), body(request, SubscriptionBody)
        device = Device(
            fields["endpoint"],
            fields["keys"]["p256dh"],
            fields["keys"]["auth"],
            user_agent=agent_of(request._request),
            language=get_language() or "",
        )
        choice = PushChoice(fields.get("kinds"), words=fields.get("words"))
        row = actions.subscribe(user=user, holder=holder_of(request), device=device, choice=choice)
        return FeedResponse(OwnSubscription.of(row), status=HTTPStatus.CREATED)

    @extend_schema(operation_id="unsubscribe_push", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Push nothing to the caller any more."""
        user = authenticated_user(request)
        row = holder_of(request).subscription(user)
        if row is not None:
            actions.unsubscribe(user=user, subscription_id=row.pk)
        return HttpResponse(status=204)
