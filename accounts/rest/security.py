"""Signing in and password reset over HTTP."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from accounts import actions
from accounts.proofs import LoginEndedError
from accounts.signing_in import guard, places, recovery, second_factors, sign_in, step_up, suspension
from accounts.signing_in.tokens import TokenAuthentication, token_id_of
from web import rates
from web.rest import ApiView, FeedResponse, StrictSerializer, TextField, body, count_call
from web.times import Time


class Token(msgspec.Struct):
    """A token for `Authorization: Token `. Shown once."""

    token: str


class Accepted(msgspec.Struct):
    """A request that is handled later. The answer is always the same."""

    detail: str


class Suspended(msgspec.Struct):
    """A suspended account: the rule and the moderators' words, the end (null: none), and a page to appeal, valid for
    an hour.
    """

    detail: str
    code: str
    reason: str
    until: Time | None
    appeal_url: str


class LogIn(StrictSerializer):
    """Name or e-mail address, password and code."""

    username = TextField(max_length=guard.NAME_LENGTH, trim_whitespace=False)
    password = TextField(max_length=4096, trim_whitespace=False)
    code = TextField(max_length=second_factors.CODE_LENGTH, required=False, allow_blank=True)


class WantedReset(StrictSerializer):
    """The account to reset."""

    username_or_email = TextField(max_length=guard.NAME_LENGTH)


class TokenView(ApiView):
    """POST issues a token, without authentication. DELETE revokes the caller's."""

    def _is_anonymous(self) -> bool:
        return self.request is not None and self.request.method == "POST"

    def get_authenticators(self) -> list[Any]:
        """API tokens. POST needs no authentication."""
        return [] if self._is_anonymous() else [TokenAuthentication()]

    def get_permissions(self) -> list[Any]:
        """Signed-in callers only. POST needs no permission."""
        return [] if self._is_anonymous() else [IsAuthenticated()]

    @extend_schema(
        operation_id="log_in",
        request=LogIn,
        responses={200: Token, 403: OpenApiResponse(Suspended, "The account is suspended: the code is `suspended`.")},
        auth=[],
    )
    def post(self, request: Request) -> HttpResponse:
        """Get a token for username or address, and password. With a second factor it needs a `code`, from the app or a
        recovery code.
        """
        fields = body(request, LogIn)
        caller = request._request
        try:
            user = sign_in.verify_login(
                caller, name=fields["username"], password=fields["password"], code=fields.get("code", "")
            )
            token = actions.issue_token(user=user, user_agent=places.agent_of(caller), ip=places.ip_of(caller))
        except sign_in.SuspendedError as error:
            return FeedResponse(_refusal_of(error), status=HTTPStatus.FORBIDDEN)
        except (sign_in.LoginRefusedError, LoginEndedError) as error:
            is_waiting = isinstance(error, sign_in.ApplicationPendingError)
            words = "Your application waits for an admin." if is_waiting else "Wrong username or password."
            raise serializers.ValidationError({"non_field_errors": [words]}) from error
        except sign_in.CODE_ERRORS as error:
            raise step_up.code_error(error) from error
        rates.mark_credential(rates.token_credential(token), user.pk)
        if not guard.known_device(caller, user):
            sign_in.send_notice(caller, user)
        response = FeedResponse(Token(token))
        guard.set_device_cookie(response, user)
        return response

    @extend_schema(operation_id="log_out", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Revoke the token of this call."""
        actions.revoke_token(token_id=token_id_of(request))
        return HttpResponse(status=204)


def _refusal_of(error: sign_in.SuspendedError) -> Suspended:
    found = error.suspension
    reason = "\n".join(filter(None, (found.rule, found.text)))
    page = reverse("suspended", args=[suspension.make_right(error.user)])
    return Suspended("This account is suspended.", "suspended", reason, found.until, f"{settings.SITE_URL}{page}")


class PasswordResetView(ApiView):
    """Forgotten passwords."""

    authentication_classes: Sequence[Any] = []
    permission_classes: Sequence[Any] = []

    @extend_schema(operation_id="reset_password", request=WantedReset, responses={202: Accepted}, auth=[])
    def post(self, request: Request) -> HttpResponse:
        """Request a letter with a link to set a password. The answer does not tell whether the account exists."""
        fields = body(request, WantedReset)
        count_call("reset", rates.address(request._request))
        recovery.request_reset(asked=fields["username_or_email"], language="")
        return FeedResponse(Accepted("A letter is on its way, if there is such an account."), status=202)
