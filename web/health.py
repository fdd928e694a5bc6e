"""Probes: is the process alive (`/healthz`), can it serve pages (`/readyz`), and its metrics (`/metrics`).

See docs/decisions.md: Own code in place of a library.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import redis
from celery import current_app
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from runtime import metrics
from runtime.addresses import names_cluster, parse
from storage import site_key
from storage.connections import client_of
from storage.postgresql.base import probe
from storage.queue import check_room

WAIT_SECONDS = 0.5  # for one server to accept a connection, and again to answer
DEADLINE_SECONDS = 0.9  # for the whole page
SHARED_SECONDS = 1.0
"""How long a process gives the same answer of `/readyz` to everybody."""


class ProbeMiddleware:
    """Answers probes for any Host, because probes use the machine's address. Strangers get no `/metrics`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a probe, or pass another request on."""
        match = PROBES.get(request.path_info)
        if match is None or (match.func is metrics.show and not metrics.may_read(request)):
            return self.get_response(request)
        request.resolver_match = match  # names the request in metrics and logs
        response: HttpResponseBase = match.func(request)
        return response


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process works."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the servers and this process are ok, else 503."""
    servers = latest.states()
    ready = all(state == "ok" for state in servers.values())
    return JsonResponse({"ready": ready, "servers": servers}, status=200 if ready else 503)


PROBES = {
    f"/{route}": ResolverMatch(view, (), {}, route=route)
    for route, view in (("healthz", healthz), ("readyz", readyz), ("metrics", metrics.show))
}


class LatestStates:
    """The states of the servers, shared for `SHARED_SECONDS`.

    One thread checks at a time, so a frozen server holds one thread.
    """

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._states: dict[str, str] = {}
        self._fresh_until = 0.0
        self._has_right_key = False

    def states(self) -> dict[str, str]:
        """The states, refreshed if old."""
        # While another thread checks, its last result is good enough.
        if time.monotonic() >= self._fresh_until and self._looking.acquire(blocking=not self._states):
            try:
                if time.monotonic() >= self._fresh_until:
                    servers = server_states()
                    self._states = servers | self._own_states(servers["postgresql"])
                    self._fresh_until = time.monotonic() + SHARED_SECONDS
            finally:
                self._looking.release()
        return self._states

    def _own_states(self, postgresql: str) -> dict[str, str]:
        """The faults of this process. Compares the secret key until it was right once."""
        found = {}
        if not self._has_right_key and postgresql == "ok":
            found = {name: state for name, state in run_checks({"secret key": key_check()}).items() if state != "ok"}
            self._has_right_key = not found
        # Read at the start. Without them every page is a 500.
        if not getattr(staticfiles_storage, "hashed_files", True):
            found["static files"] = "were not collected"
        return found


latest = LatestStates()


def server_states() -> dict[str, str]:
    """`ok` or a fault for each server. No messages, only Redis' word for its error: the page is public."""
    return run_checks(
        {
            "postgresql": postgresql_check(),
            "feeds": lambda: ping(settings.REDIS_URL),
            "broker": _broker_check,
            "plays": lambda: ping(settings.PLAYED_URL),
        }
    )


def key_check() -> Callable[[], object]:
    """A check that this process's secret key is the site's, on a connection of its own."""
    parameters: dict[str, Any] = connection.get_connection_params()
    return lambda: site_key.check_fingerprint(*probe(parameters, site_key.QUESTION))


def run_checks(checks: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    """Make all checks at the same time. Returns `ok` or a fault for each."""
    states: dict[str, str] = {}

    def probe(name: str, check: Callable[[], object]) -> None:
        try:
            check()
        except site_key.WrongKeyError as error:
            states[name] = str(error)
        except redis.ResponseError as error:
            states[name] = f"refuses ({str(error).partition(' ')[0]})"
        except Exception as error:  # noqa: BLE001 (whatever a client library raises is the answer)
            states[name] = f"does not answer ({type(error).__name__})"
        else:
            states[name] = "ok"

    # Nobody waits for these threads: a frozen server may hold them for seconds.
    probes = [threading.Thread(target=probe, args=item, daemon=True) for item in checks.items()]
    until = time.monotonic() + DEADLINE_SECONDS
    for thread in probes:
        thread.start()
    for thread in probes:
        thread.join(max(0.0, until - time.monotonic()))
    return {name: states.get(name, "does not answer (in time)") for name in checks}


class ReadOnlyError(Exception):
    """PostgreSQL takes no writes: it is a standby, or a switchover is running."""


def postgresql_check() -> Callable[[], object]:
    """A check that PostgreSQL takes writes, on a connection of its own."""
    # This thread's connection may be in use, or broken by a restart.
    parameters: dict[str, Any] = connection.get_connection_params()

    def check() -> None:
        (read_only,) = probe(parameters, "SELECT current_setting('transaction_read_only')")
        if read_only == "on":
            raise ReadOnlyError

    return check


def ping(url: str) -> None:
    """Ask a Redis server. Raises redis-py's errors. A cluster is ok while one named node answers."""
    if names_cluster(url):
        address = parse(url)
        nodes = [address.url_of(*node) for node in address.nodes]
        if "ok" not in run_checks({node: partial(ping, node) for node in nodes}).values():
            raise redis.ConnectionError("no node of the cluster answers")
        return
    with closing(client_of(url, WAIT_SECONDS)) as client:
        client.ping()


def _broker_check() -> None:
    url: str = settings.BROKER_URL
    if url.startswith("redis+socket://"):
        ping(url.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db="))
    elif url.startswith(("redis://", "rediss://")):
        ping(url)
    else:
        with current_app.connection_for_write(connect_timeout=WAIT_SECONDS) as broker:
            check_room(broker)
