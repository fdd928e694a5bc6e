"""A thread that asks a server that failed whether it answers again.

See docs/decisions.md: Code written by hand, and why it stays.
See docs/decisions.md: The connection to the replica has a deadline in the client.
See docs/decisions.md: A program that waits for PostgreSQL keeps a deadline of its own.
"""

import logging
import threading
from collections.abc import Callable

from storage.breaker import BREAKER_SECONDS, Breaker

logger = logging.getLogger(__name__)


class Scout:
    """Asks a server that failed whether it is back, so that an outage costs each waiting request one wait, and later
    requests none. A thread, while there is an outage; one a process.
    """

    def __init__(self, name: str, ask: Callable[[], object]) -> None:
        """`ask` asks the server once, in bounded time; it raises any error, and closes the connections that it made."""
        self._name = name
        self._ask = ask
        self._lock = threading.Lock()
        self._sent = False
        """Whether the server failed a request since it was asked last."""
        self._thread: threading.Thread | None = None
        self._home = threading.Event()
        self._breaker = Breaker(name=name)  # for its metrics

    @property
    def is_out(self) -> bool:
        """Whether the server failed and has not answered since."""
        return self._thread is not None and self._thread.is_alive()

    def send(self) -> None:
        """Begin to ask the server until it answers; does nothing if a thread is asking already."""
        with self._lock:
            self._sent = True
            if not self.is_out:
                logger.warning("%s does not answer.", self._name)
                self._breaker.trip()
                self._home.clear()
                self._thread = threading.Thread(target=self._look, name=self._name, daemon=True)
                self._thread.start()

    def call_back(self) -> None:
        """End the thread."""
        self._home.set()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._thread = None

    def _look(self) -> None:
        said = ""
        while not self._home.wait(BREAKER_SECONDS):
            self._sent = False
            try:
                self._ask()
            except Exception as error:  # noqa: BLE001 (whatever it is, the server is not back)
                self._breaker.trip()
                if str(error) != said:
                    said = str(error)
                    logger.warning("%s: %s", self._name, said.strip())
                continue
            with self._lock:
                if self._sent:
                    continue
                self._thread = None
            logger.warning("%s answers again.", self._name)
            break
