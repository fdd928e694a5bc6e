"""WebAuthn by fido2: what browsers are asked, and whether their answers count.

Import it late: fido2 is heavy, and most processes never need it. Wrong and malformed answers raise
`second_factors.MALFORMED`.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import base36_to_int, int_to_base36
from fido2.server import Fido2Server
from fido2.utils import websafe_decode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorData,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from accounts.about.site import current
from accounts.models import Authenticator, User

VERIFIED = UserVerificationRequirement.REQUIRED
"""The device checks its owner: so a passkey is both factors."""


def registration_challenge(user: User, rows: Sequence[Authenticator]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options to create a passkey, and the state that `check_registration` needs. `rows`: the passkeys of the user."""
    options, state = _server().register_begin(
        PublicKeyCredentialUserEntity(id=handle(user), name=user.username, display_name=user.username),
        [_credential(row) for row in rows],
        resident_key_requirement=ResidentKeyRequirement.REQUIRED,
        user_verification=VERIFIED,
        extensions={"credProps": True},
    )
    return dict(options), state


def check_registration(state: Any, credential: Any) -> None:
    """Check a new passkey."""
    _check_origin(RegistrationResponse.from_dict(credential))
    _server().register_complete(state, credential)


def authentication_challenge(rows: Sequence[Authenticator]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the browser is asked for a proof by one of these passkeys, or by any if there are none. The second dict is
    the state for `check_authentication`.
    """
    options, state = _server().authenticate_begin([_credential(row) for row in rows], VERIFIED)
    return dict(options), state


def check_authentication(state: Any, rows: Sequence[Authenticator], answer: Any) -> tuple[Authenticator, int]:
    """The passkey of these that answered, and its counter."""
    said = AuthenticationResponse.from_dict(answer)
    _check_origin(said)
    credentials = [_credential(row) for row in rows]
    found = _server().authenticate_complete(state, credentials, said)
    return rows[credentials.index(found)], said.response.authenticator_data.counter


def handle(user: User) -> bytes:
    """How passkeys name their user."""
    return int_to_base36(user.pk).encode()


def user_id_of(answer: Any) -> int:
    """The id of the user whom an answer names."""
    return base36_to_int(websafe_decode(answer["response"]["userHandle"]).decode())


def registered_data(row: Authenticator) -> AuthenticatorData:
    """What the passkey told when it was added."""
    said = RegistrationResponse.from_dict(row.data["credential"])
    data: AuthenticatorData = said.response.attestation_object.auth_data
    return data


def _credential(row: Authenticator) -> AttestedCredentialData:
    credential = registered_data(row).credential_data
    assert credential is not None  # noqa: S101 (fido2 adds none without)
    return credential


def _server() -> Fido2Server:
    host = urlsplit(settings.SITE_URL).hostname
    return Fido2Server(PublicKeyCredentialRpEntity(id=host, name=current().name))


def _check_origin(said: RegistrationResponse | AuthenticationResponse) -> None:
    """Raise ValueError unless the browser asked for a page of this site, and in no frame of another.

    fido2 also takes other ports and subdomains, which others may serve.
    """
    client = said.response.client_data
    if client.origin != _origin() or client.cross_origin:
        raise ValueError("of another origin")


def _origin() -> str:
    """The origin of this site's pages, as browsers write it."""
    parts = urlsplit(settings.SITE_URL)
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname}{port}"
