"""The peer of `streams`: writes the entries of the Redis stream to every connection, and does nothing else."""

import asyncio
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")
django.setup()

import redis.asyncio  # noqa: E402 (after setup)
from django.conf import settings  # noqa: E402

from storage import keys  # noqa: E402
from storage.events import Position, Published, event_of  # noqa: E402
from stream.news import ItemNews, message, reset  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


async def main(port: int) -> None:
    """Serve streams on the port until it is killed."""
    writers: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + reset(None))
        writers.add(writer)
        await reader.read()
        writers.discard(writer)
        writer.close()

    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, protocol=2)
    # The place is known before the first connection: "$", given anew after every wait in vain, misses what comes
    # between.
    newest = await client.xrevrange(keys.events(), count=1)
    last = newest[0][0] if newest else "0"
    async with await asyncio.start_server(connected, "127.0.0.1", port, backlog=2048):
        while True:
            for _, entries in await client.xread({keys.events(): last}, block=1000):
                for position, fields in entries:
                    last = position
                    event = event_of(fields)
                    if isinstance(event, Published):
                        news = message("item", Position.parse(position), ItemNews(str(event.item)))
                        for writer in writers:
                            writer.write(news)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
