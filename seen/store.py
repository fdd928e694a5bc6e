from django.conf import settings

from seen.filter_store import FilterStore
from seen.lmdb_store import LmdbStore
from seen.redis_store import RedisStore

_store: FilterStore | None = None


def store() -> FilterStore:
    """The store from the settings."""
    global _store
    if _store is None:
        url = settings.PLAYED_STORE_URL
        _store = RedisStore(url) if url else LmdbStore(settings.DATA_DIR / "played")
    return _store
