import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import celery.bin.celery
import click
import granian.cli
import pytest
import redis
import yaml
from django.conf import settings
from django.core.management import get_commands
from django.utils.module_loading import import_string

from runtime import embedded, stream_server
from runtime.management.commands.check_all import clean_environ
from runtime.options import VARIABLES
from runtime.programs import NAMES, ProgramAddress, programs
from tests.support.clusters import free_ports
from tests.support.environments import given

ROOT = Path(settings.BASE_DIR)
SCRIPTS = Path(sys.executable).parent
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text()).splitlines()
CELERY = celery.bin.celery.celery


def interpolated(text: str) -> str:
    """Fill in the text like compose without variables. A required one becomes `x`."""
    while found := re.search(r"\$\{\w+:([-?])([^${}]*)\}", text):
        text = text[: found.start()] + (found[2] if found[1] == "-" else "x") + text[found.end() :]
    return text


def options_of(command: click.Command) -> dict[str, click.Option]:
    return {
        name: each
        for each in command.params
        if isinstance(each, click.Option)
        for name in (*each.opts, *each.secondary_opts)
    }


def check_click(words: list[str], command: click.Command) -> list[str]:
    """Returns the words that are not options."""
    options, rest = options_of(command), []
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            rest.append(word)
            continue
        assert word in options, f"{word} is no option of {command.name}"
        if not options[word].is_flag and not options[word].count:
            words.pop(0)
    return rest


def check(words: list[str]) -> None:
    program = Path(words[0]).name
    if program == "runtime.stream_server":
        assert stream_server.arguments(words[1:]).application == "feedsite.asgi:application"
        return
    assert (SCRIPTS / program).exists() or program in {"sh", "python", "sleep"}, words
    if program == "granian":
        (target,) = check_click(words[1:], granian.cli.cli)
        assert target in {"feedsite.wsgi:application", "feedsite.asgi:application"}
        import_string(target.replace(":application", ".__name__"))
    elif program == "celery":
        place = next(place for place, word in enumerate(words) if word in CELERY.commands)
        assert check_click(words[1:place], CELERY) == []
        rest = check_click(words[place + 1 :], CELERY.commands[words[place]])
        assert rest in ([], ["ping"])
    elif words[1].endswith("manage.py"):
        assert words[2] in get_commands()
        assert (ROOT / words[1]).exists()


@pytest.mark.parametrize("name", [name for name, each in SERVICES.items() if each["image"] == "feedsite"])
def test_services_run_what_there_is(name: str) -> None:
    service = SERVICES[name]
    command = service.get("command")
    if command and command[:2] == ["sh", "-c"]:
        for part in command[2].split("&&"):
            check(shlex.split(part))
    elif command:
        check(command)
    assert service["env_file"] == [".env"], "what it sets reaches the processes, also with an older compose"
    assert service["environment"]["PGPASSWORD"] == SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    for name, value in service["environment"].items():
        if name in {"FEEDSITE_DATA_DIR", "FEEDSITE_VENV", "FEEDSITE_ENV_FILE", "FEEDSITE_HOST", "PORT", "PGPASSWORD"}:
            continue  # places in the image, and what libpq reads
        assert name in VARIABLES
        default = re.fullmatch(rf"\$\{{{name}:([-?])(.*)\}}", value)
        assert default, "what .env sets wins"
        if default[1] == "-" and interpolated(default[2]):
            given({name: interpolated(default[2])})
    test = service.get("healthcheck", {}).get("test", ["NONE"])
    if test[0] == "CMD-SHELL":
        check(shlex.split(test[1]))


def test_nothing_that_operators_change_replaces_the_container_of_process_ids() -> None:
    """Compose replaced it first, which ended all others, and could then not stop them."""
    pids = SERVICES["pids"]
    assert pids["image"] != "feedsite"
    assert {"build", "env_file", "environment"}.isdisjoint(pids)
    assert {name for name, each in SERVICES.items() if each.get("pid")} == {"web", "stream", "grpc", "worker"}


def test_services_hang_together() -> None:
    assert {"web", "worker", "stream", "grpc", "postgres", "feeds", "plays", "broker"} <= SERVICES.keys()
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= SERVICES.keys()
        volumes = [each.split(":")[0] for each in service.get("volumes", [])]
        assert {each for each in volumes if not each.startswith(".")} <= COMPOSE["volumes"].keys()
        for path in (each for each in volumes if each.startswith(".")):
            assert (ROOT / path).exists()
        assert "." not in service["image"].partition("/")[0], "no registry but the standard one"
    feeds, plays, broker = (" ".join(SERVICES[name]["command"]) for name in ("feeds", "plays", "broker"))
    assert "--maxmemory-policy allkeys-lru --zset-max-listpack-entries 512" in feeds
    for kept in (plays, broker):
        assert "--appendonly yes" in kept
        assert "noeviction" in kept
    assert SERVICES["plays"]["volumes"] == ["broker:/data"], "the volume that has the plays of an older site"
    environ = SERVICES["web"]["environment"]
    assert interpolated(environ["FEEDSITE_PLAYED_URL"]) == "redis://plays:6379/1", "the database in which they are"
    assert interpolated(environ["FEEDSITE_PLAYED_STORE_URL"]) == "", "filters are on the disk, by LMDB"
    assert "data:/data" in SERVICES["worker"]["volumes"]
    for name in ("web", "grpc", "worker"):
        assert SERVICES[name]["pid"] == "service:pids", "LMDB tells readers apart by their process ids"


def test_the_servers_of_the_containers_are_reached_and_keep_what_they_acknowledge() -> None:
    for name in ("feeds", "plays", "broker"):
        command = SERVICES[name]["command"]
        assert command[command.index("--protected-mode") + 1] == "no", "it is asked from other containers"
    for name, fsync in (("plays", "always"), ("broker", "everysec")):
        command = SERVICES[name]["command"]
        assert command[command.index("--appendfsync") + 1] == fsync


@pytest.mark.slow
@pytest.mark.parametrize("name", ["feeds", "plays", "broker"])
def test_a_server_starts_with_its_file_and_keeps_what_the_embedded_one_keeps(tmp_path: Path, name: str) -> None:
    home = embedded.Home(tmp_path)
    home.make()
    (tmp_path / name).mkdir()
    made = embedded.make_server(home, name)
    assert isinstance(made, embedded.Valkey)
    given = embedded.Valkey(home, name, {})
    program, *options = given.command()
    file = tmp_path / f"{name}.conf"
    text = (ROOT / "deploy" / "valkey" / file.name).read_text()
    file.write_text(text.replace("/var/lib/valkey", str(tmp_path)))
    with subprocess.Popen([program, str(file), *options], stdout=subprocess.DEVNULL) as process:
        try:
            assert embedded.wait_for(given.answers, 30)
            with redis.Redis(unix_socket_path=str(given.socket), decode_responses=True) as client:
                values = client.config_get("*")
        finally:
            process.terminate()
    asked = dict(made.options)
    if name == "feeds":  # others use this server too
        asked |= {"maxmemory-policy": "allkeys-lru", "maxmemory": str(2**29)}
    assert {option: values[option] for option in asked} == asked


def test_the_image_is_small_private_and_watched() -> None:
    lines = [line.split(None, 1) for line in DOCKERFILE if line and not line.startswith("#")]
    by_word: dict[str, list[str]] = {}
    for word, rest in lines:
        by_word.setdefault(word, []).append(rest)
    assert len(by_word["FROM"]) == 2
    assert all("." not in rest.split()[0].partition("/")[0].partition(":")[0] for rest in by_word["FROM"])
    assert by_word["USER"] == ["feedsite"]
    assert "/healthz" in by_word["HEALTHCHECK"][0]
    for rest in by_word["COPY"]:
        if "--from" not in rest:
            assert all((ROOT / source).exists() for source in rest.split()[:-1])
    check(yaml.safe_load(by_word["CMD"][0]))
    assert not re.search(r"https?://(?!127\.0\.0\.1)", "\n".join(DOCKERFILE))
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".env", ".venv", "var", "tests"} <= set(ignored), "secrets and what is not of the site stay outside"


def test_the_image_has_the_programs_of_the_servers_postgresql() -> None:
    server = str(SERVICES["postgres"]["image"]).partition(":")[2]
    assert any(f" postgresql-client-{server} " in line for line in DOCKERFILE), "an older pg_dump refuses the server"


def test_the_environment_of_the_image_is_made_by_manage() -> None:
    """The Dockerfile calls these by name."""
    import manage

    assert "manage.install(manage.SERVER_LOCK)" in "\n".join(DOCKERFILE)
    assert callable(manage.install)
    assert manage.SERVER_LOCK == ROOT / "requirements/server.lock"


def instance_of(unit: Path) -> str:
    return unit.name.replace("@.", "@a.")


def commands_of(unit: Path) -> list[list[str]]:
    return [shlex.split(words) for words in re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)]


def test_nginx_may_reach_the_files_of_media() -> None:
    for unit in UNITS:
        assert "StateDirectoryMode=0710" in unit.read_text().splitlines(), "systemd gives the folder each unit's mode"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_can_do_little_else(unit: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(unit)]
    rated = subprocess.run(command, capture_output=True, text=True)
    assert rated.returncode == 0, rated.stdout[-300:]


def test_no_log_fills_a_disk() -> None:
    assert all("max-size" in service["logging"]["options"] for service in SERVICES.values())


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_what_there_is(unit: Path) -> None:
    for words in commands_of(unit):
        check(words)
    assert instance_of(unit) in (unit.parent / "feedsite.target").read_text()
    again = [shlex.split(words) for words in re.findall(r"^ExecReload=(.*)$", unit.read_text(), re.MULTILINE)]
    assert again in ([], commands_of(unit))
    assert "StateDirectory=feedsite\n" in unit.read_text(), "whatever the data folder was"
    assert "FEEDSITE_DATA_DIR=%S/feedsite" in unit.read_text()
    assert ("Requires=feedsite-prepare.service" in unit.read_text()) == (unit.stem != "feedsite-prepare")


def test_every_program_is_started_the_same_way_everywhere() -> None:
    units = {words[3] for unit in UNITS for words in commands_of(unit) if words[2] == "program"}
    commands = [each.get("command", []) for each in SERVICES.values()]
    services = {words[3] for words in commands if words[1:3] == ["manage.py", "program"]}
    assert units == set(NAMES)
    assert services | {"web"} == set(NAMES)
    assert 'program", "web' in DOCKERFILE[-1]
    family = settings.OPTIONS
    assert [each.name for each in programs(family, ProgramAddress("127.0.0.1", 1, 2, 3))] == list(NAMES)
    without = [each.name for each in programs(family, ProgramAddress("127.0.0.1", 1, 2, 0))]
    assert without == [name for name in NAMES if name != "grpc"]
    for each in programs(family, ProgramAddress("127.0.0.1", 1, 2, 0)):
        words = [word for word in each.command if word != "runtime.preloaded"]
        check([str(SCRIPTS / words[0]), *words[1:]])


INSTALL = """
import collections, http.client, json, subprocess, sys, threading, time
import django
django.setup()
from django.conf import settings
from runtime.embedded import wait_for
prepare, running = json.loads(sys.argv[1])

def ask(path, port):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        client.request("GET", path)
        return client.getresponse().status
    except OSError as error:
        return type(error).__name__
    finally:
        client.close()

with settings.SERVERS.ensure():
    for words in prepare:
        subprocess.run(words, check=True)
    programs = [subprocess.Popen(words) for words in running]
    port, answers, is_over = settings.PORT, collections.Counter(), threading.Event()
    paths = ("/login", "/static/feedsite/pages.css", "/readyz")
    up = wait_for(lambda: all(ask(path, port) == 200 for path in paths) and ask("/healthz", port + 1) == 200, 120)
    (web,) = (each for each in programs if each.args[-1] == "web")

    def load():
        while not is_over.wait(0.01):
            answers[ask("/login", port)] += 1

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    def listening():
        lines = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
        return sum(int(one[1].split(":")[1], 16) == port and one[3] == "0A" for one in lines)

    before = listening()
    programs.append(subprocess.Popen(web.args))
    def asked_meanwhile():
        before = answers.total()
        return wait_for(lambda: answers.total() > before + 100, 60)

    beside = wait_for(lambda: listening() == 2 * before, 120) and asked_meanwhile()
    programs.remove(web)
    web.terminate()
    first = web.wait(60)
    alone = asked_meanwhile()
    is_over.set()
    for thread in threads:
        thread.join()
    said = subprocess.run([sys.executable, "manage.py", "doctor", "--json"], stdout=subprocess.PIPE).stdout
    ended = [each.poll() for each in programs]
    for each in programs:
        each.terminate()
    codes = [each.wait(60) for each in programs]
wrong = [each for each in json.loads(said)["findings"] if each["state"] == "error"]
told = {"up": up, "beside": [beside, first], "answers": answers}
print(json.dumps(told | {"wrong": wrong, "ended": ended, "codes": codes}))
"""


@pytest.mark.long
def test_the_commands_of_the_units_make_a_site_in_a_fresh_folder(tmp_path: Path) -> None:
    """Given only the folder. One web process takes over from another."""

    def words(unit: Path) -> list[list[str]]:
        return [[sys.executable, *command[1:]] for command in commands_of(unit)]

    prepare = next(unit for unit in UNITS if unit.stem == "feedsite-prepare")
    running = [command for unit in UNITS if unit != prepare for command in words(unit)]
    port = free_ports()[0]
    environ = clean_environ(tmp_path / "state") | {
        "DJANGO_SETTINGS_MODULE": "feedsite.settings",
        "PORT": str(port),
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"),
        "FEEDSITE_RATE_SCALE": "100000",
        "FEEDSITE_GRPC_PORT": str(free_ports()[0]),
    }
    done = subprocess.run(
        [sys.executable, "-c", INSTALL, json.dumps([words(prepare), running])],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["up"]
    assert told["beside"] == [True, 0], "the second instance listened, and the first ended"
    assert told["answers"].keys() == {"200"}, told["answers"]
    assert told["wrong"] == []
    assert set(told["ended"]) == {None}
    assert set(told["codes"]) == {0}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_units_are_sound_for_systemd(tmp_path: Path) -> None:
    for unit in (*UNITS, UNITS[0].parent / "feedsite.target"):
        text = unit.read_text().replace("/srv/feedsite/.venv/bin", str(SCRIPTS)).replace("/srv/feedsite", str(ROOT))
        (tmp_path / instance_of(unit)).write_text(text.replace("User=feedsite", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if "feedsite" in line]
    assert complaints == []
