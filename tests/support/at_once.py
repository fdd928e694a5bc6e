import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from storage.connections import fetch


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Each thread has its own database connection. Returns results or exceptions in order. Needs `transaction=True`."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(30)
            return call()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


HERE = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
"""Other workers' databases are copies, with the same oids of tables."""


def until_one_waits() -> None:
    """Wait for a waiting lock in this database. Fails after half a minute."""
    deadline = time.monotonic() + 30
    waits = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())"
    )
    while not fetch(waits)[0][0]:
        assert time.monotonic() < deadline, "nothing waits for a lock"
        time.sleep(0.01)
        fetch("SELECT pg_stat_clear_snapshot()::text")  # a transaction keeps its first snapshot
