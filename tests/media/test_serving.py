import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from media.serving import AT_ONCE_BYTES, CHUNK_BYTES, with_media

NAME = "3f/0123456789abcdef0123456789abcd"
BYTES = bytes(range(256)) * 1000
Ask = Callable[..., tuple[str, dict[str, str], bytes]]


@pytest.fixture
def ask(tmp_path: Path, settings: Any) -> Ask:
    settings.MEDIA_DIR = tmp_path
    for name in (f"{NAME}.jpg", f"{NAME}.small.webp", f"{NAME}.mp4"):
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(BYTES)
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (tmp_path / "files" / "3f" / "secret.jpg").write_bytes(b"secret")

    def call(path: str, method: str = "GET", **headers: str) -> tuple[str, dict[str, str], bytes]:
        told: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]]) -> None:
            told.extend([status, dict(headers)])

        environ = {"PATH_INFO": path, "REQUEST_METHOD": method, **headers}
        body = b"".join(with_media(lambda *_: [b"the site"], threading.BoundedSemaphore(1))(environ, start))
        return (*told, body) if told else ("", {}, body)

    return call


def test_a_file(ask: Ask) -> None:
    status, headers, body = ask(f"/media/{NAME}.jpg")
    assert (status, body) == ("200 OK", BYTES)
    assert headers["Content-Type"] == "image/jpeg"
    assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in headers["Content-Security-Policy"]
    assert (headers["Cross-Origin-Resource-Policy"], headers["Access-Control-Allow-Origin"]) == ("cross-origin", "*")
    assert headers["Content-Length"] == str(len(BYTES))
    assert ask(f"/media/{NAME}.jpg", "HEAD")[1:] == (headers, b"")
    assert ask(f"/media/{NAME}.small.webp")[1]["Content-Type"] == "image/webp"
    assert ask("/elsewhere")[2] == b"the site"


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-", 100, len(BYTES)),
        ("bytes=100-199", 100, 200),
        ("bytes=-5", len(BYTES) - 5, len(BYTES)),
        (f"bytes=0-{10**9}", 0, len(BYTES)),
        (f"bytes=-{10**9}", 0, len(BYTES)),
    ],
)
def test_a_range(ask: Ask, asked: str, begin: int, end: int) -> None:
    status, headers, body = ask(f"/media/{NAME}.mp4", HTTP_RANGE=asked)
    assert body == BYTES[begin:end]
    assert headers["Content-Length"] == str(end - begin)
    if (begin, end) != (0, len(BYTES)):
        assert status == "206 Partial Content"
        assert headers["Content-Range"] == f"bytes {begin}-{end - 1}/{len(BYTES)}"


@pytest.mark.parametrize(
    "asked", ["bytes=-", "bytes=5-2", "bytes=a-b", "bytes=0-1,5-6", "lines=0-1", "bytes=" + "9" * 30]
)
def test_a_range_that_does_not_count(ask: Ask, asked: str) -> None:
    assert ask(f"/media/{NAME}.mp4", HTTP_RANGE=asked)[::2] == ("200 OK", BYTES)


@pytest.mark.parametrize("asked", [f"bytes={len(BYTES)}-", "bytes=-0", f"bytes={10**15}-"])
def test_a_range_outside(ask: Ask, asked: str) -> None:
    status, headers, _ = ask(f"/media/{NAME}.mp4", HTTP_RANGE=asked)
    assert status.startswith("416")
    assert headers["Content-Range"] == f"bytes */{len(BYTES)}"


def test_conditions(ask: Ask) -> None:
    tag = ask(f"/media/{NAME}.mp4")[1]["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        assert ask(f"/media/{NAME}.mp4", HTTP_IF_NONE_MATCH=known)[::2] == ("304 Not Modified", b"")
    assert ask(f"/media/{NAME}.mp4", HTTP_IF_NONE_MATCH='"other"')[0] == "200 OK"
    assert ask(f"/media/{NAME}.mp4", HTTP_IF_RANGE=tag, HTTP_RANGE="bytes=0-1")[2] == BYTES[:2]
    assert ask(f"/media/{NAME}.mp4", HTTP_IF_RANGE='"other"', HTTP_RANGE="bytes=0-1")[2] == BYTES


@pytest.mark.parametrize(
    "path",
    [
        "../secret.jpg",
        "3f/../../secret.jpg",
        "3f/secret.jpg",
        f"{NAME}.png",
        f"{NAME}",
        "",
        f"{NAME}.jpg/",
        f"{NAME}.jpg\x00",
        f"{NAME}.jpg\n",
        "//etc/passwd",
        "%2e%2e/secret.jpg",
        f"3f/{'0' * 30}.jpg",
        f"{NAME.upper()}.jpg",
    ],
)
def test_no_other_file(ask: Ask, path: str) -> None:
    status, headers, body = ask(f"/media/{path}")
    assert status == "404 Not Found"
    assert b"secret" not in body
    assert headers["Cache-Control"] == "no-store"


def test_other_methods(ask: Ask) -> None:
    assert ask(f"/media/{NAME}.jpg", "POST")[0].startswith("405")


def test_the_proxy_sends_it(ask: Ask, settings: Any) -> None:
    settings.MEDIA_ACCEL_PATH = "/kept/"
    _, headers, body = ask(f"/media/{NAME}.jpg")
    assert headers["X-Accel-Redirect"] == f"/kept/{NAME}.jpg"
    assert headers["Content-Type"] == "image/jpeg"
    assert "sandbox" in headers["Content-Security-Policy"]
    assert body == b""
    assert ask("/media/../secret.jpg")[0] == "404 Not Found"


def test_slow_readers_of_large_files_leave_a_thread(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_DIR = tmp_path
    large, video = tmp_path / f"files/{NAME}.jpg", tmp_path / f"files/{NAME}.mp4"
    large.parent.mkdir(parents=True)
    for path in (large, video):
        path.write_bytes(bytes(AT_ONCE_BYTES + 1))
    application = with_media(lambda *_: [b"the site"], threading.BoundedSemaphore(1))
    told: list[str] = []

    def get(path: str, **headers: str) -> Any:
        environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET", **headers}
        return application(environ, lambda status, _headers: told.append(status[:3]))

    first = get(f"/media/{NAME}.jpg")
    assert next(first) == bytes(CHUNK_BYTES)
    get(f"/media/{NAME}.jpg")
    part = get(f"/media/{NAME}.mp4", HTTP_RANGE="bytes=1-")
    assert [len(each) for each in part] == [AT_ONCE_BYTES]
    part = get(f"/media/{NAME}.mp4", HTTP_RANGE="bytes=0-")
    assert [len(each) for each in part] == [AT_ONCE_BYTES]
    first.close()
    first.close()
    get(f"/media/{NAME}.jpg")  # dropped before the first read
    assert b"".join(get(f"/media/{NAME}.jpg")) == large.read_bytes()
    assert told == ["200", "503", "206", "206", "200", "200"]
