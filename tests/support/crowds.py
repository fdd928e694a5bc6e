import random
import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connection

PATIENCE = 200
"""Enough for a slow machine."""


class Crowd:
    """The first error stops all threads."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.errors: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.done = 0

    def add(self, act: Callable[[random.Random], Any], seed: int) -> None:
        self.threads.append(threading.Thread(target=self._run, args=(act, random.Random(seed))))  # noqa: S311 (chance)

    def _run(self, act: Callable[[random.Random], Any], chance: random.Random) -> None:
        try:
            while not self.stopped.is_set():
                act(chance)
                self.done += 1
        except BaseException as error:  # noqa: BLE001 (the test raises it)
            self.errors.append(error)
            self.stopped.set()
        finally:
            connection.close()

    def run(self, seconds: float, enough: Callable[[], bool] = lambda: True) -> None:
        """Run for this time, and until it is enough."""
        for thread in self.threads:
            thread.start()
        try:
            self.stopped.wait(seconds)
            deadline = time.monotonic() + PATIENCE
            while not (self.stopped.wait(0.2) or enough() or time.monotonic() > deadline):
                pass
        finally:
            self.stopped.set()
            for thread in self.threads:
                thread.join(60)
        if self.errors:
            raise self.errors[0]
