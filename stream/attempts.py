"""Retries of a server that does not answer, and pauses after errors."""

import asyncio
import logging
import time

logger = logging.getLogger(__name__)

PAUSE_SECONDS = (0.1, 5.0)
"""Seconds before the first retry, and before late ones."""


def retry_pause(failures: int) -> float:
    """Seconds before the next retry."""
    first, late = PAUSE_SECONDS
    return min(first * (1 << min(failures, 10)), late)


class Attempts:
    """Counts failures in a row of a server, and waits longer after each. Logs the first, and the recovery."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failures = 0

    async def failed(self, error: Exception) -> None:
        """Note a failure, and wait until the next attempt."""
        if not self._failures:
            logger.warning("%s does not answer. It is tried again: %s", self._name, error)
        await asyncio.sleep(retry_pause(self._failures))
        self._failures += 1

    def succeeded(self) -> None:
        """Log the recovery after failures."""
        if self._failures:
            logger.warning("%s answers again", self._name)
        self._failures = 0


UNWELL_SECONDS = 15.0
"""How long a failure counts without a success, because the work may not have been tried since."""


class FailurePause:
    """Pauses work after each failure, longer each time."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = self._failed_at = 0.0
        self.has_missed = False
        """Whether events were skipped in the pause."""

    @property
    def is_over(self) -> bool:
        """Whether the pause is over, so that the work may be tried."""
        return time.monotonic() >= self._until

    @property
    def has_failed_recently(self) -> bool:
        """Whether the work failed within `UNWELL_SECONDS`."""
        return time.monotonic() < self._failed_at + UNWELL_SECONDS

    def failed(self) -> bool:
        """Note a failure, and begin a pause. True for the first failure in a row."""
        self._failed_at = time.monotonic()
        self._until = self._failed_at + retry_pause(self._failures)
        self._failures += 1
        self.has_missed = False
        return self._failures == 1
