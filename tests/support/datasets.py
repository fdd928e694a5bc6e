"""Files of data sets, as `load`, the benchmarks and the simulation read them."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db import connection


def packed(path: Path, lines: Iterable[str]) -> None:
    """Write lines into a file that is packed."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def as_json(posts: Iterable[Any]) -> list[str]:
    """A line of JSON for each."""
    return [json.dumps(post) for post in posts]


def database_url() -> str:
    """The address of the test database for a process of its own."""
    values = connection.settings_dict
    host = values["HOST"] or values["OPTIONS"].get("host", "")
    address = f"{values['USER']}:{values['PASSWORD']}@{host}:{values['PORT']}"
    if host.startswith("/"):
        return f"postgres://{values['USER']}@/{values['NAME']}?host={host}"
    return f"postgres://{address}/{values['NAME']}"
