import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """The last `most` values of a process, by key. All threads share it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: dict[Hashable, V] = {}
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value of a key, if it is still there."""
        return self._values.get(key)

    def put(self, key: Hashable, value: V) -> None:
        """Add a value. The oldest one leaves."""
        with self._changing:
            while len(self._values) >= self.most and key not in self._values:
                del self._values[next(iter(self._values))]
            self._values[key] = value

    def clear(self) -> None:
        """Forget everything."""
        with self._changing:
            self._values.clear()
