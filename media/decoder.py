"""Starts media.decoding, and sends it jobs. `JobProgram` does so for each program of media.forking."""

import atexit
import contextlib
import fcntl
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import msgspec
from django.conf import settings

from runtime.loaded_programs import LoadedProgram
from storage.queue import check_lane
from web.refusals import RefusalError

PROGRAM = LoadedProgram("media.decoding", "media.forking")

PAUSE_SECONDS = 0.02
"""Pause between two tries to get a place."""
WAIT_FACTOR = 3
"""Wall time of a child, as a multiple of its processor time. Others share the processors."""
GRACE_SECONDS = 2.0
"""Extra time to wait for an answer."""
REASONS = frozenset(
    {"broken", "pixels", "frames", "memory", "full"}
    | {"whole", "pictures", "sides", "sound", "minutes", "time", "output"}
)
"""Reasons to refuse a picture, then a video."""
ANSWER_BYTES = 65_536
"""Most bytes of all that a child may say."""


class DecoderError(Exception):
    """The file is refused, for one of `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DecoderBusyError(RefusalError):
    """No place became free in time."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "busy"
    sentence = "Too many pictures and videos are being taken in just now."


class DecodedPicture(msgspec.Struct):
    """Facts of a picture, its preview and its sizes."""

    ext: str
    width: int
    height: int
    size: int
    small_ext: str
    small_width: int
    small_height: int
    widths: list[int]
    is_moving: bool
    phash: int
    blurhash: str


class PictureSizes(msgspec.Struct):
    """Widths of the sizes that were written."""

    widths: list[int]
    is_moving: bool


Facts = TypeVar("Facts", bound=msgspec.Struct)
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Report = Callable[[int], None]


class JobProgram:
    """Sends jobs to a program that forks a child for each. There is one program for all threads of a process."""

    def __init__(self, program: LoadedProgram) -> None:
        self._loaded = program
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._program: subprocess.Popen[bytes] | None = None
        self._owner = 0
        atexit.register(self.stop)

    def run_job(self, job: dict[str, Any], facts: type[Facts], report: Report | None = None) -> Facts:
        """The answer of a child. `report` takes how much is done, in percent, and ends the child by raising. Raises
        DecoderError.
        """
        check_lane()
        ours, theirs = socket.socketpair()
        with ours:
            wall = job["seconds"] * WAIT_FACTOR
            try:
                self._send_socket(theirs)
                ours.settimeout(wall + GRACE_SECONDS)
                ours.sendall(json.dumps(job | {"wall": wall}).encode() + b"\n")
            except OSError:  # the child ended before it read
                raise DecoderError("broken") from None
            for line in _lines(ours, time.monotonic() + wall + GRACE_SECONDS):
                found = _answer(line, facts)
                if not isinstance(found, int):
                    return found
                if report is not None:
                    report(found)
        raise DecoderError("broken")

    def stop(self) -> None:
        """End the program. The next job starts a new one."""
        with self._lock:
            self._close_program()

    def _send_socket(self, line: socket.socket) -> None:
        with line, self._lock:
            for attempt in (1, 2):
                control = self._control_socket()
                try:
                    socket.send_fds(control, [b"j"], [line.fileno()])
                except OSError:
                    self._close_program()
                    if attempt == 2:
                        raise
                else:
                    return

    def _control_socket(self) -> socket.socket:
        if self._owner != os.getpid():
            self._control = self._program = None  # after a fork they belong to the parent
        if self._control is None:
            ours, theirs = socket.socketpair()
            with theirs:
                self._program = subprocess.Popen(
                    [*self._loaded.command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), self._loaded.handle],
                    start_new_session=True,  # Ctrl-C goes to the site, which closes the socket
                )
            self._control, self._owner = ours, os.getpid()
        return self._control

    def _close_program(self) -> None:
        if self._owner == os.getpid() and self._control is not None and self._program is not None:
            self._control.close()
            try:
                self._program.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._program.kill()
                self._program.wait()
        self._control = self._program = None


def _lines(line: socket.socket, until: float) -> Iterator[bytes]:
    """What a child says. Ends where it ends, says too much, or takes too long."""
    rest, left = b"", ANSWER_BYTES
    with contextlib.suppress(OSError):
        while left > 0 and (seconds := until - time.monotonic()) > 0:
            line.settimeout(seconds)
            got = line.recv(min(left, 4096))
            if not got:
                return
            left -= len(got)
            *lines, rest = (rest + got).split(b"\n")
            yield from lines


def _answer(line: bytes, facts: type[Facts]) -> Facts | int:
    """The facts, or how much is done. A child that hostile bytes have taken over may say anything. Raises
    DecoderError.
    """
    try:
        found = msgspec.json.decode(line, type=dict[str, Any])
        if "percent" in found:
            return msgspec.convert(found["percent"], Percent)
        if "reason" not in found:
            return msgspec.convert(found, facts)
    except msgspec.MsgspecError:
        raise DecoderError("broken") from None
    raise DecoderError(str(found["reason"]) if str(found["reason"]) in REASONS else "broken")


class Decoder(JobProgram):
    """Sends jobs to media.decoding."""

    def run(self, job: dict[str, Any]) -> DecodedPicture:
        """Decode one picture. Raises DecoderError."""
        return self.run_job(job, DecodedPicture)

    def resize(self, job: dict[str, Any]) -> PictureSizes:
        """Write the sizes of a stored picture. Raises DecoderError."""
        return self.run_job(job | {"is_stored": True}, PictureSizes)


decoder = Decoder(PROGRAM)


@contextlib.contextmanager
def decoder_slot(kind: str = "") -> Iterator[None]:
    """Hold one of `MEDIA_PROCESSES` places of this machine, a locked file that a killed process frees. Work of another
    `kind`, which takes minutes, has places of its own. Raises DecoderBusyError.
    """
    folder = settings.MEDIA_DIR / "places"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        handles = []
        for number in range(settings.MEDIA_PROCESSES):
            handle = os.open(folder / f"{kind}{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, handle)
            handles.append(handle)
        until = time.monotonic() + settings.MEDIA_WAIT_SECONDS
        while not any(map(is_locked, handles)):
            if time.monotonic() > until:
                raise DecoderBusyError
            time.sleep(PAUSE_SECONDS)
        yield


def is_locked(handle: int) -> bool:
    """Lock an open file for this process. False if another has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
