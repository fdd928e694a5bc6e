import asyncio
import contextlib
import random
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.load import Generator, LoadRequest, Made, PlannedCall
from benchmarks.soak import FLAT_MB, Slope, slope

CALL = PlannedCall("home", LoadRequest("GET", "/"))
PAUSE = 0.5


async def served(pauses: bool, *, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") -> list[Made]:
    """Answers at once, or pauses for `PAUSE` after the first second."""
    begin = time.monotonic()
    open_lines: set[asyncio.StreamReader] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            since = time.monotonic() - begin
            if pauses and 1 < since < 1 + PAUSE:
                await asyncio.sleep(1 + PAUSE - since)
            for part in (answer[:20], answer[20:]):
                writer.write(part)
                await writer.drain()

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_lines.add(reader)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        open_lines.discard(reader)

    server = await asyncio.start_server(quietly, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    generator = Generator(port, port, random.Random(1))  # noqa: S311 (no secret)
    await asyncio.to_thread(generator.open, lambda: CALL, rate=100, seconds=3)
    generator.close()
    server.close()
    while open_lines:
        await asyncio.sleep(0.01)
    return generator.taken()


def alone(work: Coroutine[Any, Any, list[Made]]) -> list[Made]:
    """This thread may have a browser's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.mark.long
def test_a_site_that_stands_still_delays_every_call_of_that_time() -> None:
    made = alone(served(pauses=True))
    assert 200 < len(made) < 400
    assert {each.answer.status for each in made} == {200}
    late = [each for each in made if each.seconds > PAUSE / 2]
    assert len(late) > 10, "calls that would have come in the pause were left out"


@pytest.mark.long
def test_answers_are_told_with_their_headers() -> None:
    shed = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"
    made = alone(served(pauses=False, answer=shed))
    assert {(each.answer.status, each.answer.retry_after) for each in made} == {(503, "2")}


def line(growth: float, noise: float, seed: int = 2) -> Slope:
    """Two hours of a 100 MB process, one sample a minute."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    return slope([(60.0 * at, 100 + growth * at / 60 + chance.gauss(0, noise)) for at in range(120)])


def test_memory_that_grows_is_found_and_noise_is_not() -> None:
    assert line(0, 3).low <= FLAT_MB
    assert line(0.5, 0.1).low <= FLAT_MB, "half a MB an hour is less than what counts"
    growing = [line(20, 3, seed) for seed in range(200)]
    assert all(each.low > FLAT_MB for each in growing)
    held = sum(each.slope - each.margin < 20 < each.slope + each.margin for each in growing)
    assert 0.9 < held / len(growing) < 0.99, "the interval is not one of 95 %"


def test_a_process_that_never_changes_is_flat() -> None:
    assert slope([(float(at), 50.0) for at in range(10)]) == Slope(50, 0, 0)
