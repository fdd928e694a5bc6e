"""Docker builds the Dockerfile, and compose.yaml makes a site of it, on a Debian of its own.

There is no registry of images. Images from others are made of Debian's packages.
"""

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from runtime.embedded import wait_for
from tests.support.debian import ENVIRON, Debian, debian

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROOT = Path(settings.BASE_DIR)
SITE = "/srv/feedsite"
PYTHON = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
SERVERS = {service["image"] for service in SERVICES.values()} - {"feedsite"}

PGDG = "/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh"
FROM_DEBIAN = """#!/bin/sh -e
# In place of the one that adds PostgreSQL's own packages: they come from Debian's next release.
cd /etc/apt
mirror=$(awk '/^deb/ {print $2; exit}' sources.list)
echo "deb [check-valid-until=no] $mirror forky main" >sources.list.d/pgdg.list
pin() { printf 'Package: %s\\nPin: release n=forky\\nPin-Priority: %s\\n\\n' "$1" $2; }
(pin '*' 100; pin 'postgresql-client-18 libpq5' 600) >preferences.d/pgdg
apt-get update
"""
BASE = f"""
apt-get update
apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv
ln --symbolic /usr/bin/python3 /usr/local/bin/python
dpkg-divert --local --add --no-rename --divert {PGDG}.replaced {PGDG}
tar --create --one-file-system --file=/base.tar --exclude=./base.tar --exclude=./tmp/* --directory=/ .
apt-get install --yes --no-install-recommends docker.io docker-cli docker-buildx docker-compose iptables
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
"""
OF_SERVERS = f"""
FROM {PYTHON[0]}
RUN {PGDG} -y \\
    && mkdir --parents /etc/postgresql-common \\
    && echo create_main_cluster=false >/etc/postgresql-common/createcluster.conf \\
    && apt-get install --yes --no-install-recommends --target-release forky caddy postgresql-18 valkey-server
ENV PATH=/usr/lib/postgresql/18/bin:$PATH PGDATA=/var/lib/postgresql/18/docker
WORKDIR /data
COPY entrypoint /
ENTRYPOINT ["/entrypoint"]
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
"""
ENTRYPOINT = """#!/bin/sh -e
# Does what those of the images do. A new PostgreSQL first answers at its socket only.
as() { user=$1; shift; setpriv --reuid=$user --regid=$user --clear-groups "$@"; }
case $1 in
postgres)
    if [ ! -s $PGDATA/PG_VERSION ]; then
        install --directory --owner=postgres --mode=0700 $PGDATA
        install --directory --owner=postgres /run/postgresql
        (umask 077 && echo "$POSTGRES_PASSWORD" >/run/password && chown postgres /run/password)
        as postgres initdb --username=$POSTGRES_USER --pwfile=/run/password --auth-host=scram-sha-256 \
            --auth-local=trust $POSTGRES_INITDB_ARGS
        echo "host all all all scram-sha-256" >>$PGDATA/pg_hba.conf
        as postgres pg_ctl start --wait --options="-c listen_addresses=''"
        as postgres createdb --username=$POSTGRES_USER $POSTGRES_DB
        sleep 6
        as postgres pg_ctl stop --wait
    fi
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@" -c listen_addresses=* ;;
valkey-server)
    chown valkey /data
    exec setpriv --reuid=valkey --regid=valkey --clear-groups "$@" ;;
*)
    exec "$@" ;;
esac
"""
BUILD = "docker build --network host --build-arg http_proxy --build-arg https_proxy --build-arg no_proxy"
FOR_PIP = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")
START = """
rm --force /run/docker.pid
dockerd --exec-opt native.cgroupdriver=cgroupfs {options} >>/var/log/dockerd.log 2>&1 &
until docker version; do kill -0 $!; sleep 0.2; done
"""
"""It ends if the daemon ends."""
STOP = """
kill $(cat /run/docker.pid)
while docker version; do sleep 0.2; done
sleep 1
find /sys/fs/cgroup/docker -depth -type d -delete
"""
"""The control groups are this machine's."""


def done(machine: Debian, lines: str, *, online: bool = False) -> str:
    ran = machine.run(lines, online=online)
    log = machine.root / "var/log/dockerd.log"
    assert ran.returncode == 0, f"{lines}\n{ran.stdout[-5_000:]}{log.read_text()[-1_000:] if log.exists() else ''}"
    return ran.stdout


@contextlib.contextmanager
def docker(machine: Debian, *, online: bool) -> Iterator[None]:
    """Its daemon. Online it makes no network and no rule of a firewall, because they would be this machine's."""
    options = "--bridge=none --iptables=false --ip6tables=false" if online else ""
    done(machine, START.replace("{options}", options), online=online)
    try:
        yield
    finally:
        done(machine, STOP)


def make_images(machine: Debian) -> float:
    """Those of others, then the site's. Returns the seconds of the latter."""
    environ = {name: value for name, value in (os.environ | ENVIRON).items() if name in FOR_PIP}
    changes = " ".join(f'--change "ENV {name}={value}"' for name, value in environ.items())
    for name in set(PYTHON):
        done(machine, f"docker import {changes} /base.tar {name}")
    folder = machine.root / "root/servers"
    folder.mkdir()
    machine.put("/root/servers/Dockerfile", OF_SERVERS)
    machine.put("/root/servers/entrypoint", ENTRYPOINT)
    tags = " ".join(f"--tag {name}" for name in SERVERS)
    done(machine, f"{BUILD} {tags} /root/servers", online=True)
    began = time.monotonic()
    done(machine, f"{BUILD} --tag feedsite {SITE}", online=True)
    return time.monotonic() - began


ASK = """
import json, ssl, sys, urllib.request
method, address, token, data = sys.argv[1:]
headers = {"Content-Type": "application/json"} | ({"Authorization": f"Token {token}"} if token else {})
asked = urllib.request.Request(address, data.encode() or None, headers, method=method)
with urllib.request.urlopen(asked, timeout=60, context=ssl._create_unverified_context()) as answer:
    print(answer.readline().decode() if "/stream" in address else answer.read().decode())
"""


class Site:
    def __init__(self, machine: Debian) -> None:
        self.machine = machine
        machine.put("/root/ask.py", ASK)

    def compose(self, words: str) -> str:
        return done(self.machine, f"cd {SITE}; docker compose {words} 2>&1")

    def ask(self, address: str, token: str = "", *, method: str = "GET", data: Any = None) -> str:
        """The answer's text, or a traceback with its status."""
        text = "" if data is None else json.dumps(data)
        return self.machine.run(f"python3 /root/ask.py {method} {address} '{token}' '{text}'").stdout

    def api(self, path: str, token: str = "", *, method: str = "GET", data: Any = None) -> Any:
        answer = self.ask(f"http://127.0.0.1:8000/api/v1/{path}", token, method=method, data=data)
        assert "Traceback" not in answer, answer
        return json.loads(answer.strip() or "null")

    def states(self) -> dict[str, str]:
        """Health of each service, or its state and exit code."""
        lines = self.compose("ps --all --format json").splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return {each["Service"]: each["Health"] or f"{each['State']} {each['ExitCode']}" for each in found}

    def becomes_healthy(self, *profiles: str) -> None:
        unwatched = {"prepare": "exited 0"} | dict.fromkeys(("pids", "grpc", "proxy"), "running 0")
        wanted = {name for name, service in SERVICES.items() if {*service.get("profiles", [])} <= {*profiles}}
        expected = {name: unwatched.get(name, "healthy") for name in wanted}
        assert wait_for(lambda: self.states() == expected, 120), (self.states(), self.compose("logs --tail 20"))


def test_a_post_reaches_a_home_in_containers() -> None:
    with debian("trixie") as machine:
        (machine.root / PGDG.lstrip("/")).parent.mkdir(parents=True)
        machine.put(PGDG, FROM_DEBIAN)
        done(machine, BASE, online=True)
        cloned = ["git", "clone", "--quiet", ROOT, machine.root / SITE.lstrip("/")]
        if subprocess.run(cloned, capture_output=True, check=False).returncode:
            pytest.skip("this is no clone")
        with docker(machine, online=True):
            built = make_images(machine)
        environ = f"POSTGRES_PASSWORD=p@ss/word\nFEEDSITE_SECRET_KEY={'a-key-of-containers-' * 4}\n"
        machine.put(f"{SITE}/.env", environ, 0o600)
        with docker(machine, online=False):
            try:
                use(machine, environ, built)
            finally:
                machine.run(f"cd {SITE}; docker compose --profile proxy --profile grpc down")


def use(machine: Debian, environ: str, built: float) -> None:
    site, began = Site(machine), time.monotonic()
    site.compose("up --detach --no-build --pull never")
    assert wait_for(lambda: "</html>" in site.ask("http://127.0.0.1:8000/about"), 120), site.compose("logs --tail 20")
    first = time.monotonic() - began
    site.becomes_healthy()
    healthy = time.monotonic() - began
    print(f"{built:.0f} s to build, {first:.0f} s to the first page, {healthy:.0f} s until all is healthy")

    tokens = {}
    for name in ("ann", "bob"):
        account = {"username": name, "password": "correct horse battery"}
        site.api("users", method="POST", data=account)
        tokens[name] = site.api("auth/token", method="POST", data=account)["token"]
    site.api("users/ann/follow", tokens["bob"], method="PUT")
    site.api("items", tokens["ann"], method="POST", data={"type": "text", "content": {"text": "from a container"}})

    def home() -> list[str]:
        return [each["content"]["text"] for each in site.api("timeline/home", tokens["bob"])["items"]]

    assert wait_for(lambda: home() == ["from a container"], 30)
    web = "exec --no-TTY web python manage.py"
    assert "http://localhost:8000/first-admin/" in site.compose(f"{web} account first-admin")
    found = site.compose(f"{web} doctor --stream http://stream:8001")
    assert " 0 errors" in found, found
    running = json.loads(site.compose(f"{web} status --json"))["programs"]
    assert {each["name"] for each in running} == {"web", "stream", "worker"}
    (upgrade,) = re.findall(r"docker compose (run --rm web .*?)`", (ROOT / "docs/runbook.md").read_text())
    assert "are upgraded to" in site.compose(upgrade)

    machine.put(f"{SITE}/.env", f"{environ}FEEDSITE_HTTPS=1\nFEEDSITE_STREAM_PORT=0\n", 0o600)
    site.compose("--profile proxy --profile grpc up --detach --no-build --pull never")
    site.becomes_healthy("proxy", "grpc")
    page, stream = "https://localhost/about", "https://localhost/api/v1/stream"
    assert "</html>" in site.ask(page)
    assert site.ask(stream, tokens["bob"]).startswith(("event", "id", "retry", ":"))
    restarts = done(machine, "docker inspect --format '{{.RestartCount}}' $(docker ps --quiet)")
    assert set(restarts.split()) == {"0"}
    began = time.monotonic()
    site.compose("stop web pids")
    assert time.monotonic() - began < 8, "Docker kills what has not ended after 10 s"
    assert "503" in site.ask(page)
