"""Encryption and signatures of push messages match the standards' examples."""

import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from notifications.push.encryption import (
    CURVE,
    EncryptedMessage,
    encrypt_draft_04,
    encrypt_message,
    encrypt_rfc8291,
    from_base64,
    public_key,
    to_base64url,
    vapid_headers,
)
from tests.support.push_services import Device

pytestmark = pytest.mark.django_db

DEVICE = from_base64("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
SECRET = from_base64("BTBZMqHH6r4Tts7J_aSIgg")
SALT = from_base64("DGv6ra1nlYgDCS1FRnbzlw")
OWN = ec.derive_private_key(int.from_bytes(from_base64("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big"), CURVE)
MESSAGE = b"When I grow up, I want to be a watermelon"


def test_the_example_of_the_standard() -> None:
    """RFC 8291, appendix A."""
    letter = encrypt_rfc8291(MESSAGE, DEVICE, SECRET, OWN, SALT)
    assert to_base64url(letter.body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
        "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert letter.headers == {"Content-Encoding": "aes128gcm"}


def test_the_draft_as_another_library_has_it() -> None:
    """Bytes from http_ece 1.2.1, `version="aesgcm"`."""
    letter = encrypt_draft_04(MESSAGE, DEVICE, SECRET, OWN, SALT)
    assert (
        to_base64url(letter.body) == "4qwOLFm_mNy0vf1A8f3Bm6B5UD15y3aV_xZy14pixUhcPTIoZKHzq5i3dZ6PzqSMxBI_-VDUZ4jW04M"
    )
    assert letter.headers["Encryption"] == "salt=DGv6ra1nlYgDCS1FRnbzlw"


@pytest.mark.parametrize("is_standard", [True, False])
def test_only_the_device_opens_it(is_standard: bool) -> None:
    device = Device()
    letter = encrypt_message(MESSAGE, p256dh=device.p256dh, auth=device.auth, is_standard=is_standard)
    assert MESSAGE not in letter.body
    assert device.opened(letter.body, letter.headers) == MESSAGE
    assert letter.body != encrypt_message(MESSAGE, p256dh=device.p256dh, auth=device.auth, is_standard=is_standard).body


@pytest.mark.parametrize("is_standard", [True, False])
def test_the_site_signs_for_one_service(is_standard: bool) -> None:
    device = Device()
    letter = encrypt_message(MESSAGE, p256dh=device.p256dh, auth=device.auth, is_standard=is_standard)
    headers = vapid_headers(letter, "https://push.example.org:443/send/1?a=b", public_key())
    kind, _, said = headers["Authorization"].partition(" ")
    token = said.removeprefix("t=").partition(",")[0]
    head, claims, signature = token.split(".")
    assert json.loads(from_base64(head)) == {"typ": "JWT", "alg": "ES256"}
    told = json.loads(from_base64(claims))
    assert told["aud"] == "https://push.example.org:443"
    assert time.time() < told["exp"] <= time.time() + 24 * 3600
    numbers = from_base64(signature)
    key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, from_base64(public_key()))
    der = encode_dss_signature(int.from_bytes(numbers[:32], "big"), int.from_bytes(numbers[32:], "big"))
    key.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(SHA256()))
    if is_standard:
        assert (kind, said.partition(",k=")[2]) == ("vapid", public_key())
    else:
        assert kind == "WebPush"
        assert headers["Crypto-Key"].endswith(f";p256ecdsa={public_key()}")


def test_an_endpoint_that_parsers_read_differently() -> None:
    token = vapid_headers(EncryptedMessage(b"", {}), "https://push.example.org\\[/1", public_key())[
        "Authorization"
    ].split(".")[1]
    assert json.loads(from_base64(token))["aud"] == "https://push.example.org"


def test_every_machine_with_the_secret_key_has_the_same(settings: Any) -> None:
    before = public_key()
    assert public_key() == before
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another"
    assert public_key() != before

    def key_of_signature() -> str:
        return vapid_headers(EncryptedMessage(b"", {}), "https://push.example.org/", before)["Authorization"].partition(
            ",k="
        )[2]

    assert key_of_signature() == public_key()
    settings.SECRET_KEY_FALLBACKS = [old]
    assert key_of_signature() == before
