"""`up`: the whole site, from an empty folder to the address in the browser.

See docs/decisions.md: An upgrade restarts one program after another.
"""

import contextlib
import errno
import fcntl
import http.client
import io
import os
import shutil
import signal
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from runtime import majors
from runtime.embedded import ServerError, lock_file, try_lock
from runtime.programs import METRICS, Place, metrics_folder, programs
from runtime.supervisor import TAG, Program, ProgramError, Supervisor, end_leftovers, listens, say

MORE_PORTS = 20
"""How many ports after the site's are tried for the stream process, and after that for gRPC."""

OTHER_SECONDS = 90.0
"""In which the site that is taken over from may end by itself."""


class Command(BaseCommand):
    """Start the servers, bring the database up to date, and run web, stream, gRPC, worker and beat until Ctrl-C."""

    is_stopping = False
    help = (
        "Run the site: servers, migrations, web, stream, gRPC, worker and beat. An empty embedded database gets a demo "
        "community; for another, a link is printed by which the first administrator is made."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The option to fill an empty database."""
        parser.add_argument(
            "--demo", action="store_true", help="Fill an empty database with demo users, wherever it is."
        )
        parser.add_argument(
            "--take-over",
            action="store_true",
            help="Begin beside the `up` of this data folder, of whatever version, and end that when this one listens.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Start servers and programs, and keep them until SIGTERM or Ctrl-C."""
        host, port = settings.HOST, settings.PORT
        # Until the supervisor takes over, SIGTERM ends what runs the way Ctrl-C does.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)
        other = running_site() if options["take_over"] else None
        is_shared = other is not None
        with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as site:
            if other is None:
                site.enter_context(only_one_site())
                end_leftovers(str(settings.DATA_DIR))
                shutil.rmtree(metrics_folder(), ignore_errors=True)  # the counts are of the last run
                move_to_this_postgresql()
            with (
                reserved_port(host, port, is_shared=is_shared),
                further_port(host, port, settings.STREAM_PORT, "FEEDSITE_STREAM_PORT", is_shared=is_shared) as stream,
                grpc_port(stream, is_shared=is_shared) as grpc,
                settings.SERVERS.ensure(),
            ):
                call_command("await_servers")
                words = prepare(demo=options["demo"] or "postgres" in settings.SERVERS.names)
                if not self.is_stopping:
                    self.supervise(Place(host, port, stream, grpc), words, site, other)

    def on_signal(self, number: int, frame: object) -> None:
        """Interrupt what runs. Where that is lost, in a callback or a destructor, it is remembered."""
        self.is_stopping = True
        raise KeyboardInterrupt

    def supervise(self, at: Place, words: list[str], site: contextlib.ExitStack, other: int | None) -> None:
        """Run the programs until they are to end. Raises CommandError if one does not start.

        Beside the `other` site all but beat begin; beat, whose schedule is one file, follows when that has ended.
        """
        every = supervised(at)
        begun = [each for each in every if other is None or each.name != "beat"]
        supervisor = Supervisor(begun, tend=tend_servers)
        supervisor.told = tell_of_turns

        def is_up() -> bool:
            if other is None:
                return answers(at.host, at.port)
            return all(listens(each) for each in begun if each.port)

        def announced() -> None:
            if other is not None:
                end_other(other, supervisor)
                site.enter_context(only_one_site())
                supervisor.programs = every
            announce(at.host, at.port, at.grpc, words)

        try:
            supervisor.run(is_up=is_up, announce=announced)
        except ProgramError as error:
            raise CommandError(str(error)) from error


# --- Before anything starts ------------------------------------------------------------------------------
@contextlib.contextmanager
def only_one_site() -> Iterator[None]:
    """Hold the data folder for this site. Raises CommandError when another `up` has it."""
    home = settings.SERVERS.home
    home.make()
    with lock_file(home, "up") as lock:
        if not try_lock(lock, fcntl.LOCK_EX):
            raise CommandError(
                f"The site of {home.data_dir} is running already (process {os.pread(lock, 20, 0).decode()})."
            )
        os.truncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield


def running_site() -> int | None:
    """The process of the `up` that has this data folder; None where none runs."""
    home = settings.SERVERS.home
    if not (home.run / "up.lock").exists():
        return None
    with lock_file(home, "up") as lock:
        if try_lock(lock, fcntl.LOCK_SH):
            return None
        return int(os.pread(lock, 20, 0) or 0) or None


def move_to_this_postgresql() -> None:
    """Move the data of an embedded PostgreSQL of before. Raises CommandError, by which `up` ends with 2."""
    if "postgres" not in settings.SERVERS.names:
        return
    try:
        if majors.needs_move(settings.SERVERS.home):
            majors.move(settings.SERVERS.home, say)
    except majors.MajorError as error:
        raise CommandError(str(error), returncode=2) from error


def end_other(pid: int, supervisor: Supervisor) -> None:
    """Stop the other site, whose programs end in order; by force after `OTHER_SECONDS`. Its servers stay: both lease
    them.
    """
    say(f"this site listens; ending the one before (process {pid}) ...")
    for number, seconds in ((signal.SIGTERM, OTHER_SECONDS), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        supervisor.pass_until(lambda: running_site() is None, seconds)
        if running_site() is None:
            return


@contextlib.contextmanager
def reserved_port(host: str, port: int, *, is_shared: bool = False) -> Iterator[None]:
    """Keep the port for this site's web server. Raises CommandError when it is taken, unless it `is_shared` just now.

    granian binds with SO_REUSEPORT, so two sites that start at the same time would both succeed, and share the
    visitors. A bound socket that does not listen lets granian in beside it, and shows the next site's probe, which
    does not share, that the port is taken.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not is_shared:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
        reservation = socket.socket(family, kind, protocol)
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reservation.bind(place)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(f"Port {port} of {host} is taken; set PORT to a free one.") from error
        raise CommandError(f"The site cannot listen on {host}, port {port}: {error.strerror}.") from error
    with reservation:
        yield


@contextlib.contextmanager
def further_port(host: str, port: int, asked: int | None, variable: str, *, is_shared: bool = False) -> Iterator[int]:
    """Keep a port for another program: the one that is asked for by `variable`, or the next free one after `port`."""
    for candidate in [asked] if asked else range(port + 1, min(port + MORE_PORTS, 65535) + 1):
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(reserved_port(host, candidate, is_shared=is_shared))
            except CommandError:
                continue
            yield candidate
            return
    if asked:
        raise CommandError(f"Port {asked} of {host} is taken; set {variable} to a free one.")
    raise CommandError(f"No port after {port} of {host} is free; set {variable} to one.")


@contextlib.contextmanager
def grpc_port(port: int, *, is_shared: bool = False) -> Iterator[int]:
    """Keep a port for gRPC, likewise; 0 where there is to be none."""
    if settings.GRPC_PORT == 0:
        yield 0
        return
    place = settings.GRPC_HOST, port, settings.GRPC_PORT, "FEEDSITE_GRPC_PORT"
    with further_port(*place, is_shared=is_shared) as kept:
        yield kept


def prepare(*, demo: bool) -> list[str]:
    """Bring database and static files up to date, and with `demo` fill an empty database with the demo community.

    Returns the lines that tell how to come in: the logins that were made now, or a link for the first administrator.
    """
    say("migrating the database ...")
    call_command("migrate", interactive=False, verbosity=0)
    try:
        call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as error:
        raise CommandError(f"Static files cannot be written to {settings.STATIC_ROOT}: {error.strerror}.") from error
    words = io.StringIO()
    if demo:
        call_command("demo", "--if-empty", stdout=words)
    call_command("admin_link", "--if-wanted", stdout=words)
    connections.close_all()  # the supervisor itself asks the database nothing
    logins = settings.DATA_DIR / "demo.txt"
    if demo and logins.exists() and not words.getvalue():
        words.write(f"The demo logins are in {logins}")
    return words.getvalue().splitlines()


# --- The programs that run -------------------------------------------------------------------------------
def supervised(at: Place) -> list[Program]:
    """The programs, each tagged with the site that it is of; pages lead browsers to the stream's port.

    A restart by turns starts each by `program`, which reads its options from the code on the disk: those of another
    version, after an upgrade (operation/upgrade.py).
    """
    tags = {TAG: str(settings.DATA_DIR), METRICS: str(metrics_folder()), "FEEDSITE_STREAM_PORT": str(at.stream)}
    tags |= {"PORT": str(at.port), "FEEDSITE_HOST": at.host, "FEEDSITE_GRPC_PORT": str(at.grpc)}
    ports = {"web": at.port, "stream": at.stream, "grpc": at.grpc}
    return [
        Program(
            each.name,
            [sys.executable, "-m", *each.command],
            anew=[sys.executable, "manage.py", "program", each.name],
            folder=settings.BASE_DIR,
            environ=each.environ | tags,
            port=ports.get(each.name, 0),
        )
        for each in programs(at)
    ]


def turns_file() -> Path:
    """Where a restart by turns is told of."""
    path: Path = settings.SERVERS.home.run / "turns"
    return path


def tell_of_turns(line: str) -> None:
    """Say how a restart by turns goes, on the terminal and to the command that waits for it."""
    say(line)
    with contextlib.suppress(OSError), turns_file().open("a") as file:
        file.write(f"{line}\n")


def tend_servers() -> None:
    """Have the embedded servers looked after; an error is shown on the terminal, and the next call tries again."""
    try:
        settings.SERVERS.tend()
    except (ServerError, OSError) as error:
        say(str(error))


def answers(host: str, port: int) -> bool:
    """Whether the site answers `/healthz` within half a second, with any status."""
    connection = http.client.HTTPConnection(reachable(host), port, timeout=0.5)
    try:
        connection.request("GET", "/healthz", headers={"Host": own_name()})
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def own_name() -> str:
    """A name that the site answers to: any other is refused, and logged as an error."""
    name: str = next(iter(settings.ALLOWED_HOSTS), "*")
    return "localhost" if name == "*" else name.removeprefix(".")


def reachable(host: str) -> str:
    """The address at which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (read, not bound)


def announce(host: str, port: int, grpc: int, words: list[str]) -> None:
    """Tell on the terminal where the site and its gRPC are, then the other lines."""
    shown = reachable(host)
    say(f"the site is at http://{f'[{shown}]' if ':' in shown else shown}:{port}/  (Ctrl-C stops it)")
    if grpc:
        say(f"gRPC for services that rank: {settings.GRPC_HOST}, port {grpc}")
    for line in words:
        say(line)
