"""Attempts to reach a server that is gone, and rests after errors.

See docs/decisions.md: Apps hear the same bytes.
"""

import asyncio
import logging
import time

logger = logging.getLogger(__name__)

PAUSE_SECONDS = (0.1, 5.0)
"""Seconds before the first and before the late attempts to reach a server that is gone."""


def pause(failures: int) -> float:
    """Seconds before the next attempt, after so many failures before the last."""
    first, late = PAUSE_SECONDS
    return min(first * (1 << min(failures, 10)), late)


class Attempts:
    """Waits longer from attempt to attempt, and says once what is the matter, and once that it is over."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failures = 0

    async def failed(self, error: Exception) -> None:
        """Wait for the next attempt; say once that the server does not answer."""
        if not self._failures:
            logger.warning("%s does not answer: %s", self._name, error)
        await asyncio.sleep(pause(self._failures))
        self._failures += 1

    def succeeded(self) -> None:
        """Say that the server answers again, if it had not."""
        if self._failures:
            logger.warning("%s answers again", self._name)
        self._failures = 0


UNWELL_SECONDS = 15.0
"""Seconds for which a failure counts that no success followed: the work may not have been tried since."""


class Rest:
    """The time for which work that failed is not tried again. It grows from failure to failure."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = self._failed_at = 0.0
        self.has_missed = False
        """Whether something was passed over meanwhile."""

    @property
    def is_over(self) -> bool:
        """Whether the work may be tried."""
        return time.monotonic() >= self._until

    @property
    def is_unwell(self) -> bool:
        """Whether the last failure is no longer ago than `UNWELL_SECONDS`."""
        return time.monotonic() < self._failed_at + UNWELL_SECONDS

    def failed(self) -> bool:
        """Rest, after an error. Whether this is the first of a row."""
        self._failed_at = time.monotonic()
        self._until = self._failed_at + pause(self._failures)
        self._failures += 1
        self.has_missed = False
        return self._failures == 1
