"""Bad files get a reason and leave nothing behind."""

import os
import signal
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.test import Client
from PIL import Image
from rest_framework.test import APIClient

from accounts.models import User
from media import actions, decoder
from media.decoding import address_space
from media.models import MediaFile
from media.store import store
from tests.support.pictures import (
    animation,
    box,
    element,
    encoded,
    files_of,
    jpeg,
    mp4,
    opened,
    picture,
    upload,
    webm,
)

pytestmark = pytest.mark.django_db

MEDIA = "/api/v1/me/media"
TENTHS = range(1, 10)


def send(client: APIClient, data: bytes, name: str = "a.jpg", kind: str = "image/jpeg") -> Any:
    return client.post(MEDIA, {"file": upload(data, name, kind)}, format="multipart")


def refused(client: APIClient, data: bytes, status: int, **options: str) -> str:
    """Checks that nothing was stored, and returns the reason."""
    answer = send(client, data, **options)
    assert answer.status_code == status, (answer.status_code, answer.content)
    assert answer["Content-Type"] == "application/json"
    assert not MediaFile.objects.exists()
    assert files_of(site.MEDIA_DIR) == []
    (reason,) = answer.json()["file"]
    return str(reason)


def png_of(width: int, height: int, *, rows: int | None = None) -> bytes:
    """The header states this size. The body has `rows` black rows."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    data = zlib.compress(bytes((width + 1) * (height if rows is None else rows)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


# --- Wrong format ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 100,
        b"GIF8",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<!DOCTYPE html><script>alert(1)</script>",
        b"%PDF-1.7",
        b"PK\x03\x04",
        b"MZ",
        b"II*\x00" + bytes(200),
        b"BM" + bytes(200),
        b"8BPS" + bytes(200),
        b"%!PS-Adobe-3.0 EPSF-3.0",
        b"ID3" + bytes(100),
    ],
)
def test_other_files(client: APIClient, data: bytes) -> None:
    assert "Use a picture" in refused(client, data, 415)


@pytest.mark.parametrize("head", [b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\x10\0\0\0WEBP"])
def test_a_head_without_a_picture(client: APIClient, head: bytes) -> None:
    assert "damaged" in refused(client, head + b"<script>alert(1)</script>" * 20, 400)


def test_one_kind_under_the_head_of_another(client: APIClient) -> None:
    assert "damaged" in refused(client, b"\xff\xd8\xff" + encoded(picture(), "PNG")[3:], 400)


# --- Truncated -------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "GIF", "HEIF"])
def test_cut_pictures(client: APIClient, kind: str) -> None:
    noisy = Image.effect_noise((90, 70), 80).convert("RGB")
    whole = encoded(noisy, kind)
    for tenth in TENTHS:
        answer = send(client, whole[: len(whole) * tenth // 10])
        assert answer.status_code == 400, (tenth, answer.content)
    assert files_of(site.MEDIA_DIR) == []


@pytest.mark.parametrize("whole", [mp4(), webm()], ids=["mp4", "webm"])
def test_cut_videos(client: APIClient, whole: bytes) -> None:
    for tenth in TENTHS:
        assert send(client, whole[: len(whole) * tenth // 10]).status_code == 400, tenth
    assert files_of(site.MEDIA_DIR) == []


@pytest.mark.parametrize(
    "data",
    [
        box(b"ftyp", b"isom", bytes(4)),
        box(b"ftyp", b"isom", bytes(4)) + box(b"moov", box(b"trak")) + box(b"mdat", b"x"),
        box(b"ftyp", b"isom", bytes(4)) + box(b"evil", b"x"),
        box(b"ftyp", b"isom", bytes(4)) + b"<script>alert(1)</script>",
        box(b"ftyp", b"isom", bytes(4)) + struct.pack(">I4s", 4, b"moov"),
        box(b"ftyp", b"isom", bytes(4)) + struct.pack(">I4sQ", 1, b"mdat", 2**63),
        box(b"ftyp", b"isom", bytes(4)) + box(b"moov", *[box(b"free")] * 21_000) + box(b"mdat", b"x"),
        b"\x1a\x45\xdf\xa3",
        b"\x1a\x45\xdf\xa3\x00\x00",
        element(b"\x1a\x45\xdf\xa3", element(b"\x42\x82", b"webm")),
    ],
)
def test_videos_that_are_none(client: APIClient, data: bytes) -> None:
    assert "This video doesn't work here" in refused(client, data, 400)


# --- Too large -------------------------------------------------------------------------------------------
def test_too_many_bytes(client: APIClient, settings: Any) -> None:
    settings.MEDIA_IMAGE_BYTES = settings.MEDIA_VIDEO_BYTES = 2**20
    assert "up to 1 MB" in refused(client, jpeg() + bytes(2**20), 413)
    assert "up to 1 MB" in refused(client, mp4() + bytes(2**20), 413)
    assert client.post(MEDIA, {"file": upload(bytes(2**21))}, format="multipart").status_code == 413


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (2**31 - 1, 2**31 - 1), (7072, 7072)])
def test_too_many_pixels(client: APIClient, width: int, height: int) -> None:
    assert "megapixels" in refused(client, png_of(width, height, rows=0), 413)


def test_a_line(client: APIClient) -> None:
    answer = send(client, png_of(60_000, 1))
    assert answer.json()["meta"]["original"]["size"] == "2048x1"


@pytest.mark.long
def test_too_many_frames(client: APIClient, settings: Any) -> None:
    assert "Most frames: 500." in refused(client, animation(10_000, size=(2, 2)), 413)
    settings.MEDIA_PIXELS = 1_000_000
    assert "frames" in refused(client, animation(90, size=(400, 300)), 413)


def test_less_memory_than_a_picture_needs(client: APIClient, settings: Any) -> None:
    assert address_space(12_000_000) < 0.6 * 2**30
    assert address_space(50_000_000) < 1.2 * 2**30
    settings.MEDIA_PIXELS = 2_000_000
    assert send(client, jpeg(1600, 1200)).status_code == 201


@pytest.mark.long
def test_fifty_megapixels(client: APIClient) -> None:
    image = Image.new("RGBA", (7071, 7071), (200, 30, 30, 90))
    answer = send(client, encoded(image, "PNG", compress_level=1))
    assert answer.status_code == 201, answer.content
    assert answer.json()["meta"]["original"]["size"] == "2048x2048"


def test_an_endless_decoder_is_ended(client: APIClient, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs must not delay the next upload."""
    settings.MEDIA_SECONDS = 0.001
    assert "damaged" in refused(client, jpeg(3000, 2000), 400)
    settings.MEDIA_SECONDS = 60.0
    assert send(client, jpeg()).status_code == 201


@pytest.mark.slow
def test_a_program_that_was_killed_is_started_again(client: APIClient) -> None:
    assert send(client, jpeg()).status_code == 201
    program = decoder.decoder._program
    assert program is not None
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    assert send(client, jpeg(90)).status_code == 201


@pytest.mark.parametrize("data", [jpeg(), mp4(), webm()], ids=["a picture", "mp4", "webm"])
def test_all_places_are_taken(client: APIClient, settings: Any, data: bytes) -> None:
    settings.MEDIA_PROCESSES, settings.MEDIA_WAIT_SECONDS = 1, 0.05
    with decoder.decoder_slot():
        answer = send(client, data)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert send(client, data).status_code in (201, 202)


# --- Unusual but valid -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_modes(client: APIClient, mode: str) -> None:
    image = picture(120, 90)
    if mode == "I;16":
        image = image.convert("L").point([level << 8 for level in range(256)], "I").convert("I;16")
    elif mode == "P":
        image = image.convert(mode, palette=Image.Palette.ADAPTIVE)
    else:
        image = image.convert(mode)
    data = encoded(image, "JPEG" if mode == "CMYK" else "PNG")
    answer = send(client, data)
    assert answer.status_code == 201, answer.content
    row = MediaFile.objects.get(pk=int(answer.json()["id"]))
    with store().open(row.files[0]) as file:
        found = opened(file.read()).convert("L")
    expected = picture(120, 90).convert("L")
    if mode != "1":
        for place in ((20, 20), (90, 20), (90, 70)):
            assert abs(int(found.getpixel(place)) - int(expected.getpixel(place))) < 12, place  # type: ignore[arg-type]


def test_a_palette_with_transparency(client: APIClient) -> None:
    image = picture(120, 90).convert("P", palette=Image.Palette.ADAPTIVE, colors=8)
    answer = send(client, encoded(image, "PNG", transparency=image.getpixel((10, 10))))
    row = MediaFile.objects.get(pk=int(answer.json()["id"]))
    with store().open(row.files[0]) as file:
        found = opened(file.read()).convert("RGBA")
    assert row.ext == "webp"
    assert found.getpixel((10, 10))[3] == 0  # type: ignore[index]
    assert found.getpixel((100, 80))[3] == 255  # type: ignore[index]


def test_poisoned_metadata(client: APIClient) -> None:
    xml = b"http://ns.adobe.com/xap/1.0/\x00<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><x>&a;</x>"
    exif = b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\xff\xff" + b"\x01\x12\x00\x03\xff\xff\xff\xff" * 50
    data = jpeg()
    parts = b"".join(b"\xff\xe1" + struct.pack(">H", len(part) + 2) + part for part in (xml, exif))
    answer = send(client, data[:2] + parts + data[2:])
    assert answer.status_code == 201, answer.content


@pytest.mark.parametrize(
    "name",
    ["a\x00b.jpg", "../../../etc/passwd", "C:\\x\\y.jpg", "\u202egpj.exe", "x" * 4000, "." + "x" * 4000, ".", ""],
)
def test_names_of_files(client: APIClient, name: str) -> None:
    boundary = "frontier"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    body = head + jpeg() + f"\r\n--{boundary}--\r\n".encode()
    before = set(files_of(site.MEDIA_DIR.parent))
    answer = client.generic("POST", MEDIA, body, f"multipart/form-data; boundary={boundary}")
    assert answer.status_code in (201, 400), answer.content
    assert all(path.is_relative_to(site.MEDIA_DIR) for path in set(files_of(site.MEDIA_DIR.parent)) - before)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"description": "x" * 1501}, "description"),
        ({"description": "a\x00b"}, "description"),
        ({"focus": "1.1,0"}, "focus"),
        ({"focus": "nan,0"}, "focus"),
        ({"focus": "0"}, "focus"),
        ({"focus": ","}, "focus"),
        ({"owner_id": "1"}, "owner_id"),
        ({"use": "item"}, "use"),
    ],
)
def test_fields(client: APIClient, fields: dict[str, str], field: str) -> None:
    answer = client.post(MEDIA, {"file": upload(jpeg()), **fields}, format="multipart")
    assert answer.status_code == 400, answer.content
    assert field in answer.json()
    assert not MediaFile.objects.exists()


def test_envelopes(client: APIClient) -> None:
    assert client.post(MEDIA, {}, format="multipart").json() == {"file": ["No file was submitted."]}
    assert client.post(MEDIA, {"file": "words"}, format="multipart").status_code == 400
    assert client.post(MEDIA, {"file": [upload(jpeg()), upload(jpeg())]}, format="multipart").status_code == 400
    assert client.post(MEDIA, {"file": "words"}, format="json").status_code == 415
    assert client.generic("POST", MEDIA, b"x", "multipart/form-data").status_code == 400
    assert client.generic("POST", MEDIA, b"x" * 100, "multipart/form-data; boundary=y").status_code == 400
    assert APIClient().post(MEDIA, {"file": upload(jpeg())}, format="multipart").status_code == 401
    assert not MediaFile.objects.exists()


@pytest.mark.slow
def test_a_session_needs_its_token(ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    assert client.post(MEDIA, {"file": upload(jpeg())}).status_code == 403
    client.get("/settings")
    token = client.cookies["csrftoken"].value
    assert client.post(MEDIA, {"file": upload(jpeg())}, headers={"X-CSRFToken": token}).status_code == 201


# --- Interrupted -----------------------------------------------------------------------------------------
def test_what_fails_leaves_nothing(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, name: str) -> None:
        raise actions.StoreError("full")

    monkeypatch.setattr(store(), "save", full)
    answer = send(client, jpeg())
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert not MediaFile.objects.exists()
    assert files_of(site.MEDIA_DIR) == []
