"""How often one caller may do one thing: a counter a caller and scope, on the cache server.

A slot begins with its first call and lives for the rate's period; one Lua script counts and dates it, so that
no number of concurrent calls passes more than the limit. Over the edge between two slots twice the limit may
come close together, never more in any period. runtime/rate_table.py has the rates, `FEEDSITE_RATES` replaces single
ones, and `FEEDSITE_RATE_SCALE` multiplies them all.

A request is counted before anything else is done for it (`Call`), and so before PostgreSQL says whose token or session
it carries. A credential that was good leaves a mark, which names its user: by it the user's own counter is found. A
credential without a mark counts as an attempt of its address (scope `attempt`), which is taken back when it proves to
be good. So an address that tries bad tokens is refused at its limit without a query, and the users behind the same
address, whose credentials are marked, go on. A mark proves nothing: PostgreSQL is asked whether the credential is good.

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
from storage.connections import cache_breaker, client_of, pipelined, script

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
    }
)
"""Scopes that each process counts by itself while the cache server is gone: guessing shall not be free then."""
OWN_SLOTS = 10_000
"""Slots that a process keeps meanwhile."""

ATTEMPT = "attempt"
"""The scope of credentials that are not known to be good, by address."""
MARK_SECONDS = 7 * 86_400
"""How long a credential is remembered after its last call."""

# Milliseconds to wait (0: the call may pass), calls of the slot, milliseconds that it has left. A counter without a
# life (PTTL < 0) is given one, whatever made it.
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
COUNT = script(f"{_COUNT} return count(KEYS[1], ARGV[1], ARGV[2], ARGV[3])")
# The slot may be a later one, in which less was counted: below zero it would let more pass than the limit.
GIVE_BACK = script("""
local counted = tonumber(redis.call('GET', KEYS[1]) or 0)
return counted > 0 and redis.call('DECRBY', KEYS[1], math.min(counted, tonumber(ARGV[1])))
""")
# For the user that the mark (KEYS[1]) names, in the counter whose key begins with ARGV[2]; without a mark as an attempt
# (KEYS[2]).
COUNT_CREDENTIAL = script(f"""{_COUNT}
local user = redis.call('GETEX', KEYS[1], 'PX', ARGV[1])
if user then return {{user, count(ARGV[2] .. user, ARGV[3], ARGV[4], 1)}} end
return {{'', count(KEYS[2], ARGV[5], ARGV[6], 1)}}
""")
# The credential is good: its mark (KEYS[1]) names the user, the attempt (KEYS[2]) is taken back, the call is the
# user's (KEYS[3]).
VOUCH = script(f"""{_COUNT}
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
if ARGV[5] == '1' and tonumber(redis.call('GET', KEYS[2]) or 0) > 0 then redis.call('DECR', KEYS[2]) end
return count(KEYS[3], ARGV[3], ARGV[4], 1)
""")


class OwnSlots:
    """The counters of one process, in memory, of limited number: where it is full, the slots that end first go."""

    def __init__(self, size: int = OWN_SLOTS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._slots: dict[str, tuple[int, float]] = {}

    def count(self, key: str, calls: int, seconds: int) -> float | None:
        """Count a call in the slot of `key`; None if the rate allows it, else the seconds until the slot ends."""
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
        """Forget all counts."""
        with self._lock:
            self._slots.clear()


own = OwnSlots()


class Slot(NamedTuple):
    """The calls that one caller has left of a rate."""

    limit: int
    remaining: int
    ends: float
    """When counting begins anew, in seconds since 1970."""


class Counted(NamedTuple):
    """A call that was counted. Without the cache server it has no slot."""

    wait: float | None = None
    """Seconds to wait; None if the call may pass."""
    slot: Slot | None = None

    @classmethod
    def of(cls, scope: str, answer: Sequence[Any]) -> "Counted":
        """The count that the scripts answer."""
        wait, calls, left = map(int, answer)
        most, _seconds = limit(scope)
        return cls(wait / 1000 if wait else None, Slot(most, max(0, most - calls), time.time() + left / 1000))


@cache
def _client() -> redis.Redis:
    return client_of(settings.CACHE_URL, settings.REDIS_TIMEOUT_SECONDS)


def limit(scope: str) -> tuple[int, int]:
    """Calls that `scope` allows, scaled, and the seconds that they are counted in."""
    calls, seconds = parse_rate(settings.RATES[scope])
    return max(1, math.floor(calls * settings.RATE_SCALE)), seconds


def hit(scope: str, who: str, cost: int = 1) -> float | None:
    """Count one call, as `cost` of the rate's; None if it may pass, else the seconds to wait. A refused call of more
    than one costs nothing.

    Without the cache server reading and writing go on uncounted: a rate limit is no reason to be down. The rates that
    guard passwords (`GUARDED`) are counted by each process for itself then. One call a second finds out.
    """
    return hit_each(scope, {who: cost}).get(who)


def hit_each(scope: str, costs: Mapping[str, int]) -> dict[str, float]:
    """Count calls of several callers, each with its cost (`hit`), in one round trip. Returns the seconds to wait of
    those refused.
    """
    found = zip(costs, _count_each(scope, costs), strict=True)
    return {who: counted.wait for who, counted in found if counted.wait is not None}


def _count_each(scope: str, costs: Mapping[str, int]) -> list[Counted]:
    calls, period = _limit_ms(scope)
    counting = [("EVALSHA", COUNT, 1, _counter(scope, who), calls, period, cost) for who, cost in costs.items()]
    answers = _ask_all(counting)
    if answers is None:
        return [Counted(_hit_own(scope, who)) for who in costs]
    return [Counted.of(scope, answer) for answer in answers]


def give_back_each(scope: str, costs: Mapping[str, int]) -> None:
    """Take back what `hit_each` counted for calls that were then refused for another reason; no counter falls below
    zero.
    """
    _ask_all([("EVALSHA", GIVE_BACK, 1, _counter(scope, who), cost) for who, cost in costs.items()])


class Call:
    """One request, counted before it is answered: `wait` is None if it may go on, else the seconds to wait.

    Args:
        scope: The rate that the request falls under.
        address: Where it comes from (`address`).
        credential: The token or session that it carries, which only PostgreSQL can check; empty without one.
        user: The id of its user, where that is proven without a query (a signed ticket).
    """

    def __init__(self, scope: str, address: str, *, credential: str = "", user: int | None = None) -> None:
        self.slots: list[Slot] = []
        """The rest of each rate that counts the request; empty while the cache server does not answer."""
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
        """Whether the credential was good lately."""
        return self._marked is not None

    @property
    def scarcest(self) -> Slot | None:
        """The rate with the fewest calls left, of those that count the request."""
        return min(self.slots, key=lambda slot: (slot.remaining, -slot.ends), default=None)

    def prove(self, user: int | None) -> float | None:
        """Note the user whom PostgreSQL knows by the credential, None where there is none.

        Returns None if the call may go on, else the seconds to wait. Asks the cache server only where the mark says
        otherwise.
        """
        if not self._credential:
            return None
        if not self._is_counted:  # the cache server did not answer
            return None if user is None else _hit_own(self._scope, str(user))
        marked, self._marked = self._marked, user
        if user == marked:
            return None
        self.slots.clear()  # they are of another caller
        if user is None:  # the token or session has ended since it was marked
            _ask("DEL", _mark(self._credential))
            return self._count(ATTEMPT, self._address)
        names = _mark(self._credential), _counter(ATTEMPT, self._address), _counter(self._scope, str(user))
        rest = MARK_SECONDS * 1000, user, *_limit_ms(self._scope), int(marked is None)
        answer = _ask("EVALSHA", VOUCH, len(names), *names, *rest)
        return self._noted(Counted.of(self._scope, answer)) if answer is not None else None

    def as_attempt(self) -> float | None:
        """Count a call that its credential does not open as an attempt of its address, and give it back to the user: an
        app with few scopes shall use up none of what its user may do.

        Returns None if the call may go on, else the seconds to wait.
        """
        if self._marked is not None:
            give_back_each(self._scope, {str(self._marked): 1})
        self.slots.clear()
        return self._count(ATTEMPT, self._address)

    def as_stranger(self) -> float | None:
        """Count a call that is answered as a stranger's though it carries a credential, as its address's. A user whose
        credential it is gets it back.

        Returns None if the call may go on, else the seconds to wait.
        """
        if self._marked is not None:
            give_back_each(self._scope, {str(self._marked): 1})
            self.slots.clear()
        return self._count(self._scope, self._address) if self._credential and self._is_counted else None

    def _count_credential(self) -> float | None:
        names = _mark(self._credential), _counter(ATTEMPT, self._address)
        rest = MARK_SECONDS * 1000, keys.rate(self._scope, ""), *_limit_ms(self._scope), *_limit_ms(ATTEMPT)
        found = _ask("EVALSHA", COUNT_CREDENTIAL, len(names), *names, *rest)
        if found is None:
            self._is_counted = False
            return None
        user, answer = found
        self._marked = int(user) if user else None
        return self._noted(Counted.of(self._scope if user else ATTEMPT, answer))

    def _count(self, scope: str, who: str) -> float | None:
        return self._noted(_count_each(scope, {who: 1})[0])

    def _noted(self, counted: Counted) -> float | None:
        if counted.slot is not None:
            self.slots.append(counted.slot)
        return counted.wait


class Claimed:
    """An authenticator of the API whose requests are counted before it asks PostgreSQL about them."""

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The credential that a request carries for it (as of `Call`), and the id of the user whom it proves without a
        query; empty and None where it carries none.
        """
        raise NotImplementedError


def mark(credential: str, user: int) -> None:
    """Note a credential that the site has just given to a user."""
    _ask("SET", _mark(credential), user, "PX", MARK_SECONDS * 1000)


def token_credential(token: str) -> str:
    """A token as the credential of a `Call`."""
    return f"token {token}"


def session_credential(cookies: Mapping[str, str]) -> str:
    """The session that the cookies of a request name, as the credential of a `Call`; empty without one."""
    key = cookies.get(settings.SESSION_COOKIE_NAME, "")
    return key and f"session {key}"


def _limit_ms(scope: str) -> tuple[int, int]:
    calls, seconds = limit(scope)
    return calls, seconds * 1000


def _hit_own(scope: str, who: str) -> float | None:
    """Count a call (`hit`) in this process alone."""
    return own.count(_counter(scope, who), *limit(scope)) if scope in GUARDED else None


def _ask(*command: Any) -> Any:
    """The cache server's answer, None while it does not answer."""
    answers = _ask_all([command])
    return None if answers is None else answers[0]


def _ask_all(commands: Sequence[tuple[Any, ...]]) -> list[Any] | None:
    """The cache server's answers, in one round trip; None while it does not answer."""
    if not commands:
        return []
    try:
        with cache_breaker.asking(settings.REDIS_TIMEOUT_SECONDS):
            return pipelined(_client(), commands)
    except redis.ResponseError:
        metrics.cache_refused.inc()
        return None
    except (redis.RedisError, OSError):
        return None


def _counter(scope: str, who: str) -> str:
    return keys.rate(scope, who if len(who) <= PLAIN_LENGTH and who.isascii() else _digest(who))


def _mark(credential: str) -> str:
    return keys.credential(_digest(credential))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def address(request: HttpRequest) -> str:
    """The caller's IP address (web.proxy), or the /64 that one IPv6 customer has."""
    return customer(request.META.get("REMOTE_ADDR", ""))


@lru_cache(4096)
def network(address: str) -> str:
    """The network of an `address`: the /24 of IPv4, the /48 of IPv6; whatever is no address stays as it is."""
    try:
        found = ipaddress.ip_interface(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network(f"{found.ip}/{24 if found.version == 4 else 48}", strict=False))


@lru_cache(4096)
def customer(text: str) -> str:
    """The address, or the /64 of an IPv6 address; whatever is no address stays as it is."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(found) >> 64 << 64)}/64"
