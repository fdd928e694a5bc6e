"""Rate limits: one counter for each caller and scope, on the cache server.

A slot begins with its first call. At the edge of two slots up to twice the limit may pass.

A request is counted (`CountedCall`) before PostgreSQL says whose token or session it carries. A valid credential leaves
a mark with its user, whose counter is then used. Without a mark it counts as an attempt of its address (scope
`attempt`), which is taken back if it proves valid. So an address with bad tokens is refused without a query, and users
with marks behind it go on.

See docs/decisions.md: Own code in place of a library.
"""

import hashlib
import ipaddress
import math
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import redis
from django.conf import settings
from django.http import HttpRequest

from runtime import metrics
from runtime.rate_table import parse_rate
from storage import keys
from storage.connections import cache_breaker, client_of, pipelined, register_script

PLAIN_LENGTH = 64
GUARDED = frozenset(
    {
        "login",
        "login_address",
        "login_name",
        "login_devices",
        "login_code",
        "password",
        "signup",
        "signup_day",
        "signup_network",
        "invite",
        "invite_mail",
        "invite_address",
        "reset",
        "reset_name",
        "email",
        "outside_member",
        "outside_host",
        "push_test",
    }
)
"""Counted per process when the cache server is down, so password guessing and waiting for strangers stay limited."""
OWN_SLOTS = 10_000
"""The most slots that a process keeps then."""

ATTEMPT = "attempt"
"""The scope for credentials without a mark, by address."""
MARK_SECONDS = 7 * 86_400
"""How long a mark lasts after the credential's last call."""

# Returns the milliseconds to wait (0: may pass), the slot's calls, and its remaining milliseconds. Repairs a counter
# without an expiry.
_COUNT = """
local function count(key, most, period, cost)
    local calls = redis.call('INCRBY', key, cost)
    local left = redis.call('PTTL', key)
    if left < 0 then
        redis.call('PEXPIRE', key, period)
        left = tonumber(period)
    end
    if calls <= tonumber(most) then return {0, calls, left} end
    if tonumber(cost) > 1 then redis.call('DECRBY', key, cost) end
    return {math.max(left, 1), calls, left}
end
"""
COUNT = register_script(f"{_COUNT} return count(KEYS[1], ARGV[1], ARGV[2], ARGV[3])")
# Counts in the counters KEYS up to the first that refuses, and returns the milliseconds to wait. ARGV: each one's rate.
COUNT_IN_TURN = register_script(f"""{_COUNT}
for place, key in ipairs(KEYS) do
    local wait = count(key, ARGV[2 * place - 1], ARGV[2 * place], 1)[1]
    if wait > 0 then return wait end
end
return 0
""")
# A later slot may have fewer calls. A negative counter would let too many pass.
GIVE_BACK = register_script("""
local counted = tonumber(redis.call('GET', KEYS[1]) or 0)
return counted > 0 and redis.call('DECRBY', KEYS[1], math.min(counted, tonumber(ARGV[1])))
""")
# Counts for the user in the mark KEYS[1], in the counter with the prefix ARGV[2], else an attempt, KEYS[2].
COUNT_CREDENTIAL = register_script(f"""{_COUNT}
local user = redis.call('GETEX', KEYS[1], 'PX', ARGV[1])
if user then return {{user, count(ARGV[2] .. user, ARGV[3], ARGV[4], 1)}} end
return {{'', count(KEYS[2], ARGV[5], ARGV[6], 1)}}
""")
# Writes the mark KEYS[1], takes back the attempt KEYS[2], and counts the call for the user, KEYS[3].
VOUCH = register_script(f"""{_COUNT}
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
if ARGV[5] == '1' and tonumber(redis.call('GET', KEYS[2]) or 0) > 0 then redis.call('DECR', KEYS[2]) end
return count(KEYS[3], ARGV[3], ARGV[4], 1)
""")


class ProcessSlots:
    """The counters of this process. If they are too many, drops those that end first."""

    def __init__(self, size: int = OWN_SLOTS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._slots: dict[str, tuple[int, float]] = {}

    def count(self, key: str, calls: int, seconds: int, cost: int = 1) -> float | None:
        """Count a call as `cost` calls. None if it may pass, else the seconds to wait. As `COUNT` does."""
        now = time.monotonic()
        with self._lock:
            counted, end = self._slots.get(key, (0, 0.0))
            if end <= now:
                counted, end = 0, now + seconds
                self._make_room(now)
            if counted + cost <= calls or cost == 1:
                self._slots[key] = counted + cost, end
        return None if counted + cost <= calls else end - now

    def refund(self, key: str, cost: int) -> None:
        """Take back counted calls. As `GIVE_BACK` does."""
        with self._lock:
            if key in self._slots:
                counted, end = self._slots[key]
                self._slots[key] = max(0, counted - cost), end

    def _make_room(self, now: float) -> None:
        if len(self._slots) >= self._size:
            ends = sorted(self._slots, key=lambda key: self._slots[key][1])
            for key in ends[: max(1, self._size // 10)]:
                del self._slots[key]

    def clear(self) -> None:
        """Delete all counts."""
        with self._lock:
            self._slots.clear()


own = ProcessSlots()


class Slot(NamedTuple):
    """A caller's remaining calls of a rate."""

    limit: int
    remaining: int
    ends: float
    """When the slot ends, in seconds since 1970."""


class CountResult(NamedTuple):
    """The result of counting a call. Has no slot without the cache server."""

    wait: float | None = None
    """Seconds to wait; None if the call may pass."""
    slot: Slot | None = None

    @classmethod
    def of(cls, scope: str, answer: Sequence[Any]) -> "CountResult":
        """Parse a script's reply."""
        wait, calls, left = map(int, answer)
        most, _seconds = limit(scope)
        return cls(wait / 1000 if wait else None, Slot(most, max(0, most - calls), time.time() + left / 1000))


@cache
def _client() -> redis.Redis:
    return client_of(settings.CACHE_URL, settings.REDIS_TIMEOUT_SECONDS)


def limit(scope: str) -> tuple[int, int]:
    """A rate's number of calls, scaled by `RATE_SCALE`, and its period in seconds."""
    calls, seconds = parse_rate(settings.RATES[scope])
    return max(1, math.floor(calls * settings.RATE_SCALE)), seconds


def hit(scope: str, who: str, cost: int = 1) -> float | None:
    """Count a call as `cost` calls. None if it may pass, else the seconds to wait.

    Refused costs above 1 are taken back. Without the cache server only `GUARDED` scopes are counted, by each process.
    """
    return hit_each(scope, {who: cost}).get(who)


def hit_in_turn(callers: Sequence[tuple[str, str]]) -> float | None:
    """Count a call in each of these scopes and callers, up to the first that refuses. One round trip.

    None if it may pass, else the seconds to wait. Those behind the one that refused do not count the call.
    """
    names = [_counter_key(scope, who) for scope, who in callers]
    limits = [number for scope, _ in callers for number in _limit_ms(scope)]
    wait = _execute("EVALSHA", COUNT_IN_TURN, len(names), *names, *limits)
    if wait is None:
        waits = (_hit_process(scope, who) for scope, who in callers)
        return next((seconds for seconds in waits if seconds is not None), None)
    return wait / 1000 if wait else None


def hit_each(scope: str, costs: Mapping[str, int]) -> dict[str, float]:
    """Count calls of several callers. Returns the seconds to wait of those who are refused."""
    found = zip(costs, _count_each(scope, costs), strict=True)
    return {who: counted.wait for who, counted in found if counted.wait is not None}


def _count_each(scope: str, costs: Mapping[str, int]) -> list[CountResult]:
    calls, period = _limit_ms(scope)
    counting = [("EVALSHA", COUNT, 1, _counter_key(scope, who), calls, period, cost) for who, cost in costs.items()]
    answers = _execute_all(counting)
    if answers is None:
        return [CountResult(_hit_process(scope, who, cost)) for who, cost in costs.items()]
    return [CountResult.of(scope, answer) for answer in answers]


def refund_each(scope: str, costs: Mapping[str, int]) -> None:
    """Take back counted calls that were refused for another reason."""
    if _execute_all([("EVALSHA", GIVE_BACK, 1, _counter_key(scope, who), cost) for who, cost in costs.items()]) is None:
        for who, cost in costs.items():
            own.refund(_counter_key(scope, who), cost)


class CountedCall:
    """One request, counted before it is answered. `wait`: None if it may go on, else the seconds to wait.

    `credential`: the token or session, which only PostgreSQL can check. `user`: the id, if proven without a query (a
    signed ticket).
    """

    def __init__(self, scope: str, address: str, *, credential: str = "", user: int | None = None) -> None:
        self.slots: list[Slot] = []
        """The rates that counted the request. Empty while the cache server does not answer."""
        self._scope = scope
        self._address = address
        self._credential = credential if user is None else ""
        self._marked: int | None = None
        self._is_counted = True
        self.wait = (
            self._count_credential() if self._credential else self._count(scope, address if user is None else str(user))
        )

    @property
    def is_marked(self) -> bool:
        """Whether the credential had a mark, so its user is known."""
        return self._marked is not None

    @property
    def scarcest(self) -> Slot | None:
        """The slot with the fewest calls left."""
        return min(self.slots, key=lambda slot: (slot.remaining, -slot.ends), default=None)

    def prove(self, user: int | None) -> float | None:
        """Tell whose credential it was (None: nobody's). Returns None if the call may go on, else the seconds to
        wait.
        """
        if not self._credential:
            return None
        if not self._is_counted:  # the cache server did not answer
            return None if user is None else _hit_process(self._scope, str(user))
        marked, self._marked = self._marked, user
        if user == marked:
            return None
        self.slots.clear()  # another caller's
        if user is None:  # the credential was marked, but has ended since
            _execute("DEL", _mark_key(self._credential))
            return self._count(ATTEMPT, self._address)
        names = _mark_key(self._credential), _counter_key(ATTEMPT, self._address), _counter_key(self._scope, str(user))
        rest = MARK_SECONDS * 1000, user, *_limit_ms(self._scope), int(marked is None)
        answer = _execute("EVALSHA", VOUCH, len(names), *names, *rest)
        return self._noted(CountResult.of(self._scope, answer)) if answer is not None else None

    def count_as_attempt(self) -> float | None:
        """Count an attempt of the address instead of the user's call. None if the call may go on, else the seconds to
        wait.

        So a restricted app cannot use up its user's calls.
        """
        if self._marked is not None:
            refund_each(self._scope, {str(self._marked): 1})
        self.slots.clear()
        return self._count(ATTEMPT, self._address)

    def count_as_stranger(self) -> float | None:
        """Count the call for the address instead of the user. None if it may go on, else the seconds to wait."""
        if self._marked is not None:
            refund_each(self._scope, {str(self._marked): 1})
            self.slots.clear()
        return self._count(self._scope, self._address) if self._credential and self._is_counted else None

    def _count_credential(self) -> float | None:
        names = _mark_key(self._credential), _counter_key(ATTEMPT, self._address)
        rest = MARK_SECONDS * 1000, keys.rate(self._scope, ""), *_limit_ms(self._scope), *_limit_ms(ATTEMPT)
        found = _execute("EVALSHA", COUNT_CREDENTIAL, len(names), *names, *rest)
        if found is None:
            self._is_counted = False
            return None
        user, answer = found
        self._marked = int(user) if user else None
        return self._noted(CountResult.of(self._scope if user else ATTEMPT, answer))

    def _count(self, scope: str, who: str) -> float | None:
        return self._noted(_count_each(scope, {who: 1})[0])

    def _noted(self, counted: CountResult) -> float | None:
        if counted.slot is not None:
            self.slots.append(counted.slot)
        return counted.wait


class ClaimingAuthenticator:
    """Base of authenticators that name the credential before PostgreSQL checks it, so that the request is counted
    first.
    """

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The credential, and the user's id if proven without a query."""
        raise NotImplementedError


def mark_credential(credential: str, user: int) -> None:
    """Mark a credential that was just issued."""
    _execute("SET", _mark_key(credential), user, "PX", MARK_SECONDS * 1000)


def token_credential(token: str) -> str:
    """A token as the credential of a `CountedCall`."""
    return f"token {token}"


def session_credential(cookies: Mapping[str, str]) -> str:
    """The session as a credential, or empty."""
    key = cookies.get(settings.SESSION_COOKIE_NAME, "")
    return key and f"session {key}"


def _limit_ms(scope: str) -> tuple[int, int]:
    calls, seconds = limit(scope)
    return calls, seconds * 1000


def _hit_process(scope: str, who: str, cost: int = 1) -> float | None:
    return own.count(_counter_key(scope, who), *limit(scope), cost) if scope in GUARDED else None


def _execute(*command: Any) -> Any:
    answers = _execute_all([command])
    return None if answers is None else answers[0]


def _execute_all(commands: Sequence[tuple[Any, ...]]) -> list[Any] | None:
    """Send commands to the cache server. None on an error."""
    if not commands:
        return []
    try:
        with cache_breaker.guard(settings.REDIS_TIMEOUT_SECONDS):
            return pipelined(_client(), commands)
    except redis.ResponseError:
        metrics.cache_refused.inc()
        return None
    except (redis.RedisError, OSError):
        return None


def _counter_key(scope: str, who: str) -> str:
    return keys.rate(scope, who if len(who) <= PLAIN_LENGTH and who.isascii() else _digest(who))


def _mark_key(credential: str) -> str:
    return keys.credential(_digest(credential))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def address(request: HttpRequest) -> str:
    """The caller's IP address (web.proxy), or the /64 of an IPv6 address, which is one customer's."""
    return client_network(request.META.get("REMOTE_ADDR", ""))


@lru_cache(4096)
def network(address: str) -> str:
    """The /24 of an IPv4 address, or the /48 of an IPv6 one. Keeps other text."""
    try:
        found = ipaddress.ip_interface(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network(f"{found.ip}/{24 if found.version == 4 else 48}", strict=False))


@lru_cache(4096)
def client_network(text: str) -> str:
    """An IPv4 address, or the /64 of an IPv6 one. Keeps other text."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(found) >> 64 << 64)}/64"
