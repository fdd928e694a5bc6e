"""Whether this site keeps a played history, so that Discover can use it without a setting.

A process asks once in `ASKED_EVERY_SECONDS`, in one thread. Creates no store file.
"""

import threading
import time

from django.conf import settings

from seen import played
from seen.filter_store import StoreUnavailableError
from seen.played import PlayedUnavailableError
from seen.store import store

RECORDED = frozenset({"plays", "both"})
"""Values of `DISCOVER_SEEN` for which items that Discover issues or a reader opens enter the history."""
ASKED_EVERY_SECONDS = 60.0


class Usage:
    """This process's last answer to whether the site keeps a played history."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._answer: bool | None = None
        self._until = 0.0

    def is_kept(self) -> bool:
        """Whether the site keeps a played history. During an outage the last answer counts.

        Without one raises PlayedUnavailableError or StoreUnavailableError.
        """
        if time.monotonic() >= self._until and self._asking.acquire(blocking=self._answer is None):
            try:
                if time.monotonic() >= self._until:
                    self._execute()
            finally:
                self._asking.release()
        return bool(self._answer)

    def _execute(self) -> None:
        try:
            self._answer = bool(settings.PLAYED_OLD_URL) or store().holds_any() or played.has_recent_plays()
        except (PlayedUnavailableError, StoreUnavailableError):
            if self._answer is None:
                raise
        self._until = time.monotonic() + ASKED_EVERY_SECONDS

    def forget(self) -> None:
        """Ask again next time."""
        self._answer, self._until = None, 0.0


usage = Usage()
