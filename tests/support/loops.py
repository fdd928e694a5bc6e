"""An event loop for a test. Playwright leaves one running in the thread of the tests, where `asyncio.run` refuses."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def on_a_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, run on a loop in a thread of its own. Raises what it raises."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
