"""Opens media of a data set, only within its folder."""

import errno
import os
import stat
from pathlib import Path
from typing import IO

LONGEST = 500
"""Maximum characters of a path."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class PathError(ValueError):
    """The path leads to no file. The message is for people."""


def open_inside(folder: Path, path: str) -> IO[bytes]:
    """Open a file by its path from the folder. Raises PathError.

    Every part is opened relative to the one before, and links are refused. So no path leads out, even if the folder
    changes meanwhile.
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
    """Why a file cannot be opened, for people. The kernel refuses a link with ELOOP or ENOTDIR."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "a part of the path is a link, or no folder"
    return error.strerror or "it can't be read"
