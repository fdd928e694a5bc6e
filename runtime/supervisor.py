"""The site's programs as one family: restarted when they die, stopped in order, none left behind.

The supervisor imports neither Django nor a library: it waits most of its life, and its imports stay in memory.

See docs/decisions.md: Code written by hand, and why it stays.
See docs/decisions.md: An upgrade restarts one program after another.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from runtime.embedded import die_with_parent, wait_for
from runtime.nursery import Nursery

TAG = "FEEDSITE_SUPERVISED"  # in the environment of every program, so that a later supervisor finds leftovers
BACK_OFF_SECONDS = (0.2, 10.0)  # seconds before the first and before the late restarts of a program that keeps dying
STEADY_SECONDS = 30.0  # seconds after which a program counts as sound again
GRACE_SECONDS = 4.0  # seconds a program gets to stop by itself
NEXT = signal.SIGUSR1  # asks for a restart of all programs, one after another
TURN = ("worker", "beat", "web", "stream", "grpc")
"""The order of a restart: what a new page enqueues finds a worker that knows it."""
TURN_SECONDS = 90.0  # in which a program that is started anew listens
SETTLED_SECONDS = 3.0  # seconds after which a program without a port counts as started


class ProgramError(RuntimeError):
    """A program does not start at all. The message is one line for the person at the terminal."""


class Forked:
    """A program that a nursery has forked: as much of a Popen as the supervisor needs."""

    def __init__(self, nursery: Nursery, command: Sequence[str], environ: Mapping[str, str]) -> None:
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading, "rb")
        try:
            self.pid = nursery.fork(command, environ, writing)
        except OSError:
            self.stdout.close()
            raise
        finally:
            os.close(writing)

    def terminate(self) -> None:
        """Send SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end; the exit code, negative for the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Program:
    """One program of the family: the leader of a process group that lives and dies with it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        nursery: Nursery | None = None,
        port: int = 0,
    ) -> None:
        self.name = name
        self.nursery = nursery
        self.command = command
        self.folder = folder
        self.environ = environ
        self.port = port
        """On which another instance may listen beside this one; 0: it is stopped before the next one starts."""
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.started_at = 0.0
        self.retry_at = 0.0
        self.failures = 0
        self.unfinished_line = b""

    def start(self) -> None:
        """Start the program in a process group of its own; its output comes through a pipe. Raises OSError."""
        if self.nursery is not None:
            self.process = Forked(self.nursery, self.command, self.environ)
        else:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal reaches the supervisor only
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        if self.process.stdout is not None:
            os.set_blocking(self.process.stdout.fileno(), False)
        self.started_at = time.monotonic()

    def has_ended(self) -> bool:
        """Whether the leader is gone. It stays a zombie, so that its number goes on to mean this group."""
        if self.process is None:
            return True
        if isinstance(self.process, subprocess.Popen) and not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.process.poll() is not None
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ask_to_stop(self) -> None:
        """Send SIGTERM if the program runs."""
        if self.process is not None and not self.has_ended():
            self.process.terminate()

    def clear(self) -> int:
        """Kill what is left of the group; the leader's exit code."""
        if self.process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code


class Supervisor:
    """Runs programs until SIGTERM, SIGINT or SIGHUP. `tend` is called about once a second meanwhile, and `say` gets
    each line for the terminal with the name of its program.

    Without threads: a child dies with the thread that started it, and forking with threads about is unsafe.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        tend: Callable[[], None],
        say: "Terminal",
        anew: Callable[[], Sequence[Program]] = list,
    ) -> None:
        self.programs = programs
        self.tend = tend
        self.anew = anew
        """The programs that follow these in a restart by turns. Raises ProgramError."""
        self.say = say
        self.selector = selectors.DefaultSelector()
        self.signals = 0
        self.tended_at = time.monotonic()
        self.turns_asked = 0
        self.told: Callable[[str], None] = say
        """Hears how a restart by turns goes: a line for each program, and `done` or `failed: …` as the last."""

    def run(self, *, is_up: Callable[[], bool], announce: Callable[[], None]) -> None:
        """Run to the end. `announce` is called once, when `is_up`.

        Raises ProgramError, after everything is stopped, when a program dies again and again before that.
        """
        up = False
        before = {each: signal.signal(each, self._on_signal) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        before[NEXT] = signal.signal(NEXT, self._on_turn)
        try:
            while not self.signals:
                self._restart_the_dead(give_up=not up)
                self._relay(0.5 if up else 0.2)
                if not up and is_up():
                    up = True
                    announce()
                if up and self.turns_asked:
                    self.turns_asked = 0
                    self.told(self.restart_by_turns())
                if self._tend_if_due():
                    self._bury_orphans()
            self.say("stopping ...")
        finally:
            self._stop_all()
            for each, handler in before.items():
                signal.signal(each, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        self.signals += 1

    def _on_turn(self, number: int, frame: object) -> None:
        self.turns_asked += 1

    # --- One after another -------------------------------------------------------------------------------
    def restart_by_turns(self) -> str:
        """Start every program anew, of the code that is on the disk now; `done`, or `failed: ` with the reason.

        A program that listens is followed by an instance beside it, and stopped when that one listens too: no
        connection is refused. Where the new instance does not come, the old one goes on, and so do all after it.
        """
        try:
            following = {program.name: program for program in self.anew()}
        except ProgramError as error:
            return f"failed: {error}"
        for program in sorted(self.programs, key=lambda each: TURN.index(each.name) if each.name in TURN else -1):
            if self.signals:
                return "failed: the site is being stopped"
            began = time.monotonic()
            try:
                failure = self._turn(program, following.get(program.name))
            except OSError as error:  # no memory, no processes left; what has ended is started again as ever
                failure = f"cannot be started: {error}"
            if failure:
                return f"failed: {program.name} {failure}"
            self.told(f"{program.name} is new, after {time.monotonic() - began:.1f} s")
        return "done"

    def _turn(self, program: Program, new: Program | None) -> str:
        """Have a program followed by the new one; why it was not, or nothing."""
        if new is None:
            return "is none of the programs of the version on the disk"
        if program.port:
            return self._follow(program, new)
        self._stop(program)
        self._replace(program, new)
        self._start(new)
        self.pass_until(new.has_ended, SETTLED_SECONDS)
        return "ended at once, and is tried again" if new.has_ended() else ""

    def _follow(self, program: Program, new: Program) -> str:
        """Start the new program beside one, and stop that when the new one listens; why not, or nothing."""
        self._start(new)
        self.pass_until(lambda: new.has_ended() or listens(new), TURN_SECONDS)
        if new.has_ended() or not listens(new):
            self._stop(new)
            return "does not start anew; the old one goes on"
        self.pass_until(lambda: False, 1)  # it takes its first connections
        self._stop(program)
        self._replace(program, new)
        return ""

    def _replace(self, program: Program, new: Program) -> None:
        """Keep the new program instead. A nursery that no program is of any more ends: it has the old code."""
        self.programs = [new if each is program else each for each in self.programs]
        if program.nursery is not None and not any(each.nursery is program.nursery for each in self.programs):
            program.nursery.close()

    def pass_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Look after the programs and the servers until the condition holds, the time is over or a signal ends the
        site.
        """
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline and not self.signals:
            self._restart_the_dead(give_up=False)
            self._relay(0.05)
            self._tend_if_due()

    def _start(self, program: Program) -> None:
        program.start()
        if program.process is not None and program.process.stdout is not None:
            self.selector.register(program.process.stdout, selectors.EVENT_READ, program)

    def _stop(self, program: Program, signals: int = 1) -> None:
        """Have a program end; by force after `GRACE_SECONDS`, and at once when more than so many signals have come."""
        program.ask_to_stop()
        deadline = time.monotonic() + GRACE_SECONDS
        while not program.has_ended() and time.monotonic() < deadline and self.signals <= signals:
            self._relay(0.05)
        self._clear(program)

    # --- All of them -------------------------------------------------------------------------------------
    def _tend_if_due(self) -> bool:
        """Call `tend` if it was not for a second; whether it was."""
        if time.monotonic() <= self.tended_at + 1:
            return False
        self.tend()
        self.tended_at = time.monotonic()
        return True

    def _restart_the_dead(self, *, give_up: bool) -> None:
        now = time.monotonic()
        for program in self.programs:
            if not program.has_ended():
                if program.failures and now > program.started_at + STEADY_SECONDS:
                    program.failures = 0
                continue
            if program.process is not None:
                code = self._clear(program)
                if give_up and program.failures >= 4:
                    raise ProgramError(f"{program.name} does not start (exit code {code}); its last words stand above.")
                first, late = BACK_OFF_SECONDS
                pause = min(first * 2**program.failures, late)
                program.failures += 1
                program.retry_at = now + pause
                self.say(f"{program.name} ended with {code}; starting it again in {pause:.1f} s")
            if now >= program.retry_at:
                try:
                    self._start(program)
                except OSError as error:  # no memory, no processes left
                    if give_up:
                        raise ProgramError(f"{program.name} cannot be started: {error}") from error
                    self.say(f"{program.name} cannot be started: {error}")
                    program.retry_at = now + BACK_OFF_SECONDS[1]

    def _bury_orphans(self) -> None:
        """Wait for processes that became this one's children by the end of their parents, and have ended."""
        nurseries = {program.nursery for program in self.programs if program.nursery is not None}
        if not nurseries:
            return
        own = {program.process.pid for program in self.programs if program.process is not None}
        own |= {nursery.process.pid for nursery in nurseries if nursery.process is not None}
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in own:
                return  # its turn comes first
            os.waitpid(ended.si_pid, 0)

    def _relay(self, seconds: float) -> None:
        """Print what the programs wrote, each line under its program's name."""
        for key, _ in self.selector.select(seconds):
            program: Program = key.data
            chunk = os.read(key.fd, 65536)
            if not chunk:
                self.selector.unregister(key.fileobj)
                time.sleep(0.01)  # it has closed its output and is about to end
                continue
            *lines, program.unfinished_line = (program.unfinished_line + chunk).split(b"\n")
            for line in lines:
                self.say(line.decode(errors="replace"), program.name)

    def _clear(self, program: Program) -> int:
        self._relay(0)
        if program.unfinished_line:
            self.say(program.unfinished_line.decode(errors="replace"), program.name)
            program.unfinished_line = b""
        if program.process is not None and program.process.stdout is not None:
            with contextlib.suppress(KeyError):
                self.selector.unregister(program.process.stdout)
        return program.clear()

    def _stop_all(self) -> None:
        """Stop one program after the other, in their order; a second signal stops them all by force."""
        signals = max(self.signals, 1)
        for program in self.programs:
            self._stop(program, signals)
        self.selector.close()


class Terminal:
    """Lines for the person or the machine that reads the supervisor's output, in the format of the site's log."""

    def __init__(self, log_format: str) -> None:
        self.is_json = log_format == "json"

    def __call__(self, line: str, name: str = "up") -> None:
        """Write one line; a terminal that is gone is no reason to stop."""
        with contextlib.suppress(OSError, ValueError):
            print(relayed(line, name) if self.is_json else f"{name:>6} | {line}", file=sys.stdout, flush=True)


def relayed(line: str, program: str) -> str:
    """A line that a program wrote, as one JSON object: its own with `program` added, or one with it as message."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = {"at": at, "level": "INFO", "logger": program, "message": line}
    return json.dumps(fields | {"program": program}, ensure_ascii=False)


def listens(program: Program) -> bool:
    """Whether a process of the program's group listens on its port."""
    if program.process is None:
        return False
    sockets = listening(program.port)
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            if os.getpgid(int(folder.name)) == program.process.pid:
                held = {str(each.readlink()) for each in (folder / "fd").iterdir()}
                if sockets & held:
                    return True
    return False


def listening(port: int) -> set[str]:
    """The listening sockets of a port, as /proc names them among a process's files."""
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                _, here, _, state, *_, inode = line.split()[:10]
                if state == "0A" and int(here.rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{inode}]")
    return found


def end_leftovers(tag: str) -> None:
    """Stop the programs that a killed supervisor left. The caller holds the lock that says there is none."""
    leftovers = tagged(tag)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in leftovers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if wait_for(lambda: not tagged(tag), GRACE_SECONDS):
            return
        leftovers = tagged(tag)


def tagged(tag: str) -> list[int]:
    """The living processes that have the tag in their environment."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
