"""Files of data sets, as `load`, the benchmarks and the simulation read them."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def packed(path: Path, lines: Iterable[str]) -> None:
    """Write lines into a file that is packed."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def as_json(posts: Iterable[Any]) -> list[str]:
    """A line of JSON for each."""
    return [json.dumps(post) for post in posts]
