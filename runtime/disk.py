import os
from pathlib import Path


def sync(path: Path) -> None:
    """Flush a file, or a folder after a rename. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
