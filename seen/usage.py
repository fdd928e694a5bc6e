"""Whether this site keeps a played history at all, so that Discover takes it in without being told to.

It does where something was played within the life of a filter: the server of plays keeps a mark then (seen.played
writes it), the store of the filters has any, or an old Redis is being migrated. A process asks once in
`ASKED_EVERY_SECONDS`, at most one of its threads at a time: where the service was never used that is a round trip a
minute, and no file of the store is made.
"""

import threading
import time

from django.conf import settings

from seen import played
from seen.filter_store import StoreUnavailableError
from seen.played import PlayedUnavailableError
from seen.store import store

RECORDED = frozenset({"plays", "both"})
"""The values of `DISCOVER_SEEN` with which items that Discover issues or a reader opens enter the history."""
ASKED_EVERY_SECONDS = 60.0


class Usage:
    """The last answer of this process, and when it was asked for."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._answer: bool | None = None
        self._until = 0.0

    def is_kept(self) -> bool:
        """Whether there is a history. The last answer stands while a server does not answer; without one it raises
        PlayedUnavailableError or StoreUnavailableError.
        """
        if time.monotonic() >= self._until and self._asking.acquire(blocking=self._answer is None):
            try:
                if time.monotonic() >= self._until:
                    self._ask()
            finally:
                self._asking.release()
        return bool(self._answer)

    def _ask(self) -> None:
        try:
            self._answer = bool(settings.PLAYED_OLD_URL) or store().holds_any() or played.is_marked()
        except (PlayedUnavailableError, StoreUnavailableError):
            if self._answer is None:
                raise
        self._until = time.monotonic() + ASKED_EVERY_SECONDS

    def forget(self) -> None:
        """Ask anew the next time."""
        self._answer, self._until = None, 0.0


usage = Usage()
