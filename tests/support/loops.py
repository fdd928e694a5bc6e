"""Playwright's loop in the tests' thread blocks `asyncio.run`."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def on_a_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Use another thread. Raises the coroutine's exceptions."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
