"""The shipped Caddy and nginx configurations. No client chooses the address that the rates count.

Only ports, folders and certificates differ.
"""

import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis
import websocket
from django.conf import settings
from django.template import loader

from items import actions as items
from relations import actions as relations
from runtime.embedded import die_with_parent, wait_for
from tests.support.clients import token_of
from tests.support.clusters import free_ports
from tests.support.factories import UserFactory
from tests.support.streams import StreamServer
from tests.support.web import WebServer
from tests.support.whole_sites import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DEPLOY = Path(settings.BASE_DIR) / "deploy"
CLIENT = "127.0.0.2"
"""The proxy has 127.0.0.1."""
FORGED = "198.51.100.{}"
PATH, STREAM, SOCKET = "/api/v1/users/absent", "/api/v1/stream", "/api/v1/streaming"


def spellings(name: str) -> list[str]:
    """Every spelling with hyphens or underscores."""
    words = name.split("-")
    joints = itertools.product("-_", repeat=len(words) - 1)
    return ["".join(itertools.chain(*zip(words, [*joint, ""], strict=True))) for joint in joints]


NAMES = [
    *(spelling for name in ("X-Forwarded-For", "X-Real-IP", "X-Client-IP") for spelling in spellings(name)),
    *("Forwarded", "FORWARDED", "x_FORWARDED-for", "Remote_Addr", "REMOTE-ADDR"),
]


class Proxy(NamedTuple):
    name: str
    port: int
    web: WebServer
    stream: StreamServer


def caddy(folder: Path, port: int, web: int, stream: int) -> list[str]:
    text = (DEPLOY / "Caddyfile").read_text()
    places = {"web:8000": f"127.0.0.1:{web}", "stream:8001": f"127.0.0.1:{stream}", "/srv/feedsite/deploy": str(DEPLOY)}
    for named, here in places.items():
        assert named in text
        text = text.replace(named, here)
    options = "admin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects"
    assert text.startswith("{\n")
    text = text.replace("{\n", f"{{\n{options}\n", 1)
    (folder / "Caddyfile").write_text(text.replace("_DOMAIN} {\n", "_DOMAIN} {\nlog\n"))  # a log that operators may add
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def nginx(folder: Path, port: int, web: int, stream: int) -> list[str]:
    text = (DEPLOY / "nginx.conf").read_text()
    changes = [
        (r"(?s)server {\n    listen 80;.*?\n}\n", ""),
        (r"listen 443 ssl http2", f"listen 127.0.0.1:{port}"),
        (r"\n +ssl_[a-z]+ [^\n]*", ""),
        (r"127\.0\.0\.1:8000", f"127.0.0.1:{web}"),
        (r"127\.0\.0\.1:8001", f"127.0.0.1:{stream}"),
        ("/srv/feedsite/deploy", str(DEPLOY)),
        ("/var/log/nginx/", f"{folder}/"),
    ]
    for pattern, here in changes:
        text, count = re.subn(pattern, here, text)
        assert count, pattern
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    head = f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
    (folder / "nginx.conf").write_text(f"{head}http {{\naccess_log off;\n{folders}{text}\n}}\n")
    return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


PROGRAMS: dict[str, Callable[[Path, int, int, int], list[str]]] = {"caddy": caddy, "nginx": nginx}


@contextlib.contextmanager
def running(name: str, folder: Path, scheme: str, port: int, web: int, stream: int) -> Iterator[None]:
    """Run the proxy of this name until the block ends."""
    if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip(f"{name} is not installed")
    paths = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "proxy.log").open("ab") as log:
        process = subprocess.Popen(
            PROGRAMS[name](folder, port, web, stream),
            env=os.environ | paths | {"FEEDSITE_DOMAIN": f"{scheme}://127.0.0.1:{port}"},
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        try:
            assert wait_for(lambda: is_open(port), 60), (folder / "proxy.log").read_text()
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def proxy(name: str, folder: Path, *, scheme: str = "http", **environ: str) -> Iterator[Proxy]:
    """A proxy with its web and stream processes. Caddy knows `https` too."""
    asked = {"FEEDSITE_RATE_SCALE": "1", "FEEDSITE_PROXY": "1"} | environ
    web, stream = WebServer(folder, **asked), StreamServer(folder, **asked)
    port, _ = free_ports()
    with contextlib.ExitStack() as stack:
        for server in (web, stream):
            stack.callback(server.kill)
            server.start()
        stack.enter_context(running(name, folder, scheme, port, web.port, stream.port))
        yield Proxy(name, port, web, stream)


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def has_certificate(port: int) -> bool:
    """Caddy starts to make one when it listens."""
    with contextlib.suppress(ssl.SSLError):
        return ask(port, "/healthz", tls=True).status == 200
    return False


def ask(port: int, path: str, *headers: str, source: str = CLIENT, tls: bool = False) -> http.client.HTTPResponse:
    """Send the header lines unchanged."""
    with contextlib.ExitStack() as stack:
        connection = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
        stack.enter_context(connection)
        if tls:
            insecure = ssl._create_unverified_context()  # noqa: S323 (the certificate is the test's own)
            connection = stack.enter_context(insecure.wrap_socket(connection))
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "Connection: close", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        response = http.client.HTTPResponse(connection)
        response.begin()
        response.read()
        return response


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peer_of_the_proxy_is_counted_whatever_it_says(name: str, tmp_path: Path, feeds: redis.Redis) -> None:
    with proxy(name, tmp_path, FEEDSITE_RATES="read=3/hour,attempt=3/hour") as front:
        assert [ask(front.port, PATH).status for _ in range(2)] == [404, 404]
        assert {key.decode() for key in feeds.keys("rate:*")} == {f"rate:read:{CLIENT}"}
        assert ask(front.port, PATH).status == 404
        for number, header in enumerate(NAMES):
            forged = FORGED.format(number)
            for value in (forged, f'for="{forged}";proto=https', f"for={forged}", f"{forged}, {forged}"):
                assert ask(front.port, PATH, f"{header}: {value}").status == 429, header
        every = [f"{header}: {FORGED.format(99)}" for header in NAMES]
        assert ask(front.port, PATH, *every).status == 429
        assert ask(front.port, PATH, *reversed(every)).status == 429
        assert {key.decode() for key in feeds.keys("rate:*")} == {f"rate:read:{CLIENT}"}
        assert ask(front.port, PATH, *every, source="127.0.0.3").status == 404
        guess = "Authorization: Token {}"
        assert [ask(front.port, STREAM, guess.format(n)).status for n in range(4)] == [401] * 3 + [429]
        for number, header in enumerate(every):
            assert ask(front.port, STREAM, guess.format(number), header).status == 429, header
        assert ask(front.port, STREAM, guess, *every, source="127.0.0.3").status == 401
        assert ask(front.port, "/metrics", source="127.0.0.4").status != 200
        assert ask(front.port, "/healthz", "X-Request-ID: mine").headers["X-Request-ID"] == "mine"
        for name in ("X_Request_ID", "X_Request-ID", "X-Request_ID"):
            assert ask(front.port, "/healthz", f"{name}: mine").headers["X-Request-ID"] != "mine", "it is stripped"


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_client_says_that_it_came_over_tls(name: str, tmp_path: Path) -> None:
    """Web and stream redirect to https."""
    with proxy(name, tmp_path, FEEDSITE_HTTPS="1") as front:
        for path in (PATH, STREAM):
            assert ask(front.port, path).status == 301
            for header in (*spellings("X-Forwarded-Proto"), "X_Forwarded_Scheme", "Feedsite.Scheme", "Forwarded"):
                for value in ("https", "proto=https", "for=192.0.2.1;proto=https"):
                    assert ask(front.port, path, f"{header}: {value}").status == 301, header
        straight = ask(front.web.port, PATH, "Forwarded: for=192.0.2.1;proto=https", source="127.0.0.1")
        assert straight.status == 404, "the proxy's word is believed"
        straight = ask(front.stream.port, STREAM, 'Forwarded: for="192.0.2.1";proto=https')
        assert straight.status == 401


@pytest.mark.long
def test_what_came_over_tls_is_known_to_have(tmp_path: Path) -> None:
    """Otherwise it would be redirected in a loop."""
    with proxy("caddy", tmp_path, scheme="https", FEEDSITE_HTTPS="1") as front:
        headers = [f"{name}: http" for name in spellings("X-Forwarded-Proto")]
        assert wait_for(lambda: has_certificate(front.port), 60)
        for path, status in ((PATH, 404), (STREAM, 401)):
            assert ask(front.port, path, *headers, "Forwarded: proto=http", tls=True).status == status


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_socket_passes(name: str, tmp_path: Path) -> None:
    sender, reader = UserFactory(), UserFactory()
    relations.follow(follower=reader, followee=sender)
    with proxy(name, tmp_path) as here:
        address = f"ws://127.0.0.1:{here.port}{SOCKET}?stream=user"
        opened = websocket.create_connection(address, timeout=30, subprotocols=[token_of(reader)])
        item = items.publish(sender=sender, content={"text": "hello"})
        assert json.loads(json.loads(opened.recv())["payload"])["id"] == str(item.pk)
        opened.shutdown()


def test_the_page_of_the_proxies_is_the_sites_own() -> None:
    assert (DEPLOY / "503.html").read_text() == loader.get_template("503.html").render()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_site_that_does_not_answer_has_its_own_page(name: str, tmp_path: Path) -> None:
    port, gone = free_ports()
    with running(name, tmp_path, "http", port, gone, gone):
        for method, path in itertools.product(("GET", "POST", "DELETE"), ("/", "/api/v1/items", STREAM, SOCKET)):
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request(method, path)
                answer = connection.getresponse()
                assert (answer.status, answer.headers["Retry-After"]) == (503, "2"), (method, path)
                assert answer.headers["Content-Type"].startswith("text/html")
                assert answer.read() == (DEPLOY / "503.html").read_bytes()
        assert ask(port, "/../deploy/nginx.conf").status != 200
        assert ask(port, "/nginx.conf").status == 503


@pytest.mark.long
@pytest.mark.timeout(900)
def test_up_behind_a_proxy(tmp_path: Path) -> None:
    """Pages and apps are told of the proxy's address alone, by the site's URL alone."""
    port, own = free_ports()
    more = {"FEEDSITE_URL": f"https://127.0.0.1:{port}", "FEEDSITE_HTTPS": "1", "FEEDSITE_ALLOWED_HOSTS": "localhost"}
    site = Site(tmp_path / "var", own, more)
    try:
        site.wait_until_up()
        assert site.says("This site has no administrator yet", 60), "no demo comes to a public site unasked"
        with running("caddy", tmp_path, "https", port, own, own + 1):
            assert wait_for(lambda: has_certificate(port), 60)
            instance = ask(port, "/api/v2/instance", tls=True)
            assert instance.status == 200
            assert f"127.0.0.1:{own + 1}" not in instance.headers["Content-Security-Policy"]
            assert ask(port, "/about", tls=True).status == 200
            assert wait_for(lambda: ask(port, STREAM, tls=True).status == 401, 60), "its process starts after web"
            assert ask(port, f"{SOCKET}/health", tls=True).status == 200
    finally:
        site.end()


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_log_has_a_token_or_ticket(name: str, tmp_path: Path) -> None:
    """Also while the site's programs do not answer, which is an error."""
    port, web, stream = *free_ports(), free_ports()[0]
    paths = [
        f"{SOCKET}?stream=user&access_token=SECRET",
        f"{SOCKET}/user?access_token=SECRET",
        f"{STREAM}?ticket=SECRET",
    ]
    paths += ["/api/v1/timelines/home?access_token=SECRET"] if name == "caddy" else []
    with running(name, tmp_path, "http", port, web, stream):
        for path in paths:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as asked:
                asked.request("GET", path)
                assert asked.getresponse().status == 503
    lines = "".join(log.read_text() for log in tmp_path.glob("*.log"))
    assert lines.count(SOCKET) >= 2
    assert "SECRET" not in lines
