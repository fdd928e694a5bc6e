"""Media of a data set. A failed load removes its files; those of a killed load are swept after a day."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from accounts.faces import set_face
from accounts.models import User
from community.dataset import Dataset, PostRow, UserRow
from community.dataset_files import PathError, open_inside
from community.problems import LineError
from media import attaching
from media.actions import MediaError, check_file, clean_description, delete_stored
from media.decoder import DecoderBusyError, decoder
from media.files import StoreError
from media.models import MediaFile, Use
from media.processing import upload_at_once
from media.sweeping import orphaned_names

TRIES = 24
"""Attempts per file while all decoders are busy. Each waits `MEDIA_WAIT_SECONDS`."""
PART = 1_000


class Pictures:
    """The files stored by one load."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._files: list[list[str]] = []

    def __len__(self) -> int:
        return len(self._files)

    def check_face(self, row: UserRow) -> None:
        """Report an avatar that is not a readable picture."""
        with (
            self._reporting_errors(lambda what: self._wrong_face(row, what), row.avatar),
            self._opened(row.avatar) as file,
        ):
            check_file(file, pictures_only=True)

    def check_media(self, post: PostRow) -> None:
        """Report media that do not fit."""
        kinds = []
        for path, words in post.media:
            with self._reporting_errors(lambda what: self._wrong_medium(post, what), path):
                clean_description(words)
                with self._opened(path) as file:
                    kinds.append(check_file(file))
        with self._reporting_errors(lambda what: self._wrong_medium(post, what), "media"):
            attaching.check_combination(kinds)

    def set_face(self, row: UserRow, user_id: int) -> None:
        """Set a saved user's avatar, or report why not."""

        def keep(file: IO[bytes]) -> MediaFile:
            user = set_face(user=User(pk=user_id), use=Use.AVATAR, file=file)
            return MediaFile.objects.get(pk=int(user.avatar["id"]))  # type: ignore[index]  # just set

        with self._reporting_errors(lambda what: self._wrong_face(row, what), row.avatar):
            self._store(row.avatar, keep)

    def of_post(self, post: PostRow, owner_id: int) -> list[MediaFile]:
        """Store a post's media, or report why not."""
        rows = []
        for path, words in post.media:

            def keep(file: IO[bytes], words: str = words) -> MediaFile:
                return upload_at_once(owner_id=owner_id, file=file, description=words)

            with self._reporting_errors(lambda what: self._wrong_medium(post, what), path):
                rows.append(self._store(path, keep))
        return rows

    def _opened(self, path: str) -> IO[bytes]:
        return open_inside(self._dataset.folder, path)

    def _wrong_face(self, row: UserRow, what: str) -> LineError:
        return self._dataset.wrong_user(row.line, what, "picture", "avatar")

    def _wrong_medium(self, post: PostRow, what: str) -> LineError:
        return self._dataset.wrong_post(post.line, what, "picture", "media")

    def _store(self, path: str, keep: Callable[[IO[bytes]], MediaFile]) -> MediaFile:
        with self._opened(path) as file:
            row = _retry_while_busy(keep, file)
        self._files.append(row.files)
        return row

    @contextmanager
    def _reporting_errors(self, wrong: Callable[[str], LineError], path: str) -> Iterator[None]:
        try:
            yield
        except DecoderBusyError:
            what = "the site decodes too many pictures at the moment; load it later"
        except StoreError as error:
            what = f"the media store refuses it ({error})"
        except (PathError, MediaError) as error:
            what = str(error)
        except OSError as error:
            what = f"it cannot be read ({error.strerror})"
        else:
            return
        self._dataset.tell(wrong(f"{path[:200]!r}: {what}"))

    def end(self) -> None:
        """Stop the decoder process."""
        decoder.stop()

    def take_back(self) -> None:
        """Remove a failed load's files."""
        for start in range(0, len(self), PART):
            delete_stored(orphaned_names([name for files in self._files[start : start + PART] for name in files]))


def _retry_while_busy(keep: Callable[[IO[bytes]], MediaFile], file: IO[bytes]) -> MediaFile:
    for _ in range(TRIES - 1):
        try:
            return keep(file)
        except DecoderBusyError:
            continue
    return keep(file)
