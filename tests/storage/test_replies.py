import pytest
import redis
from django.conf import settings

from storage.connections import client_of, feeds_for_tasks
from storage.replies import RECEIVED_BYTES, borrowed_connection, reply_reader
from tests.support.servers import Valkey, frozen


def test_each_reply_stands_in_its_place(feeds: redis.Redis) -> None:
    """Some replies are long or errors."""
    long = b"x" * (3 * RECEIVED_BYTES)
    feeds.set("text", long)
    commands = [("GET", "text"), ("ZSCORE", "none", "floor"), ("ZADD", "text", 1, "member"), ("ZADD", "set", 1, "one")]
    client = feeds_for_tasks()
    with borrowed_connection(client) as connection:
        for _ in range(2):
            connection.send_packed_command([part for one in commands for part in connection.pack_command(*one)])
        read = reply_reader(connection)
        text, nothing, error, added, *second = read(3) + read(5)
    assert (text, nothing, added) == (long, None, 1)
    assert isinstance(error, redis.ResponseError)
    assert "WRONGTYPE" in str(error)
    assert second[0] == long
    assert second[3] == 0
    assert feeds.get("text") == long, "the connection is of use to the next"


@pytest.mark.slow
def test_a_server_that_says_nothing_is_waited_for_as_long_as_the_client_waits(feeds_server: Valkey) -> None:
    client = client_of(settings.REDIS_URL, 1)
    with borrowed_connection(client) as connection:
        connection.send_packed_command(connection.pack_command("PING"))
        read = reply_reader(connection)
        assert read(1) == [b"PONG"]
        with frozen(feeds_server):
            connection.send_packed_command(connection.pack_command("PING"))
            with pytest.raises(redis.TimeoutError):
                read(1)
        assert not connection.is_connected


def test_a_connection_that_ends_is_an_outage(feeds: redis.Redis) -> None:
    client = feeds_for_tasks()
    with borrowed_connection(client) as connection:
        feeds.client_kill_filter(_type="normal", skipme=True)
        with pytest.raises(redis.ConnectionError):
            reply_reader(connection)(1)
        assert not connection.is_connected
