"""The page where a user allows an app, and the page with a code."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.http import OAuth2ResponseRedirect
from oauth2_provider.models import AccessToken
from oauth2_provider.views.mixins import OAuthLibMixin

from accounts import addresses, proofs
from accounts.access import member_form
from accounts.models import User
from accounts.signing_in.sign_in import request_origin
from accounts.signing_in_models import SCOPES_LENGTH, ClientApp
from clientapi.oauth import scopes
from clientapi.oauth.actions import ADDRESS_LENGTH, OUT_OF_BAND
from web.headers import policy
from web.pages import PageRequest, keeps_opener, show

REFUSED = 400
ASKED = {
    "response_type": 20,
    "client_id": 255,
    "redirect_uri": ADDRESS_LENGTH,
    "scope": SCOPES_LENGTH,
    "state": 4_096,
    "code_challenge": 128,
    "code_challenge_method": 10,
}
"""Parameters of the authorize page and their maximum length. Others are ignored: django-oauth-toolkit knows more
(nonces, resources, response modes), which the site does not support.
"""
READING = ("read", "profile", "push")
"""Beginnings of scopes that change nothing."""


@keeps_opener
@never_cache
@member_form
def authorize(request: PageRequest, reader: User) -> HttpResponse:
    """Ask the user whether to allow an app, and act on the answer.

    The form posts to the same address: what was shown is allowed.
    """
    core = OAuthLibMixin.get_oauthlib_core()
    if not _drop_unknown_scopes(request):
        return _refused(request)
    try:
        asked, credentials = core.validate_authorization_request(request)
    except OAuthToolkitError:
        return _refused(request)
    app = ClientApp.objects.get(client_id=credentials["client_id"])
    if request.method != "POST":
        return _show_consent(request, app, asked, credentials)
    if request.POST.get("answer") != "allow":
        return _denied(request, app, credentials)
    try:
        with transaction.atomic():
            proofs.lock_if_valid(reader)
            address, *_rest = core.create_authorization_response(request, asked, credentials, True)
            _send_letter(request, reader, app, asked)
    except (OAuthToolkitError, IntegrityError):  # also if the app was removed meanwhile
        return _refused(request)
    if credentials["redirect_uri"] == OUT_OF_BAND:
        code = parse_qs(urlsplit(address).query)["code"][0]
        return show(request, "clientapi/code.html", {"app": app, "code": code})
    return _redirect_to_app(address, app)


def _drop_unknown_scopes(request: PageRequest) -> bool:
    """Drop unknown scopes from the request. False if a parameter is too long or has a NUL."""
    asked = [(name, value) for name in ASKED for value in request.GET.getlist(name)]
    known = [(name, scopes.drop_unknown(value) if name == "scope" else value) for name, value in asked]
    request.META["QUERY_STRING"] = urlencode(known)
    return all(len(value) <= ASKED[name] and "\0" not in value for name, value in asked)


def _send_letter(request: PageRequest, reader: User, app: ClientApp, asked: list[str]) -> None:
    """Write the user a letter about a new app. It leaves out the name, which the app's developers chose."""
    if not AccessToken.objects.filter(user=reader, application=app).exists():
        changes = "yes" if any(not scope.startswith(READING) for scope in asked) else ""
        addresses.send_notice(reader, "new_app", changes=changes, **request_origin(request))


def _redirect_to_app(address: str, app: ClientApp) -> HttpResponse:
    response: HttpResponse = OAuth2ResponseRedirect(address, app.get_allowed_schemes())
    return response


def _show_consent(request: PageRequest, app: ClientApp, asked: list[str], credentials: dict[str, Any]) -> HttpResponse:
    back = credentials["redirect_uri"]
    context = {
        "app": app,
        "words": [scopes.WORDS[scope] for scope in scopes.WORDS if scope in asked],
        "back": "" if back == OUT_OF_BAND else _display_host(back),
    }
    response = show(request, "clientapi/authorize.html", context)
    # The form's answer redirects to the app. Browsers apply the form's policy to this redirect too.
    allowed = policy(request, request.csp_nonce)  # type: ignore[attr-defined]
    response["Content-Security-Policy"] = allowed.replace(
        "form-action 'self'", f"form-action 'self' {_csp_source(back)}"
    )
    return response


def _display_host(address: str) -> str:
    parts = urlsplit(address)
    return parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _csp_source(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _refused(request: PageRequest) -> HttpResponse:
    """The page for a wrong request. It links nowhere: anyone can register an app, so a redirect could be abused (RFC
    9700, 4.11.2).
    """
    return show(request, "clientapi/refused.html", {"is_denied": False}, status=REFUSED)


def _denied(request: PageRequest, app: ClientApp, credentials: dict[str, Any]) -> HttpResponse:
    address = credentials["redirect_uri"]
    if address == OUT_OF_BAND:
        return show(request, "clientapi/refused.html", {"is_denied": True})
    fields = {"error": "access_denied"} | ({"state": credentials["state"]} if credentials.get("state") else {})
    return _redirect_to_app(f"{address}{'&' if '?' in address else '?'}{urlencode(fields)}", app)


@require_safe
def strike(request: HttpRequest, decision_id: int) -> HttpResponse:
    """A decision, under the address that Mastodon's apps open."""
    return redirect("decision", decision_id)
