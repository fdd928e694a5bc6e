"""Starts, restarts and stops processes: programs (under `up`) and embedded servers (in runtime/keeper.py).

Standard library only, because imports stay in memory.

In an upgrade, a listening program gets a successor on the same port (SO_REUSEPORT), and stops when that one listens. So
no connection is refused.

See docs/decisions.md: Own code in place of a library.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from runtime.embedded import Child, ServerError, wait_for
from runtime.supervised import GRACE_SECONDS, ForkedProgram, Loader, Program

TAG = "FEEDSITE_SUPERVISED"  # in the environment of every program, so that a later supervisor finds leftovers
BACK_OFF_SECONDS = (0.2, 10.0)  # seconds before the second and before late restarts of a child that keeps dying
STEADY_SECONDS = 30.0  # seconds after which a child counts as healthy again
NEXT = signal.SIGUSR1  # asks for a restart of all programs, one after another
TURN = ("worker", "web", "stream", "grpc")
"""Order of a restart. A worker must know the tasks that new pages enqueue, so it is first."""
TURN_SECONDS = 90.0  # seconds for a new program to listen
SETTLED_SECONDS = 3.0  # seconds after which a program without a port counts as started


class ProgramError(RuntimeError):
    """A child does not start. The message is one line for the terminal."""


class Supervisor:
    """Runs children until SIGTERM, SIGINT or SIGHUP. Calls `tend` about once a second.

    Without threads: a child dies with the thread that started it, and forking with threads is unsafe.
    """

    def __init__(
        self,
        children: Sequence[Child],
        *,
        say: "Terminal",
        tend: Callable[[], None] = lambda: None,
        anew: Callable[[], Sequence[Program]] = list,
        stops_together: bool = False,
        most_signals: float = 1,
    ) -> None:
        self.children = children
        self.tend = tend
        self.anew = anew
        """The programs that replace these in a restart. Raises ProgramError."""
        self.say = say
        self.stops_together = stops_together
        """Stop all children at once instead of in order."""
        self.most_signals = most_signals
        """After more signals, kill the children."""
        self.selector = selectors.DefaultSelector()
        self.signals = 0
        self.tended_at = time.monotonic()
        self.turns_asked = 0
        self.told: Callable[[str], None] = say
        """Receives the progress of a restart: a line per program, last `done` or `failed: …`."""

    def run(
        self, *, is_up: Callable[[], bool], announce: Callable[[], None], is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Run until a signal or `is_over`. Call `announce` once when `is_up`. Raises ProgramError if a child keeps
        dying before that.
        """
        up = False
        with self._woken_by_signals():
            try:
                for child in self.children:
                    self._listen(child)  # some may run already
                while not self.signals:
                    self._restart_ended(give_up=not up)
                    self._relay(self._seconds() if up else 0.05)
                    if not up and is_up():
                        up = True
                        announce()
                    if up and self.turns_asked:
                        self.turns_asked = 0
                        self.told(self.restart_by_turns())
                    self._tend_if_due()
                    if up and is_over():
                        break
                self.say("stopping ...")
            finally:
                self._stop_all()

    def request_restart(self, number: int, frame: object) -> None:
        """Signal handler: request a restart by turns."""
        self.turns_asked += 1

    def _on_signal(self, number: int, frame: object) -> None:
        self.signals += number != signal.SIGCHLD

    @contextlib.contextmanager
    def _woken_by_signals(self) -> Iterator[None]:
        """Count signals in the block. Each one interrupts the wait for output."""
        reading, writing = socket.socketpair()
        with reading, writing:
            reading.setblocking(False)
            writing.setblocking(False)
            self.selector.register(reading, selectors.EVENT_READ)
            handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
            before = {each: signal.signal(each, self._on_signal) for each in handled}
            woken = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
            try:
                yield
            finally:
                signal.set_wakeup_fd(woken)
                for each, handler in before.items():
                    signal.signal(each, handler)

    def _seconds(self) -> float:
        now = time.monotonic()
        return min([1.0, *(max(0.0, each.retry_at - now) for each in self.children if each.process is None)])

    # --- One after another -------------------------------------------------------------------------------
    def restart_by_turns(self) -> str:
        """Restart every program with the code on the disk. Return `done`, or `failed: ` with the reason.

        If a new instance does not listen, the old one continues, and so do all programs after it.
        """
        try:
            following = {program.name: program for program in self.anew()}
        except ProgramError as error:
            return f"failed: {error}"
        try:
            return self._load(following.values()) or self._take_turns(following)
        finally:
            self._stop_unused_loaders()

    def _load(self, programs: Iterable[Program]) -> str:
        """Load the site for the new programs. Return an error or empty."""
        for new in programs:
            if isinstance(new, Loader):
                self._start(new)
                self.tend_until(lambda new=new: new.has_ended() or new.can_fork(), TURN_SECONDS)  # type: ignore[misc]
                if not new.can_fork():
                    self._stop(new)
                    return "failed: the site does not load. All programs keep running"
                self.children = [*self.children, new]
        return ""

    def _take_turns(self, following: Mapping[str, Program]) -> str:
        programs = [each for each in self.children if not isinstance(each, Loader)]
        for program in sorted(programs, key=lambda each: TURN.index(each.name) if each.name in TURN else -1):
            if self.signals:
                return "failed: the site is stopping"
            began = time.monotonic()
            try:
                failure = self._restart_one(program, following.get(program.name))
            except OSError as error:  # no memory or processes left; ended programs are restarted as usual
                failure = f"cannot start: {error}"
            if failure:
                return f"failed: {program.name} {failure}"
            self.told(f"{program.name} restarted in {time.monotonic() - began:.1f} s")
        return "done"

    def _restart_one(self, program: Child, new: Program | None) -> str:
        """Replace a program by its new instance. Return an error or empty."""
        if new is None:
            return "is not a program of the version on the disk"
        if program.port:
            return self._start_then_stop(program, new)
        self._stop(program)
        self._replace(program, new)
        self._start(new)
        self.tend_until(new.has_ended, SETTLED_SECONDS)
        return "ended at once and will be tried again" if new.has_ended() else ""

    def _start_then_stop(self, program: Child, new: Program) -> str:
        """Start a listening program's new instance, then stop the old one. Return an error or empty."""
        self._start(new)
        self.tend_until(lambda: new.has_ended() or new.listens(), TURN_SECONDS)
        if new.has_ended() or not new.listens():
            self._stop(new)
            return "does not start. The old one keeps running"
        self.tend_until(lambda: False, 1)  # it takes its first connections
        self._stop(program)
        self._replace(program, new)
        return ""

    def _stop_unused_loaders(self) -> None:
        used = {each.loader for each in self.children if isinstance(each, ForkedProgram)}
        for child in self.children:
            if isinstance(child, Loader) and child not in used:
                self._stop(child)
                self.children = [each for each in self.children if each is not child]

    def _replace(self, program: Child, new: Program) -> None:
        self.children = [new if each is program else each for each in self.children]

    def tend_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Tend children until the condition, the end of the time, or a signal."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline and not self.signals:
            self._restart_ended(give_up=False)
            self._relay(0.05)
            self._tend_if_due()

    def _start(self, child: Child) -> None:
        child.start()
        self._listen(child)

    def _listen(self, child: Child) -> None:
        if child.process is not None and child.process.stdout is not None:
            self.selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def _stop(self, child: Child, signals: float = 1) -> None:
        """Stop a child, by force after its time or after more than `signals` signals."""
        child.ask_to_stop()
        deadline = time.monotonic() + child.stop_seconds
        while not child.has_ended() and time.monotonic() < deadline and self.signals <= signals:
            self._relay(0.05)
        self._clear(child)

    # --- All of them -------------------------------------------------------------------------------------
    def _tend_if_due(self) -> None:
        if time.monotonic() > self.tended_at + 1:
            self.tend()
            self.tended_at = time.monotonic()

    def _restart_ended(self, *, give_up: bool) -> None:
        now = time.monotonic()
        for child in self.children:
            if not child.has_ended():
                if child.failures and now > child.started_at + STEADY_SECONDS:
                    child.failures = 0
                continue
            if child.process is not None:
                code = self._clear(child)
                if give_up and child.failures >= 4:
                    raise ProgramError(f"{child.name} does not start (exit code {code}): {child.last_words()}.")
                first, late = BACK_OFF_SECONDS
                pause = min(first * (2**child.failures - 1), late)
                child.failures += 1
                child.retry_at = now + pause
                self.say(f"{child.name} ended with exit code {code}; restarting{f' in {pause:.1f} s' if pause else ''}")
            if now >= child.retry_at:
                try:
                    self._start(child)
                except (OSError, ServerError) as error:  # no memory or processes left
                    if give_up:
                        raise ProgramError(f"{child.name} cannot start: {error}") from error
                    self.say(f"{child.name} cannot start: {error}")
                    child.retry_at = now + BACK_OFF_SECONDS[1]

    def _relay(self, seconds: float) -> None:
        """Print what programs have written, and wait for more. A signal ends the wait."""
        for key, _ in self.selector.select(seconds):
            chunk = os.read(key.fd, 65536)
            if not isinstance(program := key.data, Program):
                continue  # a signal came
            if not chunk:
                self.selector.unregister(key.fileobj)
                time.sleep(0.01)  # it closed its output and is about to end
                continue
            *lines, program.unfinished_line = (program.unfinished_line + chunk).split(b"\n")
            for line in lines:
                self.say(line.decode(errors="replace"), program.name)

    def _clear(self, child: Child) -> int:
        self._relay(0)
        if isinstance(child, Program) and child.unfinished_line:
            self.say(child.unfinished_line.decode(errors="replace"), child.name)
            child.unfinished_line = b""
        if child.process is not None and child.process.stdout is not None:
            with contextlib.suppress(KeyError):
                self.selector.unregister(child.process.stdout)
        return child.clear()

    def _stop_all(self) -> None:
        """Stop all children. One more signal kills them."""
        signals = max(self.signals, self.most_signals)
        if self.stops_together:
            for child in self.children:
                child.ask_to_stop()
        for child in self.children:
            self._stop(child, signals)
        self.selector.close()


class Terminal:
    """Prints lines in the site's log format."""

    def __init__(self, log_format: str, own_name: str = "up") -> None:
        self.is_json = log_format == "json"
        self.own_name = own_name

    def __call__(self, line: str, name: str = "") -> None:
        """Print a line of a program. A closed terminal is ignored."""
        with contextlib.suppress(OSError, ValueError):
            name = name or self.own_name
            print(as_json_line(line, name) if self.is_json else f"{name:>6} | {line}", file=sys.stdout, flush=True)


def as_json_line(line: str, program: str) -> str:
    """A program's line as a JSON object. Plain text becomes its message."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = {"at": at, "level": "INFO", "logger": program, "message": line}
    return json.dumps(fields | {"program": program}, ensure_ascii=False)


def end_leftovers(tag: str) -> None:
    """Stop a killed supervisor's programs. The caller holds the lock."""
    leftovers = tagged(tag)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in leftovers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if wait_for(lambda: not tagged(tag), GRACE_SECONDS):
            return
        leftovers = tagged(tag)


def tagged(tag: str) -> list[int]:
    """Living processes with the tag in their environment."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
