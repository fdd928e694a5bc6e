"""Parses `s3://key:secret@host/bucket[?endpoint=…&public=…&region=…&style=…]`.

`endpoint`: the store's API if not `https://host`. `public`: the address of files for browsers. `style`: `path` or
`virtual`. Standard library only, for settings.py.

See docs/decisions.md: Own code in place of a library.
"""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

PARAMETERS = frozenset({"endpoint", "public", "region", "style"})
STYLES = ("path", "virtual")
_HOST = r"(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
ORIGIN = re.compile(rf"https?://{_HOST}")
PUBLIC = re.compile(rf"(https?://{_HOST})((?:/[A-Za-z0-9._~-]+)*)/?")
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
REGION = re.compile(r"[a-z0-9-]{1,40}")
AMAZON = re.compile(r"s3[.-]([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


class BucketAddress(NamedTuple):
    """A bucket of an S3-compatible store."""

    key: str
    secret: str
    endpoint: str
    """The origin of the store's API."""
    name: str
    region: str
    style: str
    """Where requests name the bucket: in the path, or (`virtual`) in the host."""
    public: str
    """Address of the files for browsers, without a trailing slash. Empty: the site sends them."""

    def __repr__(self) -> str:
        return f"<the bucket {self.name} at {self.endpoint}>"


def parse(url: str) -> BucketAddress:
    """Parse the address of a bucket. Raises ValueError, whose message has no secrets."""
    parts = _split(url)
    key, secret = (unquote(each or "") for each in (parts.username, parts.password))
    if not key or not secret:
        hint = "; a / in them is written as %2F" if "@" in parts.path or ":" in parts.netloc else ""
        raise ValueError(f"it has no key:secret@ before the host{hint}")
    name = parts.path.strip("/")
    if not NAME.fullmatch(name):
        raise ValueError("its path is not a bucket's name (3 to 63 small letters, digits, dots and dashes)")
    said = _parameters(parts.query)
    host = parts.netloc.rpartition("@")[2]
    endpoint = said.get("endpoint", f"https://{host}").rstrip("/")
    if not ORIGIN.fullmatch(endpoint):
        raise ValueError("its host or endpoint is not an origin such as https://s3.example.org")
    public = said.get("public", "").rstrip("/")
    if public and not PUBLIC.fullmatch(public):
        raise ValueError("its public address is not like https://cdn.example.org or https://cdn.example.org/folder")
    amazon = AMAZON.fullmatch(parts.hostname or "")
    region = said.get("region", amazon[1] if amazon else "us-east-1")
    if not REGION.fullmatch(region):
        raise ValueError("its region is not a word of small letters, digits and dashes")
    style = said.get("style", STYLES[0])
    if style not in STYLES:
        raise ValueError("its style must be path or virtual")
    return BucketAddress(key, secret, endpoint, name, region, style, public)


def origin(public: str) -> str:
    """Scheme and host of the public address, or empty."""
    found = PUBLIC.fullmatch(public)
    return found[1] if found else ""


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises where it is no port)
    except ValueError:
        raise ValueError("its host or port is not valid (write %2F for a / in key or secret)") from None
    if parts.fragment or "#" in url:
        raise ValueError("it contains a # (write %23)")
    if not parts.hostname:
        raise ValueError("it has no host")
    return parts


def _parameters(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    said = dict(pairs)
    if set(said) - PARAMETERS:
        raise ValueError(f"it may only have the parameters {', '.join(sorted(PARAMETERS))}")
    if len(said) < len(pairs):
        raise ValueError("it has a parameter twice")
    return {name: value for name, value in said.items() if value}
