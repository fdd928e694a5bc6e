"""The files of a data set that its lines name: pictures and videos, within its folder and nowhere else."""

import errno
import os
import stat
from pathlib import Path
from typing import IO

LONGEST = 500
"""Characters of a path."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class PathError(ValueError):
    """The path leads to no file of the data set; the message is for people."""


def opened(folder: Path, path: str) -> IO[bytes]:
    """The file that a line names by its path from the data set's folder, with `/` between its parts; the caller closes
    it. Raises PathError.

    Every part is opened within the part before it, and none may be a link: so no line leads out of the folder, also
    where somebody changes the folder at the same time.
    """
    parts = path.split("/")
    if not path or len(path) > LONGEST or "\0" in path:
        raise PathError(f"a path has 1 to {LONGEST} characters, and no NUL")
    if any(part in ("", ".", "..") for part in parts):
        raise PathError("a path leads from the data set's folder downwards, without an empty part, . and ..")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for place, part in enumerate(parts):
            flags = FILE if place == len(parts) - 1 else FOLDER
            below = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = below
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise PathError("this is no file")
        return os.fdopen(handle, "rb")
    except BaseException as error:
        os.close(handle)
        if isinstance(error, OSError):
            raise PathError(_reason(error)) from error
        if isinstance(error, UnicodeError):
            raise PathError("the path cannot be written in this system's encoding") from error
        raise


def _reason(error: OSError) -> str:
    """The words for an error: a link is refused as too many of them, or as no folder."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a part of the path is a link, or no folder"
    return error.strerror or "it cannot be read"
