"""Is the process alive (`/healthz`), and do its servers answer (`/readyz`)?"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from feedsite.cluster import Cluster
from feedsite.connections import client_of
from feedsite.postgresql.base import probe

PATIENCE = 0.5  # seconds for one server to take a connection, and again to answer
DEADLINE = 0.9  # seconds for the whole page


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    servers = server_states()
    ready = all(state == "ok" for state in servers.values())
    return JsonResponse({"ready": ready, "servers": servers}, status=200 if ready else 503)


def server_states() -> dict[str, str]:
    """`ok`, or what is wrong with it, for each server; takes `DEADLINE` at most.

    Only the kind of an error is told: this page is public, and messages name hosts and users.
    """
    return probed(
        {
            "postgresql": postgresql_check(),
            "feeds": lambda: ping(settings.REDIS_URL),
            "broker": _broker_check,
            "plays": lambda: ping(settings.PLAYED_URL),
        }
    )


def probed(checks: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    """What came of the checks, which run at once; whatever they raise is wrong."""
    states: dict[str, str] = {}

    def probe(name: str, check: Callable[[], object]) -> None:
        try:
            check()
        except Exception as error:  # noqa: BLE001 (whatever a client library raises is the answer)
            states[name] = f"does not answer ({type(error).__name__})"
        else:
            states[name] = "ok"

    # Threads that nobody waits for to the end: a frozen server may hold its own for some seconds.
    probes = [threading.Thread(target=probe, args=item, daemon=True) for item in checks.items()]
    until = time.monotonic() + DEADLINE
    for thread in probes:
        thread.start()
    for thread in probes:
        thread.join(max(0.0, until - time.monotonic()))
    return {name: states.get(name, "does not answer (in time)") for name in checks}


class ReadOnlyError(Exception):
    """PostgreSQL answers, and takes no writes: a standby, or a switchover."""


def postgresql_check() -> Callable[[], object]:
    # A connection of its own, made by its parameters: this thread's may be in use, or broken by a restart.
    parameters: dict[str, Any] = connection.get_connection_params()

    def check() -> None:
        (read_only,) = probe(parameters, "SELECT current_setting('transaction_read_only')")
        if read_only == "on":
            raise ReadOnlyError

    return check


def ping(url: str) -> None:
    """Raises what redis-py raises. A cluster is well while any of its nodes says who has what: what pages lack of
    others they take from PostgreSQL, and to be sent no visitors while a replica takes over would be no help.
    """
    client = client_of(url, PATIENCE)
    with closing(client):
        if isinstance(client, Cluster):
            client.primaries()
        else:
            client.ping()


def _broker_check() -> None:
    url: str = settings.BROKER_URL
    if url.startswith("redis+socket://"):
        ping(url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db="))
    elif url.startswith(("redis://", "rediss://")):
        ping(url)
    else:
        with current_app.connection_for_write(connect_timeout=PATIENCE) as broker:
            broker.connect()
