import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.support.migrated import digest, one_dumps

FILES = {
    "accounts/__init__.py": "",
    "accounts/joining_models.py": "",
    "accounts/mail/migrations/0001_tables.py": "",
    "accounts/mail/models.py": "",
    "accounts/migrations/0001_squashed.py": "from accounts import models, naming, rows\nimport storage.ids",
    "accounts/models.py": "",
    "accounts/naming.py": "",
    "accounts/rows.py": "",
    "accounts/sql/names.sql": "",
    "accounts/urls.py": "",
    "feedsite/settings.py": "",
    "requirements/dev.lock": "",
    "storage/__init__.py": "",
    "storage/ids.py": "",
}


@pytest.mark.parametrize("changed", FILES)
def test_a_copy_is_of_all_that_makes_it(tmp_path: Path, changed: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = digest(tmp_path)
    (tmp_path / changed).write_text(f"{FILES[changed]}# changed\n")
    assert (digest(tmp_path) == before) == (changed in ("accounts/__init__.py", "accounts/urls.py"))


def test_one_of_several_processes_makes_it(tmp_path: Path) -> None:
    dump = tmp_path / "digest.dump"

    def makes_it() -> bool:
        with one_dumps(dump):
            if dump.exists():
                return False
            time.sleep(0.1)
            dump.touch()
            return True

    with ThreadPoolExecutor(5) as workers:
        assert sorted(workers.map(lambda _: makes_it(), range(5))) == [False] * 4 + [True]


@pytest.mark.django_db
def test_nothing_is_left_to_migrate() -> None:
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
