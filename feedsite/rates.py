"""How often one caller may do one thing: a counter a caller and scope, on the cache server.

A slot begins with its first call and lives for the rate's period; one Lua script counts and dates it, so that
no number of concurrent calls passes more than the limit. Over the edge between two slots twice the limit may
come close together, never more in any period. The rates are settings (`RATES`); `RATE_SCALE` multiplies them all.
"""

import hashlib
import ipaddress
import math
import threading
import time
from functools import cache, lru_cache

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from feedsite import keys
from feedsite.breaker import Breaker
from feedsite.connections import client_of, pipelined, script

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
PLAIN_LENGTH = 64
GUARDED = frozenset({"login", "login_address", "login_name", "password", "signup"})
"""Scopes that each process counts by itself while the cache server is gone: guessing shall not be free then."""
OWN_SLOTS = 10_000
"""Slots that a process keeps meanwhile."""

# Milliseconds to wait, 0 if the call may pass. A counter without a life (PTTL < 0) is given one, whatever made it.
COUNT = script(
    """
local calls = redis.call('INCRBY', KEYS[1], ARGV[3])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    left = tonumber(ARGV[2])
end
if calls <= tonumber(ARGV[1]) then return 0 end
return math.max(left, 1)
"""
)

breaker = Breaker(name="cache")


class OwnSlots:
    """The counters of one process, in memory, of limited number: where it is full, the slots that end first go."""

    def __init__(self, size: int = OWN_SLOTS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._slots: dict[str, tuple[int, float]] = {}

    def count(self, key: str, calls: int, seconds: int) -> float | None:
        """As `hit`."""
        now = time.monotonic()
        with self._lock:
            counted, end = self._slots.get(key, (0, 0.0))
            if end <= now:
                counted, end = 0, now + seconds
                self._make_room(now)
            self._slots[key] = counted + 1, end
        return None if counted < calls else end - now

    def _make_room(self, now: float) -> None:
        if len(self._slots) >= self._size:
            ends = sorted(self._slots, key=lambda key: self._slots[key][1])
            for key in ends[: max(1, self._size // 10)]:
                del self._slots[key]

    def clear(self) -> None:
        with self._lock:
            self._slots.clear()


own = OwnSlots()


@cache
def _client() -> redis.Redis:
    return client_of(settings.CACHE_URL, settings.REDIS_TIMEOUT)


@lru_cache
def parse(rate: str) -> tuple[int, int]:
    """Calls and seconds of a rate like `20/hour`. Raises ImproperlyConfigured."""
    calls, _, period = rate.partition("/")
    if not (calls.isascii() and calls.isdigit()) or period not in PERIODS:
        raise ImproperlyConfigured(f"{rate!r} is not a rate: write for example 20/hour ({', '.join(PERIODS)}).")
    return int(calls), PERIODS[period]


def limit(scope: str) -> tuple[int, int]:
    """Calls that `scope` allows, scaled, and the seconds that they are counted in."""
    calls, seconds = parse(settings.RATES[scope])
    return max(1, math.floor(calls * settings.RATE_SCALE)), seconds


def hit(scope: str, who: str, cost: int = 1) -> float | None:
    """Count one call, as `cost` of the rate's; None if it may pass, else the seconds to wait.

    Without the cache server reading and writing go on uncounted: a rate limit is no reason to be down. What guards
    passwords (`GUARDED`) is counted by each process for itself then. One call a second finds out.
    """
    calls, seconds = limit(scope)
    if len(who) > PLAIN_LENGTH or not who.isascii():
        who = hashlib.blake2b(who.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    key = keys.rate(scope, who)
    if not breaker.is_open:
        try:
            (wait,) = pipelined(_client(), [("EVALSHA", COUNT, 1, key, calls, seconds * 1000, cost)])
        except (redis.RedisError, OSError):
            breaker.trip()
        else:
            return int(wait) / 1000 if wait else None
    return own.count(key, calls, seconds) if scope in GUARDED else None


def address(request: HttpRequest) -> str:
    """Whose address calls: the caller's IP address (feedsite.proxy), or the /64 that one IPv6 customer has."""
    return _customer(request.META.get("REMOTE_ADDR", ""))


@lru_cache(4096)
def _customer(text: str) -> str:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(found) >> 64 << 64)}/64"
