import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as site
from PIL import Image
from rest_framework.test import APIClient

from media.models import MediaFile
from media.store import store
from tests.support.api import API
from tests.support.effort import some
from tests.support.pictures import animation, encoded, files_of, jpeg, opened, picture, upload

pytestmark = pytest.mark.django_db

SCRIPT = b"<script>alert(document.domain)</script>"
LAUGHS = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
LAUGHS += b"".join(b'<!ENTITY %c "%s">' % (99 + number, b"&%c;" % (98 + number) * 8) for number in range(20))
LAUGHS += b"]><x:xmpmeta xmlns:x='adobe:ns:meta/'>&v;</x:xmpmeta>"
OUTSIDE = b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><x:xmpmeta xmlns:x='adobe:ns:meta/'>&a;</x:xmpmeta>"
SWOLLEN = 200 * 2**20
"""Bytes after decompression, from a few hundred thousand."""


def send(client: APIClient, data: bytes) -> Any:
    return client.post(f"{API}/me/media", {"file": upload(data)}, format="multipart")


def kept(answer: Any) -> list[bytes]:
    assert answer.status_code == 201, answer.content
    found = []
    for name in MediaFile.objects.get(pk=int(answer.json()["id"])).files:
        with store().open(name) as file:
            found.append(file.read())
    return found


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*more: bytes, pixels: bytes | None = None, depth: int = 8, colours: int = 2) -> bytes:
    """40 by 30, with more chunks before its pixels."""
    width = 40 * {0: 1, 2: 3, 6: 4}[colours] * depth // 8
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 30, depth, colours, 0, 0, 0))
    data = zlib.compress((b"\0" + b"\x80" * width) * 30) if pixels is None else pixels
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def swollen() -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(SWOLLEN // 2**20)) + packer.flush()


def archived() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("evil.class", SCRIPT)
    return file.getvalue()


POLYGLOTS: dict[str, Callable[[], bytes]] = {
    "a JPEG and an archive": lambda: jpeg() + archived(),
    "a PNG and a page": lambda: encoded(picture(), "PNG") + b"<!doctype html>" + SCRIPT,
    "a GIF and an archive": lambda: encoded(picture(), "GIF") + archived(),
    "an animation and an archive": lambda: animation(3) + archived(),
    "a WebP and a page": lambda: encoded(picture(), "WEBP") + SCRIPT,
    "a page in a comment of JPEG": lambda: encoded(picture(), comment=b"*/alert(1)//" + SCRIPT),
    "a page in a comment of GIF": lambda: encoded(picture(), "GIF", comment=SCRIPT),
    "a page in a text of PNG": lambda: png(chunk(b"tEXt", b"Comment\0" + SCRIPT)),
    "a document in a JPEG": lambda: jpeg()[:2] + b"\xff\xfe\x00\x10%PDF-1.7\n1 0 ob" + jpeg()[2:] + SCRIPT,
    "a page in an unknown chunk": lambda: png(chunk(b"evIL", SCRIPT * 50)),
    "a page in a profile": lambda: encoded(picture(), icc_profile=SCRIPT * 20),
    "a page in EXIF": lambda: encoded(picture(), exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0" + SCRIPT),
}


@pytest.mark.parametrize("name", POLYGLOTS)
def test_the_picture_alone_is_kept(client: APIClient, name: str) -> None:
    for data in kept(send(client, POLYGLOTS[name]())):
        assert b"alert" not in data
        assert b"PK\x03\x04" not in data
        assert b"%PDF" not in data
        assert opened(data).format in ("JPEG", "WEBP")


def test_a_script_under_the_head_of_a_gif(client: APIClient) -> None:
    """Its header is a JavaScript expression. Its size fields are letters."""
    answer = send(client, b"GIF89a/*" + bytes(20) + b"*/=1;alert(1)//" + SCRIPT * 10)
    assert answer.status_code in (400, 413), answer.content
    assert files_of(site.MEDIA_DIR) == []


@pytest.mark.parametrize("words", [LAUGHS, OUTSIDE, b"<x:xmpmeta" + b"<a>" * 20_000], ids=["laughs", "outside", "deep"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_xml_in_metadata_is_not_read(client: APIClient, kind: str, words: bytes) -> None:
    if kind == "PNG":
        data = png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + words))
    else:
        data = encoded(picture(), kind, xmp=words)
    assert words[:30] in data
    for found in kept(send(client, data)):
        assert b"xmpmeta" not in found
        assert b"root:" not in found


SWELLING: dict[str, Callable[[], bytes]] = {
    "pixels": lambda: png(pixels=swollen()),
    "a text": lambda: png(chunk(b"zTXt", b"Comment\0\0" + swollen())),
    "many texts": lambda: png(*[chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(2**20))) for _ in range(200)]),
    "a profile": lambda: png(chunk(b"iCCP", b"icc\0\0" + swollen())),
    "a packet": lambda: png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + swollen())),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", some(2, [*SWELLING]))
def test_swelling_parts_are_refused_or_left_out(client: APIClient, name: str) -> None:
    answer = send(client, SWELLING[name]())
    assert answer.status_code in (201, 400, 413), answer.content
    if answer.status_code == 201:
        assert all(len(data) < 20_000 for data in kept(answer))
    else:
        assert files_of(site.MEDIA_DIR) == []


@pytest.mark.parametrize(("depth", "colours"), [(16, 0), (16, 2), (16, 6)], ids=["gray", "colours", "with alpha"])
def test_sixteen_bits(client: APIClient, depth: int, colours: int) -> None:
    found = opened(kept(send(client, png(depth=depth, colours=colours)))[0]).convert("RGB").getpixel((20, 15))
    assert isinstance(found, tuple)
    assert all(120 < level < 136 for level in found), found


@pytest.mark.parametrize(
    "kind", ["JPEG", pytest.param("AVIF", marks=pytest.mark.long), pytest.param("HEIF", marks=pytest.mark.long)]
)
@pytest.mark.slow
def test_fifty_megapixels(client: APIClient, kind: str, settings: Any) -> None:
    """The largest accepted size, for each decoder that keeps a copy of the pixels."""
    settings.MEDIA_IMAGE_BYTES = 100 * 2**20
    image = Image.linear_gradient("L").resize((8660, 5773)).convert("RGB")
    assert image.width * image.height <= site.MEDIA_PIXELS
    data = encoded(image, kind, **({"speed": 10} if kind == "AVIF" else {}))
    answer = send(client, data)
    assert answer.status_code == 201, answer.content
    assert answer.json()["meta"]["original"]["size"] == "2048x1365"
