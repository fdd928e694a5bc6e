import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import close_old_connections

from storage.connections import drop_ended_sessions

T = TypeVar("T")


async def in_thread(executor: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """The result of a call in a thread, without ended database sessions."""

    def run() -> T:
        close_old_connections()
        drop_ended_sessions()
        try:
            return call()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(executor, run)
