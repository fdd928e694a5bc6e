"""The shell lines and nginx configuration of docs/grow.md."""

import contextlib
import http.client
import http.server
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runtime.embedded import wait_for
from tests.support.clusters import free_ports

ROOT = Path(settings.BASE_DIR)
PAGE = (ROOT / "docs" / "grow.md").read_text()
BLOCKS = [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) if not kind]
NEW = "/static/feedsite/site.new.css"


@pytest.mark.parametrize("lines", BLOCKS)
def test_the_lines_are_those_of_a_shell(lines: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=lines, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_steps_are_in_order() -> None:
    numbers = [int(number) for number in re.findall(r"^\*\*(\d+)\. ", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))


class Answers(http.server.BaseHTTPRequestHandler):
    """The old version, without the new file."""

    has_new = False

    def do_GET(self) -> None:
        self.send_response(200 if self.path != NEW or self.has_new else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Keep it silent."""


class Upgraded(Answers):
    has_new = True


@contextlib.contextmanager
def machine(answers: type[Answers]) -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def asked(port: int, path: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        client.request("GET", path)
        return client.getresponse().status
    except OSError:
        return 0
    finally:
        client.close()


@pytest.mark.skipif(shutil.which("nginx", path="/usr/sbin:/usr/bin") is None, reason="nginx is not installed")
def test_a_page_of_the_new_version_has_its_files_while_machines_are_upgraded(tmp_path: Path) -> None:
    """One is upgraded, one is not, one does not answer."""
    (lines,) = [block for block in BLOCKS if "upstream feedsite_web" in block]
    port, dead = free_ports()[:2]
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    shipped = re.sub(r"(?s)server {\n    listen 80;.*?\n}\n", "", shipped)
    shipped = re.sub(r"listen 443[^;]*;", f"listen 127.0.0.1:{port};", shipped)
    (tmp_path / "feedsite.conf").write_text(re.sub(r"\n +ssl_[a-z]+ [^\n]*", "", shipped))
    with machine(Answers) as before, machine(Upgraded) as upgraded:
        lines = lines.replace("127.0.0.1:8000", "ONE:8000", 1).replace("/etc/nginx/conf.d", str(tmp_path))
        for name, at in (("ONE:8000", before), ("$TWO:8000", upgraded), ("$THREE:8000", dead)):
            lines = lines.replace(name, f"127.0.0.1:{at}")
        lines = re.sub(r"\$(TWO|THREE)", "127.0.0.1", lines.rpartition("nginx -t")[0])
        subprocess.run(["bash", "-ec", lines], check=True)
        head = f"pid {tmp_path}/pid;\nerror_log stderr;\ndaemon off;\nevents {{}}\n"
        (tmp_path / "nginx.conf").write_text(
            f"{head}http {{\naccess_log off;\ninclude {tmp_path}/feedsite*.conf;\n}}\n"
        )
        words = ["nginx", "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
        environ = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
        with subprocess.Popen(words, env=environ, stderr=subprocess.DEVNULL) as nginx:
            try:
                assert wait_for(lambda: asked(port, "/about") == 200, 30)
                assert {asked(port, "/about") for _ in range(12)} == {200}
                assert {asked(port, NEW) for _ in range(12)} == {200}
            finally:
                nginx.terminate()
