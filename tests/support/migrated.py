"""A migrated database, copied by every worker and later run.

Migrations take ten to thirty CPU seconds. Their dump is in `.pytest_cache`, under the digest of its sources.
`--cache-clear` removes it.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.backends.postgresql.creation import DatabaseCreation

from accounts.levels import policy
from runtime.embedded import postgres_binaries
from tests.support import pooler

NAME = "feedsite_migrated"
"""Other databases are copies of it."""
ROOT = Path(settings.BASE_DIR)
IMPORT = re.compile(r"^(?:from (?P<room>[\w.]+) import (?P<names>[\w, ]+)|import (?P<module>[\w.]+))", re.MULTILINE)
ALWAYS = ("feedsite/settings.py", "runtime/options.py", "requirements/dev.lock", "tests/support/migrated.py")
KEPT = 5
"""Number of branches with dumps."""
dump: Path | None = None
"""Set once a test has asked for the database."""

_migrate = DatabaseCreation.create_test_db


def install(config: pytest.Config) -> None:
    cache = config.cache.mkdir("migrated") if hasattr(config, "cache") and config.cache else None

    def create(creation: DatabaseCreation, *args: Any, **kwargs: Any) -> str:
        if not pooler.IS_WANTED:
            return _create(creation, cache, *args, **kwargs)
        with pooler.past(creation.connection):
            return _create(creation, cache, *args, **kwargs)

    DatabaseCreation.create_test_db = create


def _create(creation: DatabaseCreation, cache: Path | None, *args: Any, **kwargs: Any) -> str:
    """The first process restores the dump, or migrates and dumps. The others copy its database."""
    global dump
    dump = cache / f"{digest(ROOT)}.dump" if cache else None
    with creation._nodb_cursor() as cursor, one_dumps(dump):
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0; SELECT pg_advisory_lock(1)")
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [NAME])
        is_made = cursor.fetchone() is not None
        info = cursor.connection.info
        server = ["--host", info.host, "--port", str(info.port), "--username", info.user]
        if not is_made and dump and dump.exists():
            cursor.execute(f"CREATE DATABASE {NAME} TEMPLATE template0")
            is_made = _run("pg_restore", *server, "--dbname", NAME, "--exit-on-error", str(dump))
            if not is_made:
                cursor.execute(f"DROP DATABASE {NAME}")
        if is_made:
            creation.connection.settings_dict["TEST"]["TEMPLATE"] = NAME
        name: str = _migrate(creation, *args, **kwargs)
        if not is_made:
            creation.connection.close()
            cursor.execute(f'CREATE DATABASE {NAME} TEMPLATE "{name}"')
            if dump:
                _keep(dump, server)
    return name


@contextlib.contextmanager
def one_dumps(dump: Path | None) -> Iterator[None]:
    """Others wait for the dump. Their servers differ, so database locks do not help."""
    if dump is None or dump.exists():
        yield
        return
    with dump.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if dump.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield


def _keep(dump: Path, server: list[str]) -> None:
    draft = dump.with_suffix(f".{os.getpid()}")
    if _run("pg_dump", *server, "--format=custom", "--compress=1", "--file", str(draft), NAME):
        draft.replace(dump)
    draft.unlink(missing_ok=True)
    for old in sorted(dump.parent.glob("*.dump"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)


def _run(program: str, *arguments: str) -> bool:
    return subprocess.run([postgres_binaries() / program, *arguments], check=False).returncode == 0


def digest(root: Path) -> str:
    """A digest of migrations, their SQL, modules and models, the policy and the packages."""
    rooms = {path.parent.name for path in root.glob("*/__init__.py")}
    migrations = sorted([*root.glob("*/migrations/*.py"), *root.glob("*/*/migrations/*.py")])
    patterns = "*/sql/*.sql", "*/*/sql/*.sql", "*/*models.py", "*/*/models.py", "storage/**/*.py"
    files = {*migrations, *(root / name for name in ALWAYS), *(path for each in patterns for path in root.glob(each))}
    for path in migrations:
        for found in IMPORT.finditer(path.read_text()):
            module = found["module"] or found["room"]
            if module.split(".")[0] in rooms:
                modules = [module, *(f"{module}.{name.strip()}" for name in (found["names"] or "").split(","))]
                files |= {root / f"{one.replace('.', '/')}.py" for one in modules}
    made = hashlib.sha256(repr(policy.initial_policy()).encode())  # a migration stores values of the environment
    for path in sorted(files):
        if path.is_file():
            made.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return made.hexdigest()[:24]
