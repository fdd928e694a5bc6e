"""How a setting names a Redis Cluster: `redis+cluster://[user:password@]host:port[,host:port…][/0][?options]`.

`rediss+cluster` speaks TLS. Any of the nodes will do, and the more are named, the more may be down when a process
starts. settings.py imports this module: standard library only.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

SCHEMES = {"redis+cluster": "redis", "rediss+cluster": "rediss"}


class ClusterAddress(NamedTuple):
    """Where a cluster is, and how to come to one of its nodes."""

    scheme: str
    """The scheme of the address of a node."""
    credentials: str
    """The credentials of the address of a node, with their @."""
    nodes: tuple[tuple[str, int], ...]
    query: str

    def url_of(self, host: str, port: int) -> str:
        """The address of one node."""
        name = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{self.credentials}{name}:{port}{self.query}"


def names_cluster(url: str) -> bool:
    """Whether the scheme of the address `url` names a Redis Cluster."""
    return url.partition("://")[0] in SCHEMES


def parse(url: str) -> ClusterAddress:
    """Raises ValueError, which says what is wrong with the address."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"a cluster is named by {' or '.join(SCHEMES)}")
    if parts.path.strip("/") not in ("", "0"):
        raise ValueError("a cluster has only database 0")
    credentials, at, hosts = parts.netloc.rpartition("@")
    nodes = []
    for host in hosts.split(","):
        try:
            one = urlsplit(f"//{host}")
            name, port = one.hostname, one.port or 6379
        except ValueError as error:
            raise ValueError(f"{host!r} is no host:port") from error
        if not name:
            raise ValueError("it names no host")
        nodes.append((name, port))
    return ClusterAddress(
        SCHEMES[parts.scheme], credentials + at, tuple(nodes), f"?{parts.query}" if parts.query else ""
    )
