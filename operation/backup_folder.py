import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from operation.dumps import BackupError


class BackupFolder:
    """A folder on this machine for backups. Each method raises BackupError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """The names of all files there."""
        with self._disk_errors():
            return [path.name for path in self.folder.iterdir()] if self.folder.exists() else []

    def make(self, name: str, make: Callable[[Path], None]) -> None:
        """Make a backup under this name."""
        with self._disk_errors():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in self.folder.glob("feedsite-*.backup.*.part"):  # left by a killed process
                left.unlink(missing_ok=True)
        make(self.folder / name)

    def delete(self, name: str) -> None:
        """Delete a backup."""
        with self._disk_errors():
            (self.folder / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """A backup as a local file, inside the block."""
        yield self.folder / name

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BackupError(f"{self.folder} (FEEDSITE_BACKUP_TO) cannot be used: {error.strerror}.") from error
