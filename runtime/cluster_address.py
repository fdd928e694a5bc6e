"""Parses `redis+cluster://[user:password@]host:port[,host:port…][/0][?options]`. `rediss+cluster` uses TLS.

With several nodes a process can start while some are down. Standard library only, for settings.py.
"""

from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

SCHEMES = {"redis+cluster": "redis", "rediss+cluster": "rediss"}


class ClusterAddress(NamedTuple):
    """The nodes of a cluster, and the first node's address without its host."""

    nodes: tuple[tuple[str, int], ...]
    parts: SplitResult

    def url_of(self, host: str, port: int) -> str:
        """One node's address for redis-py."""
        credentials, at, _ = self.parts.netloc.rpartition("@")
        name = f"[{host}]" if ":" in host else host
        return self.parts._replace(netloc=f"{credentials}{at}{name}:{port}", path="").geturl()


def names_cluster(url: str) -> bool:
    """Whether the scheme is a cluster's."""
    return url.partition("://")[0] in SCHEMES


def parse(url: str) -> ClusterAddress:
    """Parse the address. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"a cluster's address begins with {' or '.join(SCHEMES)}")
    if parts.path.strip("/") not in ("", "0"):
        raise ValueError("a cluster has only database 0")
    hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
    if not all(host.hostname for host in hosts):
        raise ValueError("a node has no host")
    nodes = tuple((str(host.hostname), host.port or 6379) for host in hosts)
    return ClusterAddress(nodes, parts._replace(scheme=SCHEMES[parts.scheme]))
