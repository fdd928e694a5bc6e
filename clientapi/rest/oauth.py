import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from oauth2_provider.models import get_application_model
from oauth2_provider.views.mixins import OAuthLibMixin
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.signing_in_models import WEBSITE_LENGTH, ClientApp
from clientapi.errors import OpenView
from clientapi.oauth import actions, scopes
from clientapi.oauth.bearer import BearerToken
from clientapi.params import Params
from notifications.push.encryption import public_key
from web import rates
from web.credentials import ANY_SCOPE
from web.rest import FeedResponse
from web.strict_json import JSON_TYPE

App = get_application_model()
PARAMETER_LENGTH = 4_096
FIELDS = (
    "grant_type",
    "code",
    "client_id",
    "client_secret",
    "redirect_uri",
    "scope",
    "code_verifier",
    "token",
    "token_type_hint",
)
"""Parameters of token calls. Others are ignored."""
GRANTS = ("authorization_code", "client_credentials")
"""Supported grants. django-oauth-toolkit has more."""


class AppBody(msgspec.Struct):
    """Mastodon's Application."""

    id: str
    name: str
    website: str | None
    scopes: list[str]
    redirect_uri: str
    redirect_uris: list[str]
    vapid_key: str

    @classmethod
    def of(cls, app: ClientApp) -> "AppBody":
        return cls(str(app.pk), app.name, app.website or None, app.scopes.split(), *_addresses(app), public_key())


class NewAppBody(AppBody, kw_only=True):
    """A new app with its credentials."""

    client_id: str
    client_secret: str
    client_secret_expires_at: int = 0


def _addresses(app: ClientApp) -> tuple[str, list[str]]:
    addresses = app.redirect_uris.split()
    return "\n".join(addresses), addresses


class AppsView(OpenView):
    scopes = ANY_SCOPE
    rates: Mapping[str, str] = {"POST": "app"}
    authentication_classes: Sequence[Any] = []

    def post(self, request: Request) -> HttpResponse:
        """Register an app. The secret is shown only here. Raises Throttled."""
        wait = rates.hit("app_network", rates.network(rates.address(request._request)))
        if wait is not None:
            raise exceptions.Throttled(wait)
        params = Params(request)
        texts = [text for text in params.words("redirect_uris") if len(text) <= actions.ADDRESS_LENGTH * 4]
        app, secret = actions.register(
            name=params.text("client_name", most=1_000),
            addresses=[address for text in texts for address in text.split()],
            asked=params.text("scopes", most=PARAMETER_LENGTH),
            website=params.text("website", most=WEBSITE_LENGTH),
        )
        body = msgspec.structs.asdict(AppBody.of(app))
        return FeedResponse(NewAppBody(**body, client_id=app.client_id, client_secret=secret))


class OwnAppView(OpenView):
    """The app to which the token belongs."""

    scopes = ANY_SCOPE

    def get(self, request: Request) -> HttpResponse:
        """Return the app."""
        if not isinstance(request.auth, BearerToken):
            raise exceptions.NotAuthenticated("The access token is invalid")
        app: ClientApp = App.objects.get(pk=request.auth.app_id)
        return FeedResponse(AppBody.of(app))


class OAuthView(OpenView, OAuthLibMixin):  # type: ignore[misc]  # without types
    """Base of views in which the app authenticates by id and secret, in a form, JSON or Basic."""

    authentication_classes: Sequence[Any] = []

    def _oauth_request(self, request: Request) -> tuple[str, str, str, dict[str, str]]:
        params = Params(request)
        fields = {name: params.text(name, most=PARAMETER_LENGTH) for name in FIELDS if name in params}
        if "scope" in fields:
            fields["scope"] = scopes.drop_unknown(fields["scope"])
        headers = {"HTTP_AUTHORIZATION": request.META.get("HTTP_AUTHORIZATION", "")}
        headers["Authorization"] = headers["HTTP_AUTHORIZATION"]
        return request.path, "POST", urlencode(fields), headers

    def _answer(self, body: Any, status: int) -> HttpResponse:
        return HttpResponse(body or b"{}", status=status, content_type=JSON_TYPE, headers={"Pragma": "no-cache"})


class TokenView(OAuthView):
    """Issues tokens."""

    def post(self, request: Request) -> HttpResponse:
        """Return a token for a code, or for the app's secret."""
        if Params(request).text("grant_type", most=PARAMETER_LENGTH) not in GRANTS:
            return self._answer(b'{"error":"unsupported_grant_type"}', 400)
        try:
            with transaction.atomic():
                server = self.get_oauthlib_core().server
                _headers, body, status = server.create_token_response(*self._oauth_request(request), {})
        except IntegrityError:  # the app was removed meanwhile
            return self._answer(b'{"error":"invalid_client"}', 401)
        if status == 200:
            token = msgspec.json.decode(body)
            # A token lives as long as it is used, so the answer has no expiry.
            said = {name: token[name] for name in ("access_token", "token_type", "scope")}
            body = msgspec.json.encode(said | {"created_at": int(time.time())})
        return self._answer(body, status)


class RevokeView(OAuthView):
    """Revokes tokens."""

    def post(self, request: Request) -> HttpResponse:
        """Revoke the app's token."""
        _headers, body, status = self.get_oauthlib_core().server.create_revocation_response(
            *self._oauth_request(request)
        )
        return self._answer(body, status)


@csrf_exempt
@require_safe
def metadata(request: HttpRequest) -> HttpResponse:
    """The OAuth server's metadata (RFC 8414). Https only: clients refuse http addresses."""
    if not request.is_secure():
        raise Http404
    site = settings.SITE_URL
    return FeedResponse(
        {
            "issuer": f"{site}/",
            "authorization_endpoint": f"{site}/oauth/authorize",
            "token_endpoint": f"{site}/oauth/token",
            "revocation_endpoint": f"{site}/oauth/revoke",
            "app_registration_endpoint": f"{site}/api/v1/apps",
            "service_documentation": f"{site}/api/docs",
            "scopes_supported": list(scopes.WORDS),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(GRANTS),
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }
    )
