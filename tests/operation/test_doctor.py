import io
import json
import math
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import time_machine
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.template import engines
from django.utils import timezone

from discover import impressions
from discover.impressions import Impression
from media.models import MediaFile
from operation import gauges
from operation.doctor import (
    configuration,
    disks,
    examination,
    feeds,
    findings,
    postgresql,
    processes,
    redis_servers,
    work,
)
from operation.doctor.findings import ERROR, OK, WARNING, Finding
from runtime.embedded import wait_for
from storage.connections import database_now
from storage.postgresql.base import DatabaseWrapper
from tests.support.clusters import ValkeyCluster
from tests.support.factories import ItemFactory
from tests.support.servers import Valkey, frozen
from tests.support.sites import Worker, until, worker
from timeline.models import Delivery
from web import health
from web.static_files import StaticStorage

__all__ = ["worker"]

pytestmark = pytest.mark.django_db


def found(findings: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def states(findings: Any) -> dict[str, str]:
    return {finding.name: finding.state for finding in findings if "latency" not in finding.name}


@contextmanager
def configured(role: str, **values: str) -> Iterator[dict[str, str]]:
    url = redis_servers.redis_roles()[role]
    with redis.Redis.from_url(url, decode_responses=True) as client:
        names = {name.replace("_", "-"): value for name, value in values.items()}
        before = {name: client.config_get(name)[name] for name in names}
        try:
            for name, value in names.items():
                client.config_set(name, value)
            yield states(redis_servers.redis_server(role, url))
        finally:
            for name, value in before.items():
                client.config_set(name, value)
            # Redis writes a newly enabled AOF in the background.
            assert wait_for(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 60)


@pytest.fixture(autouse=True)
def synced() -> Iterator[None]:
    """Plays and queue sync to disk as on a site. Other tests skip this to save time."""
    roles = redis_servers.redis_roles()
    with redis.Redis.from_url(roles["plays"]) as plays, redis.Redis.from_url(roles["broker"]) as broker:
        plays.config_set("appendfsync", "always")
        broker.config_set("appendfsync", "everysec")
        yield
        plays.config_set("appendfsync", "no")
        broker.config_set("appendfsync", "no")


def test_sound_servers_are_sound(settings: Any, broker_server: Valkey) -> None:
    evicting = states(redis_servers.redis_server("cache", settings.CACHE_URL))
    assert evicting["cache maxmemory-policy"] == WARNING, "the tests' own is on the feeds server"
    settings.CACHE_URL = f"unix://{broker_server.socket}?db=2"
    for role, url in redis_servers.redis_roles().items():
        result = states(redis_servers.redis_server(role, url))
        assert set(result.values()) == {OK}, result
    throwaway = {"postgresql fsync", "postgresql full_page_writes", "postgresql synchronous_commit"}
    result = states(postgresql.postgresql())
    assert {name for name, state in result.items() if state == ERROR} == throwaway, "as the tests start it"
    assert {state for name, state in result.items() if name not in throwaway} == {OK}
    assert set(states(disks.played_store()).values()) == {OK}
    assert states(feeds.impressions_fill()) == {"impressions": OK}
    assert states(work.queues()) == {"queue celery": OK, "queue outside": OK}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "values", "name", "state"),
    [
        ("broker", {"maxmemory_policy": "allkeys-lru"}, "broker maxmemory-policy", ERROR),
        ("plays", {"maxmemory_policy": "volatile-lru"}, "plays maxmemory-policy", ERROR),
        ("plays", {"appendonly": "no"}, "plays appendonly", ERROR),
        ("plays", {"appendfsync": "everysec"}, "plays appendfsync", WARNING),
        ("broker", {"appendonly": "no"}, "broker appendonly", WARNING),
        ("broker", {"appendfsync": "no"}, "broker appendfsync", WARNING),
        ("feeds", {"maxmemory_policy": "volatile-lru"}, "feeds maxmemory-policy", WARNING),
        ("broker", {"maxmemory": "1000000"}, "broker memory", ERROR),
        ("feeds", {"maxmemory_policy": "noeviction"}, "feeds maxmemory-policy", WARNING),
        ("feeds", {"maxmemory": "0"}, "feeds maxmemory", WARNING),
        ("feeds", {"zset_max_listpack_entries": "128"}, "feeds zset-max-listpack-entries", WARNING),
        ("feeds", {"save": "60 1"}, "feeds persistence", WARNING),
    ],
)
def test_wrong_settings_of_redis(role: str, values: dict[str, str], name: str, state: str) -> None:
    with configured(role, **values) as result:
        assert {each: seen for each, seen in result.items() if seen != OK} == {name: state}
    assert set(states(redis_servers.redis_server(role, redis_servers.redis_roles()[role])).values()) == {OK}


def test_a_full_broker_is_not_called_dead() -> None:
    with configured("broker", maxmemory="1"), redis.Redis.from_url(redis_servers.redis_roles()["broker"]) as client:
        (memory,) = [
            finding
            for finding in redis_servers.redis_server("broker", redis_servers.redis_roles()["broker"])
            if finding.name == "broker memory"
        ]
        (refused,) = examination.safely("workers", lambda: iter([client.set("a", 1)]))  # type: ignore[list-item]
    assert "refuses writes:" in memory.todo
    assert "refuses (" in refused.text
    assert refused.todo.startswith("Raise its maxmemory: docs/runbook.md, Smaller faults")


def test_impressions_beyond_the_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "IMPRESSION_CAPACITY", 1_000)
    impressions.record([Impression(7, timezone.now().date(), range(1, 1_500))])
    result = found(feeds.impressions_fill())["impressions"]
    assert (result.state, "FEEDSITE_IMPRESSION_CAPACITY" in result.todo) == (WARNING, True)


def test_a_replica_and_old_versions(feeds: redis.Redis) -> None:
    url = redis_servers.redis_roles()["feeds"]
    feeds.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        assert states(redis_servers.redis_server("feeds", url))["feeds role"] == ERROR
    finally:
        feeds.execute_command("REPLICAOF", "NO", "ONE")
    for info, state in (
        ({"redis_version": "6.2.14"}, ERROR),
        ({"redis_version": "7.0.15"}, OK),
        ({"redis_version": "7.2.4"}, OK),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.5"}, OK),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, OK),
        ({"redis_version": "4.0.0", "kvrocks_version": "2.9.0"}, OK),
    ):
        finding = redis_servers._version("feeds", info)
        assert finding.state == state
        assert ("7.0" in finding.todo and "ZMSCORE" in finding.todo) == (state == ERROR), "which version, and why"


@pytest.mark.slow
def test_a_frozen_server_is_one_finding(broker_server: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_servers, "WAIT_SECONDS", 0.3)
    with frozen(broker_server):
        (finding,) = examination.safely(
            "broker", lambda: redis_servers.redis_server("broker", redis_servers.redis_roles()["broker"])
        )
    assert (finding.state, finding.name) == (ERROR, "broker")
    assert "does not answer" in finding.text
    assert finding.todo


def test_faults_of_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'user_level_seen'::regclass")
        cursor.execute("DELETE FROM django_migrations WHERE app = 'seen'")
        cursor.execute("SET LOCAL synchronous_commit = 'local'")
        cursor.execute("DROP TABLE items_pin")
    result = found(postgresql.postgresql())
    assert result["postgresql tables"].text == "missing: items_pin"
    assert "user_level_seen" in result["postgresql indexes"].text
    assert "REINDEX INDEX CONCURRENTLY user_level_seen" in result["postgresql indexes"].todo
    assert "seen.0001_squashed" in result["migrations"].text
    named = ("postgresql indexes", "postgresql tables", "migrations", "postgresql synchronous_commit")
    assert {result[name].state for name in named} == {ERROR}


def test_clocks_apart() -> None:
    now = time.time()
    assert [findings.clock("x", now + apart, now - 0.5, now + 0.5).state for apart in (0, -0.4, 2, 3, -3, 90, -90)] == [
        OK, OK, OK, WARNING, WARNING, ERROR, ERROR
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "name", "state"),
    [
        ({"SECRET_KEY": "short"}, "secret key", ERROR),
        ({"SECRET_KEY": "a" * 80}, "secret key", ERROR),
        ({"ALLOWED_HOSTS": ["feeds.example.org"]}, "https", ERROR),
        ({"ALLOWED_HOSTS": ["*"], "HTTPS": True, "PROXY": True}, "hosts", WARNING),
        ({"HTTPS": True, "PROXY": False}, "proxy", ERROR),
        ({"DEBUG": True}, "debug", ERROR),
        (
            {"ALLOWED_HOSTS": ["a.example"], "EMAIL_BACKEND": "accounts.mail.console.EmailBackend"},
            "mail server",
            WARNING,
        ),
        ({"METRICS_TOKEN": "short"}, "metrics token", WARNING),
    ],
)
def test_wrong_configuration(settings: Any, values: dict[str, Any], name: str, state: str) -> None:
    assert set(states(configuration.configuration()).values()) == {OK}
    for key, value in values.items():
        setattr(settings, key, value)
    finding = found(configuration.configuration())[name]
    assert finding.state == state
    assert finding.todo


@pytest.mark.slow
def test_a_public_site_as_the_documents_have_it(settings: Any) -> None:
    """HSTS for subdomains and preload are optional."""
    settings.ALLOWED_HOSTS, settings.HTTPS, settings.PROXY = ["feeds.example.org"], True, True
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    assert set(states(configuration.configuration()).values()) == {OK}


def test_what_others_can_read(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR, settings.EMAIL_FILE_PATH = tmp_path, str(tmp_path / "letters")
    key, letters = tmp_path / "secret_key", tmp_path / "letters"
    key.write_text("x")
    letters.mkdir()
    for name, path, modes in (
        ("secret key file", key, {0o600: OK, 0o640: ERROR}),
        ("mail folder", letters, {0o700: OK, 0o755: ERROR}),
        ("data folder", tmp_path, {0o700: OK, 0o710: OK, 0o711: ERROR, 0o755: ERROR}),
    ):
        for mode, state in modes.items():
            path.chmod(mode)
            assert states(configuration.configuration())[name] == state, (name, mode)


def test_media_without_files_and_files_without_rows(media_folder: Path) -> None:
    assert {finding.state for finding in disks.media_files()} == {OK}
    row = MediaFile.objects.create(
        owner_id=1, kind="image", name="00/1", ext="jpg", width=1, height=1, size=1, sha256=""
    )
    files = media_folder / "files" / "00"
    files.mkdir(parents=True)
    stray = files / "2.jpg"
    stray.touch()
    then = time.time() - 3 * 86_400
    os.utime(stray, (then, then))
    findings = found(disks.media_files())
    assert findings["media files"].state == ERROR
    assert f"(id {row.pk})" in findings["media files"].text
    assert findings["media rows"].state == WARNING
    (files / "1.jpg").touch()
    stray.unlink()
    assert {finding.state for finding in disks.media_files()} == {OK}


@pytest.mark.parametrize(("free", "state"), [(50, OK), (5, WARNING), (1, ERROR)])
def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    usage = type("usage", (), {"total": 100 * disks.GIB, "free": free * disks.GIB})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert states(disks.disk()) == {"disk": state}


@pytest.mark.slow
def test_deliveries_and_a_beat_that_are_late() -> None:
    now = timezone.now()
    assert set(states(work.deliveries(now)).values()) == {OK}
    waiting, parked = ItemFactory(), ItemFactory()
    Delivery.objects.create(item=waiting, sender=waiting.sender, not_before=now - timedelta(minutes=5))
    Delivery.objects.create(item=parked, sender=parked.sender, parked_at=now)
    assert states(work.deliveries(now)) == {"deliveries": WARNING, "parked deliveries": WARNING}
    assert states(work.beat(now)) == {"beat": ERROR}
    gauges.observe(now=now - timedelta(minutes=10))
    assert states(work.beat(now)) == {"beat": ERROR}
    gauges.observe(now=now + timedelta(days=2))  # a clock ran ahead, and was set right
    assert states(work.beat(now)) == {"beat": ERROR}
    gauges.observe(now=now - timedelta(minutes=1))
    assert states(work.beat(now)) == {"beat": OK}


def test_a_site_that_has_just_started_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    for age, state in ((20.0, WARNING), (170.0, WARNING), (200.0, ERROR)):
        monkeypatch.setattr(work, "uptimes", lambda age=age: [("celery@here", age)])
        assert states(work.beat(now)) == {"beat": state}
    gauges.observe(now=now - timedelta(hours=9))
    monkeypatch.setattr(work, "uptimes", lambda: [("celery@here", 20.0)])
    finding = found(work.beat(now))["beat"]
    assert (finding.state, "started 20 s ago" in finding.text) == (WARNING, True)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_two_workers_of_one_hostname_are_named(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Worker(tmp_path / "other")
    try:
        worker.start()
        other.start()
        until(lambda: len(work.uptimes()) == 4, 90)  # each has a lane
        finding = found(work.workers())["workers"]
        assert (finding.state, finding.todo[:28]) == (WARNING, "Two workers have one name. G")
    finally:
        other.kill()


def test_a_database_that_is_not_migrated() -> None:
    def look() -> Iterator[Finding]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM accounts_of_tomorrow")
        yield Finding("x", OK, "")

    with transaction.atomic():
        (finding,) = examination.safely("policy", look)
        transaction.set_rollback(True)  # the failed statement ended the transaction
    assert (finding.state, finding.todo) == (ERROR, "Run `manage.py migrate`.")
    assert "of another version" in finding.text


def test_the_store_of_the_filters(settings: Any) -> None:
    """Servers other than Kvrocks must never evict or lose data."""
    settings.PLAYED_STORE_URL = settings.PLAYED_URL
    assert set(states(redis_servers.play_store()).values()) == {OK}
    settings.PLAYED_STORE_URL = settings.REDIS_URL
    result = found(redis_servers.play_store())
    assert result["play store maxmemory-policy"].state == result["play store appendonly"].state == ERROR
    assert "months of plays are lost" in result["play store appendonly"].todo


@pytest.mark.django_db(transaction=True)
def test_an_outage_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first check to see it names those that could not run."""

    def away(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("the server does not answer\nin time")

    monkeypatch.setattr("storage.postgresql.base.DatabaseWrapper.get_new_connection", away)
    connection.close()
    nowhere = "http://127.0.0.1:1"
    result = examination.examine(now=timezone.now(), web=nowhere, stream=nowhere, grpc_place="")
    (told,) = [finding for finding in result if "the server does not answer" in finding.text]
    assert told.name == "postgresql"
    assert "so these were not checked: postgresql locks, postgresql disk, site, tables, old rows, " in told.text
    assert "in time" not in told.text


@pytest.mark.parametrize("number", [150_018, 160_004, 180_001])
def test_versions_of_postgresql_that_are_no_lasting_warning(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    real = postgresql.fetch
    monkeypatch.setattr(
        postgresql, "fetch", lambda query, *args: [(number,)] if "version_num" in query else real(query, *args)
    )
    assert found(postgresql.postgresql())["postgresql version"].state == OK


def test_files_that_nginx_may_not_read(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ACCEL_PATH = "/kept-media/"
    settings.DATA_DIR, settings.MEDIA_DIR, settings.MEDIA_ROOT = tmp_path, tmp_path / "media", tmp_path / "media/files"
    settings.MEDIA_ROOT.mkdir(parents=True)
    tmp_path.chmod(0o700)
    result = found(configuration.configuration())["media files for nginx"]
    assert (result.state, f"chmod g+x {tmp_path}`" in result.todo) == (ERROR, True)
    tmp_path.chmod(0o710)
    assert found(configuration.configuration())["media files for nginx"].state == OK


def test_a_machine_with_a_wrong_clock_is_told_of_its_clock_alone() -> None:
    """Ages are by PostgreSQL's clock."""
    gauges.observe(now=database_now())
    written = io.StringIO()
    with time_machine.travel(timezone.now() - timedelta(hours=1)), pytest.raises(SystemExit):
        call_command("doctor", "--json", stdout=written)
    by_name = {finding["name"]: finding["state"] for finding in json.loads(written.getvalue())["findings"]}
    assert (by_name["postgresql clock"], by_name["beat"], by_name["deliveries"]) == (ERROR, OK, OK)


def test_grpc_by_its_health() -> None:
    (finding,) = processes.grpc_process("127.0.0.1:1")
    assert (finding.state, "UNAVAILABLE" in finding.text) == (WARNING, True)


def test_processes_by_their_healthz(live_server: Any) -> None:
    assert states(processes.web(live_server.url)) == {"web": OK, "web readiness": OK, "web page": OK}
    assert states(processes.process("stream", "http://127.0.0.1:1")) == {"stream": WARNING}
    assert states(processes.web("http://127.0.0.1:1")) == {"web": WARNING}


def test_pages_that_fail(live_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without collected static files every page is a 500, but /healthz answers 200."""
    monkeypatch.setattr(staticfiles_storage, "_wrapped", StaticStorage(tmp_path))
    monkeypatch.setattr(health, "latest", health.LatestStates())
    engines["jinja2"].env.globals["static"].cache_clear()  # a fresh process has cached no address
    result = found(processes.web(live_server.url))
    assert [result[name].state for name in ("web", "web readiness", "web page")] == [OK, ERROR, ERROR]
    assert "static files were not collected" in result["web readiness"].text


@pytest.mark.slow
def test_the_command_tells_people_and_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "WAIT_SECONDS", 0.2)  # no worker runs
    told, written = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as exit_of_people:
        call_command("doctor", stdout=told, no_color=True)
    with pytest.raises(SystemExit):
        call_command("doctor", "--json", "--stream", "http://127.0.0.1:1", stdout=written)
    assert exit_of_people.value.code == 1
    assert DatabaseWrapper.seconds == math.inf, "the patience of the command alone"
    assert "  error  workers: none answers\n         → Restart the workers" in told.getvalue()
    *_, last = told.getvalue().splitlines()
    assert re.fullmatch(r"\d+ checks, \d+ errors, \d+ warnings\.", last)
    assert "     ok  " not in told.getvalue(), "what is well is counted"
    answer = json.loads(written.getvalue())
    assert answer["state"] == ERROR
    everything = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", "--all", stdout=everything, no_color=True)
    assert "     ok  migrations: are applied" in everything.getvalue()
    by_name = {finding["name"]: finding for finding in answer["findings"]}
    assert by_name["workers"]["state"] == by_name["beat"]["state"] == ERROR
    assert by_name["lane outside"]["state"] == WARNING
    assert by_name["stream"]["text"] == "http://127.0.0.1:1 does not answer (ConnectionRefusedError)"
    assert all(finding["todo"] for finding in answer["findings"] if finding["state"] != OK)
    assert not any(finding["todo"] for finding in answer["findings"] if finding["state"] == OK)


@pytest.mark.long
@pytest.mark.slow
def test_a_cluster(cluster: ValkeyCluster) -> None:
    # A node lists the replicas of others once it has heard from them.
    assert wait_for(lambda: "; none of" not in found(redis_servers.feeds_cluster())["feeds replicas"].text, 60)
    result = found(redis_servers.feeds_cluster())
    told = ("feeds slots", "feeds replicas", "feeds role", "feeds version")  # other tests leave the rest behind
    assert {finding.state for name, finding in result.items() if name.startswith(told)} == {OK}, result
    assert result["feeds slots"].text == "16384 of 16384 are served"
    assert result["feeds replicas"].text == "3 primaries, 3 replicas"
    assert sum(name.startswith("feeds version of 127.0.0.1:") for name in result) == 3
    # The others still believe that it has the slot.
    for first, _, (_, port, *_), *_ in cluster.slots():
        node = next(node for node in cluster.nodes if cluster.places[node] == port)
        cluster.ask(node, "CLUSTER", "DELSLOTS", first)
        cluster.ask(node, "CONFIG", "SET", "cluster-require-full-coverage", "yes")
        try:
            lost = found(redis_servers.feeds_cluster())
        finally:
            cluster.ask(node, "CONFIG", "SET", "cluster-require-full-coverage", "no")
            cluster.ask(node, "CLUSTER", "ADDSLOTS", first)
        assert (lost["feeds slots"].state, lost["feeds slots"].text) == (ERROR, "16383 of 16384 are served")
        assert lost[f"feeds cluster-require-full-coverage of 127.0.0.1:{port}"].state == WARNING
    node.kill()
    gone = found(examination.safely("feeds cluster", redis_servers.feeds_cluster))
    assert (gone["feeds slots"].state, gone["feeds cluster"].state) == (ERROR, ERROR)
    assert "feeds" not in redis_servers.redis_roles()


def test_a_name_that_nothing_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert states(configuration.configuration())["settings"] == OK
    monkeypatch.setenv("FEEDSITE_DATABSE_URL", "x")
    assert found(configuration.configuration())["settings"] == Finding(
        "settings",
        WARNING,
        "FEEDSITE_DATABSE_URL is not a setting of the site; did you mean FEEDSITE_DATABASE_URL?",
        "Correct the name or remove it. docs/settings.md lists all variables.",
    )
