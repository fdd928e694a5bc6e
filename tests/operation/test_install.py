"""docs/install.md makes a site, without systemd and Debian's packages."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from django.conf import settings
from django.core.management import get_commands

from runtime.embedded import postgres_binaries
from runtime.environment import read_file
from runtime.management.commands.check_all import clean_environ
from tests.support.clusters import free_ports
from tests.support.install_page import PAGE, STEPS, block, blocks
from tests.support.mail_servers import closed_port, mail_server
from tests.support.servers import servers
from tests.support.whole_sites import Running

ROOT = Path(settings.BASE_DIR)
DOMAIN = "feeds.example.net"
NAME = "feedsite_of_setup"
MANAGE = [sys.executable, "-c", "import sys, manage; manage.run_command(['manage.py', *sys.argv[1:]])"]
"""It would change the tests' environment."""


# --- The page ----------------------------------------------------------------------------------------------
def test_the_steps_are_few_and_in_order() -> None:
    numbers = [int(number) for number, _ in STEPS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) <= 15
    for lines in blocks(PAGE):
        checked = subprocess.run(["bash", "-n"], input=lines, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_every_command_and_every_file_is_there() -> None:
    commands = {*re.findall(r"^feedsite (\w+)", PAGE, re.MULTILINE), *re.findall(r"manage\.py (\w+)", PAGE)}
    assert {"setup", "account", "sendtestemail", "backup", "restore", "doctor"} <= commands
    assert commands <= get_commands().keys()
    files = re.findall(r"\bdeploy/[\w./*$-]+", PAGE)
    assert files
    for name in files:
        assert list(ROOT.glob(name.replace("$name", "*"))), name
    names = {path.stem for path in (ROOT / "deploy/valkey").glob("*.conf")}
    assert names == {"feeds", "plays", "broker"}
    for unit in (ROOT / "deploy/systemd").glob("*.service"):
        (after,) = re.findall(r"^After=(.*)$", unit.read_text(), re.MULTILINE)
        assert {f"redis-server@{name}.service" for name in names} <= set(after.split()), "it starts behind them"


@pytest.mark.skipif(shutil.which("nginx", path="/usr/sbin:/usr/bin") is None, reason="nginx is not installed")
def test_nginx_takes_what_the_page_makes(tmp_path: Path) -> None:
    live = tmp_path / "live" / DOMAIN
    live.mkdir(parents=True)
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={DOMAIN}"]
    files = ["-keyout", str(live / "privkey.pem"), "-out", str(live / "fullchain.pem")]
    subprocess.run([*made, *files], check=True, capture_output=True)
    lines = block("nginx.").splitlines()[0]
    lines = lines.replace("/etc/nginx/conf.d", str(tmp_path)).replace("/etc/letsencrypt", str(tmp_path))
    subprocess.run(["bash", "-c", lines], cwd=ROOT, env=os.environ | {"DOMAIN": DOMAIN}, check=True)
    made_of_it = (tmp_path / "feedsite.conf").read_text()
    assert "example.org" not in made_of_it
    head = f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n"
    ports = made_of_it.replace("listen 80;", f"listen {free_ports()[0]};").replace(
        "listen 443", f"listen {free_ports()[0]}"
    )
    (tmp_path / "nginx.conf").write_text(f"{head}http {{\naccess_log off;\n{ports}\n}}\n")
    words = ["nginx", "-t", "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(
        words, env=os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- A site of it --------------------------------------------------------------------------------------------
@contextmanager
def without_the_database(address: str) -> Iterator[None]:
    try:
        yield
    finally:
        with psycopg.connect(address, autocommit=True) as session:
            session.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
            session.execute(f"DROP ROLE IF EXISTS {NAME}")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_site_comes_of_the_steps(tmp_path: Path) -> None:
    if servers.postgres is None:
        pytest.skip("PostgreSQL is another process's")
    sockets = str(servers.postgres.socket.parent)
    superuser = f"postgresql://feedsite@/postgres?host={quote(sockets)}"
    env_file, data, port = tmp_path / "feedsite.env", tmp_path / "state", free_ports()[0]
    data.mkdir(mode=0o710)  # as systemd makes it
    binaries = {"PATH": f"{postgres_binaries()}:{os.environ['PATH']}"}
    own = {name: value for name, value in clean_environ(data).items() if name != "FEEDSITE_ENV_FILE"}
    environ = own | binaries | {"FEEDSITE_ENV_FILE": str(env_file), "PORT": str(port)}

    def manage(*words: str, code: int = 0) -> str:
        done = subprocess.run([*MANAGE, *words], cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert not {"Traceback", "INFO"} & set(re.findall(r"\w+", done.stderr)), done.stderr
        return done.stdout

    letters = f"filemail://{tmp_path}/letters"
    given = {
        "--domain": DOMAIN,
        "--file": str(env_file),
        "--database": NAME,
        "--postgresql": sockets,
        "--superuser": superuser,
        "--mail": letters,
        "--backups": str(tmp_path / "backups"),
        "--feeds": os.environ["FEEDSITE_REDIS_URL"],
        "--plays": os.environ["FEEDSITE_PLAYED_URL"],
        "--broker": os.environ["FEEDSITE_BROKER_URL"],
    }
    words = [part for pair in given.items() for part in pair]
    with without_the_database(superuser):
        said = manage("setup", *words)
        assert f"Created the role and the database {NAME}." in said
        assert env_file.stat().st_mode & 0o777 == 0o640
        assert (
            "It was not changed"
            in subprocess.run([*MANAGE, "setup", *words], cwd=ROOT, env=environ, capture_output=True, text=True).stderr
        )
        variables = read_file(env_file)
        assert len(variables["FEEDSITE_SECRET_KEY"]) >= 50

        unit = (ROOT / "deploy/systemd/feedsite-prepare.service").read_text()
        for command in re.findall(r"^ExecStart=\S+ manage\.py (.*)$", unit, re.MULTILINE):
            manage(*command.split())
        web = Running([*MANAGE, "program", "web"], ROOT, environ)
        try:
            assert web.says("Started worker-1", 120), web.printed
            link = re.search(rf"https://{re.escape(DOMAIN)}/first-admin/\S+", manage("account", "first-admin"))
            assert link
            page = urlsplit(link[0]).path
            headers = ["--header", f"Host: {DOMAIN}", "--header", "Forwarded: for=192.0.2.1;proto=https"]
            for path in (page, "/about", "/readyz"):
                asked = ["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *headers]
                got = subprocess.run([*asked, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True)
                assert got.stdout == "200", f"{path}: {web.printed}"
            assert "Created mira." in manage("account", "make", "mira")
            manage("sendtestemail", "you@example.org")
            assert list((tmp_path / "letters").iterdir())
            manage("backup")
            (kept,) = (tmp_path / "backups").iterdir()
            assert "is good" in manage("restore", "--check", kept.name)
            found = json.loads(manage("doctor", "--json", code=1))["findings"]
            wrong = {each["name"] for each in found if each["state"] == "error"}
            # The tests' servers may evict. No worker or beat runs.
            servers_of_tests = {name for name in wrong if name.startswith(("postgresql ", "plays ", "broker "))}
            assert wrong - servers_of_tests == {"workers", "beat"}, found
        finally:
            web.end()


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("", "Sent a test letter to you@example.org through 127.0.0.1:"),
        ("locked", "was not sent: SMTPAuthenticationError: (535, b'no such user'). Correct FEEDSITE_EMAIL_URL in "),
        ("dead", "was not sent: ConnectionRefusedError: "),
    ],
)
def test_setup_sends_a_test_letter(tmp_path: Path, mode: str, said: str) -> None:
    file = tmp_path / "x.env"
    words = ["--domain", DOMAIN, "--file", str(file), "--test-letter", "you@example.org"]
    nowhere = ["--superuser", f"postgresql://nobody@127.0.0.1:{closed_port()}/nothing"]
    with mail_server() as server:
        server.mode = mode
        port = closed_port() if mode == "dead" else server.port
        user = "user:wrong@" if mode == "locked" else ""
        done = subprocess.run(
            [*MANAGE, "setup", *words, *nowhere, "--mail", f"smtp://{user}127.0.0.1:{port}"],
            cwd=ROOT,
            env=clean_environ(tmp_path) | {"PATH": f"{postgres_binaries()}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert said in done.stdout, done.stdout + done.stderr
        assert "wrong" not in done.stdout + done.stderr
        assert "PostgreSQL refused the superuser" in done.stderr, "it goes on"
        assert [letter["To"] for letter in server.letters] == ["you@example.org"][: mode == ""]


@pytest.mark.parametrize(
    ("mail", "said"),
    [
        ([], "No mail server is set, so letters go to the log."),
        (["--mail", "smtp://127.0.0.1:1"], "No test letter was"),
    ],
)
def test_setup_without_a_terminal_says_what_it_did_not_ask(tmp_path: Path, mail: list[str], said: str) -> None:
    nowhere = ["--superuser", f"postgresql://nobody@127.0.0.1:{closed_port()}/nothing"]
    done = subprocess.run(
        [*MANAGE, "setup", "--domain", DOMAIN, "--file", str(tmp_path / "x.env"), *mail, *nowhere],
        cwd=ROOT,
        env=clean_environ(tmp_path) | {"PATH": f"{postgres_binaries()}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout, done.stdout + done.stderr


def test_setup_without_a_domain_or_with_a_wrong_one(tmp_path: Path) -> None:
    for words, refusal in (((), "The site needs a domain"), (("--domain", "https://x"), "FEEDSITE_ALLOWED_HOSTS is")):
        done = subprocess.run(
            [*MANAGE, "setup", "--file", str(tmp_path / "x.env"), *words],
            cwd=ROOT,
            env=clean_environ(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert refusal in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "x.env").exists()
