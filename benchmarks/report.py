"""Reports as text, JSON, and sections of docs/benchmarks.md."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import BenchmarkReport, Ratio, span, written

PACKAGES = ("django", "djangorestframework", "celery", "psycopg", "redis", "hiredis", "granian", "msgspec")
MEASURED = "Measured on "
MET = {True: "met", False: "**missed**", None: ""}


def machine() -> dict[str, Any]:
    """Date, machine and versions of a run."""
    from storage.connections import feeds_for_tasks, fetch

    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    server = feeds_for_tasks().info("server")
    return {
        "commit": commit(),
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


@cache
def commit() -> str:
    """The commit of this tree at the first call, with "+changes" if its code differs."""
    from django.conf import settings

    def git(*arguments: str) -> str:
        run = subprocess.run(["git", *arguments], cwd=settings.BASE_DIR, check=False, capture_output=True, text=True)
        return run.stdout.strip()

    changes = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return (git("rev-parse", "--short", "HEAD") or "an unknown commit") + ("+changes" if changes else "")


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


def renew(page: Path, reports: Mapping[str, BenchmarkReport], *, is_whole: bool = False) -> None:
    """Replace each report's section in the page, or append it. A whole run is told once, in the head."""
    text = page.read_text()
    for name, report in reports.items():
        if is_whole:
            text = re.sub(rf"^{MEASURED}.*$", of_run(report), text, count=1, flags=re.MULTILINE)
        begin, found, rest = text.partition(f"\n### {name}\n")
        before = begin if found else begin.rstrip() + "\n"
        _, after = re.split(r"(?=\n#)|\Z", rest, maxsplit=1)
        about = [] if is_whole else [of_run(report, told=text.partition("\n### ")[0])]
        about += [data] if (data := f"{report.data_set}.") not in before + after else []
        text = f"{before}\n{as_section(report, ' '.join(about))}\n{after}"
    page.write_text(text)


def of_run(report: BenchmarkReport, told: str = "") -> str:
    """A sentence about the run: date, commit, load, and what is not told yet of machine and versions."""
    facts = report.machine
    machine = f"{facts['cores']} cores of {facts['processor']}, {facts['system']}"
    versions = f"Python {facts['python']}, PostgreSQL {facts['postgresql']}, Valkey {facts['valkey']}"
    moment = f"{MEASURED}{facts['date'].partition(' ')[0]} at {facts['commit']}"
    parts = [moment, *(part for part in (machine, versions) if part not in told)]
    return f"{', '.join(parts)}; load {facts['load_before']:g} at the start."


def as_section(report: BenchmarkReport, about: str) -> str:
    """The report's section: question, run and data, figures beside their targets, what is missed."""
    parts = [f"### {report.name}\n{report.question}", about, _figures(report), _ends(report.ratios)]
    return "\n\n".join(filter(None, parts))


def _figures(report: BenchmarkReport) -> str:
    """A table of the chosen figures and of the ratios with targets, in bold what misses one.

    Ratios of the same things share a row.
    """
    groups: dict[str, list[Ratio]] = {}
    for ratio in report.ratios:
        if ratio.target and not _is_zero(ratio):
            groups.setdefault(_split(ratio.name)[0], []).append(ratio)
    rows = list(map(list, report.figures))
    for about, ratios in groups.items():
        measured = span([ratio.value for ratio in ratios])
        if any(ratio.is_met is False for ratio in ratios):
            measured = f"**{measured}**"
        rows.append([about, measured, ", ".join(dict.fromkeys(ratio.target for ratio in ratios))])
    width = 3 if any(target for *_, target in rows) else 2
    return table(["", "measured", "target"][:width], [row[:width] for row in rows]) if rows else ""


def _ends(ratios: Sequence[Ratio]) -> str:
    """What is zero, and which cases of a row miss their target."""
    zero = [ratio.name for ratio in ratios if _is_zero(ratio)]
    missed: dict[str, list[str]] = {}
    for ratio in ratios:
        about, case = _split(ratio.name)
        if case and ratio.is_met is False:
            missed.setdefault(about, []).append(f"{case} {written(ratio.value)}")
    said = [f"Zero: {'; '.join(zero)}."] if zero else []
    cases = ". ".join(f"{about}: {'; '.join(some)}" for about, some in missed.items())
    return " ".join([*said, *([f"**Missed**: {cases}."] if cases else [])])


def _is_zero(ratio: Ratio) -> bool:
    return ratio.at_most == 0 == ratio.value


def _split(name: str) -> tuple[str, str]:
    """What is compared, and the case."""
    about, _, case = name.partition(", ")
    return about, case
