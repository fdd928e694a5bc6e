import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from runtime import metrics
from tests.support.disks import on_small_disk

pytestmark = pytest.mark.django_db

PREPARE = """
import sys
from runtime import metrics
def tell():
    print("done", flush=True)
    sys.stdin.readline()
"""
COUNT = "metrics.discover_excluded.labels('seen').inc(); metrics.discover_recall_seconds.labels('sql').observe(0.02)\n"


def environ(folder: Path) -> dict[str, str]:
    return os.environ | {metrics.FOLDER: str(folder)}


@contextmanager
def process(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", f"{PREPARE}{code}tell()\n"]
    with subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=environ(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "done\n"
        yield started
        if started.poll() is None:
            started.communicate("\n", timeout=60)


def counted(folder: Path) -> dict[str, float]:
    """Samples of a process without counts of its own."""
    command = [sys.executable, "-c", f"{PREPARE}sys.stdout.buffer.write(metrics.exposition())"]
    shown = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environ(folder), check=True, capture_output=True, text=True
    ).stdout
    return {
        f"{sample.name}{''.join(f' {value}' for _, value in sorted(sample.labels.items()))}": sample.value
        for family in text_string_to_metric_families(shown)
        for sample in family.samples
    }


def slots(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.lock"))


@pytest.mark.slow
def test_processes_are_added_up(tmp_path: Path) -> None:
    with process(tmp_path, COUNT * 3), process(tmp_path, COUNT * 2):
        shown = counted(tmp_path)
    assert shown["feedsite_discover_excluded_total seen"] == 5
    assert shown["feedsite_discover_recall_seconds_count sql"] == 5
    assert shown["feedsite_discover_recall_seconds_sum sql"] == pytest.approx(0.1)
    assert shown["feedsite_discover_recall_seconds_bucket 0.025 sql"] == 5
    assert shown["feedsite_discover_recall_seconds_bucket 0.01 sql"] == 0


@pytest.mark.slow
def test_children_count_for_themselves(tmp_path: Path) -> None:
    """Celery forks its workers from such a process."""
    fork = f"import os\nif not os.fork():\n    {COUNT}    os._exit(0)\nos.wait()\n"
    with process(tmp_path, COUNT + fork + COUNT):
        assert counted(tmp_path)["feedsite_discover_excluded_total seen"] == 3


@pytest.mark.long
@pytest.mark.slow
def test_a_child_whose_files_were_closed_closes_no_other(tmp_path: Path) -> None:
    """Celery closes beat's files. Connections reuse their numbers."""
    fork = """
import os
if not os.fork():
    os.closerange(3, 256)
    pipes = [os.pipe() for _ in range(40)]
    metrics.discover_excluded.labels('seen').inc()
    for hears, tells in pipes:
        os.write(tells, b"x")
        assert os.read(hears, 1) == b"x"
    metrics.discover_excluded.labels('seen').inc(10)
    os._exit(0)
assert os.wait()[1] == 0
"""
    with process(tmp_path, COUNT + fork + COUNT):
        assert counted(tmp_path)["feedsite_discover_excluded_total seen"] == 13


@pytest.mark.slow
def test_a_child_does_not_keep_the_slot_of_its_parent(tmp_path: Path) -> None:
    fork = "import os\nif not os.fork():\n    sys.stdin.readline()\n    os._exit(0)\n"
    with process(tmp_path, fork) as parent:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        with process(tmp_path, COUNT):
            assert slots(tmp_path) == ["0.lock"]


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_process_leaves_its_counts_and_its_slot(tmp_path: Path) -> None:
    for _ in range(4):
        with process(tmp_path, COUNT) as started:
            os.kill(started.pid, signal.SIGKILL)
            started.wait()
    assert counted(tmp_path)["feedsite_discover_excluded_total seen"] == 4
    assert slots(tmp_path) == ["0.lock"]
    assert sorted(path.name for path in tmp_path.glob("*.db")) == [
        "counter_0.db",
        "gauge_livesum_0.db",
        "gauge_mostrecent_0.db",
        "histogram_0.db",
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:100],
        lambda data: data[:300] + bytes(len(data) - 300),
        lambda data: b"\xff" * 4 + data[4:],
        lambda data: b"\x00\x00\x00\x7f" + data[4:],
        lambda data: data[:8] + b"\xe8\xff\xff\xff" + data[12:],
        lambda data: data[:14] + b"\xff\xff" + data[16:],
        lambda data: b"x",
    ],
    ids=["cut", "zeros", "negative", "beyond", "backwards", "no text", "short"],
)
def test_a_damaged_file_is_left_out_and_begins_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    with process(tmp_path, COUNT * 3):
        pass
    path = tmp_path / "counter_0.db"
    path.write_bytes(damage(path.read_bytes()))
    assert "feedsite_discover_excluded_total seen" not in counted(tmp_path)
    with process(tmp_path, COUNT * 2):
        assert counted(tmp_path)["feedsite_discover_excluded_total seen"] == 2


@pytest.mark.long
def test_gauges_of_the_dead_are_forgotten(tmp_path: Path) -> None:
    gauge = (
        "from prometheus_client import Gauge\n"
        "Gauge('open', 'Open.', registry=metrics.registry, multiprocess_mode='livesum').set(7)\n"
    )
    with process(tmp_path, ""):
        with process(tmp_path, gauge):
            assert counted(tmp_path)["open"] == 7
        assert "open" not in counted(tmp_path)
        with process(tmp_path, gauge) as killed:
            os.kill(killed.pid, signal.SIGKILL)
            killed.wait()
        with process(tmp_path, ""):  # takes over the slot
            assert "open" not in counted(tmp_path)


@pytest.mark.slow
def test_without_a_folder_a_process_counts_for_itself() -> None:
    before = metrics.discover_excluded.labels("seen")._value.get()
    metrics.discover_excluded.labels("seen").inc()
    shown = metrics.exposition().decode()
    assert f'feedsite_discover_excluded_total{{reason="seen"}} {before + 1}' in shown


@pytest.mark.slow
def test_a_folder_that_cannot_be_is_no_reason_to_be_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code = f"{PREPARE}{COUNT}sys.stdout.buffer.write(metrics.exposition())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=environ(tmp_path / "file" / "metrics"),
        check=True,
        capture_output=True,
        text=True,
    )
    assert 'feedsite_discover_excluded_total{reason="seen"} 1.0' in done.stdout
    assert "each process counts its own metrics" in done.stderr


# --- Readers ---------------------------------------------------------------------------------------------
def nothing_here(client: Client, **extra: str) -> tuple[int, bytes]:
    response = client.get("/nothing-here", **extra)
    return response.status_code, response.content


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_reads_them(client: Client, peer: str) -> None:
    response = client.get("/metrics", REMOTE_ADDR=peer)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "no-store" in response["Cache-Control"]
    assert b"# TYPE feedsite_discover_pages_total counter" in response.content
    assert client.head("/metrics", REMOTE_ADDR=peer).status_code == 200
    assert client.post("/metrics", REMOTE_ADDR=peer).status_code == 405


@pytest.mark.slow
@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize(
    "extra",
    [
        {"REMOTE_ADDR": "192.0.2.1"},
        {"REMOTE_ADDR": "2001:db8::1"},
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "unix:"},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_FORWARDED": "for=127.0.0.1"},
        # A proxy on this machine sends these, whatever the client wrote.
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "192.0.2.1"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1, 127.0.0.1"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": ""},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=127.0.0.1"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_REAL_IP": "127.0.0.1"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_VIA": "1.1 proxy"},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_AUTHORIZATION": "Bearer "},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_AUTHORIZATION": "Bearer wrong"},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_AUTHORIZATION": "Bearer secr\xe9t"},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_AUTHORIZATION": "Token secret"},
        {"REMOTE_ADDR": "192.0.2.1", "HTTP_AUTHORIZATION": "secret"},
    ],
)
@pytest.mark.parametrize("token", ["", "secret"])
def test_for_others_there_is_nothing_here(
    client: Client, settings, extra: dict[str, str], proxy: bool, token: str
) -> None:
    settings.PROXY, settings.METRICS_TOKEN = proxy, token
    response = client.get("/metrics", **extra)
    assert (response.status_code, response.content) == nothing_here(client, **extra)
    assert response.status_code == 404
    assert client.post("/metrics", **extra).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_callers_with_the_token_read_them_from_anywhere(client: Client, settings, scheme: str) -> None:
    settings.METRICS_TOKEN = "secret"
    extra = {"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": "198.51.100.7"}
    assert client.get("/metrics", HTTP_AUTHORIZATION=f"{scheme} secret", **extra).status_code == 200


@pytest.mark.slow
def test_scrapers_come_past_the_proxy(client: Client, settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "feeds.example.org"])
def test_this_machine_reads_them_by_its_address(client: Client, settings, host: str) -> None:
    settings.ALLOWED_HOSTS = ["feeds.example.org"]
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1", HTTP_HOST=host).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.0.2.1"])
def test_another_host_is_refused(client: Client, settings, host: str) -> None:
    """A malicious page may point its host name at this machine."""
    settings.ALLOWED_HOSTS, settings.METRICS_TOKEN = ["feeds.example.org"], "secret"
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1", HTTP_HOST=host).status_code == 400
    told = {"HTTP_AUTHORIZATION": "Bearer secret"}
    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1", HTTP_HOST=host, **told).status_code == 200


# --- A full disk -----------------------------------------------------------------------------------------
COUNT_MANY = """
def count(name):
    for number in range(500):
        metrics.home_pages.labels(f"{name}{number}").inc()
def shown():
    return metrics.exposition().decode()
"""


@pytest.mark.slow
def test_a_disk_that_fills_up_kills_no_process(tmp_path: Path) -> None:
    code = f"{PREPARE}{COUNT_MANY}count('early'); fill(FOLDER); count('late'); count('early')\nprint(shown())\n"
    done = on_small_disk(tmp_path, code, environ(tmp_path), "8m")
    assert done.returncode == 0, done
    assert 'feedsite_home_pages_total{sources="early7"} 2.0' in done.stdout
    assert 'feedsite_home_pages_total{sources="late499"} 1.0' in done.stdout, "its room was taken before"


@pytest.mark.long
@pytest.mark.slow
def test_a_process_starts_in_a_full_folder(tmp_path: Path) -> None:
    """It counts in memory. `/metrics` shows the others."""
    code = f"{PREPARE}{COUNT_MANY}pid = os.fork()\nif not pid:\n    fill(FOLDER); count('full'); os._exit(7)\n"
    code += "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); count('parent'); print(shown())"
    done = on_small_disk(tmp_path, code, environ(tmp_path), "8m")
    assert done.stdout.startswith("7\n"), done
    assert "metrics of this process stay in its memory" in done.stderr
    assert 'feedsite_home_pages_total{sources="parent499"} 1.0' in done.stdout
    code = f"fill(FOLDER)\n{PREPARE}{COUNT_MANY}count('full'); print(shown())"
    done = on_small_disk(tmp_path, code, environ(tmp_path))
    assert done.returncode == 0, done
