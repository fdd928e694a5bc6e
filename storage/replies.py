"""redis-py's connections by hand. Its reading, one by one, doubles a delivery's CPU cost.

See docs/decisions.md: Own code in place of a library.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import hiredis
import redis
from redis.connection import DefaultParser

RECEIVED_BYTES = 2**16
"""Bytes to read from the socket at once."""
LEAST_WAIT_SECONDS = 0.001
"""The least wait for a reply, which may already be there."""


@contextmanager
def borrowed_connection(client: redis.Redis) -> Iterator[Any]:
    """Borrow a connection to write RESP by hand: a pipeline object costs more CPU.

    Closed after an error, because replies may still arrive.
    """
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        yield connection
    except BaseException:
        connection.disconnect()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.release(connection)


def reply_reader(connection: Any) -> Callable[[int], list[Any]]:
    """A function that returns the next `count` replies to commands sent by hand. Errors are returned, not raised.

    It raises redis.ConnectionError and redis.TimeoutError, and closes the connection then. Read all replies before the
    connection returns to its pool.
    """
    socket, missing = connection._get_socket(), object()
    reader = hiredis.Reader(
        replyError=DefaultParser.parse_error, protocolError=redis.InvalidResponse, notEnoughData=missing
    )

    def read(count: int) -> list[Any]:
        replies = [*islice(iter(reader.gets, missing), count)]
        while len(replies) < count:
            reader.feed(_received(connection, socket))
            replies += islice(iter(reader.gets, missing), count - len(replies))
        return replies

    return read


def _received(connection: Any, socket: Any) -> bytes:
    try:
        received: bytes = socket.recv(RECEIVED_BYTES)
    except TimeoutError as error:
        connection.disconnect()
        raise redis.TimeoutError("Redis did not answer in time") from error
    except OSError as error:
        connection.disconnect()
        raise redis.ConnectionError(str(error)) from error
    if not received:
        connection.disconnect()
        raise redis.ConnectionError("Redis has closed the connection")
    return received
