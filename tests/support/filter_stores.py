from pathlib import Path

import pytest
from django.conf import settings

from seen import store
from seen.filter_store import FilterStore
from seen.lmdb_store import LmdbStore
from seen.redis_store import RedisStore

STORES = ("lmdb", "redis")


def made_store(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> FilterStore:
    made = LmdbStore(folder) if kind == "lmdb" else RedisStore(settings.REDIS_URL)
    if isinstance(made, RedisStore):
        made.client.flushdb()
    monkeypatch.setattr(store, "_store", made)
    return made
