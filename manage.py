#!/usr/bin/env python3
"""Every command of the site. `python3 manage.py up` runs it, `python3 manage.py check_all` tests it.

The first run makes `.venv` from the lock file and restarts in it. So everything but `run_command` uses the standard
library only. It must parse on older Pythons, to refuse them.

The lock files cover Linux on x86-64 and ARM64 and macOS on ARM64. musl and Intel Macs lack wheels.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("FEEDSITE_VENV") or ROOT / ".venv").absolute()
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "feedsite.json"

RUNTIME_LOCK = ROOT / "requirements/runtime.lock"
SERVER_LOCK = ROOT / "requirements/server.lock"  # without embedded servers, for images
DEV_LOCK = ROOT / "requirements/dev.lock"  # includes RUNTIME_LOCK
PYTHONS = ((3, 11), (3, 14))  # oldest and newest of the locks
ROOM_MB = {RUNTIME_LOCK: 1000, SERVER_LOCK: 700, DEV_LOCK: 2000}  # of a new environment and its first data
GLIBC = (2, 28)  # the oldest for the wheels
PROCESSORS = {"linux": ("x86_64", "aarch64"), "darwin": ("arm64",)}
DEV_COMMANDS = {"check_all"}

# Commands that need no servers, check for them, or, like `up`, start them on their own.
SERVERLESS_COMMANDS = {
    "bench",
    "check_all",
    "collectstatic",
    "compilemessages",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "prepare",
    "spectacular",
    "up",
    "version",
}


def main() -> None:
    """Run a Django command in the project's environment, created if needed."""
    reason = unsupported(sys.version_info[:2], sys.platform, platform.machine(), platform.libc_ver())
    if reason:
        print("feedsite: " + reason, file=sys.stderr)
        sys.exit(2)
    lock = DEV_LOCK if DEV_COMMANDS.intersection(sys.argv[1:2]) else RUNTIME_LOCK
    is_set_up = sys.argv[1:2] == ["setup"] and not installed_locks()  # it uses servers of its own
    if lock == RUNTIME_LOCK and (is_set_up or SERVER_LOCK.name in installed_locks()):
        lock = SERVER_LOCK
    if is_installed(lock) and Path(sys.prefix).resolve() == VENV.resolve():
        with ignore_broken_pipe():
            run_command(sys.argv)
    else:
        install(lock)
        os.execv(PYTHON, [str(PYTHON), str(ROOT / "manage.py"), *sys.argv[1:]])  # noqa: S606 (no shell wanted)


def unsupported(python: tuple[int, ...], system: str, processor: str, libc: tuple[str, str]) -> str | None:
    """Why the site cannot run here, in one line, or None."""
    oldest, newest = PYTHONS
    if python[:2] < oldest or python[:2] > newest:
        tried = "{}.{} to {}.{}".format(*oldest, *newest)
        return "it runs on Python {}, and this is {}.{}; start manage.py by one of those.".format(tried, *python)
    if system == "win32":
        return "it does not run on Windows itself; run it in WSL 2, or in containers (compose.yaml)."
    if processor.lower() not in PROCESSORS.get(system, ()):
        tried = "Linux on x86-64 and ARM64, and macOS on ARM64"
        return f"not all it needs is built for {system} on {processor}; it runs on {tried}."
    if system == "linux" and libc[0] != "glibc":
        return "not all it needs is built for musl (Alpine); take a system or an image with glibc, as Debian's."
    if system == "linux" and tuple(int(part) for part in libc[1].split(".")[:2]) < GLIBC:
        return "it needs glibc {}.{} or newer, as Debian 10 has; this is {}.".format(*GLIBC, libc[1])
    return None


# --- The virtual environment -----------------------------------------------------------------------------
def is_installed(lock: Path) -> bool:
    """Whether the environment matches the lock file."""
    return installed_locks().get(lock.name) == lock_hash(lock)


def installed_locks() -> dict[str, str]:
    """Names of the locks that the environment holds, with their fingerprints. These are empty unless it is complete.

    A copied tree or a replaced interpreter does not count, because an environment works only in its place.
    """
    try:
        stamp = json.loads(STAMP.read_text())
        return dict(stamp["locks"]) if stamp["place"] == environment_paths() else dict.fromkeys(stamp["locks"], "")
    except (OSError, ValueError, KeyError):
        return {}


def write_stamp(locks: dict[str, str]) -> None:
    """Record what the environment holds."""
    STAMP.write_text(json.dumps({"place": environment_paths(), "locks": locks}))


def environment_paths() -> list[str]:
    """The environment's path and interpreter."""
    return [str(VENV), str(PYTHON.resolve())]


def lock_hash(lock: Path) -> str:
    """The SHA-256 of a lock file."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def install(lock: Path) -> None:
    """Bring the environment to `lock`, from scratch if it is incomplete. Exits on failure."""
    if importlib.util.find_spec("venv") is None or not pip_wheel():
        sys.exit("feedsite needs Python's venv module (Debian: apt install python3-venv).")
    try:
        with environment_lock():
            if is_installed(lock):
                return
            check_owner(lock)
            print(f"feedsite: installing {lock.relative_to(ROOT)} into {VENV} ...", file=sys.stderr, flush=True)
            is_new = not any(installed_locks().values())
            if is_new:
                make_environment()
            held = (DEV_LOCK, RUNTIME_LOCK) if lock == DEV_LOCK else (lock,)
            write_stamp({each.name: "" for each in held})
            if is_new and (free := shutil.disk_usage(VENV).free >> 20) < ROOM_MB[lock]:
                sys.exit(f"feedsite: {VENV} needs {ROOM_MB[lock]:,} MB, but its disk has only {free:,} MB free.")
            install_packages(lock)
            if lock != RUNTIME_LOCK:  # its users may write there, so the first import compiles modules
                compile_packages()
            write_stamp({each.name: lock_hash(each) for each in held})
    except subprocess.CalledProcessError:
        sys.exit(
            f"feedsite: {lock.relative_to(ROOT)} could not be installed into {VENV}. The reason is above. {OFFLINE}"
        )
    except OSError as error:
        sys.exit(f"feedsite: {VENV} cannot be created: {error}")


def check_owner(lock: Path) -> None:
    """Exit if this user cannot write the environment."""
    folder = VENV if VENV.exists() else VENV.parent
    if not os.access(folder, os.W_OK):
        name = lock.relative_to(ROOT)
        venv = f"FEEDSITE_VENV={shlex.quote(str(VENV))} " if "FEEDSITE_VENV" in os.environ else ""
        code = f'import manage; manage.install(manage.ROOT / "{name}")'
        sys.exit(
            f"feedsite: {VENV} does not hold {name}, and this user cannot write there. "
            f"Run as root: cd {shlex.quote(str(ROOT))} && {venv}python3 -c '{code}'"
        )


OFFLINE = "If this machine has no internet, set FEEDSITE_WHEELS to a folder of packages (docs/servers.md)."
# The lock names every package, so there is nothing to resolve.
WHOLE = ("--no-deps", "--require-hashes", "--only-binary=:all:")


def install_packages(lock: Path) -> None:
    """Install pip and the lock's packages. Raises CalledProcessError."""
    if not install_by_uv(lock):
        run([*pip_command(), pip_wheel()]).check_returncode()
        run([*pip_command(), *WHOLE, *offline_options(), "-r", str(lock)]).check_returncode()


def install_by_uv(lock: Path) -> bool:
    """Install pip and the lock's packages by uv, four times as fast as by pip. False if that fails.

    pip is used then: it knows the machine's index and certificates.
    """
    text = DEV_LOCK.read_text() if DEV_LOCK.exists() else ""  # images lack it
    found = re.search(r"^uv==.*?(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return False
    with tempfile.TemporaryDirectory(dir=VENV) as folder:
        first = Path(folder, "uv.txt")
        first.write_text(found.group())
        uv = [f"{folder}/bin/uv", "pip", "install", "--quiet", "--no-config", "--python", str(PYTHON)]
        steps = (
            [*pip_command(), *WHOLE, *offline_options(), "--target", folder, "-r", str(first)],
            [*uv, *WHOLE, *offline_options(), "-r", str(lock)],
            [*uv, pip_wheel()],
        )
        return all(run(step, stderr=subprocess.DEVNULL).returncode == 0 for step in steps)


def pip_command() -> list[str]:
    """The command `pip install` with options, by pip's wheel."""
    options = ["-qq", "--disable-pip-version-check", "--no-input", "--no-compile"]
    return [str(PYTHON), f"{pip_wheel()}/pip", "install", *options]


def pip_wheel() -> str:
    """Python's own wheel of pip, or "", as on Debian without python3-venv."""
    found = importlib.util.find_spec("ensurepip")
    if found is None or found.origin is None:
        return ""
    folders = (Path(found.origin).parent / "_bundled", Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or os.devnull))
    return next((str(wheel) for folder in folders for wheel in folder.glob("pip-*.whl")), "")


COMPILE = "import compileall, sysconfig; compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0)"


def compile_packages() -> None:
    """Compile the packages' files. Ignores errors: some packages have files that no Python compiles."""
    run([str(PYTHON), "-c", COMPILE])


def run(command: list[str], stderr: int | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a program. It inherits the lock of `environment_lock`."""
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stderr=stderr, close_fds=False)


def offline_options() -> list[str]:
    """pip's options for a machine without internet: only wheels of the folder FEEDSITE_WHEELS. Else none."""
    folder = os.environ.get("FEEDSITE_WHEELS")
    return ["--no-index", "--find-links", str(Path(folder).absolute())] if folder else []


def make_environment() -> None:
    """Create the environment. Replaces only an environment of ours. Raises OSError."""
    import venv

    if VENV.is_symlink():
        sys.exit(f"feedsite: {VENV} is a link to an environment that another tree may use. It was not changed.")
    ours = VENV == ROOT / ".venv" or STAMP.exists() or not VENV.exists() or not any(VENV.iterdir())
    if not ours:
        sys.exit(f"feedsite: {VENV} (FEEDSITE_VENV) is not an environment of this site. It was not changed.")
    venv.create(VENV, clear=True, symlinks=True)


@contextlib.contextmanager
def environment_lock() -> Iterator[None]:
    """Hold the lock in the block, so that one command makes the environment.

    Programs that it runs hold the lock too (`run`), also after a kill.
    """
    import fcntl  # missing on Windows, which is refused before

    VENV.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(VENV.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        os.set_inheritable(folder, True)
        yield
    finally:
        os.close(folder)


# --- Django, inside the environment ----------------------------------------------------------------------
@contextlib.contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Exit without a traceback if the reader of the output has ended, as `head` does."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        sys.exit(141)  # as a shell has it of other programs


def run_command(argv: list[str]) -> None:
    """Run a management command, with the data folder's servers."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")
    if alone := command_without_django(argv[1:]):
        alone(argv[2:])
        return
    if argv[1:] in ([], ["help"], ["--help"], ["-h"]):
        from runtime import commands

        print(commands.help_text())
        return
    os.environ.setdefault("PGAPPNAME", f"feedsite {argv[1]}")  # PostgreSQL shows it for this process's sessions
    argv = [word for word in argv if word != "--all"] if argv[1:2] == ["help"] else argv
    import django
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import InterfaceError, OperationalError, ProgrammingError
    from redis import RedisError

    from runtime.embedded import ServerError
    from runtime.environment import OptionsError

    needs_servers = bool(argv[1:]) and not {argv[1], *argv[2:]} & {"--help", "-h", "--version"}
    try:
        servers = settings.SERVERS
        settings.LOGGING["root"]["level"] = settings.LOG_LEVEL or "WARNING"  # a command prints its own words  # type: ignore[index]
        gc.disable()  # collections would take a fifth of import time
        django.setup()
        gc.freeze()
        gc.enable()
        if needs_servers and argv[1] not in SERVERLESS_COMMANDS:
            with servers.ensure():
                execute_from_command_line(argv)
        else:
            execute_from_command_line(argv)
    except OptionsError as error:
        error.exit()
    except (ServerError, ImproperlyConfigured) as error:
        sys.exit(f"feedsite: {error}")
    except (OperationalError, InterfaceError, ProgrammingError, RedisError) as error:
        from storage.connections import is_schema_mismatch

        if "--traceback" in argv or (isinstance(error, ProgrammingError) and not is_schema_mismatch(error)):
            raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, ProgrammingError):
            sys.exit(f"feedsite: the database is of another version ({said}). Run `manage.py migrate`.")
        server = "a Redis server" if isinstance(error, RedisError) else "PostgreSQL"
        sys.exit(f"feedsite: {server} failed: {said} (`manage.py doctor` checks all servers)")


def command_without_django(words: list[str]) -> Callable[[list[str]], None] | None:
    """The function of a command that needs no Django."""
    if words[:1] == ["upgrade"] and any(word.partition("=")[0] == "--to" for word in words):
        return upgrade
    return {"up": run_site, "setup": set_up, "restart": restart_programs}.get("".join(words[:1]))


def run_site(arguments: list[str]) -> None:
    """Run `up`, without Django."""
    # Otherwise each program would compile the whole site at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    from runtime import up
    from runtime.embedded import ServerError
    from runtime.ports import PortError

    try:
        up.main(ROOT, arguments)
    except (up.UpError, PortError, ServerError) as error:
        sys.exit(f"feedsite: {error}")


def set_up(arguments: list[str]) -> None:
    """Run `setup`, without Django."""
    from runtime import environment, setup

    try:
        setup.main(arguments)
    except environment.OptionsError as error:
        error.exit()
    except setup.SetupError as error:
        sys.exit(f"feedsite: {error}")


def restart_programs(arguments: list[str]) -> None:
    """Run `restart`, without Django."""
    from runtime import environment, restart

    try:
        restart.main(environment.read(ROOT), arguments)
    except environment.OptionsError as error:
        error.exit()
    except restart.RestartError as error:
        sys.exit(f"feedsite: {error}")


def upgrade(arguments: list[str]) -> None:
    """Run `upgrade --to`, without Django."""
    from runtime import environment, restart, upgrade

    try:
        upgrade.main(environment.read(ROOT), arguments)
    except environment.OptionsError as error:
        error.exit()
    except (upgrade.UpgradeError, restart.RestartError) as error:
        sys.exit(f"feedsite: {error}")


if __name__ == "__main__":
    main()
