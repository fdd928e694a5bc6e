#!/usr/bin/python3
"""Starts units without systemd: as their user, with their variables, folders and write limits. Never restarts.

It knows what docs/install.md needs, and fails at anything else. It runs in tests/support/debian.py with only that
Debian's Python.
"""

import contextlib
import os
import pwd
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDERS = [Path("/etc/systemd/system"), Path("/lib/systemd/system")]
STATE = Path("/run/stand-in")
"""Process ids, a file for each unit."""
LOG = Path("/var/log/stand-in")
PLACES = {"%S": "/var/lib", "%t": "/run"}
YES = ("yes", "true")
STARTS_SECONDS = 1.0
"""A lasting program runs longer than this."""
KEPT = {"RuntimeDirectory": "/run", "StateDirectory": "/var/lib", "LogsDirectory": "/var/log"}


class Unit:
    """A unit with its file's settings for this instance."""

    def __init__(self, name: str) -> None:
        self.name = name if "." in name.rpartition("@")[2] else f"{name}.service"
        stem, at, rest = self.name.partition("@")
        self.instance, dot, kind = rest.rpartition(".")
        file = f"{stem}@{dot}{kind}" if at else self.name
        found = next((folder / file for folder in FOLDERS if (folder / file).exists()), None)
        if found is None:
            sys.exit(f"systemctl: there is no unit {self.name}")
        self.values: dict[str, list[str]] = {}
        for line in found.read_text().replace("\\\n", " ").splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and not line.startswith(("#", ";")):
                self.values.setdefault(key, []).append(self.said(value))
        self.file = STATE / self.name

    def said(self, text: str) -> str:
        for sign, value in (PLACES | {"%i": self.instance, "%I": self.instance}).items():
            text = text.replace(sign, value)
        return text

    def one(self, key: str, default: str = "") -> str:
        return self.values.get(key, [default])[-1]

    def words(self, key: str) -> list[str]:
        return " ".join(self.values.get(key, [])).split()

    def pids(self) -> list[int]:
        found = map(int, self.file.read_text().split()) if self.file.exists() else ()
        return [pid for pid in found if Path(f"/proc/{pid}/cmdline").exists() and is_no_zombie(pid)]

    def is_active(self) -> bool:
        """A target is active once it was started."""
        return bool(self.pids()) if self.name.endswith(".service") else self.file.exists()

    # --- Verbs -------------------------------------------------------------------------------------------
    def start(self) -> None:
        if self.file.exists() and (self.pids() or self.one("Type") in ("oneshot", "forking")):
            return
        for name in [*self.words("Requires"), *self.words("Wants")]:
            if name.startswith("feedsite"):
                Unit(name).start()
        self.file.write_text("")
        if not self.name.endswith(".service"):
            return
        for command in [*self.values.get("ExecStartPre", []), *self.values["ExecStart"]]:
            is_last = command == self.values["ExecStart"][-1]
            runs_on = is_last and self.one("Type", "simple") in ("simple", "exec", "notify")
            self.run(command, runs_on=runs_on)

    def run(self, command: str, *, runs_on: bool) -> None:
        """Exits on failure unless the line starts with a hyphen."""
        may_fail, command = command.startswith("-"), command.lstrip("-")
        with (LOG / f"{self.name}.log").open("ab") as log:
            process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-ec", self.script(), "sh", *shlex.split(command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if runs_on:
            self.file.write_text(str(process.pid))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STARTS_SECONDS)
        else:
            process.wait()
        if process.returncode and not may_fail:
            sys.exit(f"systemctl: {self.name} failed: {command}\n{self.log()}")

    def log(self) -> str:
        file = LOG / f"{self.name}.log"
        return file.read_text()[-3_000:] if file.exists() else ""

    def script(self) -> str:
        """Shell lines that set up the unit and exec the command."""
        user = self.one("User", "root")
        lines, writable = [], []
        for key, root in KEPT.items():
            for name in self.words(key):
                folder, mode = f"{root}/{name}", self.one(f"{key}Mode", "0755")
                lines.append(f"mkdir --parents {folder}; chmod {mode} {folder}; chown {user}: {folder}")
                writable.append(folder)
        if self.one("PrivateTmp") in YES:
            lines.append("mount -t tmpfs tmpfs /tmp")
        if self.one("ProtectSystem") == "strict":
            writable += [each.lstrip("-") for each in self.words("ReadWritePaths") + self.words("ReadWriteDirectories")]
            lines += [f"! test -e {each} || mount --bind {each} {each}" for each in writable]
            lines.append("mount -o remount,bind,ro /")
        if limit := self.one("LimitNOFILE"):
            lines.append(f"ulimit -n {limit} 2>/dev/null || ulimit -n $(ulimit -H -n)")  # as high as root may here
        lines.append(f"cd {self.one('WorkingDirectory', '/')}")
        known = pwd.getpwnam(user)
        group = self.one("Group", str(known.pw_gid))
        environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
        environ |= {"HOME": known.pw_dir, "USER": user, "LOGNAME": user} | self.environ()
        words = ["env", "-i", *(f"{name}={value}" for name, value in environ.items())]
        setpriv = ["setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups"]
        if self.one("NoNewPrivileges") in YES:
            setpriv.append("--no-new-privs")
        lines.append(f'exec {shlex.join([*words, *setpriv, "--"])} "$@"')
        return "\n".join(lines)

    def environ(self) -> dict[str, str]:
        pairs = [pair for line in self.values.get("Environment", []) for pair in shlex.split(line)]
        for name in self.values.get("EnvironmentFile", []):
            path = Path(name.lstrip("-"))
            if path.exists() or not name.startswith("-"):
                pairs += [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        return dict(pair.split("=", 1) for pair in pairs)

    def stop(self) -> None:
        for command in self.values.get("ExecStop", []):
            self.run(command, runs_on=False)
        for pid in self.pids():
            os.killpg(pid, signal.SIGTERM)
        until = time.monotonic() + 30
        while self.pids() and time.monotonic() < until:
            time.sleep(0.05)
        self.file.unlink(missing_ok=True)

    def reload(self) -> None:
        for command in self.values["ExecReload"]:
            self.run(command, runs_on=False)


def is_no_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def main(verb: str, *words: str) -> None:
    STATE.mkdir(exist_ok=True)
    LOG.mkdir(exist_ok=True)
    now = "--now" in words
    units = [Unit(word) for word in words if not word.startswith("-")]
    unknown = {word for word in words if word.startswith("-")} - {"--now", "--property=MainPID", "--value"}
    if unknown or verb not in (
        "daemon-reload",
        "enable",
        "disable",
        "start",
        "stop",
        "restart",
        "reload",
        "is-active",
        "show",
    ):
        sys.exit(f"systemctl: the stand-in does not know {verb} {' '.join(words)}")
    for unit in units:
        if verb == "enable" and not unit.words("WantedBy"):
            sys.exit(f"systemctl: {unit.name} has no [Install]")
        if verb in ("stop", "restart") or (verb == "disable" and now):
            unit.stop()
        if verb in ("start", "restart") or (verb == "enable" and now):
            unit.start()
        if verb == "reload":
            unit.reload()
        if verb == "show":
            print(next(iter(unit.pids()), 0))
        if verb == "is-active" and not unit.is_active():
            sys.exit(f"{unit.name} does not run:\n{unit.log()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
