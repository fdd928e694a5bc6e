"""Replies of Redis read in bulk: a fan-out has two for each follower, and redis-py's own reading, one by one, costs the
client as much as all the rest of a delivery.

See docs/decisions.md: Own code in place of a library.
"""

from collections.abc import Iterator
from typing import Any

import hiredis
import redis
from redis.connection import DefaultParser

RECEIVED_BYTES = 2**16
"""Bytes that are taken from the socket at once."""


def replies(connection: Any) -> Iterator[Any]:
    """The replies that a connected connection of redis-py owes for what was sent by hand, without end. An error that
    the server replied is one of them: not raised.

    Each wait is as long as the connection's own. Raises redis.ConnectionError and redis.TimeoutError, after which the
    connection is closed. No reply may be left unread when the connection goes back to its pool.
    """
    socket = connection._get_socket()
    reader = hiredis.Reader(replyError=DefaultParser.parse_error, protocolError=redis.InvalidResponse)
    while True:
        reply = reader.gets()
        while reply is False:  # not all of it is there
            try:
                received = socket.recv(RECEIVED_BYTES)
            except TimeoutError as error:
                connection.disconnect()
                raise redis.TimeoutError("Redis did not answer in time") from error
            except OSError as error:
                connection.disconnect()
                raise redis.ConnectionError(str(error)) from error
            if not received:
                connection.disconnect()
                raise redis.ConnectionError("Redis has closed the connection")
            reader.feed(received)
            reply = reader.gets()
        yield reply
