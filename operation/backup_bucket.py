import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from boto3.exceptions import Boto3Error
from django.conf import settings

from media.bucket import Bucket, errors
from media.files import StoreError
from operation.dumps import BackupError
from operation.kept_backups import FolderPlace, disk_errors
from runtime.addresses import parse_bucket

BUCKET_SECONDS = 60.0
"""Maximum seconds for an answer, and for each part of a file."""


class BucketPlace:
    """A bucket for backups. They are made in the data folder, uploaded, and removed there."""

    def __init__(self, url: str) -> None:
        self.bucket = Bucket(parse_bucket(url), BUCKET_SECONDS)
        self.draft = FolderPlace(settings.DATA_DIR / "backups" / "unsent")

    def names(self) -> list[str]:
        with _bucket_errors():
            pages = self.bucket.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.address.name)
            return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def make(self, name: str, make: Callable[[Path], None]) -> None:
        for left in self.draft.names():
            self.draft.delete(left)
        self.draft.make(name, make)
        try:
            with _bucket_errors():
                self.bucket.client.upload_file(str(self.draft.folder / name), self.bucket.address.name, name)
        finally:
            self.draft.delete(name)

    def delete(self, name: str) -> None:
        with _bucket_errors():
            self.bucket.client.delete_object(Bucket=self.bucket.address.name, Key=name)

    @contextlib.contextmanager
    def file(self, name: str) -> Iterator[Path]:
        with disk_errors(self.draft.folder):
            self.draft.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.draft.folder / f"fetched-{name}"
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
