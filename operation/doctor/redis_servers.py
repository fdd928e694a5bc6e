import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

import redis
from django.conf import settings
from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from operation.doctor.findings import WAIT_SECONDS, Finding, Findings, clock, make_finding
from runtime.addresses import names_cluster
from storage.cluster import Cluster
from storage.connections import client_of

DURABLE = {
    "broker": "queued tasks are lost until sweeps send them again",
    "plays": "acknowledged plays are lost",
    "play store": "months of plays are lost",
}
"""Servers that must never evict data, and what would be lost."""
SMALLER_FAULTS = "docs/runbook.md, Smaller faults (FeedsiteRedisFull)"
WHY_REDIS = "GETEX and ZMSCORE (Redis 6.2) and listpacks (7.0)"


def redis_roles() -> dict[str, str]:
    """The addresses of the Redis servers by role."""
    broker: str = settings.BROKER_URL
    if broker.startswith("redis+socket://"):
        broker = broker.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=")
    roles = {"feeds": settings.REDIS_URL, "broker": broker, "plays": settings.PLAYED_URL}
    roles["cache"] = settings.CACHE_URL
    return {role: url for role, url in roles.items() if url.startswith(("redis://", "rediss://", "unix://"))}


def primaries() -> list[tuple[str, str]]:
    """Role and address of each server, and of each primary of a cluster."""
    found = [*redis_roles().items()]
    if names_cluster(settings.REDIS_URL):
        with suppress(redis.RedisError), closing(client_of(settings.REDIS_URL, WAIT_SECONDS)) as client:
            assert isinstance(client, Cluster)  # noqa: S101 (its address says so)
            (slots,) = client.execute_many([("CLUSTER", "SLOTS")])
            places = {(str(primary[0], "ascii"), primary[1]) for _, _, primary, *_ in slots}
            found += [("feeds", client.address.url_of(host, port)) for host, port in sorted(places)]
    return found


def feeds_cluster() -> Findings:
    """Check the cluster and each primary."""
    client = client_of(settings.REDIS_URL, WAIT_SECONDS)
    assert isinstance(client, Cluster)  # noqa: S101 (its address says so)
    with closing(client):
        (slots,) = client.execute_many([("CLUSTER", "SLOTS")])
        shards = {(str(primary[0], "ascii"), primary[1]): len(replicas) for _, _, primary, *replicas in slots}
        covered = sum(
            _own_slots(client.address.url_of(host, port), name)
            for host, port, name in {(str(primary[0], "ascii"), *primary[1:3]) for _, _, primary, *_ in slots}
        )
        yield make_finding(
            "feeds slots",
            f"{covered} of {REDIS_CLUSTER_HASH_SLOTS} are served",
            error=covered < REDIS_CLUSTER_HASH_SLOTS,
            todo="Run `valkey-cli --cluster fix`. PostgreSQL serves the readers of the other slots until then.",
        )
        alone = [f"{host}:{port}" for (host, port), replicas in shards.items() if not replicas]
        yield make_finding(
            "feeds replicas",
            f"{len(shards)} primaries, {sum(shards.values())} replicas"
            + (f"; none of {', '.join(alone)}" * bool(alone)),
            warning=bool(alone),
            todo="Add a replica to each primary (valkey-cli --cluster add-node --cluster-slave) for failover.",
        )
        urls = {f"{host}:{port}": client.address.url_of(host, port) for host, port in shards}
    for place, url in urls.items():
        for finding in redis_server("feeds", url):
            finding.name += f" of {place}"
            yield finding


def _own_slots(url: str, name: bytes) -> int:
    """How many slots a primary has, by its own word. Others may not know that it has lost some."""
    with client_of(url, WAIT_SECONDS) as client:
        try:
            slots = client.execute_command("CLUSTER SLOTS")
        except (redis.ConnectionError, redis.TimeoutError):
            return 0  # `redis_server` reports it
    return sum(last + 1 - first for first, last, primary, *_ in slots if primary[2] == name)


def play_store() -> Findings:
    """Check Kvrocks, or a Redis with persistence."""
    with client_of(settings.PLAYED_STORE_URL, WAIT_SECONDS) as client:
        info: dict[str, Any] = client.info()
    if "kvrocks_version" in info:
        yield _version("play store", info)
        return
    yield from redis_server("play store", settings.PLAYED_STORE_URL)


def redis_server(role: str, url: str) -> Findings:
    """Check a server's version, memory, persistence and eviction for its role."""
    client = client_of(url, WAIT_SECONDS)
    with client:
        info: dict[str, Any] = client.info()
        yield _version(role, info)
        yield make_finding(
            f"{role} role",
            info["role"],
            error=info["role"] != "master",
            todo="Set the address of the primary: a replica accepts no writes.",
        )
        took = min(_call_seconds(client.ping) for _ in range(5))
        yield make_finding(
            f"{role} latency",
            f"{1000 * took:.1f} ms",
            error=took > settings.REDIS_TIMEOUT_SECONDS,
            warning=took > 0.005,
            todo="Find what keeps it busy (SLOWLOG GET), or move it closer to this machine.",
        )
        began = time.time()
        seconds, microseconds = client.time()
        yield clock(f"{role} clock", seconds + microseconds / 1e6, began, time.time())
        try:
            values = {str(name): str(value) for name, value in client.config_get("*").items()}
        except redis.ResponseError:
            yield make_finding(
                f"{role} settings",
                "cannot be read: CONFIG is refused",
                warning=True,
                todo="Check them by hand: docs/servers.md.",
            )
            return
    yield from _memory(role, info, values)
    if role == "feeds":
        yield from _feeds_settings(values)
        if info.get("cluster_enabled"):
            yield _cluster_node_settings(values)
    if role in DURABLE:
        yield from _durability(role, values)
    if role == "plays":
        yield _plays_server_sharing(url)


def _durability(role: str, values: dict[str, str]) -> Findings:
    kept, fsync = values.get("appendonly") == "yes", values.get("appendfsync", "")
    yield make_finding(
        f"{role} appendonly",
        values.get("appendonly", ""),
        error=not kept and role != "broker",
        warning=not kept,
        todo=f"Set appendonly yes. If the server is killed, {DURABLE[role]}.",
    )
    wanted = "always" if role == "plays" else "everysec"
    yield make_finding(
        f"{role} appendfsync",
        fsync,
        warning=fsync not in (wanted, "always"),
        todo=f"Set appendfsync {wanted}. If the machine fails, {DURABLE[role]}.",
    )


def _plays_server_sharing(url: str) -> Finding:
    shared = [
        other
        for other, theirs in redis_roles().items()
        if other != "plays" and _server_identity(theirs) == _server_identity(url)
    ]
    return make_finding(
        "plays server",
        f"is shared with {' and '.join(shared)}" if shared else "is not shared",
        warning=bool(shared),
        todo="Run a separate server for plays and set FEEDSITE_PLAYED_URL: docs/servers.md.",
    )


def _server_identity(url: str) -> tuple[str | None, int | None, str]:
    parts = urlsplit(url)
    return parts.hostname, parts.port, parts.path if parts.scheme == "unix" else ""


def _version(role: str, info: dict[str, Any]) -> Finding:
    if kvrocks := info.get("kvrocks_version"):  # it also reports an old Redis version
        return make_finding(f"{role} version", f"Kvrocks {kvrocks}")
    valkey = info.get("valkey_version")
    name, text, least = ("Valkey", valkey, (7, 2)) if valkey else ("Redis", info["redis_version"], (7, 0))
    having = tuple(int(part) for part in str(text).split(".")[:2])
    return make_finding(
        f"{role} version",
        f"{name} {text}",
        error=having < least,
        todo=f"Upgrade to {name} {least[0]}.{least[1]} or newer. The site uses {WHY_REDIS}.",
    )


def _memory(role: str, info: dict[str, Any], values: dict[str, str]) -> Findings:
    policy, allowed, used = (
        values.get("maxmemory-policy", ""),
        int(values.get("maxmemory", 0)),
        int(info["used_memory"]),
    )
    if role in DURABLE:
        yield make_finding(
            f"{role} maxmemory-policy",
            policy,
            error=policy != "noeviction",
            todo="Set maxmemory-policy noeviction. This server must never evict data.",
        )
    elif role == "cache":
        yield make_finding(
            f"{role} maxmemory-policy",
            policy,
            warning=policy != "noeviction",
            todo="Set FEEDSITE_CACHE_URL to a server with noeviction. Eviction resets rate limits.",
        )
    else:
        yield make_finding(
            f"{role} maxmemory-policy",
            policy,
            warning=policy != "allkeys-lru",
            todo="Set maxmemory-policy allkeys-lru. All data here can be rebuilt, so old data may be evicted.",
        )
        yield make_finding(
            f"{role} maxmemory",
            f"{allowed // 2**20} MB" if allowed else "unlimited",
            warning=not allowed,
            todo="Set maxmemory below the machine's memory. Otherwise the kernel kills the server when memory is full.",
        )
    full = bool(allowed) and used > 0.9 * allowed and policy == "noeviction"
    yield make_finding(
        f"{role} memory",
        f"{used / 2**20:.1f} MB used" + (f" of {allowed / 2**20:.1f} MB" if allowed else ""),
        error=full,
        todo=f"Raise maxmemory. It refuses writes{' soon' * (used < allowed)}: {SMALLER_FAULTS}.",
    )


def _feeds_settings(values: dict[str, str]) -> Findings:
    entries = int(values.get("zset-max-listpack-entries") or values.get("zset-max-ziplist-entries") or 0)
    needed = settings.LEVEL_CAPS[2] + settings.WINDOW_SLACK
    yield make_finding(
        "feeds zset-max-listpack-entries",
        str(entries),
        warning=entries <= needed,
        todo="Set zset-max-listpack-entries 512. Inboxes use three times the memory now.",
    )
    saved = values.get("save", "") != "" or values.get("appendonly") == "yes"
    yield make_finding(
        "feeds persistence",
        "is on" if saved else "is off",
        warning=saved,
        todo='Set save "" and appendonly no. Saved data is not used after a restart, and saving costs time.',
    )


def _cluster_node_settings(values: dict[str, str]) -> Finding:
    whole = values.get("cluster-require-full-coverage") == "yes"
    return make_finding(
        "feeds cluster-require-full-coverage",
        "yes" if whole else "no",
        warning=whole,
        todo="Set it to no. With yes, one failed node stops the whole cluster.",
    )


def _call_seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
