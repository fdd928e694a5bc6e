"""Reports as text, JSON, and parts of docs/benchmarks.md."""

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import BenchmarkReport, Ratio

PACKAGES = ("django", "djangorestframework", "celery", "psycopg", "redis", "hiredis", "granian", "msgspec")
MET = {True: "met", False: "**missed**", None: ""}


def machine() -> dict[str, Any]:
    """Date, machine and versions of a run."""
    from storage.connections import feeds_for_tasks, fetch

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
    """A table in Markdown that also reads well as text."""
    texts = [[str(column) for column in columns], *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(columns))]
    numeric = [all(isinstance(row[place], int | float) for row in rows) for place in range(len(columns))]
    lines = [
        " | ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        )
        for row in texts
    ]
    rule = "|".join("-" * (width + 1) + (":" if right else "-") for width, right in zip(widths, numeric, strict=True))
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def _cell(cell: Any) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def written(value: float) -> str:
    """A number with two digits, without "-0.00"."""
    return f"{round(value, 2) + 0.0:.2f}"


def as_text(report: BenchmarkReport) -> str:
    """The report as text: question, table, ratios, notes."""
    parts = [f"### {report.name}: {report.question}", f"{report.n}.", table(report.columns, report.rows)]
    ratios = [[one.name, written(one.value), one.target, MET[one.is_met]] for one in report.ratios]
    parts += [table(["ratio", "value", "target", ""], ratios)] if ratios else []
    return "\n\n".join([*parts, *report.notes])


def write(path: Path, reports: Mapping[str, BenchmarkReport]) -> None:
    """Write the reports as JSON."""
    results = {name: report.as_json() for name, report in reports.items()}
    path.write_text(json.dumps({"results": results}, indent=1, ensure_ascii=False) + "\n")


def renew(page: Path, reports: Mapping[str, BenchmarkReport]) -> None:
    """Replace each report in the page between its marks, or append it."""
    text = page.read_text()
    head = text.partition("<!-- figures: ")[0]
    for name, report in reports.items():
        begin, end = f"<!-- figures: {name} -->", f"<!-- end of {name} -->"
        part = f"{begin}\n{as_part(report, head)}\n{end}"
        if begin in text:
            before, rest = text.split(begin)
            text = f"{before}{part}{rest.split(end)[1]}"
        else:
            text = f"{text.rstrip()}\n\n### {name}\n{report.question}\n\n{part}\n"
    page.write_text(text)


def as_part(report: BenchmarkReport, head: str) -> str:
    """The report's part of the page: date and machine, table, targets, notes.

    Does not repeat what the page's head tells.
    """
    facts = report.machine
    load = " to ".join(f"{facts[name]:g}" for name in ("load_before", "load_after") if name in facts)
    versions = f"Python {facts['python']}, PostgreSQL {facts['postgresql']}, Valkey {facts['valkey']}"
    about = [
        f"{facts['date'].partition(' ')[0]}, load {load}",
        f"{facts['cores']} cores of {facts['processor']}, {versions}",
        report.data_set,
        report.n,
    ]
    told = " ".join(f"{sentence}." for sentence in about if sentence not in head)
    return "\n\n".join([told, table(report.columns, report.rows), *_targets(report.ratios), *report.notes])


def _targets(ratios: Sequence[Ratio]) -> list[str]:
    aimed = [ratio for ratio in ratios if ratio.target]
    if not aimed:
        return []
    missed = [ratio for ratio in aimed if not ratio.is_met]
    said = f"Targets met: {len(aimed) - len(missed)} of {len(aimed)}."
    return [f"{said} **Missed**: {_named(missed)}." if missed else said]


def _named(ratios: Sequence[Ratio]) -> str:
    """A line of ratios. Those of the same two things and the same target stand together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in ratios:
        about, _, case = one.name.partition(", ")
        if "/" not in about:
            about, case = one.name, ""
        groups.setdefault((about, one.target), []).append(f"{case} {written(one.value)}".strip())
    return ". ".join(f"{about} ({target}): {'; '.join(cases)}" for (about, target), cases in groups.items())
