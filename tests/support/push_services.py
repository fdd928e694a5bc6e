import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from feedsite import celery
from notifications.push import waiting
from notifications.push.encryption import CURVE, from_base64, public_point, to_base64url
from tests.support.far_servers import FarServer, answer, certificate, running
from tests.support.workers import prompt_tasks
from web import outbound

HOST = "localhost"


class Device:
    """A browser's or app's keys, and its letters."""

    def __init__(self, service: FarServer | None = None, path: str = "/send/1") -> None:
        self.service, self.path = service, path
        self.key = ec.generate_private_key(CURVE)
        self.secret = os.urandom(16)
        self.p256dh, self.auth = to_base64url(public_point(self.key)), to_base64url(self.secret)
        if service is not None:
            service.rules[path] = answer(b"", status="201 Created")

    @property
    def endpoint(self) -> str:
        assert self.service is not None
        return self.service.url(self.path, host=HOST)

    @property
    def body(self) -> dict[str, Any]:
        """The body of POST /api/v1/me/push."""
        return {"endpoint": self.endpoint, "keys": {"p256dh": self.p256dh, "auth": self.auth}}

    @property
    def messages(self) -> list[dict[str, Any]]:
        assert self.service is not None
        return [
            msgspec.json.decode(self.opened(body, headers_of(head)))
            for head, body in zip(self.service.heads, self.service.bodies, strict=True)
            if head.split()[1] == self.path
        ]

    def opened(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Decrypt by RFC 8291 or its draft 4."""
        own = public_point(self.key)
        if headers["Content-Encoding"] == "aes128gcm":
            salt, theirs, record = body[:16], body[21 : 21 + body[20]], body[21 + body[20] :]
            key = derived(self.shared(theirs), self.secret, b"WebPush: info\0" + own + theirs, 32)
            padded = decrypted(record, key, salt, b"Content-Encoding: aes128gcm\0", b"Content-Encoding: nonce\0")
            assert padded.endswith(b"\2")
            return padded[:-1]
        theirs = from_base64(headers["Crypto-Key"].partition("dh=")[2].partition(";")[0])
        salt = from_base64(headers["Encryption"].partition("salt=")[2])
        key = derived(self.shared(theirs), self.secret, b"Content-Encoding: auth\0", 32)
        context = b"P-256\0\0\x41" + own + b"\0\x41" + theirs
        padded = decrypted(
            body, key, salt, b"Content-Encoding: aesgcm\0" + context, b"Content-Encoding: nonce\0" + context
        )
        assert padded.startswith(b"\0\0")
        return padded[2:]

    def shared(self, theirs: bytes) -> bytes:
        return self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, theirs))


def derived(key: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(key)


def decrypted(record: bytes, key: bytes, salt: bytes, key_info: bytes, nonce_info: bytes) -> bytes:
    return AESGCM(derived(key, salt, key_info, 16)).decrypt(derived(key, salt, nonce_info, 12), record, None)


def headers_of(head: str) -> dict[str, str]:
    """Headers under the names that the site writes."""
    lines = (line.partition(":") for line in head.splitlines()[1:])
    return {name: value.strip() for name, _, value in lines}


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushes run at once."""
    run = {
        "notifications.push": waiting.queue_pushes,
        "notifications.push_device": waiting.push_device,
        "notifications.push_trial": waiting.push_trial,
    }
    monkeypatch.setattr(celery.app, "send_task", prompt_tasks(lambda name, args: name in run and run[name](*args)))


@pytest.fixture
def service(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarServer]:
    """A service with https on loopback. The site trusts its certificate."""
    settings.OUTBOUND_TO_LOOPBACK = True
    server_context, client_context = certificate(HOST, tmp_path)
    monkeypatch.setattr(outbound, "_certificates", lambda: client_context)
    with running(context=server_context) as server:
        yield server
