"""`up`: runs the whole site, from an empty folder.

This process lives as long as the site, so `manage.py prepare` does what needs Django.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from runtime.embedded import STOP_SECONDS, Home, ServerError, Servers, die_with_parent, lock_file, try_lock
from runtime.ports import PortError, reserved_port
from runtime.programs import FORKED, LOADER, METRICS, PREPARED, ProgramAddress, ProgramDefinition, programs_of_up
from runtime.supervised import ForkedProgram, Loader, Program
from runtime.supervisor import NEXT, TAG, ProgramError, Supervisor, Terminal, end_leftovers

if TYPE_CHECKING:
    from runtime.options import Options

ABOUT = (
    "Run the site: servers, migrations, web, stream, worker and beat, and gRPC if FEEDSITE_GRPC_PORT is set. An empty "
    "embedded database gets a demo community, unless a proxy is set. For any other empty database it prints a link "
    "that creates the first administrator."
)
MORE_PORTS = 20
"""Ports tried for the stream process after the site's."""
ROOM_MB, NEW_ROOM_MB = 40, 300
"""Free megabytes required on the disk: for two WAL segments, or for a whole new site."""
DISK_SECONDS = 60.0
"""Maximum seconds for the version on the disk to list its programs."""
DERIVED = ("base_dir", "servers", "is_proxied", "metrics_folder")
"""What programs need of the options beside their fields."""
SMALL_MEANS = (
    "FEEDSITE_SMALL=1: one process each for pages, tasks and other servers, 64 MB for the feeds server, pictures up to "
    "12 megapixels, 1,000 streams"
)
"""What `SMALL_VALUES` of runtime/options.py mean."""


class UpError(RuntimeError):
    """The site does not start. The message is one line for the terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--demo",
        action="store_true",
        help="Fill an empty database with demo users, also one on your own server or behind a proxy.",
    )


def main(folder: Path, arguments: Sequence[str]) -> None:
    """Run `up`, with the settings of the environment and of `.env` in `folder`."""
    parser = argparse.ArgumentParser(prog="manage.py up", description=ABOUT)
    add_arguments(parser)
    demo = parser.parse_args(arguments).demo
    Up(options_from_child(folder)).run(demo=demo)


def options_from_child(folder: Path) -> "Options":
    """The settings, read by a child process: the libraries that check them would keep 15 MB of this one.

    Also sets the variables that a file adds. If settings are wrong, the child says so, and this process exits.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        send_options(folder, writing)
        sys.exit()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(code)
    variables, values = pickle.loads(sent)  # noqa: S301 (our own)
    os.environ.update(variables)
    return cast("Options", SimpleNamespace(**values))


def send_options(folder: Path, writing: int) -> None:
    """Read the settings and write them to a pipe. Exits if they are wrong."""
    from runtime import environment

    try:
        options = environment.read(folder)
    except environment.OptionsError as error:
        error.exit()
    values = {name: getattr(options, name) for name in (*type(options).model_fields, *DERIVED)}
    with os.fdopen(writing, "wb") as pipe:
        pickle.dump((dict(os.environ), values), pipe)


class Up:
    """One run of the site."""

    def __init__(self, options: "Options") -> None:
        self.options = options
        self.say = Terminal(options.log_format)
        self.supervisor = Supervisor([], tend=self.tend_servers, say=self.say)
        self.supervisor.told = self.report_restart
        self.is_stopping = False

    def run(self, *, demo: bool) -> None:
        """Run until SIGTERM or Ctrl-C. Raises UpError, PortError or ServerError."""
        options = self.options
        # Until the supervisor takes over, SIGTERM works like Ctrl-C.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)
        signal.signal(NEXT, self.supervisor.request_restart)  # done once the site is up
        check_disk_space(options.servers)
        with contextlib.suppress(KeyboardInterrupt), site_lock(options.servers.home):
            end_leftovers(str(options.data_dir))
            shutil.rmtree(options.metrics_folder, ignore_errors=True)  # counts of the last run
            with (
                reserved_port(options.host, options.port),
                stream_port(options) as stream,
                grpc_port(options) as grpc,
                self.run_prepare(demo=demo or self.has_demo()) as process,
                self.load_early(ProgramAddress(options.host, options.port, stream, grpc)) as at,
                options.servers.ensure(),
                stopping(process),  # before the servers, which it uses
            ):
                if options.small:
                    self.say(SMALL_MEANS)
                if self.wait_for_tables(process):
                    self.stop_loader()  # it may have read older static files
                if not self.is_stopping:
                    self.supervise(at, process)

    def has_demo(self) -> bool:
        """Whether an empty database gets demo users unasked: an embedded one that is not public."""
        return "postgres" in self.options.servers.names and not self.options.is_proxied

    def on_signal(self, number: int, frame: object) -> None:
        """Signal handler: interrupt, and remember it, because a callback or destructor may swallow the exception."""
        self.is_stopping = True
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def run_prepare(self, *, demo: bool) -> Iterator["subprocess.Popen[str]"]:
        """Run `prepare`. It prints an empty line when the programs may start."""
        words = [sys.executable, str(self.options.base_dir / "manage.py"), "prepare", *(["--demo"] if demo else [])]
        process = subprocess.Popen(  # noqa: S603 (ourselves)
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C only reaches this process
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        with process, stopping(process):
            yield process

    @contextlib.contextmanager
    def load_early(self, at: ProgramAddress) -> Iterator[ProgramAddress]:
        """Load the site while `prepare` runs, unless this is the first start."""
        self.supervisor.children = supervised_programs(self.options, at)
        try:
            if (self.options.servers.home.run / PREPARED).exists():
                for loader in self.loaders():
                    with contextlib.suppress(OSError):  # the supervisor tries again
                        loader.start()
            yield at
        finally:
            self.stop_loader()

    def loaders(self) -> list[Loader]:
        """The supervisor's loader, where forking is safe."""
        return [each for each in self.supervisor.children if isinstance(each, Loader)]

    def stop_loader(self) -> None:
        """Stop the loader if it runs."""
        for loader in self.loaders():
            loader.clear()

    def wait_for_tables(self, process: "subprocess.Popen[str]") -> bool:
        """Wait until programs may start. True if `prepare` had work to do. Raises SystemExit if it failed."""
        assert process.stdout is not None  # noqa: S101 (for the type checker)
        had_work = False
        for line in iter(process.stdout.readline, "\n"):
            if not line:
                raise SystemExit(process.wait() or 1)
            self.say(line.rstrip("\n"))
            had_work = True
        return had_work

    def supervise(self, at: ProgramAddress, process: "subprocess.Popen[str]") -> None:
        """Run the programs until a signal. Raises UpError if one does not start."""
        self.supervisor.anew = lambda: programs_of_disk(self.options, at)
        name = accepted_host(self.options.allowed_hosts)

        def is_up() -> bool:
            if process.poll():
                raise SystemExit(process.returncode)
            return process.returncode == 0 and site_answers(at.host, at.port, name)

        try:
            self.supervisor.run(is_up=is_up, announce=lambda: self.announce(at, process))
        except ProgramError as error:
            raise UpError(str(error)) from error

    def report_restart(self, line: str) -> None:
        """Report a restart's progress on the terminal, and to the waiting command."""
        self.say(line)
        with contextlib.suppress(OSError), restart_progress_file(self.options.servers.home).open("a") as file:
            file.write(f"{line}\n")

    def tend_servers(self) -> None:
        """Replace a killed keeper of the embedded servers. An error is printed, and the next call retries."""
        try:
            self.options.servers.tend()
        except (ServerError, OSError) as error:
            self.say(str(error))

    def announce(self, at: ProgramAddress, process: "subprocess.Popen[str]") -> None:
        """Print the site's address, gRPC's, and how to sign in."""
        shown = reachable_address(at.host)
        self.say(f"the site is at http://{f'[{shown}]' if ':' in shown else shown}:{at.port}/  (Ctrl-C stops it)")
        if at.grpc:
            self.say(f"gRPC is at {self.options.grpc_host}, port {at.grpc}")
        assert process.stdout is not None  # noqa: S101 (for the type checker)
        for line in process.stdout.read().splitlines():
            self.say(line)


# --- Before anything starts ------------------------------------------------------------------------------
@contextlib.contextmanager
def stopping(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Stop a child after the block. `with` alone waits only briefly after an interrupt."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def check_disk_space(servers: Servers) -> None:
    """Raise UpError if the disk is too full."""
    folder = servers.home.data_dir
    is_new = "postgres" in servers.names and not (folder / "postgres").exists()
    needed = NEW_ROOM_MB if is_new else ROOM_MB
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free >> 20
    if free < needed:
        raise UpError(f"The site needs {needed} MB to start, but the disk of {folder} has only {free} MB free.")


@contextlib.contextmanager
def site_lock(home: Home) -> Iterator[None]:
    """Hold the folder's lock in the block. Raises UpError if another `up` has it."""
    home.make()
    with lock_file(home, "up") as lock:
        if not try_lock(lock, fcntl.LOCK_EX):
            raise UpError(f"The site of {home.data_dir} already runs (process {os.pread(lock, 20, 0).decode()}).")
        os.truncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield


def running_site(home: Home) -> int | None:
    """The pid of the `up` that runs this data folder, or None."""
    if not (home.run / "up.lock").exists():
        return None
    with lock_file(home, "up") as lock:
        if try_lock(lock, fcntl.LOCK_SH):
            return None
        return int(os.pread(lock, 20, 0) or 0) or None


def restart_progress_file(home: Home) -> Path:
    """The file with the progress of a restart."""
    return home.run / "turns"


@contextlib.contextmanager
def stream_port(options: "Options") -> Iterator[int]:
    """Reserve FEEDSITE_STREAM_PORT, or the next free port. Behind a proxy only the next one. Raises PortError."""
    if asked := options.stream_port or (options.is_proxied and options.port + 1):
        with reserved_port(options.host, asked, "FEEDSITE_STREAM_PORT"):
            yield asked
        return
    for candidate in range(options.port + 1, min(options.port + MORE_PORTS, 65535) + 1):
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(reserved_port(options.host, candidate))
            except PortError:
                continue
            yield candidate
            return
    raise PortError(f"No port after {options.port} on {options.host} is free. Set FEEDSITE_STREAM_PORT to a free one.")


@contextlib.contextmanager
def grpc_port(options: "Options") -> Iterator[int]:
    """Reserve FEEDSITE_GRPC_PORT, or yield 0 if it is not set. Raises PortError."""
    if not options.grpc_port:
        yield 0
        return
    with reserved_port(options.grpc_host, options.grpc_port, "FEEDSITE_GRPC_PORT"):
        yield options.grpc_port


# --- The programs that run -------------------------------------------------------------------------------
def supervised_programs(
    options: "Options", at: ProgramAddress, found: Sequence[ProgramDefinition] = ()
) -> list[Program]:
    """The programs to run (`found`, or this version's), tagged with this site. Forked, if there is a loader."""
    tags = site_variables(options, at)
    ports = {"web": at.port, "stream": at.stream, "grpc": at.grpc}
    definitions = {each.name: each for each in found or programs_of_up(options, at)}
    loader: Loader | None = None
    if own := definitions.pop(LOADER, None):
        loader = Loader(LOADER, python(own), folder=options.base_dir, environ=own.environ | tags)
    children: list[Program] = []
    for each in definitions.values():
        environ, port = each.environ | tags, ports.get(each.name, 0)
        if loader and each.name in FORKED:
            children.append(ForkedProgram(each.name, each.command, loader=loader, environ=environ, port=port))
        else:
            children.append(Program(each.name, python(each), folder=options.base_dir, environ=environ, port=port))
    return [*children, *filter(None, [loader])]


def python(definition: ProgramDefinition) -> list[str]:
    """The command of a program."""
    return [sys.executable, "-m", *definition.command]


def programs_of_disk(options: "Options", at: ProgramAddress) -> list[Program]:
    """The programs of the code on the disk, which may be newer. Raises ProgramError."""
    command = [sys.executable, str(options.base_dir / "manage.py"), "program"]
    try:
        said = subprocess.run(  # noqa: S603 (ourselves)
            command, env=os.environ | site_variables(options, at), capture_output=True, check=True, timeout=DISK_SECONDS
        )
        found = [ProgramDefinition(*each) for each in json.loads(said.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError, TypeError) as error:
        raise ProgramError(f"`manage.py program` of the version on the disk fails: {error}") from error
    return supervised_programs(options, at, found)


def site_variables(options: "Options", at: ProgramAddress) -> dict[str, str]:
    """Variables that assign a program to this site."""
    tags = {TAG: str(options.data_dir), METRICS: str(options.metrics_folder)}
    if not options.is_proxied:
        tags["FEEDSITE_STREAM_PORT"] = str(at.stream)
    return tags | {"PORT": str(at.port), "FEEDSITE_HOST": at.host, "FEEDSITE_GRPC_PORT": str(at.grpc)}


def site_answers(host: str, port: int, name: str) -> bool:
    """Whether the site answers within half a second."""
    try:
        with socket.create_connection((reachable_address(host), port), timeout=0.5) as connection:
            connection.sendall(f"GET /healthz HTTP/1.0\r\nHost: {name}\r\n\r\n".encode())
            return connection.recv(64).startswith(b"HTTP/")
    except OSError:
        return False


def accepted_host(allowed_hosts: Sequence[str]) -> str:
    """A host name that the site accepts."""
    name = next(iter(allowed_hosts), "*")
    return "localhost" if name == "*" else name.removeprefix(".")


def reachable_address(host: str) -> str:
    """The address at which this machine reaches a server on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (read, not bound)
