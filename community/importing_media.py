"""The pictures and videos of a data set: avatars of its users, and what its posts show.

Each goes the way of an upload (media.actions). The rows are written in the transaction of the load; files that were
kept for a load that failed are taken back, and those of a load that was killed are swept after a day.
"""

from collections.abc import Callable
from typing import IO

from accounts.faces import set_face
from accounts.models import User
from community.dataset import Dataset, DatasetError, PostRow, UserRow
from community.dataset_files import PathError, opened
from media import attaching
from media.actions import MediaError, take_back, upload
from media.decoder import BusyError, decoder
from media.models import MediaFile, Use
from media.store import StoreError
from media.sweeping import without_row

PATIENCE = 24
"""How often a file is tried while all decoders are busy, for `FEEDSITE_MEDIA_WAIT_SECONDS` each time."""
PART = 1_000


class Pictures:
    """The files that one load has kept."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._files: list[list[str]] = []

    def __len__(self) -> int:
        return len(self._files)

    def give_face(self, row: UserRow, user_id: int) -> None:
        """Give a user, who is saved, their avatar. Raises DatasetError."""

        def keep(file: IO[bytes]) -> MediaFile:
            user = set_face(user=User(pk=user_id), use=Use.AVATAR, file=file)
            return MediaFile.objects.get(pk=int(user.avatar["id"]))  # type: ignore[index]  # it was just given

        self._keep(row.avatar, keep, lambda what: self._dataset.wrong_user(row.line, what))

    def of_post(self, post: PostRow, owner_id: int) -> list[MediaFile]:
        """The media that a post shows, kept, which nothing uses yet. Raises DatasetError."""

        def wrong(what: str) -> DatasetError:
            return self._dataset.wrong_post(post.line, what)

        rows = []
        for path, words in post.media:

            def keep(file: IO[bytes], words: str = words) -> MediaFile:
                return upload(owner_id=owner_id, file=file, description=words)

            rows.append(self._keep(path, keep, wrong))
        try:
            attaching.check_together([row.kind for row in rows])
        except MediaError as error:
            raise wrong(f"media: {error}") from None
        return rows

    def _keep(
        self, path: str, keep: Callable[[IO[bytes]], MediaFile], wrong: Callable[[str], DatasetError]
    ) -> MediaFile:
        try:
            with opened(self._dataset.folder, path) as file:
                row = _patiently(keep, file)
        except BusyError:
            raise wrong(f"{path!r}: the site decodes too many pictures at the moment; load it later") from None
        except StoreError as error:
            raise wrong(f"{path!r}: the store of media does not take it ({error})") from None
        except (PathError, MediaError) as error:
            raise wrong(f"{path!r}: {error}") from None
        except OSError as error:
            raise wrong(f"{path!r}: it cannot be read ({error.strerror})") from None
        self._files.append(row.files)
        return row

    def end(self) -> None:
        """End the program that decodes."""
        decoder.stop()

    def take_back(self) -> None:
        """Remove the files of a load that failed, whose rows are gone with its transaction."""
        for start in range(0, len(self), PART):
            take_back(without_row([name for files in self._files[start : start + PART] for name in files]))


def _patiently(keep: Callable[[IO[bytes]], MediaFile], file: IO[bytes]) -> MediaFile:
    for _ in range(PATIENCE - 1):
        try:
            return keep(file)
        except BusyError:
            continue
    return keep(file)
