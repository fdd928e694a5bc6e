import errno
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import InterfaceError, OperationalError, ProgrammingError
from redis.exceptions import OutOfMemoryError

from operation.doctor import configuration, disks, feeds, growth, outside, postgresql, processes, redis_servers, work
from operation.doctor.findings import ERROR, OK, WARNING, Finding, Findings
from runtime.addresses import names_cluster
from storage import replica
from storage.connections import is_schema_mismatch
from storage.postgresql import is_lock_timeout
from storage.queue import FullBrokerError

NOT_LOOKED_AT = "; so these were not checked: "
STATEMENT_SECONDS = 10.0
"""Maximum seconds per statement. A frozen server delays each check by this."""
FULL = os.strerror(errno.ENOSPC)
"""In the words of PostgreSQL and Redis."""
NO_ANSWER = "docs/runbook.md, No answer"
LOCKED = "postgresql locks"
SECTIONS = {
    LOCKED: "docs/runbook.md, A lock in PostgreSQL",
    "postgresql": "docs/runbook.md, PostgreSQL is down",
    "feeds": "docs/runbook.md, The feeds server is down",
    "broker": "docs/runbook.md, The broker is down",
    "cache": "docs/runbook.md, The broker is down",
    "plays": "docs/runbook.md, The plays server is down",
}
"""What to do if the server of a check does not answer."""


def examine(*, now: datetime, web: str, stream: str, grpc_place: str) -> list[Finding]:
    """Run all checks. `web`, `stream` and `grpc_place` (host:port): where the processes listen."""
    looked: list[tuple[str, Callable[[], Findings]]] = [
        ("configuration", configuration.configuration),
        ("postgresql", postgresql.postgresql),
        (LOCKED, postgresql.locks),
        ("postgresql disk", postgresql.disk),
        ("site", postgresql.key_and_read_only_mode),
        ("tables", growth.tables),
        ("old rows", growth.old_rows),
        *([("replica", postgresql.replicas)] if replica.is_configured() else []),
        *((role, partial(redis_servers.redis_server, role, url)) for role, url in redis_servers.redis_roles().items()),
        *([("feeds cluster", redis_servers.feeds_cluster)] if names_cluster(settings.REDIS_URL) else []),
        *([("play store", redis_servers.play_store)] if settings.PLAYED_STORE_URL else []),
        ("impressions", feeds.impressions_fill),
        ("played store", disks.played_store),
        ("disk", disks.disk),
        ("memory", disks.memory),
        ("backups", lambda: disks.backups(now)),
        ("old files", growth.old_files),
        ("media", disks.media_files),
        *([] if "broker" in redis_servers.redis_roles() else [("broker", work.broker)]),
        ("queues", work.queues),
        ("workers", work.workers),
        ("clocks", work.clocks),
        ("beat", lambda: work.beat(now)),
        ("work", work.waiting_work),
        ("mail", work.letters),
        ("sizes of pictures", work.picture_sizes),
        ("deliveries", lambda: work.deliveries(now)),
        ("plays", lambda: work.merges_of_plays(now)),
        ("policy", feeds.pushes),
        ("web", lambda: processes.web(web)),
        ("outside", outside.site),
        *([("stream", lambda: processes.process("stream", stream))] if settings.STREAM else []),
        *([("grpc", lambda: processes.grpc_process(grpc_place))] if grpc_place else []),
    ]
    outages: Outages = {}
    return [finding for name, check in looked for finding in safely(name, check, outages)]


Outages = dict[str, Finding]
"""Unreachable servers: client's error → finding."""


def safely(name: str, check: Callable[[], Findings], outages: Outages | None = None) -> list[Finding]:
    """Run a check. Returns its findings, and one for its exception.

    An outage is reported once, with the checks that it stops. Raises ProgrammingError.
    """
    found: list[Finding] = []
    outages = {} if outages is None else outages
    try:
        found.extend(check())
    except ProgrammingError as error:
        if not is_schema_mismatch(error):
            raise
        said = str(error).strip().splitlines()[0]
        found.append(Finding(name, ERROR, f"the database is of another version ({said})", "Run `manage.py migrate`."))
    except Exception as error:  # noqa: BLE001 (any error of a client library is a finding)
        said = (str(error).strip().splitlines() or [""])[0]
        outage = "postgresql" if isinstance(error, (OperationalError, InterfaceError)) else said
        text, todo = f"does not answer ({type(error).__name__}: {said})", SECTIONS.get(name, NO_ANSWER)
        first = "Start it, or correct its address"
        if is_lock_timeout(error):
            outage, text, todo = LOCKED, "waits for a lock", SECTIONS[LOCKED]
            first = "End the session that has it"
        elif FULL in said or isinstance(error, FullBrokerError):
            text, first, todo = f"refuses ({said})", "Free some space on its disk", "docs/runbook.md, Disk full"
        elif isinstance(error, OutOfMemoryError):
            text, first, todo = f"refuses ({said})", "Raise its maxmemory", redis_servers.SMALLER_FAULTS
        if outage in outages:
            outages[outage].text += f", {name}" if NOT_LOOKED_AT in outages[outage].text else f"{NOT_LOOKED_AT}{name}"
        else:
            outages[outage] = Finding(name, ERROR, text, f"{first}: {todo}.")
            found.append(outages[outage])
    return found


def worst(findings: Sequence[Finding]) -> str:
    """The worst state among the findings."""
    states = {finding.state for finding in findings}
    return ERROR if ERROR in states else WARNING if WARNING in states else OK
