"""The page on which a user lets an app in, or does not, and the page that shows a code to copy."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db import transaction
from django.http import HttpResponse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.http import OAuth2ResponseRedirect
from oauth2_provider.models import AccessToken
from oauth2_provider.views.mixins import OAuthLibMixin

from accounts import addresses
from accounts.access import signed_in
from accounts.models import User
from accounts.oauth_models import ClientApp
from accounts.sign_in import whence
from clientapi import scopes
from clientapi.actions import OUT_OF_BAND
from web.headers import policy
from web.pages import FORM_METHODS, PageRequest, limited, show

REFUSED = 400
READING = ("read", "profile", "push")
"""The beginnings of scopes that change nothing."""


@never_cache
@signed_in
@limited("write")
@require_http_methods(FORM_METHODS)
def authorize(request: PageRequest, reader: User) -> HttpResponse:
    """The question of an app, and the answer of the reader. The form goes to the address that the app made, so what is
    allowed is what was shown.
    """
    core = OAuthLibMixin.get_oauthlib_core()
    if any("\0" in value for values in request.GET.lists() for value in values[1]):
        return show(request, "clientapi/refused.html", status=REFUSED)
    try:
        asked, credentials = core.validate_authorization_request(request)
    except OAuthToolkitError as error:
        return _refused(request, error)
    app = ClientApp.objects.get(client_id=credentials["client_id"])
    if request.method != "POST":
        return _question(request, app, asked, credentials)
    try:
        is_allowed = request.POST.get("answer") == "allow"
        with transaction.atomic():
            address, *_rest = core.create_authorization_response(request, asked, credentials, is_allowed)
            _tell(request, reader, app, asked)
    except OAuthToolkitError as error:
        return _refused(request, error)
    if credentials["redirect_uri"] == OUT_OF_BAND:
        code = parse_qs(urlsplit(address).query)["code"][0]
        return show(request, "clientapi/code.html", {"app": app, "code": code})
    return _led_back(address, app)


def _tell(request: PageRequest, reader: User, app: ClientApp, asked: list[str]) -> None:
    """Tell the reader by a letter that an app has access which had none. Its name, which is its maker's, is not in it:
    the page to which the letter leads has it.
    """
    if not AccessToken.objects.filter(user=reader, application=app).exists():
        changes = "yes" if any(not scope.startswith(READING) for scope in asked) else ""
        addresses.tell(reader, "new_app", changes=changes, **whence(request))


def _led_back(address: str, app: ClientApp) -> HttpResponse:
    """The redirect to an address of an app, which it registered with."""
    response: HttpResponse = OAuth2ResponseRedirect(address, app.get_allowed_schemes())
    return response


def _question(request: PageRequest, app: ClientApp, asked: list[str], credentials: dict[str, Any]) -> HttpResponse:
    back = credentials["redirect_uri"]
    context = {
        "app": app,
        "words": [scopes.WORDS[scope] for scope in scopes.WORDS if scope in asked],
        "back": "" if back == OUT_OF_BAND else _place(back),
    }
    response = show(request, "clientapi/authorize.html", context)
    # The form is answered by a redirect to the app, to which browsers hold the form's policy.
    allowed = policy(request, request.csp_nonce)  # type: ignore[attr-defined]
    response["Content-Security-Policy"] = allowed.replace("form-action 'self'", f"form-action 'self' {_source(back)}")
    return response


def _place(address: str) -> str:
    """Where an address leads, in words: a host, or the scheme of a program."""
    parts = urlsplit(address)
    return parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _source(address: str) -> str:
    """Where an address leads, as a Content-Security-Policy spells it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _refused(request: PageRequest, error: OAuthToolkitError) -> HttpResponse:
    """The answer to what cannot be allowed: told to the app where it may be trusted with it, else to the reader."""
    told = error.oauthlib_error
    address = getattr(told, "redirect_uri", "") or ""
    client_id = getattr(told, "client_id", "") or request.GET.get("client_id", "")
    app = ClientApp.objects.filter(client_id=client_id[:255].replace("\0", "")).first()
    may_be_told = app is not None and bool(address) and address != OUT_OF_BAND and app.redirect_uri_allowed(address)
    if app is None or not may_be_told or isinstance(error, FatalClientError):
        is_denied = getattr(told, "error", "") == "access_denied"
        return show(request, "clientapi/refused.html", {"is_denied": is_denied}, status=200 if is_denied else REFUSED)
    joint = "&" if "?" in address else "?"
    fields = {"error": told.error, "error_description": told.description or ""}
    if told.state:
        fields["state"] = told.state
    return _led_back(f"{address}{joint}{urlencode(fields)}", app)
