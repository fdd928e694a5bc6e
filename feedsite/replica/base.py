"""Django's backend of the replica: PostgreSQL's, whose connections do not wait for ever.

A statement timeout is kept by the server, and a server that is frozen keeps none.
"""

import math
import time
from collections.abc import Generator
from typing import Any, cast

import psycopg
from django.db.backends.postgresql import base

Waiting = Generator[Any, Any, Any]
"""What psycopg does on a connection: it yields what it waits for and is sent what came, which may be nothing yet."""


class Connection(psycopg.Connection[Any]):
    """Gives up at `deadline` (of time.monotonic()), and is of no use from then on. `standing` is what was last heard of
    the server at its other end.
    """

    deadline: float
    standing: Any

    def wait(self, gen: Waiting, *args: Any, **kwargs: Any) -> Any:
        return super().wait(_until(self.deadline, gen), *args, **kwargs)


def _until(deadline: float, gen: Waiting) -> Waiting:
    try:
        awaited = next(gen)
        while True:
            came = yield awaited
            if not came and time.monotonic() > deadline:
                raise psycopg.OperationalError("the replica did not answer in time")
            awaited = gen.send(came)
    except StopIteration as ended:
        return ended.value


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        # Django offers no place to name the class, and how it sets a connection up is its own business.
        connection: Any = super().get_new_connection(conn_params)
        connection.__class__ = Connection
        connection.deadline = math.inf
        connection.standing = None
        return cast("Connection", connection)
