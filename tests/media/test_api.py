import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rest_framework.test import APIClient

from accounts.models import User
from media import actions
from media.models import MediaFile
from media.objects import parse_focus
from media.processing import convert_waiting
from media.store import store
from tests.support.api import client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.pictures import animation, encoded, files_of, jpeg, mp4, opened, picture, upload, webm

pytestmark = pytest.mark.django_db

MEDIA = "/api/v1/me/media"


def send(client: APIClient, data: bytes, *, name: str = "a.jpg", headers: Any = None, **fields: str) -> Any:
    return client.post(MEDIA, {"file": upload(data, name), **fields}, format="multipart", **(headers or {}))


def kept(media_id: str) -> Image.Image:
    row = MediaFile.objects.get(pk=int(media_id))
    with store().open(row.files[0]) as file:
        return opened(file.read())


@pytest.mark.slow
def test_a_photo(client: APIClient, ann: User, media_folder: Path) -> None:
    answer = send(client, jpeg(4100, 3075), description="a cat", focus="0.5,-0.25")
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert told["type"] == "image"
    assert told["description"] == "a cat"
    assert told["url"].startswith("/media/")
    assert told["meta"]["original"] == {"width": 2048, "height": 1536, "size": "2048x1536", "aspect": 1.3333}
    assert told["meta"]["small"] == {"width": 640, "height": 480, "size": "640x480", "aspect": 1.3333}
    assert told["meta"]["focus"] == {"x": 0.5, "y": -0.25}
    assert len(told["blurhash"]) > 6
    row = MediaFile.objects.get(pk=int(told["id"]))
    assert row.owner_id == ann.pk
    assert kept(told["id"]).size == (2048, 1536)
    assert len(files_of(media_folder)) == 6
    assert client.get(f"{MEDIA}/{told['id']}").json() == told
    assert client_of(UserFactory.create()).get(f"{MEDIA}/{told['id']}").status_code == 404
    assert client.patch(f"{MEDIA}/{told['id']}", {"description": "two", "focus": "0,1"}).json()["description"] == "two"
    assert client.delete(f"{MEDIA}/{told['id']}").status_code == 204
    assert client.get(f"{MEDIA}/{told['id']}").status_code == 404


def chunk(kind: bytes, data: bytes, crc: int | None = None) -> bytes:
    return (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)
    )


TEXTS = {
    "a wrong sum of a text": chunk(b"tEXt", b"Comment\0words", crc=1),
    "a wrong sum of a packed text": chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"words"), crc=1),
    "a wrong sum of a text of the world": chunk(b"iTXt", b"Comment\0\0\0\0\0words", crc=1),
    "an unknown packing": chunk(b"zTXt", b"Comment\0\7words"),
    "a long packed text": chunk(b"zTXt", b"mxfile\0\0" + zlib.compress(bytes(3 * 2**20))),
    "many texts": chunk(b"tEXt", b"Comment\0words") * 2_000,
    "an empty text": chunk(b"tEXt", b""),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("place", [b"IDAT", b"IEND"])
def test_texts_of_a_png_do_not_matter(client: APIClient, name: str, place: bytes) -> None:
    head, kind, rest = encoded(picture(), "PNG").partition(place)
    answer = send(client, head[:-4] + TEXTS[name] + head[-4:] + kind + rest)
    assert answer.status_code == 201, answer.content
    assert kept(answer.json()["id"]).size == (80, 60)


@pytest.mark.parametrize("kind", [b"IHDR", b"PLTE"])
def test_a_wrong_sum_of_other_parts_matters(client: APIClient, kind: bytes) -> None:
    data = bytearray(encoded(picture(mode="P"), "PNG"))
    at = data.index(kind)
    (length,) = struct.unpack(">I", data[at - 4 : at])
    data[at + 4 + length] ^= 1
    assert send(client, bytes(data)).status_code == 400


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_default_picture_of_an_apng_is_no_frame(client: APIClient, count: int) -> None:
    red, *frames = [Image.new("RGB", (8, 8), (255 if not number else 0, 50 * number, 0)) for number in range(count + 1)]
    data = encoded(red, "PNG", save_all=True, default_image=True, append_images=frames, duration=100)
    answer = send(client, data)
    assert answer.status_code == 201, answer.content
    found = kept(answer.json()["id"])
    assert getattr(found, "n_frames", 1) == count
    assert found.convert("RGB").getpixel((4, 4))[0] < 60  # type: ignore[index]


@pytest.mark.parametrize("words", ["", " ", "\n\t", "\u200b", "\u3000\u2800", "\u200e\ufeff"])
def test_blank_words_are_none(client: APIClient, words: str) -> None:
    told = send(client, jpeg(), description=words).json()
    assert told["description"] == ""
    assert client.patch(f"{MEDIA}/{told['id']}", {"description": "a cat"}).json()["description"] == "a cat"
    assert client.patch(f"{MEDIA}/{told['id']}", {"description": words}).json()["description"] == ""


@pytest.mark.parametrize(
    ("focus", "point"),
    [
        ("1e-3,0", (0.001, 0)),
        ("-1E0,+1", (-1, 1)),
        (" .5 , -.5 ", (0.5, -0.5)),
        ("0.12345678901234567,1.", (0.12345678901234567, 1)),
        ("1e999,0", None),
        ("1e-999,0", (0, 0)),
        ("nan,0", None),
        ("inf,0", None),
        ("0x1,0", None),
        ("1_0e-1,0", None),
        ("\u0661,0", None),
        ("e1,0", None),
        (".,0", None),
        ("0,0,0", None),
        ("1.0001,0", None),
        ("0" * 5_000, None),
    ],
)
def test_a_focus_is_two_numbers(client: APIClient, focus: str, point: tuple[float, float] | None) -> None:
    answer = send(client, jpeg(), focus=focus)
    assert answer.status_code == (400 if point is None else 201)
    assert point is None or answer.json()["meta"]["focus"] == {"x": point[0], "y": point[1]}
    assert parse_focus(focus) == point


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "GIF", "HEIF"])
def test_kinds(client: APIClient, kind: str) -> None:
    answer = send(client, encoded(picture(200, 100), kind))
    assert answer.status_code == 201, answer.content
    found = kept(answer.json()["id"])
    assert (found.format, found.size) == ("JPEG", (200, 100))
    red, green, blue = found.convert("RGB").getpixel((30, 20))
    assert red > 180
    assert max(green, blue) < 90


def test_transparency_becomes_webp(client: APIClient) -> None:
    image = picture(200, 100).convert("RGBA")
    image.putalpha(Image.new("L", image.size, 90))
    answer = send(client, encoded(image, "PNG"))
    assert kept(answer.json()["id"]).format == "WEBP"


@pytest.mark.slow
def test_an_animation(client: APIClient) -> None:
    for kind in ("GIF", "WEBP", "PNG"):
        answer = send(client, animation(5, kind))
        found = kept(answer.json()["id"])
        assert (found.format, found.n_frames) == ("WEBP", 5), kind  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", range(1, 9))
def test_orientation(client: APIClient, way: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = way
    turned = picture(200, 100)
    answer = send(client, encoded(turned, exif=exif))
    found = kept(answer.json()["id"])
    assert found.size == ((200, 100) if way < 5 else (100, 200))
    corner = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 1), 5: (0, 0), 6: (1, 0), 7: (1, 1), 8: (0, 1)}[way]
    place = (10 if corner[0] == 0 else found.width - 10, 10 if corner[1] == 0 else found.height - 10)
    assert found.getpixel(place)[0] > 180  # type: ignore[index]
    assert not found.getexif()


def test_nothing_beside_the_pixels_survives(client: APIClient) -> None:
    exif = Image.Exif()
    exif[0x010E] = "Eiffel Tower"
    exif.get_ifd(0x8825)[1] = "N"
    data = encoded(picture(), exif=exif, comment=b"Eiffel Tower", icc_profile=b"Eiffel Tower", xmp=b"Eiffel Tower")
    answer = send(client, data + b"PK\x03\x04Eiffel Tower")
    row = MediaFile.objects.get(pk=int(answer.json()["id"]))
    for name in row.files:
        with store().open(name) as file:
            told = file.read()
        assert b"Eiffel" not in told
        assert b"PK\x03\x04" not in told
        assert not {"exif", "icc_profile", "comment", "xmp"} & opened(told).info.keys()


@pytest.mark.parametrize(
    ("data", "ext", "sides"),
    [(mp4(), "mp4", (64, 36)), (mp4(container="mov", turned=True), "mp4", (36, 64)), (webm(), "webm", (64, 36))],
)
def test_a_video(client: APIClient, data: bytes, ext: str, sides: tuple[int, int]) -> None:
    answer = send(client, data, name="holiday.exe")
    assert answer.status_code == 202, answer.content
    assert convert_waiting()
    told = client.get(f"{MEDIA}/{answer.json()['id']}").json()
    assert (told["type"], told["meta"]["duration"]) == ("video", pytest.approx(1 / 3, abs=0.01))
    assert (told["meta"]["original"]["width"], told["meta"]["original"]["height"]) == sides
    row = MediaFile.objects.get(pk=int(told["id"]))
    assert row.files == [f"{row.name}.{ext}", f"{row.name}.small.jpg"]
    with store().open(row.files[0]) as file:
        found = file.read()
    assert len(found) == row.size
    assert b"+48.8" not in found
    assert b"Eiffel" not in found
    with store().open(row.files[1]) as file:
        assert opened(file.read()).size == sides


def test_media_of_others_are_out_of_reach(client: APIClient) -> None:
    address = f"{MEDIA}/{send(client, jpeg(), description='a cat').json()['id']}"
    other = client_of(UserFactory.create())
    assert other.delete(address).status_code == 404
    assert other.patch(address, {"description": "a dog"}).status_code == 404
    assert client.get(address).json()["description"] == "a cat"


@pytest.mark.django_db(transaction=True)
def test_a_key_at_the_same_time_keeps_one_file(ann: User, media_folder: Path) -> None:
    made = at_once(*[lambda: actions.upload(owner_id=ann.pk, file=upload(jpeg()), key="one").pk] * 3)
    assert len(set(made)) == 1, made
    assert MediaFile.objects.count() == 1
    assert len(files_of(media_folder)) == 2


def test_an_idempotency_key(client: APIClient) -> None:
    key = {"HTTP_IDEMPOTENCY_KEY": "one"}
    first = send(client, jpeg(), headers=key)
    assert send(client, jpeg(), headers=key).json() == first.json()
    assert MediaFile.objects.count() == 1
    assert send(client, jpeg(90), headers=key).status_code == 409


def test_a_description_that_is_no_utf8(client: APIClient) -> None:
    for said, status in ((b"\xff", 400), ("猫".encode(), 201)):
        body = b'--x\r\nContent-Disposition: form-data; name="description"\r\n\r\n' + said + b"\r\n--x\r\n"
        body += b'Content-Disposition: form-data; name="file"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
        body += jpeg(8, 8) + b"\r\n--x--\r\n"
        answer = client.generic("POST", MEDIA, body, content_type="multipart/form-data; boundary=x")
        assert answer.status_code == status, answer.content
    assert [row.description for row in MediaFile.objects.all()] == ["猫"]
