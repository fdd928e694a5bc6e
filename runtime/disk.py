"""Writes that outlive a power failure: on the disk, and not only in the memory of the kernel."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have a file, or the names of a folder, on the disk: a rename is there after a power failure only then. Raises
    OSError.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
