"""Reports all wrong lines of a data set, in words and as CSV.

A report keeps the first lines and counts the rest, so its memory is bounded.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

SHOWN = 20
"""Lines reported in words. The rest are counted."""
REASON_LENGTH = 300
COLUMNS = ("table", "line", "column", "kind", "reason")


class Problem(NamedTuple):
    """A wrong line. `column` is empty if the whole line is wrong. `kind` groups equal faults."""

    table: str
    line: int
    column: str
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{self.table} line {self.line}: {self.reason}"


class DatasetError(Exception):
    """The data set cannot be loaded. The message names file and line."""


class LineError(DatasetError):
    """One line cannot be loaded."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Report:
    """The problems of a data set. With a file, each is written when found."""

    def __init__(self, file: IO[str] | None = None) -> None:
        self.first: list[Problem] = []
        self.kinds: Counter[tuple[str, str, str]] = Counter()
        self._rows = csv.writer(file) if file else None
        if self._rows:
            self._rows.writerow(COLUMNS)

    def __len__(self) -> int:
        return self.kinds.total()

    def add(self, error: LineError) -> None:
        """Add the problem of a line."""
        problem = error.problem._replace(reason=error.problem.reason[:REASON_LENGTH])
        if len(self.first) < SHOWN:
            self.first.append(problem)
        self.kinds[problem.table, problem.column, problem.kind] += 1
        if self._rows:
            self._rows.writerow(problem)

    def __str__(self) -> str:
        said = [str(problem) for problem in self.first]
        if len(self) > len(said):
            said += [f"... and {len(self) - len(said):,} more. Of each kind:"]
            for (table, column, kind), count in sorted(self.kinds.items()):
                said.append(f"{count:>10,}  {table}{f', {column}' if column else ''}: {kind}")
        return "\n".join(said)


class RefusedError(DatasetError):
    """Lines of the data set cannot be loaded."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


@contextmanager
def reporting(path: Path | None) -> Iterator[Report]:
    """A report that is also written to this file. Raises OSError."""
    if path is None:
        yield Report()
        return
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield Report(file)
