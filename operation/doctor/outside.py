"""Looks at the site as visitors do: by the name of FEEDSITE_URL, through the proxy."""

import http.client
import socket
import ssl
import time
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from accounts.models import User
from accounts.signing_in.grants import issue_ticket
from media import store as media
from media.models import MediaFile
from media.objects import address
from operation.doctor.findings import Finding, Findings, make_finding

WAIT_SECONDS = 5.0
STREAM_SECONDS = 20.0
"""The stream writes a comment every 15 seconds."""
DAY_SECONDS = 86_400
LATEST_FILES = 20
NO_ANSWER = "docs/runbook.md, No answer"
PROXY = "docs/proxy.md"
HEADERS = ("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "X-Request-ID")
"""Headers of a page that the proxy must pass on."""


def site() -> Findings:
    """Check the certificate, then through the proxy a page, its headers, the redirect, the stream and a picture."""
    place = urlsplit(settings.SITE_URL)
    if place.scheme != "https":
        return
    try:
        ends = certificate_ends()
    except ssl.SSLCertVerificationError as error:
        yield _certificate(f"is refused: {error.verify_message}", days=0)
        return
    except OSError as error:
        yield make_finding(
            "outside",
            f"{settings.SITE_URL} does not answer ({type(error).__name__}: {error})",
            warning=True,
            todo="Check FEEDSITE_URL, DNS, the firewall and the proxy. If others reach it, and only this machine does "
            "not, add the name to /etc/hosts.",
        )
        return
    days = (ends - time.time()) / DAY_SECONDS
    yield _certificate(f"is good for {days:.0f} days", days=days)
    answer = _get("/about")
    yield make_finding(
        "outside",
        f"{settings.SITE_URL}/about answers {answer.status}",
        error=answer.status != 200,
        todo=f"Redirects to itself: the proxy must set Forwarded ({PROXY})."
        if answer.status in (301, 308)
        else f"The site itself answers this. Fix what else is named here: {NO_ANSWER}."
        if "X-Request-ID" in answer.headers
        else f"Check the proxy: {NO_ANSWER}.",
    )
    if answer.status != 200:
        return
    wanted = [*HEADERS, *["Strict-Transport-Security"] * bool(settings.SECURE_HSTS_SECONDS)]
    missing = [name for name in wanted if name not in answer.headers]
    yield make_finding(
        "outside headers",
        f"the proxy removes {', '.join(missing)}" if missing else "arrive",
        warning=bool(missing),
        todo=f"Let the proxy pass the site's headers on: {PROXY}.",
    )
    if place.port is None:
        yield redirect(place.hostname or "")
    if settings.STREAM:
        yield from _stream()
    yield from _picture()


def certificate_ends() -> float:
    """Unix time at which the certificate of FEEDSITE_URL expires. Raises OSError, also if it is not valid."""
    place = urlsplit(settings.SITE_URL)
    host, trust = place.hostname or "", ssl.create_default_context()
    with (
        socket.create_connection((host, place.port or 443), WAIT_SECONDS) as plain,
        trust.wrap_socket(plain, server_hostname=host) as session,
    ):
        found = session.getpeercert()
    assert found  # noqa: S101 (it was verified)
    return float(ssl.cert_time_to_seconds(str(found["notAfter"])))


def _certificate(text: str, *, days: float) -> Finding:
    todo = f"`certbot renew` renews it, or says why it cannot: {NO_ANSWER}."
    return make_finding("certificate", text, error=days < 3, warning=days < 14, todo=todo)


def redirect(host: str, port: int = 80) -> Finding:
    """Check that plain HTTP leads to HTTPS."""
    session = http.client.HTTPConnection(host, port, timeout=WAIT_SECONDS)
    try:
        session.request("GET", "/about", headers={"Host": host})
        answer = session.getresponse()
        to = answer.getheader("Location", "")
        leads = answer.status in (301, 308) and to.startswith(f"https://{host}")
        text = f"http://{host} answers {answer.status}" + (f" and leads to {to}" if to else "")
    except (OSError, http.client.HTTPException) as error:
        leads, text = False, f"http://{host} does not answer ({type(error).__name__})"
    finally:
        session.close()
    todo = "Let port 80 redirect to HTTPS, as deploy/nginx.conf does. certbot needs port 80, too."
    return make_finding("outside redirect", text, warning=not leads, todo=todo)


class _ProxyResponse:
    """An answer of the proxy, and its first bytes."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, begin: bytes) -> None:
        self.status, self.headers, self.begin = status, headers, begin


def _get(path: str, seconds: float = WAIT_SECONDS) -> _ProxyResponse:
    """Ask the proxy. Raises OSError and http.client.HTTPException."""
    place = urlsplit(settings.SITE_URL)
    session = http.client.HTTPSConnection(place.hostname or "", place.port, timeout=seconds)
    try:
        session.request("GET", path)
        answer = session.getresponse()
        return _ProxyResponse(answer.status, answer.headers, answer.read1(1024))
    finally:
        session.close()


def _stream() -> Findings:
    """Open a member's stream, and wait for its first line."""
    user = User.objects.filter(is_active=True).order_by("-pk").first()
    if user is None:
        return
    ticket = issue_ticket(user=user, origin=settings.SITE_URL, token=0)
    todo = f"The proxy must send /api/v1/stream and /api/v1/streaming to the stream process, unbuffered: {PROXY}."
    try:
        answer = _get(f"/api/v1/stream?{urlencode({'ticket': ticket})}", STREAM_SECONDS)
        opens = answer.status == 200 and bool(answer.begin)
        text = "opens" if opens else f"/api/v1/stream answers {answer.status}"
        if answer.status == 401:
            todo = "The stream process has another secret key or cache than web. Run `feedsite restart`."
    except (OSError, http.client.HTTPException) as error:
        opens, text = False, f"nothing arrives ({type(error).__name__})"
    yield make_finding("outside stream", text, warning=not opens, todo=todo)


def _picture() -> Findings:
    """Fetch one of the newest files."""
    kept, latest = media.store(), MediaFile.objects.filter(withdrawn_at=None).order_by("-pk")[:LATEST_FILES]
    row = next((each for each in latest if kept.has(f"{each.name}.{each.ext}")), None)
    path = address(row.name, row.ext) if row else ""
    if not path.startswith("/"):  # there is none, or a bucket sends it
        return
    answer = _get(path)
    arrives = answer.status == 200 and bool(answer.begin)
    yield make_finding(
        "outside media",
        "a picture arrives" if arrives else f"a picture is answered {answer.status} with {len(answer.begin)} bytes",
        error=not arrives,
        todo=f"nginx must be able to read the files (FEEDSITE_MEDIA_ACCEL_PATH): {PROXY}, Pictures.",
    )
