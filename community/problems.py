"""Reports all wrong lines of a data set: the first ones, and a count of the rest."""

from collections import Counter
from typing import NamedTuple

SHOWN = 20
"""Lines reported in words. The rest are counted."""
REASON_LENGTH = 300


class LineProblem(NamedTuple):
    """A wrong line, or its `column`. `kind` groups equal faults."""

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

    def __init__(self, problem: LineProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class ProblemReport:
    """The problems of a data set."""

    def __init__(self) -> None:
        self.first: list[LineProblem] = []
        self.kinds: Counter[tuple[str, str, str]] = Counter()

    def __len__(self) -> int:
        return self.kinds.total()

    def add(self, error: LineError) -> None:
        """Add the problem of a line."""
        problem = error.problem._replace(reason=error.problem.reason[:REASON_LENGTH])
        if len(self.first) < SHOWN:
            self.first.append(problem)
        self.kinds[problem.table, problem.column, problem.kind] += 1

    def __str__(self) -> str:
        said = [str(problem) for problem in self.first]
        if len(self) > len(said):
            said += [f"... and {len(self) - len(said):,} more. Of each kind:"]
            for (table, column, kind), count in sorted(self.kinds.items()):
                said.append(f"{count:>10,}  {table}{f', {column}' if column else ''}: {kind}")
        return "\n".join(said)


class DatasetRefusedError(DatasetError):
    """Lines of the data set cannot be loaded."""

    def __init__(self, report: ProblemReport) -> None:
        super().__init__(str(report))
        self.report = report
