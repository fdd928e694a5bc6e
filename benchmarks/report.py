"""Results for people and programs: tables, JSON, and the figures in docs/benchmarks.md."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Report
from feedsite.connections import feeds_for_tasks, fetch

PACKAGES = ("django", "djangorestframework", "celery", "psycopg", "redis", "hiredis", "granian", "msgspec")
MARKS = "<!-- figures: made by `manage.py bench --page` -->", "<!-- end of figures -->"


def machine() -> dict[str, Any]:
    """What was measured on what."""
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    server = feeds_for_tasks().info("server")
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "processor": model.group(1) if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "postgresql": fetch("SHOW server_version")[0][0],
        "valkey": server.get("valkey_version") or server["redis_version"],
        "packages": {name: version(name) for name in PACKAGES},
    }


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table that also reads well as text."""
    texts = [[str(column) for column in columns], *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(columns))]
    numeric = [all(isinstance(row[place], int | float) for row in rows) for place in range(len(columns))]
    lines = [
        " | ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        )
        for row in texts
    ]
    rule = " | ".join("-" * (width - 1) + (":" if right else "-") for width, right in zip(widths, numeric, strict=True))
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def shown(cell: Any) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def as_text(report: Report) -> str:
    """Question, table, ratios."""
    parts = [f"### {report.name}: {report.question}", f"{report.n}.", table(report.columns, report.rows)]
    marks = {True: "met", False: "**missed**", None: ""}
    ratios = [[one.name, f"{one.value:.2f}", one.target, marks[one.is_met]] for one in report.ratios]
    if ratios:
        parts.append(table(["ratio", "value", "target", ""], ratios))
    return "\n\n".join([*parts, *report.notes])


def as_page(facts: dict[str, Any], data_set: str, reports: Sequence[Report]) -> str:
    """The figures of one run, for docs/benchmarks.md."""
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    about = (
        f"Measured {facts['date']} on {facts['cores']} cores ({facts['processor']}; load before "
        f"{facts['load_before']}), {facts['system']}, Python {facts['python']}, PostgreSQL {facts['postgresql']}, "
        f"Valkey {facts['valkey']}; {packages}. Data: {data_set}."
    )
    return "\n\n".join([about, *(as_text(report) for report in reports)])


def write_page(path: Path, text: str) -> None:
    """Put the figures between their marks; what people wrote around them stays."""
    before, rest = path.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    path.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}")
