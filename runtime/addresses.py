"""Parses the addresses of the site's servers: `scheme://[user:password@]host[:port][,host…][/path][?name=value…]`.

`FORMS` has what each scheme takes. A cluster's address names several nodes, so that a process can start while some are
down. No ValueError's message has a secret. Standard library only, for settings.py.

See docs/decisions.md: Own code in place of a library.
"""

import re
from collections.abc import Container
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit


class AddressRule(NamedTuple):
    """What an address has after its scheme. `port`: its default. `query`: names of parameters, or None for any."""

    path: str = ".*"
    """A pattern, also of what stands before the path if there is no host."""
    wrong: str = ""
    """What is wrong with another path."""
    port: int = 0
    query: tuple[str, ...] | None = None
    has_host: bool = True
    has_many: bool = False


PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
"""Mail: unencrypted, by STARTTLS, and by TLS from the first byte."""
FOLDER, LOG = "filemail", "console"
CLUSTERS = {"redis+cluster": "redis", "rediss+cluster": "rediss"}
FORMS = {
    **dict.fromkeys(("redis", "rediss"), AddressRule("/?[0-9]*", "its database is not a number")),
    **dict.fromkeys(("unix", "redis+socket"), AddressRule("[^/]*/+[^/].*", "it has no socket", has_host=False)),
    **dict.fromkeys(CLUSTERS, AddressRule("/*0?/*", "a cluster has only database 0", 6379, has_many=True)),
    **dict.fromkeys(("amqp", "amqps"), AddressRule()),
    **dict.fromkeys(
        ("https", "http"),
        AddressRule(
            "/+[a-z0-9][a-z0-9._-]{0,199}/*", "it must end with a name of small letters, digits, . _ or -", query=()
        ),
    ),
    "s3": AddressRule(
        "/+[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/*",
        "its path is not a bucket's name (3 to 63 small letters, digits, dots and dashes)",
        query=("endpoint", "public", "region", "style"),
    ),
    **{scheme: AddressRule("/*", "it has text after the host", port, query=()) for scheme, port in PORTS.items()},
    FOLDER: AddressRule(
        "/+[^/].*", "it has no folder: write three slashes, as in filemail:///FOLDER", 0, (), has_host=False
    ),
    LOG: AddressRule(query=(), has_host=False),
}
UNLIKE = "it is not like the example"


class Address(NamedTuple):
    """A parsed address."""

    parts: SplitResult
    nodes: tuple[tuple[str, int], ...]
    """Hosts and ports. A port is 0 if there is no default."""
    user: str
    password: str
    parameters: dict[str, str]

    def __repr__(self) -> str:
        return f"<{self.parts.scheme} at {', '.join(host for host, _ in self.nodes) or self.parts.path}>"

    def url_of(self, host: str, port: int) -> str:
        """The address of one node of a cluster, for redis-py."""
        credentials, at, _ = self.parts.netloc.rpartition("@")
        name = f"[{host}]" if ":" in host else host
        scheme = CLUSTERS[self.parts.scheme]
        return self.parts._replace(scheme=scheme, netloc=f"{credentials}{at}{name}:{port}", path="").geturl()


def scheme_of(url: str, schemes: Container[str]) -> str:
    """The scheme of an address. Raises ValueError if it is not one of `schemes`."""
    found = re.match(r"([a-z][a-z0-9+]{0,20})://", url)
    if not found:
        raise ValueError("it has no scheme")
    if found[1] not in schemes:
        raise ValueError(f"it begins with {found[0]}")
    if re.search(r"\s", url):
        raise ValueError("it contains a space")
    return found[1]


def parse(url: str, schemes: Container[str] = FORMS) -> Address:
    """Parse an address. Raises ValueError."""
    form = FORMS[scheme_of(url, schemes)]
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        hosts = [urlsplit(f"//{host}") for host in (place.split(",") if form.has_many else [place])]
        nodes = tuple((host.hostname or "", host.port or form.port) for host in hosts)
        if form.has_host and "@" in parts.path:
            raise ValueError
    except ValueError:
        raise ValueError(
            "its host or port is not valid; an @, :, / or # in user or password is written as %40, %3A, %2F or %23"
        ) from None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if (form.query is not None and "#" in url) or (form.query == () and "?" in url):
        raise ValueError(f"{UNLIKE}: a # or ? is written as %23 or %3F")
    if form.has_host and not all(host for host, _ in nodes):
        raise ValueError(f"{UNLIKE}: it has no host")
    if not re.fullmatch(form.path, parts.path if form.has_host else parts.netloc + parts.path):
        raise ValueError(form.wrong)
    if form.query is not None and {name for name, _ in pairs} - {*form.query}:
        raise ValueError(f"it may only have the parameters {', '.join(form.query)}")
    if form.query is not None and len(dict(pairs)) < len(pairs):
        raise ValueError("it has a parameter twice")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address(parts, nodes, user, password, {name: value for name, value in pairs if value})


def names_cluster(url: str) -> bool:
    """Whether the scheme is a cluster's."""
    return url.partition("://")[0] in CLUSTERS


def check_postgresql(url: str) -> None:
    """Check an address that libpq reads. Raises ValueError."""
    from psycopg import ProgrammingError, conninfo  # slow to import, and not needed with the embedded server

    scheme_of(url, ("postgresql", "postgres"))
    try:
        found = conninfo.conninfo_to_dict(url)
    except ProgrammingError:  # its message repeats parts of the address
        raise ValueError("it is not valid") from None
    if not re.fullmatch(r"[0-9,]*", str(found.get("port", ""))):
        raise ValueError("its host or port is not valid")
    if not found.get("dbname"):
        raise ValueError("it has no database name")


# --- Mail ------------------------------------------------------------------------------------------------
class MailAddress(NamedTuple):
    """Where letters go: to a server that has a `host`, into files of a `folder`, or into the log."""

    scheme: str
    host: str
    port: int
    user: str
    password: str
    folder: str

    def __repr__(self) -> str:
        return f"<mail by {self.scheme} {self.host}{self.folder}>"

    @property
    def backend(self) -> str:
        """The path of Django's class that sends letters there."""
        kinds = {FOLDER: "accounts.mail.folder.EmailBackend", LOG: "accounts.mail.console.EmailBackend"}
        return kinds.get(self.scheme, "django.core.mail.backends.smtp.EmailBackend")


def parse_mail(url: str) -> MailAddress:
    """Parse where letters go. Raises ValueError."""
    found = parse(url, (*PORTS, FOLDER, LOG))
    scheme, ((host, port),) = found.parts.scheme, found.nodes
    if port == PORTS["smtps"] and scheme != "smtps":
        raise ValueError(f"port {port} needs smtps://")
    if bool(found.user) != bool(found.password):
        raise ValueError("it has a user without a password, or a password without a user")
    folder = unquote(found.parts.path) if scheme == FOLDER else ""
    return MailAddress(scheme, host, port, found.user, found.password, folder)


def site_url(hosts: list[str], is_https: bool, port: int) -> str:
    """The site's address from the first allowed host that is a name."""
    name = next((each.lstrip(".") for each in hosts if each != "*"), "localhost")
    if is_https:
        return f"https://{name}"
    return f"http://{name}:{port}" if name in ("localhost", "127.0.0.1", "[::1]") else f"http://{name}"


# --- Buckets ---------------------------------------------------------------------------------------------
_ORIGIN = r"https?://(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
PARAMETERS = {
    "endpoint": (f"{_ORIGIN}/*", "its host or endpoint is not an origin such as https://s3.example.org"),
    "public": (
        rf"(?:{_ORIGIN}(?:/[A-Za-z0-9._~-]+)*/*)?",
        "its public address is not like https://cdn.example.org or https://cdn.example.org/folder",
    ),
    "region": ("[a-z0-9-]{1,40}", "its region is not a word of small letters, digits and dashes"),
    "style": ("path|virtual", "its style must be path or virtual"),
}
AMAZON = re.compile(r"s3[.-]([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


class BucketAddress(NamedTuple):
    """A bucket of an S3-compatible store."""

    key: str
    secret: str
    name: str
    endpoint: str
    """The origin of the store's API."""
    public: str
    """Address of the files for browsers, without a trailing slash. Empty: the site sends them."""
    region: str
    style: str
    """Where requests name the bucket: in the path, or (`virtual`) in the host."""

    def __repr__(self) -> str:
        return f"<the bucket {self.name} at {self.endpoint}>"


def parse_bucket(url: str) -> BucketAddress:
    """Parse `s3://key:secret@host/bucket[?endpoint=…&public=…&region=…&style=…]`. Raises ValueError."""
    found = parse(url, ("s3",))
    if not found.user or not found.password:
        raise ValueError("it has no key:secret@ before the host")
    amazon = AMAZON.fullmatch(found.nodes[0][0])
    defaults = {
        "endpoint": f"https://{found.parts.netloc.rpartition('@')[2]}",
        "public": "",
        "region": amazon[1] if amazon else "us-east-1",
        "style": "path",
    }
    values = defaults | found.parameters
    for name, (pattern, wrong) in PARAMETERS.items():
        if not re.fullmatch(pattern, values[name]):
            raise ValueError(wrong)
    return BucketAddress(
        found.user,
        found.password,
        found.parts.path.strip("/"),
        **{name: value.rstrip("/") for name, value in values.items()},
    )


def origin(public: str) -> str:
    """Scheme and host of a bucket's public address, or empty."""
    found = re.match(_ORIGIN, public)
    return found[0] if found else ""
