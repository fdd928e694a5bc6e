import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from boto3.exceptions import Boto3Error
from django.conf import settings

from media.bucket import Bucket, errors
from media.files import StoreError
from operation.backup_folder import BackupFolder
from operation.dumps import BackupError
from runtime.addresses import parse_bucket

BUCKET_SECONDS = 60.0
"""Maximum seconds for an answer, and for each part of a file."""


class BackupBucket(BackupFolder):
    """A bucket for backups. They are made in a folder of the data folder, uploaded, and removed there."""

    def __init__(self, url: str) -> None:
        super().__init__(settings.DATA_DIR / "backups" / "unsent")
        self.bucket = Bucket(parse_bucket(url), BUCKET_SECONDS)

    def names(self) -> list[str]:
        with _bucket_errors():
            pages = self.bucket.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.address.name)
            return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def make(self, name: str, make: Callable[[Path], None]) -> None:
        for left in super().names():
            super().delete(left)
        super().make(name, make)
        try:
            with _bucket_errors():
                self.bucket.client.upload_file(str(self.folder / name), self.bucket.address.name, name)
        finally:
            super().delete(name)

    def delete(self, name: str) -> None:
        with _bucket_errors():
            self.bucket.client.delete_object(Bucket=self.bucket.address.name, Key=name)

    @contextlib.contextmanager
    def file(self, name: str) -> Iterator[Path]:
        with self._disk_errors():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"fetched-{name}"
        try:
            with _bucket_errors():
                self.bucket.client.download_file(self.bucket.address.name, name, str(path))
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _bucket_errors() -> Iterator[None]:
    try:
        with errors():
            yield
    except (StoreError, FileNotFoundError, Boto3Error) as error:
        raise BackupError(f"The bucket of FEEDSITE_BACKUP_TO failed: {error}") from error
