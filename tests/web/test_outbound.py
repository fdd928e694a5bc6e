"""Nothing internal is reached, and no server holds up the site."""

import gzip
import ssl
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import brotli
import pytest

from tests.support import servers
from tests.support.far_servers import FarServer, Say, answer, certificate, dripping, moved, raw, running
from web import outbound

HTML = ("text/html",)
pytestmark = pytest.mark.slow


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(outbound, "SECONDS", 1.0)
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 4.0


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::5db8:d822", True),
        ("0.0.0.1", False),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("172.16.0.1", False),
        ("192.0.0.192", False),
        ("168.63.129.16", False),
        ("192.168.0.1", False),
        ("198.18.0.1", False),
        ("203.0.113.1", False),
        ("224.0.0.1", False),
        ("239.1.1.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::127.0.0.1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b:1::7f00:1", False),
        ("2002:7f00:1::", False),
        ("2002:5db8:d822::", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("2001:db8::1", False),
        ("fc00::1", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
        ("fe80::1%1", False),
        ("fec0::1", False),
        ("ff02::1", False),
    ],
)
def test_public_addresses(address: str, wanted: bool) -> None:
    assert outbound.is_public(ip_address(address)) == wanted


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1%25lo]/",
        "http://93.184.216.34:22/",
        "http://93.184.216.34:6379/",
        "http://name:password@93.184.216.34/",
        "ftp://93.184.216.34/",
        "file:///etc/passwd",
        "gopher://93.184.216.34/",
        "//93.184.216.34/",
        "93.184.216.34",
        "http:///",
        "http://[",
        "http://a b/",
        "",
    ],
)
def test_refused_addresses(url: str) -> None:
    with pytest.raises(outbound.OutboundError):
        outbound.get(url, types=HTML, member=1)
    with pytest.raises(outbound.OutboundError):
        outbound.post(url, headers={}, body=b"", member=1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/", "http://localhost:{port}/"])
def test_no_server_of_this_machine_is_asked(far: FarServer, settings: Any, url: str) -> None:
    settings.OUTBOUND_TO_LOOPBACK = False
    far.rules["/"] = answer(b"secret")
    for port in (far.port, 80):
        with pytest.raises(outbound.AddressRefusedError):
            outbound.get(url.format(port=port), types=HTML, member=1)
    assert not far.heads


def test_what_is_asked(far: FarServer, settings: Any) -> None:
    settings.SITE_URL = "https://here.example"
    far.rules["/a?b=%C3%BC"] = answer(b"<title>Hi</title>", kind="Text/HTML; charset=utf-8", Set_Cookie="a=b")
    found = outbound.get(far.url("/a?b=ü#fragment"), types=("text/html", "text/plain"), member=1)
    assert found.body == b"<title>Hi</title>"
    assert found.is_whole
    assert found.status == 200
    [head] = far.heads
    assert f"Host: 127.0.0.1:{far.port}\r\n" in head
    assert "User-Agent: feedsite/" in head
    assert "(+https://here.example)" in head
    assert "Accept: text/html, text/plain\r\n" in head
    assert not any(name in head.lower() for name in ("cookie", "authorization", "referer"))


def test_a_push(far: FarServer) -> None:
    far.rules["/push"] = answer(b"", status="201 Created", Location="https://elsewhere.example")
    far.rules["/moved"] = moved("/push")
    found = outbound.post(far.url("/push"), headers={"TTL": "60"}, body=b"sealed", member=1)
    assert (found.status, found.headers["location"]) == (201, "https://elsewhere.example")
    assert "TTL: 60\r\n" in far.heads[0]
    assert far.bodies == [b"sealed"]
    assert outbound.post(far.url("/moved"), headers={}, body=b"", member=1).status == 302
    assert far.paths == ["/push", "/moved"]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_redirects(far: FarServer, status: str) -> None:
    far.rules |= {"/1": moved("2", status), "/2": moved("//127.0.0.1:" + f"{far.port}/3", status)}
    far.rules["/3"] = raw(f"HTTP/1.1 {status}\r\nLocation: /4ü\r\nContent-Length: 0\r\n\r\n".encode())
    far.rules["/4%C3%BC"] = answer(b"here")
    found = outbound.get(far.url("/1"), types=HTML, member=1)
    assert (found.url, found.body) == (far.url("/4%C3%BC"), b"here")
    assert not any("cookie" in head.lower() for head in far.heads)


def test_redirects_have_an_end(far: FarServer) -> None:
    far.rules |= {f"/{number}": moved(f"/{number + 1}") for number in range(10)} | {"/round": moved("/round")}
    for path in ("/0", "/round"):
        with pytest.raises(outbound.OutboundError, match="too many"):
            outbound.get(far.url(path), types=HTML, member=1)
    assert far.paths == ["/0", "/1", "/2", "/3", *["/round"] * 4]


@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://inside.example/",
        "file:///etc/passwd",
        "http://[",
        "http://user:pass@127.0.0.1/",
    ],
)
def test_a_redirect_leads_nowhere_inside(far: FarServer, names: dict[str, list[list[str]]], to: str) -> None:
    names["inside.example"] = [["192.168.1.1", "fd00::1"]]
    far.rules["/"] = moved(to)
    with pytest.raises(outbound.AddressRefusedError):
        outbound.get(far.url("/"), types=HTML, member=1)


def test_a_redirect_to_loopback_is_refused(
    far: FarServer, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first counts as public. The second is ::1."""
    monkeypatch.setattr(outbound, "is_public", lambda address: str(address) == "127.0.0.1")
    monkeypatch.setattr(outbound.settings, "OUTBOUND_TO_LOOPBACK", False)
    monkeypatch.setitem(outbound.PORTS, "http", far.port)
    names["inside.example"] = [["::1"]]
    for to in (f"http://[::1]:{far.port}/secret", f"http://inside.example:{far.port}/secret"):
        far.rules["/"] = moved(to)
        with pytest.raises(outbound.AddressRefusedError):
            outbound.get(far.url("/"), types=HTML, member=1)
    assert far.paths == ["/", "/"]


def test_a_name_that_changes_between_check_and_use(far: FarServer, names: dict[str, list[list[str]]]) -> None:
    """The connection uses the checked address."""
    names["changing.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    far.rules["/"] = answer(b"checked")
    with running("127.0.0.2", far.port) as inside:
        inside.rules["/"] = answer(b"secret")
        found = outbound.get(far.url("/", host="changing.example"), types=HTML, member=1)
        assert not inside.heads
    assert found.body == b"checked"
    assert f"Host: changing.example:{far.port}\r\n" in far.heads[0]
    assert names["changing.example"] == [["127.0.0.2"]]


def test_a_name_that_changes_with_a_redirect(far: FarServer, names: dict[str, list[list[str]]]) -> None:
    names["changing.example"] = [["127.0.0.1"], ["10.0.0.1"]]
    far.rules["/"] = moved("/again")
    with pytest.raises(outbound.AddressRefusedError):
        outbound.get(far.url("/", host="changing.example"), types=HTML, member=1)
    assert far.paths == ["/"]


def test_only_the_public_addresses_of_a_name_are_asked(far: FarServer, names: dict[str, list[list[str]]]) -> None:
    names["both.example"] = [["10.0.0.1", "127.0.0.9", "127.0.0.1"]]
    far.rules["/"] = answer(b"here")  # nobody listens at 127.0.0.9
    assert outbound.get(far.url("/", host="both.example"), types=HTML, member=1).body == b"here"


def test_a_name_that_takes_too_long(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound.socket, "getaddrinfo", lambda *_args, **_more: time.sleep(3) or [])
    with pytest.raises(outbound.OutboundError, match="name took too long"):
        outbound.get("http://slow.example/", types=HTML, member=1)


def test_unknown_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nobody.invalid", "a" * 64 + ".example", "a..example", ".", "xn--0.example"):
        with pytest.raises(outbound.OutboundError):
            outbound.get(f"http://{name}/", types=HTML, member=1)


@pytest.mark.long
@pytest.mark.parametrize(
    "rule",
    [
        lambda _say: time.sleep(3),  # hangs
        dripping(b"", b"H"),
        dripping(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\n", b"x"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.0),
    ],
)
def test_slow_servers(soon: None, far: FarServer, rule: Any) -> None:
    far.rules["/"] = rule
    with pytest.raises(outbound.OutboundError):
        outbound.get(far.url("/"), types=HTML, member=1)


def test_a_server_that_hangs_before_tls(soon: None, far: FarServer) -> None:
    with pytest.raises(outbound.OutboundError):
        outbound.get(far.url("/").replace("http:", "https:"), types=HTML, member=1)


def test_slow_redirects_share_one_deadline(soon: None, far: FarServer) -> None:
    def slowly(say: Any) -> None:
        time.sleep(0.4)
        moved("/")(say)

    far.rules["/"] = slowly
    with pytest.raises(outbound.OutboundError):
        outbound.get(far.url("/"), types=HTML, member=1)
    assert len(far.paths) <= 3


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00" * 100,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\nless",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\nno gzip",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_answers_that_are_none(far: FarServer, sent: bytes) -> None:
    far.rules["/"] = raw(sent)
    with pytest.raises(outbound.OutboundError):
        outbound.get(far.url("/"), types=HTML, member=1)


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/png", "", "text/htmlx"])
def test_other_types_are_not_read(far: FarServer, kind: str) -> None:
    far.rules["/"] = answer(b"x" * 100, kind=kind)
    with pytest.raises(outbound.OutboundError, match="content type"):
        outbound.get(far.url("/"), types=HTML, member=1)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "206 Partial Content", "304 Not Modified"])
def test_other_answers_have_no_body(far: FarServer, status: str) -> None:
    far.rules["/"] = answer(b"x" * 100, status=status)
    found = outbound.get(far.url("/"), types=HTML, member=1)
    assert (found.status, found.body) == (int(status[:3]), b"")


def test_a_gigabyte(far: FarServer) -> None:
    sent = 0

    def huge(say: Any) -> None:
        nonlocal sent
        say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000000\r\n\r\n")
        for _megabyte in range(1000):
            say(b"x" * 1_000_000)
            sent += 1

    far.rules["/"] = huge
    found = outbound.get(far.url("/"), types=HTML, member=1)
    assert len(found.body) == outbound.MOST_BYTES
    assert not found.is_whole
    assert sent < 50


@pytest.mark.parametrize("encodings", ["gzip", "gzip, gzip", "br"])
def test_a_bomb(far: FarServer, encodings: str) -> None:
    packer: Any = brotli.Compressor(quality=3) if encodings == "br" else zlib.compressobj(9, wbits=31)
    pack, end = (packer.process, packer.finish) if encodings == "br" else (packer.compress, packer.flush)
    bomb = b"".join(pack(bytes(1 << 20)) for _megabyte in range(100)) + end()
    if encodings == "gzip, gzip":
        bomb = gzip.compress(bomb)
    far.rules["/"] = answer(bomb, Content_Encoding=encodings)
    began = time.process_time()
    found = outbound.get(far.url("/"), types=HTML, member=1)
    assert len(found.body) == outbound.MOST_BYTES
    assert not found.is_whole
    assert time.process_time() - began < 1.0


def test_gzip(far: FarServer) -> None:
    far.rules["/"] = answer(gzip.compress(b"<title>"), Content_Encoding="gzip")
    assert outbound.get(far.url("/"), types=HTML, member=1).body == b"<title>"


def test_certificates(
    far: FarServer, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They depend on the name, not the pinned address."""
    context, trusting = certificate("right.example", tmp_path)
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    names |= {"right.example": [["127.0.0.1"], ["127.0.0.1"]], "wrong.example": [["127.0.0.1"]]}
    with running(context=context) as server:
        server.rules["/"] = answer(b"sealed")
        with pytest.raises(outbound.OutboundError, match="CERTIFICATE_VERIFY_FAILED"):
            outbound.get(server.url("/", host="right.example"), types=HTML, member=1)  # no trusted issuer
        monkeypatch.setattr(outbound, "_certificates", lambda: trusting)
        assert outbound.get(server.url("/", host="right.example"), types=HTML, member=1).body == b"sealed"
        with pytest.raises(outbound.OutboundError, match="CERTIFICATE_VERIFY_FAILED"):
            outbound.get(server.url("/", host="wrong.example"), types=HTML, member=1)
        assert asked == ["right.example", "right.example", "wrong.example"]
        assert len(server.heads) == 1
    assert isinstance(outbound._certificates(), ssl.SSLContext)


# --- Budgets ---------------------------------------------------------------------------------------------
def after(seconds: float) -> Callable[[Say], None]:

    def late(say: Say) -> None:
        time.sleep(seconds)
        answer(b"here")(say)

    return late


def budgets(settings: Any, *, member: int, host: int) -> None:
    settings.RATES = settings.RATES | {"outside_member": f"{member}/hour", "outside_host": f"{host}/hour"}


def asked(far: FarServer, member: int, host: str = "127.0.0.1") -> outbound.OutboundError | None:
    try:
        outbound.get(far.url("/", host=host), types=HTML, member=member)
    except outbound.OutboundError as error:
        return error
    return None


def test_a_member_whose_hosts_are_slow(far: FarServer, soon: None, settings: Any) -> None:
    budgets(settings, member=2_500, host=100_000)
    far.rules["/"] = after(2.0)
    assert not any(isinstance(asked(far, 1), outbound.OverBudgetError) for _ in range(2))
    refused = asked(far, 1)
    assert isinstance(refused, outbound.OverBudgetError)
    assert 3500 < refused.seconds <= 3600
    assert len(far.heads) == 2
    far.rules["/"] = answer(b"here")
    assert asked(far, 2) is None, "others have budgets of their own"


@pytest.mark.usefixtures("soon")
def test_a_member_whose_hosts_are_slow_without_the_cache_server(
    far: FarServer, settings: Any, feeds_server: servers.Valkey
) -> None:
    budgets(settings, member=2_500, host=100_000)
    with servers.dead(feeds_server):
        far.rules["/"] = answer(b"here")
        assert [asked(far, 1) for _ in range(30)] == [None] * 30, "what is not needed is given back"
        far.rules["/"] = after(2.0)
        assert not any(isinstance(asked(far, 1), outbound.OverBudgetError) for _ in range(2))
        refused = asked(far, 1)
        assert isinstance(refused, outbound.OverBudgetError)
        assert 3500 < refused.seconds <= 3600
        far.rules["/"] = answer(b"here")
        assert asked(far, 2) is None, "others have budgets of their own"


def test_fast_hosts_cost_what_they_take(far: FarServer, settings: Any) -> None:
    budgets(settings, member=6_000, host=2_000)
    far.rules["/"] = answer(b"here")
    assert [asked(far, 1) for _ in range(30)] == [None] * 30


def test_a_slow_host_of_many_members(far: FarServer, soon: None, settings: Any) -> None:
    budgets(settings, member=100_000, host=1_200)
    far.rules["/"] = after(2.0)
    assert not isinstance(asked(far, 1), outbound.OverBudgetError)
    assert isinstance(asked(far, 2), outbound.OverBudgetError)
    far.rules["/"] = answer(b"here")
    assert asked(far, 3, host="localhost") is None, "other hosts have budgets of their own"


def test_each_host_of_a_redirect_pays(far: FarServer, soon: None, settings: Any) -> None:
    budgets(settings, member=100_000, host=1_200)
    far.rules["/to"] = moved(far.url("/", host="localhost"))
    far.rules["/"] = after(2.0)
    with pytest.raises(outbound.OutboundError):
        outbound.get(far.url("/to"), types=HTML, member=1)
    assert isinstance(asked(far, 1, host="localhost"), outbound.OverBudgetError)
    far.rules["/"] = answer(b"here")
    assert asked(far, 1) is None


def test_requests_at_once_pass_no_budget(far: FarServer, soon: None, settings: Any) -> None:
    budgets(settings, member=3_000, host=100_000)
    far.rules["/"] = after(2.0)
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: asked(far, 1), range(10)))
    assert sum(isinstance(error, outbound.OverBudgetError) for error in found) == 7
    assert len(far.heads) == 3
