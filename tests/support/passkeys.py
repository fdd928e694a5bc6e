"""A passkey in software, which signs what it is told to."""

import json
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.test import Client
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData

from accounts.models import User
from accounts.signing_in import webauthn

ORIGIN = settings.SITE_URL
SEEN = AuthenticatorData.FLAG.UP | AuthenticatorData.FLAG.UV


class Passkey:
    """Answers the challenges that a client of Django's gets from the site."""

    def __init__(self, host: str = "localhost") -> None:
        self.key, self.host, self.name = ec.generate_private_key(ec.SECP256R1()), sha256(host.encode()), b"k" * 32

    def add_to(self, client: Client, *, counter: int = 0, **said: Any) -> Any:
        """The response of the page that adds it. `said`: what the browser says otherwise than usual."""
        options = client.post("/settings/factors/passkey/options", **HOST).json()["publicKey"]
        public = ES256.from_cryptography_key(self.key.public_key())
        credential = AttestedCredentialData.create(b"\0" * 16, self.name, public)
        data = AuthenticatorData.create(self.host, SEEN | AuthenticatorData.FLAG.AT, counter, credential)
        parts = {
            "clientDataJSON": self._said("webauthn.create", options["challenge"], said),
            "attestationObject": websafe_encode(bytes(AttestationObject.create("none", data, {}))),
        }
        form = {"name": "a key", "credential": self._answer(parts)}
        return client.post("/settings/factors/passkey", form, **HOST)

    def answer(self, client: Client, user: User, *, counter: int = 0, path: str = "/login/passkey", **said: Any) -> str:
        """What the browser sends for a new challenge."""
        options = client.post(f"{path}/options", **HOST).json()["publicKey"]
        data = AuthenticatorData.create(self.host, SEEN, counter)
        told = self._said("webauthn.get", options["challenge"], said)
        digest = sha256(websafe_decode(told))
        parts = {
            "clientDataJSON": told,
            "authenticatorData": websafe_encode(bytes(data)),
            "signature": websafe_encode(self.key.sign(bytes(data) + digest, ec.ECDSA(hashes.SHA256()))),
            "userHandle": websafe_encode(webauthn.handle(user)),
        }
        return self._answer(parts)

    def log_in(self, client: Client, user: User, **options: Any) -> bool:
        """Whether the site lets the client in."""
        client.post("/login/passkey", {"answer": self.answer(client, user, **options)}, **HOST)
        return "_auth_user_id" in client.session

    def _answer(self, parts: dict[str, str]) -> str:
        name = websafe_encode(self.name)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": parts})

    def _said(self, kind: str, challenge: str, said: dict[str, Any]) -> str:
        return websafe_encode(json.dumps({"type": kind, "challenge": challenge, "origin": ORIGIN} | said).encode())


HOST: dict[str, Any] = {"HTTP_HOST": "localhost:8000"}
