"""The types of values that the options of the site have (runtime/options.py).

See docs/decisions.md: Code written by hand, and why it stays.
"""

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo

from runtime import bucket_address, cluster_address, mail_address


class Kind(Protocol):
    """A type of values. `parse` raises ValueError, whose message, if any, may be shown even of a secret."""

    @property
    def allowed(self) -> str:
        """Completes the sentence "It must be …"."""

    def parse(self, text: str) -> Any:
        """The value that a text stands for.

        Raises ValueError if the text is not allowed.
        """
        ...


class Whole(NamedTuple):
    """A whole number from `low` to `high`."""

    low: int
    high: int
    unit: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values, for an error's sentence."""
        of = f" of {self.unit}" if self.unit else ""
        return f"a whole number{of} from {self.low} to {self.high}"

    def parse(self, text: str) -> int:
        """The whole number. Raises ValueError if it is no number or out of range."""
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not self.low <= int(text) <= self.high:
            raise ValueError
        return int(text)


class Number(NamedTuple):
    """A number from `low` to `high`, the limits themselves left out where `inside`."""

    low: float
    high: float
    unit: str = ""
    inside: bool = False

    @property
    def allowed(self) -> str:
        """The allowed values, for an error's sentence."""
        of = f" of {self.unit}" if self.unit else ""
        if self.inside:
            return f"a number{of} above {self.low:.12g} and below {self.high:.12g}"
        return f"a number{of} from {self.low:.12g} to {self.high:.12g}"

    def parse(self, text: str) -> float:
        """The number. Raises ValueError if it is no finite number or out of range."""
        if not re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", text, re.IGNORECASE):
            raise ValueError
        number = float(text)
        is_within = self.low < number < self.high if self.inside else self.low <= number <= self.high
        if not math.isfinite(number) or not is_within:
            raise ValueError
        return number


class Switch(NamedTuple):
    """On or off."""

    allowed: str = "1 or 0 (also true, on, yes, y; false, off, no, n)"

    def parse(self, text: str) -> bool:
        """The truth value. Raises ValueError for other words."""
        if text.lower() in ("1", "true", "on", "yes", "y"):
            return True
        if text.lower() in ("0", "false", "off", "no", "n"):
            return False
        raise ValueError


class Choice(NamedTuple):
    """One of a few words, in upper or lower case."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The allowed words, for an error's sentence."""
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def parse(self, text: str) -> str:
        """The word as the table spells it. Raises ValueError for another."""
        for word in self.words:
            if word.lower() == text.lower():
                return word
        raise ValueError


class Text(NamedTuple):
    """Text that `pattern` matches whole."""

    pattern: str = r"[^\0\r\n]+"
    allowed: str = "one line of text"

    def parse(self, text: str) -> str:
        """The text itself. Raises ValueError if it does not match the pattern."""
        if not re.fullmatch(self.pattern, text):
            raise ValueError
        return text


class Zone(NamedTuple):
    """The name of a time zone that this machine knows."""

    allowed: str = "a time zone such as Asia/Shanghai or UTC (the IANA's names)"

    def parse(self, text: str) -> str:
        """The time zone's name. Raises ValueError if the machine knows no such zone."""
        try:
            ZoneInfo(text)
        except (KeyError, OSError) as error:  # no file of this name, or a folder
            raise ValueError from error
        return text


class Listing(NamedTuple):
    """Values with commas between them."""

    kind: Kind

    @property
    def allowed(self) -> str:
        """The allowed values, for an error's sentence."""
        return f"a list with commas, each {self.kind.allowed}"

    def parse(self, text: str) -> list[Any]:
        """The values of the parts between commas. Raises ValueError if one is not allowed."""
        return [self.kind.parse(part.strip()) for part in text.split(",") if part.strip()]


class Address(NamedTuple):
    """The address of a server, in one of the `schemes`; `check` raises ValueError for what else is wrong with it."""

    schemes: tuple[str, ...]
    example: str
    check: Callable[[str], None]

    @property
    def allowed(self) -> str:
        """The allowed schemes and an example, for an error's sentence."""
        schemes = f"{', '.join(self.schemes[:-1])} or {self.schemes[-1]}" if self.schemes[1:] else self.schemes[0]
        return f"an address such as {self.example} ({schemes})"

    def parse(self, text: str) -> str:
        """The address itself. Raises ValueError with the reason if it is not one."""
        found = re.match(r"([a-z][a-z0-9+]{0,20})://", text)
        if not found:
            raise ValueError("it has no scheme")
        if found[1] not in self.schemes:
            raise ValueError(f"it begins with {found[0]}")
        if re.search(r"\s", text):
            raise ValueError("it holds a space")
        self.check(text)
        return text


class Rate(NamedTuple):
    """Calls in a period, as text (`parse_rate`)."""

    allowed: str = "a number of calls, 1 or more, and a period, such as 20/hour (second, minute, hour or day)"

    def parse(self, text: str) -> str:
        """The rate as text, such as `10/minute`. Raises ValueError if it is not one."""
        parse_rate(text)
        return text


PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


@lru_cache
def parse_rate(text: str) -> tuple[int, int]:
    """Calls and seconds of a rate such as `20/hour`. Raises ValueError."""
    calls, _, period = text.partition("/")
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}", calls) or period not in PERIODS:
        raise ValueError
    return int(calls), PERIODS[period]


def database(url: str) -> dict[str, Any]:
    """Django's settings of a connection to the PostgreSQL at `url`, without the engine. Raises ValueError."""
    try:
        import environ  # with parts of Django, which the supervisor does without

        found: dict[str, Any] = environ.Env.db_url_config(url)
    except (ValueError, TypeError):  # its messages repeat parts of the address
        raise ValueError("host or port are malformed") from None
    if not found["NAME"]:
        raise ValueError("it names no database")
    return found


def _check_database(url: str) -> None:
    database(url)


def _check_redis(url: str) -> None:
    """redis-py takes database 0 where it cannot read the number."""
    if cluster_address.names_cluster(url):
        cluster_address.parse(url)
        return
    parts = _split(url)
    if parts.scheme in ("unix", "redis+socket"):
        if not parts.path.strip("/"):
            raise ValueError("it names no socket")
    elif not re.fullmatch(r"/?[0-9]*", parts.path):
        raise ValueError("its database is no number")
    elif not parts.hostname:
        raise ValueError("it names no host")


def _check_broker(url: str) -> None:
    if url.startswith("redis"):
        _check_redis(url)
    elif not _split(url).hostname:
        raise ValueError("it names no host")


def _check_bucket(url: str) -> None:
    bucket_address.parse(url)


def _check_mail(url: str) -> None:
    mail_address.parse(url)


def _check_opensearch(url: str) -> None:
    parts = _split(url)
    if not parts.hostname or parts.query or parts.fragment:
        raise ValueError("it is not like the example")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,199}", parts.path.strip("/")):
        raise ValueError("it ends in no name of small letters, digits, . _ or -")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises where it is no port)
    except ValueError:
        raise ValueError("host or port are malformed") from None
    return parts


_LABEL = r"[A-Za-z0-9-]+"
_NAME = rf"{_LABEL}(\.{_LABEL})*"
HOST = Text(rf"\*|\.?{_NAME}\.?|\[[0-9A-Fa-f:.]+\]", "a host name without scheme and port, .example.org or *")
PLACE = Text(r"[A-Za-z0-9.:_-]+", "a host name or an IP address")
TRUSTED = Text(rf"https?://(\*\.)?({_NAME}|\[[0-9A-Fa-f:]+\])(:[0-9]+)?", "an origin such as https://example.org")
ORIGIN = Text(rf"https?://({_NAME}|\[[0-9A-Fa-f:]+\])(:[0-9]+)?", "an origin such as https://example.org")
MEMORY = Text(r"[1-9][0-9]{0,9}([kmg]b?|[KMG]B?)?", "a number of bytes such as 512mb or 2gb")
PATH = Text(
    r"/?(?!(api|static)(/|$))[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*/?",
    "a path of letters, digits, - and _, not below api or static",
)
POSTGRESQL = Address(("postgresql", "postgres"), "postgresql://user:password@host:5432/name", _check_database)
REDIS = Address(("redis", "rediss", "unix"), "redis://user:password@host:6379/0", _check_redis)
FEEDS = Address((*REDIS.schemes, *cluster_address.SCHEMES), "redis://user:password@host:6379/0", _check_redis)
BROKER = Address(
    ("redis", "rediss", "redis+socket", "amqp", "amqps"), "redis://user:password@host:6379/0", _check_broker
)
OPENSEARCH = Address(("https", "http"), "https://user:password@host:9200/name", _check_opensearch)
BUCKET = Address(("s3",), "s3://key:secret@s3.example.org/bucket?public=https://cdn.example.org", _check_bucket)
MAIL = Address(
    (*mail_address.PORTS, mail_address.FOLDER, mail_address.LOG),
    "smtp+tls://user:password@mail.example.org:587",
    _check_mail,
)
SENDER = Text(
    r"([^\0-\x1f<>\"@,;]+ <)?[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+>?",
    "an e-mail address such as noreply@example.org or Feeds <noreply@example.org>",
)
PORT = Whole(1, 65_535)
SECONDS = Number(0.001, 86_400, "seconds")
DAYS = Whole(1, 36_500, "days")
MINUTES = Number(0.1, 1_000_000, "minutes")
