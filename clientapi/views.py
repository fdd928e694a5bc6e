"""The page on which a user lets an app in, or does not, and the page that shows a code to copy."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db import transaction
from django.http import HttpResponse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.http import OAuth2ResponseRedirect
from oauth2_provider.models import AccessToken
from oauth2_provider.views.mixins import OAuthLibMixin

from accounts.access import signed_in
from accounts.models import User
from accounts.signing_in import addresses
from accounts.signing_in.models import SCOPES_LENGTH, ClientApp
from accounts.signing_in.sign_in import whence
from clientapi import scopes
from clientapi.actions import ADDRESS_LENGTH, OUT_OF_BAND
from web.headers import policy
from web.pages import FORM_METHODS, PageRequest, keeps_opener, limited, show

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
"""The parameters by which an app asks, and how long each may be. django-oauth-toolkit knows others, which the site does
not serve (nonces, resources, other ways back); they are passed over, as all unknown ones are.
"""
READING = ("read", "profile", "push")
"""The beginnings of scopes that change nothing."""


@keeps_opener
@never_cache
@signed_in
@limited("write")
@require_http_methods(FORM_METHODS)
def authorize(request: PageRequest, reader: User) -> HttpResponse:
    """The question of an app, and the answer of the reader. The form goes to the address that the app made, so what is
    allowed is what was shown.
    """
    core = OAuthLibMixin.get_oauthlib_core()
    if not _reduce(request):
        return _refused(request)
    try:
        asked, credentials = core.validate_authorization_request(request)
    except OAuthToolkitError:
        return _refused(request)
    app = ClientApp.objects.get(client_id=credentials["client_id"])
    if request.method != "POST":
        return _question(request, app, asked, credentials)
    if request.POST.get("answer") != "allow":
        return _denied(request, app, credentials)
    try:
        with transaction.atomic():
            address, *_rest = core.create_authorization_response(request, asked, credentials, True)
            _tell(request, reader, app, asked)
    except OAuthToolkitError:
        return _refused(request)
    if credentials["redirect_uri"] == OUT_OF_BAND:
        code = parse_qs(urlsplit(address).query)["code"][0]
        return show(request, "clientapi/code.html", {"app": app, "code": code})
    return _led_back(address, app)


def _reduce(request: PageRequest) -> bool:
    """Leave the parameters of `ASKED` alone in the address, and of the scopes those that this site has; whether they
    can be meant so.
    """
    asked = [(name, value) for name in ASKED for value in request.GET.getlist(name)]
    known = [(name, scopes.reduced(value) if name == "scope" else value) for name, value in asked]
    request.META["QUERY_STRING"] = urlencode(known)
    return all(len(value) <= ASKED[name] and "\0" not in value for name, value in asked)


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


def _refused(request: PageRequest) -> HttpResponse:
    """The page for what cannot be allowed. It leads nowhere: any client can register an app, and an address of this
    site that led on without the reader's word would lead anywhere (RFC 9700, 4.11.2).
    """
    return show(request, "clientapi/refused.html", {"is_denied": False}, status=REFUSED)


def _denied(request: PageRequest, app: ClientApp, credentials: dict[str, Any]) -> HttpResponse:
    """The answer to a "no", which the app hears of where it has an address."""
    address = credentials["redirect_uri"]
    if address == OUT_OF_BAND:
        return show(request, "clientapi/refused.html", {"is_denied": True})
    fields = {"error": "access_denied"} | ({"state": credentials["state"]} if credentials.get("state") else {})
    return _led_back(f"{address}{'&' if '?' in address else '?'}{urlencode(fields)}", app)
