"""`restart` under systemd. A program of the test's own stands for systemctl; the units listen as web does."""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime import restart
from runtime.embedded import wait_for
from tests.support.clusters import free_ports

SYSTEMCTL = """#!{python}
import os, signal, subprocess, sys
from pathlib import Path

verb, unit = sys.argv[1], sys.argv[-1]
file, log = Path({folder!r}, unit), Path({folder!r}, "log")
with log.open("a") as lines:
    lines.write(verb + " " + unit + "\\n")

def pid():
    found = int(file.read_text()) if file.exists() else 0
    return found if found and Path(f"/proc/{{found}}/exe").exists() else 0

if verb in ("stop", "restart") and pid():
    os.killpg(pid(), signal.SIGKILL)
if verb in ("start", "restart") and not (verb == "start" and pid()):
    if Path({folder!r}, "refused-" + unit).exists():
        sys.exit("Unit " + unit + " not found")
    listens = "web" in unit and not Path({folder!r}, "broken-" + unit).exists()
    code = {listener!r} if listens else "import time; time.sleep(600)"
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    started = subprocess.Popen([{python!r}, "-c", code, "{port}"], start_new_session=True, **silent)
    file.write_text(str(started.pid))
if verb == "show":
    print(pid())
if verb == "is-active":
    sys.exit(0 if pid() or unit == "feedsite.target" else 3)
"""
LISTENER = """
import socket, sys
with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    listener.listen(100)
    while True:
        listener.accept()[0].close()
"""


@pytest.fixture
def port() -> int:
    return free_ports()[0]


@pytest.fixture
def units(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the stand-in. Web's unit a runs, and the worker and the stream."""
    folder = tmp_path / "units"
    folder.mkdir()
    program = tmp_path / "systemctl"
    program.write_text(SYSTEMCTL.format(python=sys.executable, folder=str(folder), listener=LISTENER, port=port))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(restart, "SETTLED_SECONDS", 0.1)
    for unit in ("feedsite-web@a", "feedsite-worker", "feedsite-stream"):
        restart.systemctl("start", unit)
    assert wait_for(lambda: answers(port), 30)
    yield folder
    for unit in folder.glob("feedsite-*"):
        restart.systemctl("stop", unit.name)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@pytest.mark.long
def test_web_is_followed_by_its_other_unit(units: Path, port: int) -> None:
    told: list[str] = []
    for new, old in ("ba", "ab"):
        restart.restart_units(port, told.append)
        assert restart.is_active(f"feedsite-web@{new}")
        assert not restart.is_active(f"feedsite-web@{old}")
    assert [line.partition(" ")[0] for line in told] == ["worker", "web", "stream", "grpc"] * 2


def test_no_connection_is_refused_meanwhile(units: Path, port: int) -> None:
    refused, is_over = [], threading.Event()

    def connect() -> None:
        while not is_over.wait(0.002):
            refused.extend([] if answers(port) else [1])

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        restart.restart_units(port, print)
    finally:
        is_over.set()
        thread.join()
    # Connections that the old one had not accepted when it was killed are reset, not refused.
    assert not refused


def test_a_restart_that_was_interrupted_is_done_again(units: Path, port: int) -> None:
    restart.systemctl("start", "feedsite-web@b")
    restart.restart_units(port, print)
    assert [restart.is_active(f"feedsite-web@{name}") for name in "ab"] == [False, True]


def test_a_web_that_does_not_listen_does_not_follow(units: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "TURN_SECONDS", 1.0)
    (units / "broken-feedsite-web@b").touch()
    with pytest.raises(restart.RestartError, match=r"journalctl --unit feedsite-web@b\. The old one keeps running"):
        restart.restart_units(port, print)
    assert [restart.is_active(f"feedsite-web@{name}") for name in "ab"] == [True, False]
    assert answers(port)


def test_what_systemd_refuses_is_said(units: Path, port: int) -> None:
    (units / "refused-feedsite-worker").touch()
    with pytest.raises(restart.RestartError, match=r"systemctl restart feedsite-worker failed: Unit .* not found"):
        restart.restart_units(port, print)


def test_a_program_that_ended_is_named(units: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "SETTLED_SECONDS", 0.1)
    run = restart.systemctl

    def stopped(*words: str) -> str:
        said = run(*words)
        if words == ("restart", "feedsite-grpc"):
            run("stop", "feedsite-worker")
        return said

    monkeypatch.setattr(restart, "systemctl", stopped)
    with pytest.raises(restart.RestartError, match=r"feedsite-worker does not start\. Its log says why"):
        restart.restart_units(port, print)
