"""Types of the site's settings.

`title` completes "It must be …". A validator's ValueError may be shown, even for a secret. An empty text means "not
set".
"""

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from runtime import addresses
from runtime.rate_table import RATES, parse_rate


def _pattern_validator(pattern: str) -> AfterValidator:
    def check(text: str) -> str:
        if text and not re.fullmatch(pattern, text):
            raise ValueError
        return text

    return AfterValidator(check)


def _parse_validator(parse: Callable[[str], object]) -> AfterValidator:
    def check(url: str) -> str:
        if url:
            parse(url)
        return url

    return AfterValidator(check)


def _listen_address(text: str) -> str:
    """Check an address to listen on. `localhost` becomes 127.0.0.1: granian takes no names."""
    try:
        return text and str(ip_address("127.0.0.1" if text == "localhost" else text))
    except ValueError:
        raise ValueError from None


def _split_list(text: object) -> object:
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(text, str) else text


# --- Servers ---------------------------------------------------------------------------------------------
def _check_backups(place: str) -> str:
    if place.startswith("s3://"):
        addresses.parse_bucket(place)
    elif place and not re.fullmatch(r"/[^\0\r\n]*", place):
        raise ValueError("it does not begin with a slash")
    return place


def _url_validator(*schemes: str) -> AfterValidator:
    return _parse_validator(partial(addresses.parse, schemes=schemes))


_REDIS = ("redis", "rediss", "unix")
# `repr=False`: the setting may hold a secret, so its value is never shown.
Postgresql = Annotated[
    str,
    _parse_validator(addresses.check_postgresql),
    Field(title="an address such as postgresql://user:password@host:5432/name", repr=False),
]
Redis = Annotated[
    str,
    _url_validator(*_REDIS),
    Field(title="an address such as redis://user:password@host:6379/0 (redis, rediss or unix)", repr=False),
]
Feeds = Annotated[
    str,
    _url_validator(*_REDIS, *addresses.CLUSTERS),
    Field(
        title="an address such as redis://user:password@host:6379/0 (redis, rediss, unix, redis+cluster or "
        "rediss+cluster)",
        repr=False,
    ),
]
Broker = Annotated[
    str,
    _url_validator("redis", "rediss", "redis+socket", "amqp", "amqps"),
    Field(
        title="an address such as redis://user:password@host:6379/0 (redis, rediss, redis+socket, amqp or amqps)",
        repr=False,
    ),
]
OpenSearch = Annotated[
    str,
    _url_validator("https", "http"),
    Field(title="an address such as https://user:password@host:9200/name (https or http)", repr=False),
]
Bucket = Annotated[
    str,
    _parse_validator(addresses.parse_bucket),
    Field(title="an address such as s3://key:secret@s3.example.org/bucket?public=https://cdn.example.org", repr=False),
]
Backups = Annotated[
    str,
    AfterValidator(_check_backups),
    Field(
        title="a folder such as /srv/backups, or a bucket such as s3://key:secret@s3.example.org/backups", repr=False
    ),
]
Mail = Annotated[
    str,
    _parse_validator(addresses.parse_mail),
    Field(
        title="an address such as smtp+tls://user:password@mail.example.org:587 (smtp, smtp+tls, smtps, filemail or "
        "console)",
        repr=False,
    ),
]

# --- Hosts and origins -----------------------------------------------------------------------------------
_NAME = r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*"
_ORIGIN = rf"https?://({_NAME}|\[[0-9A-Fa-f:]+\])(:[0-9]+)?"
_TRUSTED = rf"https?://(\*\.)?({_NAME}|\[[0-9A-Fa-f:]+\])(:[0-9]+)?"
_HOST = _pattern_validator(rf"\*|\.?{_NAME}\.?|\[[0-9A-Fa-f:.]+\]")
Host = Annotated[str, _HOST, Field(title="a host name without scheme and port, .example.org or *")]
Hosts = Annotated[
    list[Annotated[str, _HOST]],
    NoDecode,
    BeforeValidator(_split_list),
    Field(title="a list with commas, each a host name without scheme and port, .example.org or *"),
]
Place = Annotated[str, AfterValidator(_listen_address), Field(title="an IP address of this machine or localhost")]
Origin = Annotated[str, _pattern_validator(_ORIGIN), Field(title="an origin such as https://example.org")]
Origins = Annotated[
    list[Annotated[str, _pattern_validator(_ORIGIN)]],
    NoDecode,
    BeforeValidator(_split_list),
    Field(title="a list with commas, each an origin such as https://example.org"),
]
TrustedOrigins = Annotated[
    list[Annotated[str, _pattern_validator(_TRUSTED)]],
    NoDecode,
    BeforeValidator(_split_list),
    Field(title="a list with commas, each an origin such as https://example.org or https://*.example.org"),
]


# --- Texts -----------------------------------------------------------------------------------------------
_ONE_LINE = _pattern_validator(r"[^\0\r\n]+")
Line = Annotated[str, _ONE_LINE, Field(title="one line of text")]
Folder = Annotated[Path, AfterValidator(Path.resolve), Field(title="a folder")]
Secret = Annotated[str, _ONE_LINE, Field(title="one line of text", repr=False)]
Secrets = Annotated[
    list[str],
    NoDecode,
    BeforeValidator(_split_list),
    Field(title="a list with commas, each one line of text", repr=False),
]
Token = Annotated[str, _pattern_validator(r"[!-~]+"), Field(title="printable characters without spaces", repr=False)]
Memory = Annotated[
    str,
    _pattern_validator(r"[1-9][0-9]{0,9}([kmg]b?|[KMG]B?)?"),
    Field(title="a number of bytes such as 512mb or 2gb"),
]
AdminPath = Annotated[
    str,
    _pattern_validator(r"/?(?!(api|static)(/|$))[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*/?"),
    Field(title="a path of letters, digits, - and _, not below api or static"),
]
AccelPath = Annotated[str, _pattern_validator(r"/[!-~]*/"), Field(title="a path that begins and ends with a slash")]
PlayedKey = Annotated[str, _pattern_validator(r"[!-~]*\{uid\}[!-~]*"), Field(title="a key with {uid} in it")]
Sender = Annotated[
    str,
    _pattern_validator(r"([^\0-\x1f<>\"@,;]+ <)?[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+>?"),
    Field(title="an e-mail address such as noreply@example.org or Feeds <noreply@example.org>"),
]


def _parse_zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (KeyError, OSError) as error:  # no such file, or a folder
        raise ValueError from error


Zone = Annotated[
    ZoneInfo, BeforeValidator(_parse_zone), Field(title="a time zone such as Asia/Shanghai or UTC (the IANA's names)")
]


# --- Rates -----------------------------------------------------------------------------------------------
def _rates(text: object) -> object:
    if not isinstance(text, str):
        return text
    found, wrong = {}, []
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, rate = (each.strip() for each in part.partition("="))
        if name not in RATES:
            near = get_close_matches(name, RATES, 1)
            wrong.append(f"there is no rate {name}" + (f" (did you mean {near[0]}?)" if near else ""))
            continue
        try:
            parse_rate(rate)
        except ValueError:
            wrong.append(f"{rate!r} of {name} is not like 20/hour (second, minute, ten-minutes, hour or day)")
        found[name] = rate
    if wrong:
        raise ValueError("; ".join(wrong))
    return found


Rates = Annotated[
    dict[str, str],
    NoDecode,
    BeforeValidator(_rates),
    Field(title="names of rates and calls in a period, such as login=20/minute,publish=2/second"),
]
