"""How often one caller may do one thing: a counter a caller and scope, on the cache server.

A slot begins with its first call and lives for the rate's period; one Lua script counts and dates it, so that
no number of concurrent calls passes more than the limit. The rates are settings (`RATES`); `RATE_SCALE` multiplies
them all.
"""

import hashlib
import math
from functools import cache, lru_cache

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from feedsite import keys
from feedsite.connections import Breaker, client_of, pipelined, script

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
PLAIN_LENGTH = 64

# Milliseconds to wait, 0 if the call may pass. A counter without a life (PTTL < 0) is given one, whatever made it.
COUNT = script(
    """
local calls = redis.call('INCR', KEYS[1])
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
        (wait,) = pipelined(_client(), [("EVALSHA", COUNT, 1, keys.rate(scope, who), calls, seconds * 1000)])
    except (redis.RedisError, OSError):
        breaker.trip()
        return None
    return int(wait) / 1000 if wait else None


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
