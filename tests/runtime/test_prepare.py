import io
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from runtime.management.commands.prepare import digest, files_in

MIGRATES = "updating the database ...\n"


def prepared() -> str:
    said = io.StringIO()
    call_command("prepare", stdout=said)
    return said.getvalue()


@pytest.mark.slow
@pytest.mark.sessions  # migrations go past a pooler
@pytest.mark.django_db
def test_what_is_done_is_not_done_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings.SERVERS.home.make()
    (settings.SERVERS.home.run / "prepared").unlink(missing_ok=True)
    assert prepared().startswith(MIGRATES)
    assert MIGRATES not in prepared()

    # Another database, or another state of this one.
    MigrationRecorder(connection).record_applied("elsewhere", "0001_tables")
    assert prepared().startswith(MIGRATES)
    assert MIGRATES not in prepared()

    # The static files of another version, or none.
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    manifest.write_text("{}")
    assert prepared().startswith(MIGRATES)
    assert MIGRATES not in prepared()
    manifest.unlink()
    assert prepared().startswith(MIGRATES)

    # Another version of a file.
    monkeypatch.setattr(settings, "BASE_DIR", tmp_path)
    (tmp_path / "feedsite").mkdir()
    assert prepared().startswith(MIGRATES)
    assert MIGRATES not in prepared()


def test_any_changed_file_is_noticed(tmp_path: Path) -> None:
    def mark() -> str:
        return digest(f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in files_in(str(tmp_path)))

    file = tmp_path / "migrations" / "0001_tables.py"
    file.parent.mkdir()
    file.write_text("a = 1\n")
    seen = [mark()]
    file.write_text("a = 2\n")
    seen.append(mark())
    file.rename(file.with_name("0002_tables.py"))
    seen.append(mark())
    (tmp_path / "new").touch()
    seen.append(mark())
    assert len(set(seen)) == len(seen)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "new.pyc").touch()
    assert mark() == seen[-1]
