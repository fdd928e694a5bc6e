"""How often one caller may do one thing: a counter a caller and scope, on the cache server.

A slot begins with its first call and lives for the rate's period; one Lua script counts and dates it, so that
no number of concurrent calls passes more than the limit. The rates are settings (`RATES`); `RATE_SCALE` multiplies
them all.
"""

import hashlib
import math
from functools import cache, lru_cache
from typing import cast

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.retry import Retry

from feedsite import keys
from feedsite.connections import Breaker

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
PLAIN_LENGTH = 64

# Milliseconds to wait, 0 if the call may pass. A counter without a life (PTTL < 0) is given one, whatever made it.
COUNT = """
local calls = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    left = tonumber(ARGV[2])
end
if calls <= tonumber(ARGV[1]) then return 0 end
return math.max(left, 1)
"""

breaker = Breaker()


@cache
def _count() -> Script:
    client = redis.Redis.from_url(
        settings.CACHE_URL,
        protocol=2,
        socket_timeout=settings.REDIS_TIMEOUT,
        socket_connect_timeout=settings.REDIS_TIMEOUT,
        # A connection that the server closed is replaced once; a time-out is never tried again.
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    )
    return client.register_script(COUNT)


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


def hit(scope: str, who: str) -> float | None:
    """Count one call; None if it may pass, else the seconds to wait.

    Without the cache server every call passes: a rate limit is no reason to be down. One call a second finds out.
    """
    if breaker.is_open:
        return None
    calls, seconds = limit(scope)
    if len(who) > PLAIN_LENGTH or not who.isascii():
        who = hashlib.blake2b(who.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    try:
        wait = cast("int", _count()(keys=[keys.rate(scope, who)], args=[calls, seconds * 1000]))
    except (redis.RedisError, OSError):
        breaker.trip()
        return None
    return wait / 1000 if wait else None


def address(request: HttpRequest) -> str:
    """The caller's IP address; behind `settings.PROXIES` proxies, the one that the outermost of them saw.

    Only as many addresses of X-Forwarded-For are believed as there are proxies: a caller may write what they
    like before them.
    """
    seen: str = request.META.get("REMOTE_ADDR", "")
    if not settings.PROXIES:
        return seen
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    return forwarded[-min(settings.PROXIES, len(forwarded))] if forwarded else seen


def login_key(request: HttpRequest, username: str) -> str:
    """Whom the scope `login` counts: one address trying one name, however it is written."""
    return f"{address(request)} {username.lower()}"
