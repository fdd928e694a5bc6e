"""Finds repeated rows after reading a file, in 8 bytes for its line and for each number."""

from array import array
from collections.abc import Iterator

import numpy as np


class RowNumbers:
    """The numbers of the rows read."""

    def __init__(self, width: int) -> None:
        self._columns = [array("q") for _ in range(width)]
        self._lines = array("q")

    def add(self, line: int, *numbers: int) -> None:
        """Remember a row."""
        self._lines.append(line)
        for column, number in zip(self._columns, numbers, strict=True):
            column.append(number)

    def repeated(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Lines and numbers of repeated rows, in file order."""
        columns = [np.frombuffer(column, dtype=np.int64) for column in self._columns]
        order = np.lexsort(columns)  # stable: equal rows stay in file order
        is_same = np.ones(max(len(order) - 1, 0), dtype=bool)
        for column in columns:
            ordered = column[order]
            is_same &= ordered[1:] == ordered[:-1]
        for place in np.sort(order[1:][is_same]):
            yield self._lines[place], tuple(column[place] for column in self._columns)
