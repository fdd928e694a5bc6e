"""How a message is encrypted for one device (RFC 8291, or draft 4 of it for older apps) and signed (RFC 8292).

See docs/decisions.md: Own code in place of a library.
"""

import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.utils.crypto import salted_hmac
from urllib3.util import parse_url

from accounts.about.site import current
from storage.site_key import known_keys

CURVE = ec.SECP256R1()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve. A private key is a number from 1 to below it."""
RECORD_BYTES = 4_096
"""The size of a record. A message is one record, and smaller."""
SIGNATURE_SECONDS = 12 * 3600
"""How long a push service may believe a signature. The standard allows a day."""


class EncryptedMessage(NamedTuple):
    """An encrypted message, and headers to open it."""

    body: bytes
    headers: dict[str, str]


def to_base64url(data: bytes) -> str:
    """Base64url without padding, as every key and secret is spelled."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def from_base64(text: str) -> bytes:
    """The bytes of base64 or base64url, padded or not. Raises ValueError."""
    return urlsafe_b64decode(text.rstrip("=").replace("+", "-").replace("/", "_") + "==")


def public_point(key: ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey) -> bytes:
    """The public key as 65 bytes."""
    public = key.public_key() if isinstance(key, ec.EllipticCurvePrivateKey) else key
    return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


# --- Encryption ------------------------------------------------------------------------------------------
def encrypt_message(message: bytes, *, p256dh: str, auth: str, is_standard: bool = True) -> EncryptedMessage:
    """A message that only this device can open."""
    sealing = encrypt_rfc8291 if is_standard else encrypt_draft_04
    return sealing(message, from_base64(p256dh), from_base64(auth), ec.generate_private_key(CURVE), os.urandom(16))


def encrypt_rfc8291(
    message: bytes, device: bytes, secret: bytes, own: ec.EllipticCurvePrivateKey, salt: bytes
) -> EncryptedMessage:
    """The letter by RFC 8291: one record of RFC 8188 after salt and public key."""
    ours = public_point(own)
    key = _hkdf(_shared_secret(own, device), secret, b"WebPush: info\0" + device + ours, 32)
    content_key = _hkdf(key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _hkdf(key, salt, b"Content-Encoding: nonce\0", 12)
    record = AESGCM(content_key).encrypt(nonce, message + b"\2", None)
    head = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([len(ours)]) + ours
    return EncryptedMessage(head + record, {"Content-Encoding": "aes128gcm"})


def encrypt_draft_04(
    message: bytes, device: bytes, secret: bytes, own: ec.EllipticCurvePrivateKey, salt: bytes
) -> EncryptedMessage:
    """The letter by draft-ietf-webpush-encryption-04."""
    ours = public_point(own)
    key = _hkdf(_shared_secret(own, device), secret, b"Content-Encoding: auth\0", 32)
    context = b"P-256\0" + b"".join(len(each).to_bytes(2, "big") + each for each in (device, ours))
    content_key = _hkdf(key, salt, b"Content-Encoding: aesgcm\0" + context, 16)
    nonce = _hkdf(key, salt, b"Content-Encoding: nonce\0" + context, 12)
    record = AESGCM(content_key).encrypt(nonce, b"\0\0" + message, None)
    headers = {"Encryption": f"salt={to_base64url(salt)}", "Crypto-Key": f"dh={to_base64url(ours)}"}
    return EncryptedMessage(record, {"Content-Encoding": "aesgcm", **headers})


def _shared_secret(own: ec.EllipticCurvePrivateKey, device: bytes) -> bytes:
    return own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, device))


def _hkdf(key: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(key)


# --- Signature -------------------------------------------------------------------------------------------
@lru_cache(8)
def _site_key(secret: str) -> ec.EllipticCurvePrivateKey:
    """The site's key pair, made of a secret key: the same on every machine, also after a restart or restore."""
    digest = salted_hmac("notifications.push", "", secret=secret, algorithm="sha512").digest()
    return ec.derive_private_key(int.from_bytes(digest, "big") % (ORDER - 1) + 1, CURVE)


def public_key() -> str:
    """The key by which push services know the site."""
    return to_base64url(public_point(_site_key(settings.SECRET_KEY)))


def _key_for_device(server_key: str) -> ec.EllipticCurvePrivateKey:
    """The site's key that a device was told, perhaps an earlier one."""
    keys = [_site_key(secret) for secret in known_keys()]
    return next((key for key in keys if to_base64url(public_point(key)) == server_key), keys[0])


def vapid_headers(letter: EncryptedMessage, endpoint: str, server_key: str) -> dict[str, str]:
    """The headers with the site's signature."""
    own = _key_for_device(server_key)
    parts = parse_url(endpoint)  # by which it was checked
    contact = current().contact_email
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + SIGNATURE_SECONDS,
        "sub": f"mailto:{contact}" if contact else str(settings.SITE_URL),
    }
    said = ".".join(to_base64url(msgspec.json.encode(part)) for part in ({"typ": "JWT", "alg": "ES256"}, claims))
    numbers = decode_dss_signature(own.sign(said.encode(), ec.ECDSA(SHA256())))
    token = f"{said}.{to_base64url(b''.join(number.to_bytes(32, 'big') for number in numbers))}"
    if "Crypto-Key" not in letter.headers:
        return letter.headers | {"Authorization": f"vapid t={token},k={to_base64url(public_point(own))}"}
    key = f"{letter.headers['Crypto-Key']};p256ecdsa={to_base64url(public_point(own))}"
    return letter.headers | {"Authorization": f"WebPush {token}", "Crypto-Key": key}
