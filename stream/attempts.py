"""Attempts to reach a server that is gone."""

import asyncio
import logging

logger = logging.getLogger(__name__)

PAUSES = (0.1, 5.0)
"""Seconds before the first and before the late attempts to reach a server that is gone."""


def pause(failures: int) -> float:
    """Seconds before the next attempt, after so many failures before the last."""
    first, late = PAUSES
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
