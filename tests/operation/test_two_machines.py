"""They share PostgreSQL, Redis and media behind one nginx, all at 127.0.0.1. The second has its own host name."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from runtime.embedded import Servers, die_with_parent, wait_for
from runtime.management.commands.check_all import clean_environ
from tests.support.clusters import free_ports
from tests.support.pictures import jpeg
from tests.support.whole_sites import Running

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROOT = Path(settings.BASE_DIR)
MANAGE = [sys.executable, "-c", "import sys, manage; manage.run_command(['manage.py', *sys.argv[1:]])"]
API = "/api/v1"
KEY = "the key of the site and of all its machines, which None of them makes by itself"
PASSWORD = "correct horse battery"
PROXY = """
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    {folders}
    upstream web {{ server 127.0.0.1:{first} fail_timeout=1s; server 127.0.0.1:{second} fail_timeout=1s; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://web;
            proxy_set_header Host $host;
            proxy_set_header Forwarded "for=\\"$remote_addr\\";proto=$scheme";
        }}
    }}
}}
"""


class Machine:
    def __init__(self, name: str, folder: Path, environ: dict[str, str]) -> None:
        self.name, self.folder = name, folder
        folder.mkdir(mode=0o700)
        self.port, self.stream = free_ports()
        ports = {"PORT": str(self.port), "FEEDSITE_STREAM_PORT": str(self.stream)}
        self.environ = clean_environ(folder) | environ | ports
        self.programs: dict[str, Running] = {}

    def command(self, *words: str) -> list[str]:
        renamed = ["unshare", "--map-root-user", "--uts", "sh", "-c", f'hostname {self.name} && exec "$@"', "sh"]
        return [*renamed, *MANAGE, *words]

    def manage(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(self.command(*words), cwd=ROOT, env=self.environ, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def start(self, *names: str) -> None:
        for name in names:
            self.programs[name] = Running(self.command("program", name), ROOT, self.environ)

    def restart(self, name: str) -> None:
        assert self.programs[name].end() in (0, -signal.SIGTERM), self.programs[name].printed
        self.start(name)

    def is_ready(self) -> bool:
        return ask(self.port, "/readyz")[0] == 200

    def end(self) -> None:
        for program in self.programs.values():
            program.end()
            print(f"{self.name}:\n{program.printed[-2_000:]}")


def ask(
    port: int, path: str, token: str = "", body: Any = None, headers: Any = None, method: str = ""
) -> tuple[int, bytes]:
    """0 without an answer. A body makes it a POST by default."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = {"Authorization": f"Token {token}"} if token else {}
    if body is not None and not isinstance(body, bytes):
        body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
    try:
        client.request(method or ("GET" if body is None else "POST"), path, body, sent | (headers or {}))
        answer = client.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error).encode()
    finally:
        client.close()


def call(port: int, path: str, token: str = "", body: Any = None, headers: Any = None) -> Any:
    status, said = ask(port, f"{API}{path}", token, body, headers)
    assert status in (200, 201), (path, status, said[:500])
    return json.loads(said)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Machine]]:
    if shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("nginx is not installed")
    if subprocess.run(["unshare", "--map-root-user", "--uts", "true"], capture_output=True).returncode:
        pytest.skip("no machine can be given a name of its own here")
    folder = tmp_path_factory.mktemp("machines")
    servers = Servers(folder / "servers", {})
    given = {
        "FEEDSITE_DATABASE_URL": servers.database_url,
        "FEEDSITE_REDIS_URL": servers.redis_url,
        "FEEDSITE_BROKER_URL": servers.broker_url,
        "FEEDSITE_CACHE_URL": servers.cache_url,
        "FEEDSITE_PLAYED_URL": servers.played_url,
        "FEEDSITE_PLAYED_STORE_URL": servers.played_url.replace("db=1", "db=3"),
        "FEEDSITE_WEB_PROCESSES": "1",
        "FEEDSITE_WORKER_PROCESSES": "1",
        "FEEDSITE_RATE_SCALE": "100000",
    }
    (folder / "shared").mkdir()
    with servers.ensure():
        first, second = (Machine(name, folder / name, given | {"FEEDSITE_SECRET_KEY": KEY}) for name in ("one", "two"))
        third = Machine("three", folder / "three", given)  # it makes its own key
        try:
            for machine in (first, second):
                (machine.folder / "media").symlink_to(folder / "shared")
                machine.manage("collectstatic", "--noinput", "--verbosity", "0")
            first.manage("migrate", "--verbosity", "0")
            first.start("web", "stream", "worker")
            assert wait_for(first.is_ready, 120), first.programs["web"].printed
            second.start("web", "stream", "worker")
            assert wait_for(second.is_ready, 120), second.programs["web"].printed
            yield [first, second, third]
        finally:
            for machine in (first, second, third):
                machine.end()


@pytest.fixture(scope="module")
def balancer(machines: list[Machine], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder, port = tmp_path_factory.mktemp("nginx"), free_ports()[0]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    one, two, _ = machines
    (folder / "conf").write_text(
        PROXY.format(folder=folder, folders=folders, first=one.port, second=two.port, port=port)
    )
    path = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
    with subprocess.Popen(
        ["nginx", "-p", folder, "-e", "stderr", "-c", folder / "conf"],
        env=os.environ | path,
        preexec_fn=die_with_parent(signal.SIGTERM),
    ) as process:
        try:
            assert wait_for(lambda: ask(port, "/healthz")[0] == 200, 30)
            yield port
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def tokens(machines: list[Machine]) -> list[str]:
    """Ann's and bob's, who follows her."""
    port = machines[0].port
    people = [{"username": name, "password": PASSWORD} for name in ("ann", "bob")]
    for person in people:
        call(port, "/users", body=person)
    tokens = [call(port, "/auth/token", body=person)["token"] for person in people]
    status, said = ask(port, f"{API}/users/ann/follow", tokens[1], {}, method="PUT")
    assert status == 204, said
    return tokens


def test_who_logs_in_at_one_is_logged_in_at_the_other(machines: list[Machine], tokens: list[str]) -> None:
    one, two, _ = machines
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    page = browser.open(f"http://127.0.0.1:{one.port}/login", timeout=60).read().decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found
    fields = {"csrfmiddlewaretoken": found[1], "username": "ann", "password": PASSWORD}
    browser.open(f"http://127.0.0.1:{one.port}/login", urllib.parse.urlencode(fields).encode(), timeout=60)
    for machine in (two, one):
        own = browser.open(f"http://127.0.0.1:{machine.port}/settings/preferences", timeout=60)
        assert own.url.endswith("/settings/preferences"), "not led to the log-in"
        assert "@ann" in own.read().decode()


def test_what_is_published_at_one_is_read_at_the_other(machines: list[Machine], tokens: list[str]) -> None:
    """So are its picture and stream event."""
    one, two, _ = machines
    ann, bob = tokens
    stream = http.client.HTTPConnection("127.0.0.1", two.stream, timeout=60)
    stream.request("GET", f"{API}/stream", headers={"Authorization": f"Token {bob}"})
    events = stream.getresponse()
    assert events.status == 200

    data = jpeg(640, 480)
    edge = b"edge"
    head = b'Content-Disposition: form-data; name="file"; filename="a.jpg"\r\nContent-Type: image/jpeg'
    form = b"--" + edge + b"\r\n" + head + b"\r\n\r\n" + data + b"\r\n--" + edge + b"--\r\n"
    kept = call(one.port, "/me/media", ann, form, {"Content-Type": "multipart/form-data; boundary=edge"})
    item = call(one.port, "/items", ann, {"type": "image", "content": {"media": [kept["id"]]}})

    until = time.monotonic() + 60
    heard = b""
    while item["id"].encode() not in heard:
        assert time.monotonic() < until, heard
        heard = events.readline()
    stream.close()
    (shown,) = [each for each in call(two.port, "/timeline/home", bob)["items"] if each["id"] == item["id"]]
    for name in ("url", "preview_url"):
        address = urllib.parse.urlsplit(shown["media"][0][name]).path
        for machine in (one, two):
            status, picture = ask(machine.port, address)
            assert (status, picture[:2]) == (200, b"\xff\xd8"), f"{machine.name} {address}"


def test_both_work_and_one_beat_does(machines: list[Machine], tokens: list[str]) -> None:
    one, two, _ = machines
    assert wait_for(lambda: "another beat is active" in two.programs["worker"].printed, 60)
    assert "another beat" not in one.programs["worker"].printed

    def told(machine: Machine) -> dict[str, str]:
        findings = json.loads(machine.manage("doctor", "--json").splitlines()[0])["findings"]
        return {each["name"]: each["text"] for each in findings}

    assert told(one)["workers"] == told(two)["workers"] == "celery@one, celery@two"
    one.programs["worker"].end()
    assert wait_for(lambda: "beat is active\n" in two.programs["worker"].printed, 60), two.programs["worker"].printed
    one.start("worker")
    assert wait_for(lambda: "another beat is active" in one.programs["worker"].printed, 60)


def test_a_machine_with_another_key_is_refused(machines: list[Machine]) -> None:
    """The doctor names it."""
    third = machines[2]
    for name in ("web", "worker"):
        assert "Copy FEEDSITE_SECRET_KEY from another machine" in third.manage("program", name, code=2)
    said = third.manage("doctor", code=1)
    assert "error  site key: differs from this machine's key" in said


def test_an_upgrade_refuses_nobody(machines: list[Machine], tokens: list[str], balancer: int) -> None:
    """Database and static files first, then worker, web and stream, machine by machine."""
    answers, is_over = Counter[int](), threading.Event()
    published: list[str] = []

    def act() -> None:
        while not is_over.wait(0.02):
            answers[ask(balancer, "/login")[0]] += 1
            answers[ask(balancer, f"{API}/timeline/home", tokens[1])[0]] += 1
            status, said = ask(balancer, f"{API}/items", tokens[0], {"content": {"text": f"words {time.time()}"}})
            answers[status] += 1
            published.extend([json.loads(said)["id"]] if status == 201 else [])

    thread = threading.Thread(target=act)
    thread.start()
    try:
        one, two, _ = machines
        one.manage("migrate", "--verbosity", "0")
        for machine in (one, two):
            machine.manage("collectstatic", "--noinput", "--verbosity", "0")
        for machine in (one, two):
            for name in ("worker", "web", "stream"):
                machine.restart(name)
            assert wait_for(machine.is_ready, 120), machine.programs["web"].printed
        before = len(published)
        assert wait_for(lambda: len(published) > before + 5, 60)
    finally:
        is_over.set()
        thread.join()
    assert answers.keys() <= {200, 201}, answers
    found = ids_of_home(machines[1].port, tokens[1])
    assert set(published) <= set(found), "every post is in the home of who follows"


def ids_of_home(port: int, token: str) -> Sequence[str]:
    ids: list[str] = []
    last = ""
    while True:
        page = call(port, f"/timeline/home?limit=100{last}", token)
        ids += [item["id"] for item in page["items"]]
        if not page["has_more"]:
            return ids
        last = f"&last_id={page['last_id']}"
