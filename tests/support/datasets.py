import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db import connection


def packed(path: Path, lines: Iterable[str]) -> None:
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def as_json(posts: Iterable[Any]) -> list[str]:
    return [json.dumps(post) for post in posts]


def database_url() -> str:
    values = connection.settings_dict
    host = values["HOST"] or values["OPTIONS"].get("host", "")
    address = f"{values['USER']}:{values['PASSWORD']}@{host}:{values['PORT']}"
    if host.startswith("/"):
        return f"postgres://{values['USER']}@/{values['NAME']}?host={host}"
    return f"postgres://{address}/{values['NAME']}"
