import re
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from oauth2_provider.generators import generate_client_secret
from oauth2_provider.models import AccessToken, Grant

from accounts.signing_in_models import FORBIDDEN_SCHEMES, SCOPES_LENGTH, WEBSITE_LENGTH, ClientApp
from clientapi.oauth import scopes
from clientapi.oauth.validator import secret_digest
from web.refusals import RefusalError

NAME_LENGTH = 100
ADDRESSES = 10
ADDRESS_LENGTH = 2_000
OUT_OF_BAND = "urn:ietf:wg:oauth:2.0:oob"
"""The redirect address of apps that let their users copy the code by hand."""
FORGOTTEN = 500
"""Apps, tokens or codes deleted per call."""
UNUSED = timedelta(days=2)
"""How long an app is kept if no user has allowed it."""
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]{0,63}):[\x21-\x7e]+", re.ASCII | re.IGNORECASE)
HOST = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?|\[[0-9a-f:.]+\]", re.ASCII)
"""Hosts that browsers and Content-Security-Policies read exactly as users see them: no character ends the host early or
stands for other hosts.
"""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters not allowed in an app's name. Some of them would reverse the text of the authorize page."""


class RegistrationRefusedError(RefusalError, ValueError):
    """Wrong data in a registration. The message is for developers."""


class Registered(NamedTuple):
    """A new app and its secret, which is stored only as a hash."""

    app: ClientApp
    secret: str


def register(*, name: str, addresses: list[str], asked: str = "", website: str = "") -> Registered:
    """Register an app. Raises RegistrationRefusedError."""
    name = CONTROL.sub(" ", name).strip()
    if not name or len(name) > NAME_LENGTH:
        raise RegistrationRefusedError(f"client_name must have 1 to {NAME_LENGTH} characters")
    if not 0 < len(addresses) <= ADDRESSES:
        raise RegistrationRefusedError(f"redirect_uris must hold 1 to {ADDRESSES} addresses")
    for address in addresses:
        check_address(address)
    held = scopes.known_scopes(asked) if scopes.parsed(asked) else [scopes.DEFAULT]
    if not held or len(asked) > SCOPES_LENGTH:
        raise RegistrationRefusedError("scopes must name one that this site has")
    if website and (len(website) > WEBSITE_LENGTH or not website.startswith(("https://", "http://"))):
        raise RegistrationRefusedError("website must be a web address")
    secret = generate_client_secret()
    app = ClientApp.objects.create(
        name=name,
        redirect_uris=" ".join(dict.fromkeys(addresses)),
        scopes=" ".join(held),
        website=website,
        client_type=ClientApp.CLIENT_CONFIDENTIAL,
        authorization_grant_type=ClientApp.GRANT_AUTHORIZATION_CODE,
        client_secret=secret_digest(secret),
        hash_client_secret=False,  # secret_digest has hashed it
    )
    return Registered(app, secret)


def check_address(address: str) -> None:
    """Raise RegistrationRefusedError unless an app may have this redirect address."""
    match = ADDRESS.fullmatch(address)
    scheme = match[1].lower() if match else ""
    if not scheme or scheme in FORBIDDEN_SCHEMES or len(address) > ADDRESS_LENGTH or "#" in address:
        raise RegistrationRefusedError("redirect_uris must be absolute addresses without a fragment")
    if scheme == "urn" and address != OUT_OF_BAND:
        raise RegistrationRefusedError(f"the only urn among redirect_uris is {OUT_OF_BAND}")
    try:
        parts = urlsplit(address)
        is_web = scheme in ("http", "https")
        is_wrong = bool(parts.username or parts.password) or (is_web and not _is_host_only(parts))
    except ValueError:
        is_wrong = True
    if is_wrong:
        raise RegistrationRefusedError("redirect_uris must be absolute addresses without a password")


def _is_host_only(parts: SplitResult) -> bool:
    """Whether a web address has a valid host, and nothing beside host and port. Raises ValueError for an invalid
    port.
    """
    host, port = parts.hostname or "", parts.port
    named = f"[{host}]" if ":" in host else host
    return bool(HOST.fullmatch(named)) and parts.netloc.lower() in (named, f"{named}:{port}")


def forget_unused() -> int:
    """Delete expired tokens, expired codes and unused apps, at most `FORGOTTEN` each. Returns how many.

    A user's token or code keeps an app, a token without a user only for `UNUSED`.
    """
    now = timezone.now()
    gone: int = 0
    for model in (AccessToken, Grant):
        expired = model.objects.filter(expires__lt=now).order_by("expires").values_list("pk", flat=True)
        gone += model.objects.filter(pk__in=list(expired[:FORGOTTEN])).delete()[0]
    lately = Q(user__isnull=False) | Q(updated__gt=now - UNUSED)
    has_token, has_code = (
        Exists(rows.filter(application=OuterRef("pk"))) for rows in (AccessToken.objects.filter(lately), Grant.objects)
    )
    old = ClientApp.objects.registered().filter(~has_token, ~has_code, created__lt=now - UNUSED).order_by("created")
    unused = ClientApp.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:FORGOTTEN]))
    return gone + int(unused.delete()[0])
