"""`restart`: replaces the programs by those of the code on the disk, one after another. Without Django.

Under `up` the supervisor does it. Under systemd web has two units, a and b, which share its port for a moment.
"""

import argparse
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.embedded import Home, wait_for
from runtime.options import Options
from runtime.supervised import group_listens
from runtime.supervisor import NEXT, SETTLED_SECONDS, TURN, TURN_SECONDS
from runtime.up import restart_progress_file, running_site

ABOUT = "Restart all programs of the site on this machine, one after another. No request fails meanwhile."
TURNS_SECONDS = 600.0
"""Maximum seconds for restarting all programs under `up`."""
TARGET = "feedsite.target"
NOBODY = (
    "Neither `up` nor systemd runs the site here. Under systemd start it: systemctl start feedsite.target. In "
    "containers: docker compose restart web stream worker."
)

Told = Callable[[str], None]


class RestartError(Exception):
    """The programs were not restarted. The message says what to do."""


def main(options: Options, arguments: Sequence[str]) -> None:
    """Run `restart`. Raises RestartError."""
    argparse.ArgumentParser(prog="manage.py restart", description=ABOUT).parse_args(arguments)
    if not restart(options, print):
        raise RestartError(NOBODY)


def restart(options: Options, told: Told) -> bool:
    """Restart the programs. False if nobody runs them who could. Raises RestartError."""
    home = options.servers.home
    if (pid := running_site(home)) is not None:
        restart_by_turns(home, pid, told)
    elif under_systemd():
        restart_units(options.port, told)
    else:
        return False
    return True


def restart_by_turns(home: Home, pid: int, told: Told) -> None:
    """Let `up` restart its programs one after another, and wait. Raises RestartError."""
    path = restart_progress_file(home)
    path.unlink(missing_ok=True)
    os.kill(pid, NEXT)
    deadline, read = time.monotonic() + TURNS_SECONDS, 0
    while time.monotonic() < deadline:
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines[read:]:
            if line == "done":
                return
            if line.startswith("failed: "):
                raise RestartError(f"{line.removeprefix('failed: ')}. The terminal of `up` has its output.")
            told(line)
        read = len(lines)
        if not Path(f"/proc/{pid}").exists():
            raise RestartError("`up` has ended. Start it again.")
        time.sleep(0.1)
    raise RestartError(f"`up` did not restart all programs within {TURNS_SECONDS:.0f} s. See its terminal.")


# --- systemd ---------------------------------------------------------------------------------------------
def under_systemd() -> bool:
    """Whether systemd runs the site."""
    return is_active(TARGET)


def restart_units(port: int, told: Told) -> None:
    """Restart the units. Raises RestartError."""
    for name in TURN:
        began = time.monotonic()
        if name == "web":
            _switch_web_unit(port)
        else:
            systemctl("restart", f"feedsite-{name}")
        told(f"{name} restarted in {time.monotonic() - began:.1f} s")
    time.sleep(SETTLED_SECONDS)
    for unit in ("feedsite-worker", "feedsite-stream"):  # grpc may be off
        if not is_active(unit):
            raise RestartError(f"{unit} {NOT_UP.format(unit=unit)}")


NOT_UP = "does not start. Its log says why: journalctl --unit {unit}"


def _switch_web_unit(port: int) -> None:
    """Start web's other unit, and stop the one that runs once the other listens. Raises RestartError."""
    old, new = (
        ("feedsite-web@a", "feedsite-web@b") if is_active("feedsite-web@a") else ("feedsite-web@b", "feedsite-web@a")
    )
    systemctl("stop", new)  # a restart that was interrupted may have left it
    systemctl("start", new)
    if not wait_for(lambda: group_listens(_main_process(new), port), TURN_SECONDS):
        systemctl("stop", new)
        raise RestartError(f"web {NOT_UP.format(unit=new)}. The old one keeps running")
    time.sleep(1)  # it takes its first connections
    systemctl("stop", old)


def is_active(unit: str) -> bool:
    """Whether a unit runs."""
    return shutil.which("systemctl") is not None and _run("is-active", unit).returncode == 0


def _main_process(unit: str) -> int:
    return int(systemctl("show", "--property=MainPID", "--value", unit) or 0)


def systemctl(*words: str) -> str:
    """Run systemctl. Raises RestartError."""
    done = _run(*words)
    if done.returncode:
        root = "" if os.geteuid() == 0 else " Run this as root."
        raise RestartError(f"systemctl {' '.join(words)} failed: {done.stderr.strip().rstrip('.')}.{root}")
    return done.stdout.strip()


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["systemctl", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
