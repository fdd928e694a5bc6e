"""docs/install.md on a real Debian, up to a site behind TLS."""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from django.conf import settings

from runtime.embedded import wait_for
from tests.support.debian import Debian, debian
from tests.support.install_page import PAGE, STEPS, blocks

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

SUPPORT = Path(settings.BASE_DIR) / "tests" / "support"
SOURCE = "/mnt/feedsite.git"
DOMAIN = "feeds.example.org"
CERTBOT = """#!/bin/bash
set -e
[[ "$1 $2 $4" = "certonly --webroot --domain" || "$1 $2 $3 $5" = "certonly --webroot --webroot-path --domain" ]]
while [ $# -gt 0 ]; do
    case $1 in
        --webroot-path) webroot=$2 ;;
        --domain) domain=$2 ;;
        --deploy-hook) hook=$2 ;;
    esac
    shift
done
mkdir --parents $webroot/.well-known/acme-challenge /etc/letsencrypt/live/$domain
echo token > $webroot/.well-known/acme-challenge/asked
python3 -c "
import sys, urllib.request
said = urllib.request.urlopen('http://$domain/.well-known/acme-challenge/asked', timeout=5).read()
sys.exit(said != b'token\\n')"
cd /etc/letsencrypt/live/$domain
openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=$domain -addext subjectAltName=DNS:$domain \
    -keyout privkey.pem -out fullchain.pem 2>/dev/null
cp fullchain.pem /usr/local/share/ca-certificates/$domain.crt
update-ca-certificates > /dev/null 2>&1
bash -c "$hook"
"""
STAND_INS = {
    "systemctl": (SUPPORT / "systemctl.py").read_text(),  # starts what units say
    "certbot": CERTBOT,  # checks port 80 as the authority does, and signs by itself. Debian trusts it
}
"""All other programs are Debian's own."""
MAIL = """
import socketserver
class Talk(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 here\\r\\n")
        is_letter = False
        for line in self.rfile:
            if is_letter and line != b".\\r\\n":
                continue
            is_letter = line.upper() == b"DATA\\r\\n"
            self.wfile.write(b"354 go on\\r\\n" if is_letter else b"250 fine\\r\\n")
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 25), Talk).serve_forever()
"""
ASKED = """
import json, sys, time, urllib.error, urllib.request, ssl
context = ssl.create_default_context(cafile="/etc/letsencrypt/live/{domain}/fullchain.pem")
opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
answers = []
for url in sys.argv[2:]:
    until = time.monotonic() + float(sys.argv[1])
    while True:
        try:
            with opener.open(url, timeout=20) as page:
                answers.append([page.status, page.url, page.read().decode(errors="replace")])
        except urllib.error.HTTPError as error:
            answers.append([error.code, url, error.read().decode(errors="replace")])
        except OSError as error:
            answers.append([0, url, str(error)])
        if answers[-1][0] == 200 or time.monotonic() > until:
            break
        answers.pop()
        time.sleep(0.2)
print(json.dumps(answers))
"""
ONLINE = re.compile(r"^(apt-get|git clone|python3 manage\.py setup)", re.MULTILINE)
"""Blocks that fetch packages or the code."""
KEPT = re.compile(r"^(cd \S+|[A-Z]+=\S+)$", re.MULTILINE)
"""What one block's shell leaves to the next."""


class Install:
    def __init__(self, machine: Debian) -> None:
        self.machine = machine
        self.kept: list[str] = []
        self.seconds: dict[str, float] = {}

    def run(self, title: str, lines: str) -> str:
        began = time.monotonic()
        done = self.machine.run("\n".join([*self.kept, lines, "echo END"]), online=bool(ONLINE.search(lines)))
        self.seconds[title] = time.monotonic() - began
        said = f"{title}\n{lines}\n{done.stdout[-5_000:]}"
        assert done.returncode == 0, said
        assert done.stdout.endswith("END\n"), f"it ran to its end: {said}"
        self.kept += KEPT.findall(lines)
        return done.stdout

    def ask(self, *paths: str, seconds: float = 0) -> list[tuple[int, str, str]]:
        """Status, last address and text. Each may take `seconds` to answer 200."""
        self.machine.put("/root/ask.py", ASKED.replace("{domain}", DOMAIN))
        done = self.machine.run(f"python3 /root/ask.py {seconds} {' '.join(paths)}")
        assert done.returncode == 0, done.stdout
        return [(status, url, text) for status, url, text in json.loads(done.stdout)]


def prepare(machine: Debian) -> None:
    """What a hosted machine has: a name, and services that start when installed."""
    hosts = (machine.root / "etc/hosts").read_text()
    machine.put("/etc/hosts", f"{hosts}127.0.0.1 {DOMAIN}\n", 0o644)
    machine.put("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")  # else apt starts them: see STARTED
    machine.put("/root/mail.py", MAIL, 0o644)
    for name, script in STAND_INS.items():
        machine.put(f"/usr/local/sbin/{name}", script)
    made = subprocess.run(
        ["git", "clone", "--quiet", "--bare", settings.BASE_DIR, machine.root / SOURCE.lstrip("/")],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"this is no clone: {made.stderr.strip()}")


CLUSTERS = "for each in $(pg_lsclusters --no-header | awk '{print $1}'); do systemctl start postgresql@$each-main; done"
STARTED = f"{CLUSTERS}\nsystemctl start nginx redis-server\nsetsid python3 /root/mail.py > /dev/null 2>&1 &"
"""What systemd does when the packages are installed, and a mail server."""


def lines_for(lines: str, *, has_three: bool) -> str:
    """The code's location and the number of Redis instances."""
    lines = lines.replace("ADDRESS", SOURCE).replace("setup --domain", "setup --mail smtp://127.0.0.1:25 --domain")
    if not has_three:
        (broker,) = re.findall(r"`(--broker [^`]+)`", PAGE.replace("\n", " "))
        lines = lines.replace("feeds plays broker", "feeds plays").replace("setup --mail", f"setup {broker} --mail")
    return lines


def warnings_of(machine: Debian) -> set[str]:
    """What `doctor` finds, apart from the disk and speed of this machine."""
    found = machine.run("feedsite doctor --json")
    assert found.returncode == 0, found.stdout
    warned = {each["name"] for each in json.loads(found.stdout)["findings"] if each["state"] != "ok"}
    return {name for name in warned if name != "disk" and "latency" not in name}


@pytest.mark.parametrize(("suite", "has_three"), [("bookworm", True), ("trixie", False)])
def test_every_line_of_the_page(suite: str, has_three: bool) -> None:
    """It runs with three instances of Redis, and with two."""
    with debian(suite) as machine:
        install = Install(machine)
        prepare(machine)
        install.run("0", *blocks(PAGE.partition("**1.")[0]))
        said: dict[str, str] = {}
        for number, text in STEPS:
            title = f"{number}. {re.split(r'[.*]', text)[0]}"
            said[title] = install.run(title, lines_for(*blocks(text), has_three=has_three))
            if title == "1. Programs":
                install.run("as systemd does then", STARTED)
            if title == "8. nginx":
                began = time.monotonic()
                ((status, _, about),) = install.ask(f"https://{DOMAIN}/about", seconds=120)
                assert status == 200, about
                install.seconds["the first page"] = time.monotonic() - began
                minutes = sum(install.seconds.values()) / 60
            if number == "9":
                (link,) = re.findall(rf"https://{DOMAIN}/first-admin/\S+", said[title])
                ((status, *_),) = install.ask(link)
                assert status == 200
                install.run("the link is used", "feedsite account make first\nfeedsite account promote first")
        print(f"{suite}: {len(STEPS)} steps, {minutes:.1f} minutes to the first page behind TLS")
        print("\n".join(f"{seconds:7.1f} s  {title}" for title, seconds in install.seconds.items()))

        (sheet, *_) = re.findall(r'href="(/static/[^"]+\.css)"', about)
        answers = install.ask(f"https://{DOMAIN}/readyz", f"https://{DOMAIN}{sheet}", f"http://{DOMAIN}/about")
        assert [status for status, *_ in answers] == [200] * 3
        assert answers[-1][1] == f"https://{DOMAIN}/about", "port 80 leads to TLS"
        programs = "feedsite-web@a feedsite-stream feedsite-worker"
        running = machine.run(f"systemctl is-active {programs}")
        assert running.returncode == 0, running.stdout
        restarted = machine.run(
            "feedsite restart && systemctl is-active feedsite-web@b feedsite-stream feedsite-worker"
        )
        assert restarted.returncode == 0, restarted.stdout
        expected = set() if has_three else {"plays server"}
        # Beat is said to be new until a worker has noted it, within 20 seconds.
        assert wait_for(lambda: warnings_of(machine) == expected, 60), "as the page says"
