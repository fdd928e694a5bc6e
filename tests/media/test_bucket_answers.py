import http.server
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from media import bucket, sweeping
from media.bucket import Bucket
from media.files import StoreError, new_name
from media.models import FileMove, MediaFile
from runtime.addresses import parse_bucket
from tests.support.api import API
from tests.support.buckets import BucketServer
from tests.support.effort import some
from tests.support.pictures import files_of, jpeg, upload

SECRET = "s3cret/of+the=bucket"
REFUSALS = [(403, "ExpiredToken"), (403, "InvalidAccessKeyId"), (403, "SignatureDoesNotMatch"), (403, "AccessDenied")]
REFUSALS += [(400, "ExpiredToken"), (404, "NoSuchBucket"), (301, "PermanentRedirect"), (503, "SlowDown")]


class Refusing:
    """A store that refuses and records every request."""

    def __init__(self) -> None:
        self.status, self.code = 403, "ExpiredToken"
        self.asked: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append(f"{self.command} {self.headers['Host']}{self.path}")
                said = f"<Error><Code>{outer.code}</Code><Message>{self.headers['Authorization']}</Message></Error>"
                body = b"" if self.command == "HEAD" else said.encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_DELETE = handle_one  # noqa: N815 (http.server asks for these)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        origin = f"http://127.0.0.1:{self.server.server_port}"
        return f"s3://AKIDEXAMPLE:{quote(SECRET, safe='')}@127.0.0.1/photos?endpoint={origin}"


@pytest.fixture
def refusing(settings: Any) -> Iterator[Refusing]:
    store = Refusing()
    settings.MEDIA_STORE_SECRET_URL = store.address
    settings.MEDIA_STORE_TIMEOUT_SECONDS = 5.0
    bucket.breaker.reset()
    yield store
    bucket.breaker.reset()
    store.server.shutdown()
    store.server.server_close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("status", "code"), some(3, REFUSALS))
def test_a_store_that_refuses(
    client: APIClient,
    refusing: Refusing,
    media_folder: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    status: int,
    code: str,
) -> None:
    """Uploads get 503 and leave nothing. No log or answer has the secret or a signature."""
    caplog.set_level(logging.DEBUG, logger="media")
    refusing.status, refusing.code = status, code
    answer = client.post(f"{API}/me/media", {"file": upload(jpeg())}, format="multipart")
    assert answer.status_code == 503, answer.content
    assert int(answer["Retry-After"]) >= 1
    assert not MediaFile.objects.exists()
    assert files_of(media_folder) == []
    written = f"{caplog.text} {''.join(capfd.readouterr())} {answer.content.decode()}"
    assert "the bucket" in caplog.text, "the log says why"
    assert not [word for word in (SECRET, "AKIDEXAMPLE", "Signature=", "Authorization") if word in written]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_moves_wait_for_a_store_that_refuses(refusing: Refusing) -> None:
    FileMove.objects.create(name=new_name(), to="", ext="jpg", small_ext="")
    assert sweeping.sweep() == 0
    assert FileMove.objects.count() == 1, "it is tried again"
    with pytest.raises(StoreError):
        sweeping.sweep_files(["00"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    server = BucketServer(tmp_path_factory.mktemp("bucket"))
    yield server
    server.stop()


@pytest.mark.slow
def test_a_bucket_named_in_the_host(server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket's name is a subdomain of the endpoint. The test resolves every name in `.test`."""
    find = socket.getaddrinfo
    hosts: list[str] = []

    def found(host: Any, *args: Any, **kwargs: Any) -> Any:
        hosts.append(host)
        return find("127.0.0.1" if str(host).endswith(".test") else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    bucket.breaker.reset()
    server.made(name := f"b{time.monotonic_ns()}")
    query = f"endpoint=http://s3.amazonaws.test:{server.port}&style=virtual"
    files = Bucket(parse_bucket(f"s3://someone:a%2Fsecret@127.0.0.1/{name}?{query}"), 30)
    source = tmp_path / "a.jpg"
    source.write_bytes(jpeg())
    first, second = f"{new_name()}.jpg", f"{new_name()}.jpg"
    files.save(source, first)
    files.move(first, second)
    assert not files.has(first)
    with files.open(second) as file:
        assert file.read() == jpeg()
    assert [one.name for one in files.listing(second[:2])] == [second]
    files.delete(second)
    assert not files.has(second)
    assert {host for host in hosts if str(host).endswith(".test")} == {f"{name}.s3.amazonaws.test"}


@pytest.mark.long
@pytest.mark.parametrize("secret", ["a b", "ünïcode", "%41%25", "a:b@c", "?x=y&z", "'\"<>", "a+b=c/d", "\\"])
def test_secrets_of_unusual_letters(server: BucketServer, secret: str, tmp_path: Path) -> None:
    server.made(name := f"b{time.monotonic_ns()}")
    address = parse_bucket(f"s3://AKID%2FEXAMPLE:{quote(secret, safe='')}@h/{name}?endpoint={server.url}")
    assert (address.key, address.secret) == ("AKID/EXAMPLE", secret)
    source = tmp_path / "a.jpg"
    source.write_bytes(b"x")
    bucket.breaker.reset()
    files = Bucket(address, 30)
    files.save(source, named := f"{new_name()}.jpg")
    assert files.has(named)


@pytest.mark.parametrize(
    "public",
    [
        "https://cdn.example.org",
        "https://cdn.example.org/",
        "https://cdn.example.org/a/b.c/~d/",
        "http://10.0.0.7:8080/media",
        "https://[2001:db8::1]:8443/m",
        "https://CDN.example.org/M",
    ],
)
def test_public_bases(public: str) -> None:
    assert parse_bucket(f"s3://k:s@h/photos?public={public}").public == public.rstrip("/")


@pytest.mark.parametrize(
    "public",
    [
        "//cdn.example.org",
        "ftp://cdn.example.org",
        "https://user:pw@cdn.example.org",
        "https://cdn.example.org/a b",
        "https://cdn.example.org//a",
        "https://cdn.example.org/ä",
        "https://cdn.example.org/'x'",
        "https://cdn.example.org/a;b",
        "https://*.example.org",
        "https://",
    ],
)
def test_public_bases_that_are_none(public: str) -> None:
    """A bad base breaks the CSP or an address. It is refused at start, and the error hides the secret."""
    with pytest.raises(ValueError, match=r"public address|a space") as refused:
        parse_bucket(f"s3://k:hushhush@h/photos?public={public}")
    assert "hushhush" not in str(refused.value)
