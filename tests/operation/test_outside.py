"""Doctor looks at the site by its name, through the shipped nginx with TLS. One fault at a time."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from django.utils import timezone

from media.models import MediaFile
from operation import gauges
from operation.doctor import outside
from operation.doctor.findings import ERROR, OK, WARNING, Finding
from runtime import metrics
from runtime.embedded import die_with_parent, wait_for
from tests.support.clusters import free_ports
from tests.support.factories import UserFactory
from tests.support.mail_servers import closed_port
from tests.support.streams import StreamServer
from tests.support.web import WebServer

pytestmark = pytest.mark.django_db(transaction=True)

CONFIGURATION = Path(settings.BASE_DIR) / "deploy" / "nginx.conf"
KEPT_MEDIA = "location /kept-media/ {\n internal;\n alias %s/;\n}\n"
Change = Callable[[str], str]


class Site(NamedTuple):
    folder: Path
    web: WebServer
    stream: StreamServer
    media: Path

    def certificate(self, *, days: int, name: str = "localhost") -> None:
        words = f"req -x509 -newkey rsa:2048 -nodes -days {days} -subj /CN={name} -addext subjectAltName=DNS:{name}"
        files = ["-keyout", str(self.folder / "key.pem"), "-out", str(self.folder / "cert.pem")]
        subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)

    @contextmanager
    def nginx(self, change: Change, *, days: int = 90, name: str = "localhost") -> Iterator[tuple[int, int]]:
        """Runs nginx. Its ports for HTTPS and HTTP."""
        self.certificate(days=days, name=name)
        port, plain = free_ports()
        text = change(CONFIGURATION.read_text())
        for pattern, here in (
            (r"listen 80;", f"listen 127.0.0.1:{plain};"),
            (r"listen 443 ssl http2", f"listen 127.0.0.1:{port} ssl"),
            (r"server_name feeds\.example\.org", "server_name localhost"),
            (r"/etc/ssl/private/feeds\.example\.org\.key", f"{self.folder}/key.pem"),
            (r"/etc/ssl/feeds\.example\.org\.pem", f"{self.folder}/cert.pem"),
            (r"\$host", "$http_host"),  # with the port, which is not 443 here
            (r"127\.0\.0\.1:8000", f"127.0.0.1:{self.web.port}"),
            (r"127\.0\.0\.1:8001", f"127.0.0.1:{self.stream.port}"),
        ):
            text, count = re.subn(pattern, here, text)
            assert count, pattern
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in kinds)
        user = "user root;\n" if os.geteuid() == 0 else ""  # pytest's folders are closed to others
        head = f"daemon off;\nmaster_process off;\n{user}pid {self.folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        (self.folder / "nginx.conf").write_text(f"{head}http {{\naccess_log off;\n{folders}{text}\n}}\n")
        words = ["nginx", "-p", str(self.folder), "-e", "stderr", "-c", str(self.folder / "nginx.conf")]
        paths = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
        with (self.folder / "proxy.log").open("ab") as log:
            process = subprocess.Popen(
                words, env=os.environ | paths, stdout=log, stderr=log, preexec_fn=die_with_parent(signal.SIGKILL)
            )
        try:
            assert wait_for(lambda: _listens(plain), 30), (self.folder / "proxy.log").read_text()
            yield port, plain
        finally:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    return outside.redirect("127.0.0.1", port).text.endswith("(ConnectionRefusedError)") is False


@pytest.fixture
def site(tmp_path: Path, media_folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    if shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("nginx is not installed")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    own = {"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SECONDS": "3600", "FEEDSITE_MEDIA_ACCEL_PATH": "/kept-media/"}
    own["FEEDSITE_DATA_DIR"] = str(tmp_path / "data")
    words = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
    subprocess.run(words, cwd=settings.BASE_DIR, env=os.environ | own, check=True)
    with ExitStack() as stack:
        web, stream = WebServer(tmp_path, **own), StreamServer(tmp_path, **own)
        for server in (web, stream):
            stack.callback(server.kill)
            server.start()
        UserFactory()
        row = MediaFile.objects.create(
            owner_id=1, kind="image", name=f"00/{'1' * 30}", ext="jpg", width=1, height=1, size=3, sha256=""
        )
        file = media_folder / "files" / f"{row.name}.{row.ext}"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"jpg")
        settings.SECURE_HSTS_SECONDS = 3600
        yield Site(tmp_path, web, stream, media_folder / "files")


def found() -> dict[str, Finding]:
    return {finding.name: finding for finding in outside.site()}


FAULTS: dict[str, tuple[Change, dict[str, Any], str, str, str]] = {
    "an old certificate": (str, {"days": 10}, "certificate", WARNING, "is good for 10 days"),
    "another's certificate": (str, {"name": "example.org"}, "certificate", ERROR, "Hostname mismatch"),
    "no Forwarded": (
        lambda text: text.replace('proxy_set_header Forwarded "for=', 'proxy_set_header Forwarded-Not "for='),
        {},
        "outside",
        ERROR,
        "/about answers 301",
    ),
    "the site fails": (
        lambda text: text.replace(
            "location /static/ {",
            "location = /about {\n rewrite ^ /nowhere break;\n proxy_pass http://127.0.0.1:8000;\n}\n"
            "location /static/ {",
        ),
        {},
        "outside",
        ERROR,
        "/about answers 404",
    ),
    "no headers": (
        lambda text: text.replace("client_max_body_size 41m;", "proxy_hide_header Content-Security-Policy;"),
        {},
        "outside headers",
        WARNING,
        "the proxy removes Content-Security-Policy",
    ),
    "the stream goes to web": (
        lambda text: text.replace("127.0.0.1:8001", "127.0.0.1:8000", 1),
        {},
        "outside stream",
        WARNING,
        "/api/v1/stream answers",
    ),
    "nginx has no folder of pictures": (
        lambda text: text.replace("location /kept-media/", "location /not-kept-media/"),
        {},
        "outside media",
        ERROR,
        "a picture is answered 404",
    ),
}
"""What is changed in nginx.conf or the certificate, and what doctor says of it."""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_what_visitors_see(site: Site, settings: Any) -> None:
    def media(text: str) -> str:
        return text.replace("location /static/ {", KEPT_MEDIA % site.media + "location /static/ {")

    with site.nginx(media) as (port, plain):
        settings.SITE_URL = f"https://localhost:{port}"
        sound = found()
        assert {name: finding.text for name, finding in sound.items() if finding.state != OK} == {}
        assert sound.keys() == {"certificate", "outside", "outside headers", "outside stream", "outside media"}
        assert outside.redirect("localhost", plain).state == OK
        assert outside.redirect("localhost", site.web.port).state == OK, "the site itself redirects, too"
        assert outside.redirect("localhost", port).state == WARNING, "400: plain HTTP at a port of HTTPS"
        gauges.set_user_gauges()
        (ends,) = [value for name, _labels, value in metrics.samples() if name == "feedsite_certificate_ends_seconds"]
        assert 88 < (ends - timezone.now().timestamp()) / 86_400 < 91
    gone = found()
    assert gone.keys() == {"outside"}
    assert gone["outside"].state == WARNING
    assert "does not answer (ConnectionRefusedError" in gone["outside"].text
    for name, (change, certificate, finding, state, text) in FAULTS.items():
        with site.nginx(lambda text, change=change: change(media(text)), **certificate) as (port, _plain):
            settings.SITE_URL = f"https://localhost:{port}"
            wrong = {each.name: each for each in found().values() if each.state != OK}
            assert wrong.keys() == {finding}, (name, wrong)
            assert (wrong[finding].state, text in wrong[finding].text) == (state, True), wrong
            assert wrong[finding].todo
            assert ("The site itself answers" in wrong[finding].todo) == (name == "the site fails")
    words = {"FEEDSITE_HTTPS": "1", "FEEDSITE_SECRET_KEY": "of a file that only web has read" * 2}
    other = StreamServer(site.folder, **words)
    try:
        other.start()
        with site._replace(stream=other).nginx(media) as (port, _plain):
            settings.SITE_URL = f"https://localhost:{port}"
            assert "feedsite restart" in found()["outside stream"].todo
    finally:
        other.kill()


def test_a_site_without_https_is_not_looked_at(settings: Any) -> None:
    settings.SITE_URL = f"http://localhost:{closed_port()}"
    assert not found()
