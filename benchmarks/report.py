"""Results for people and programs: tables, JSON, and the figures and plots of docs/benchmarks.md.

Beside the page lies what it was made of, in the format of `--json`: a run of one benchmark renews its part, and the
others keep theirs.
"""

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.fits import written
from benchmarks.measure import Report
from benchmarks.plots import charts

PACKAGES = ("django", "djangorestframework", "celery", "psycopg", "redis", "hiredis", "granian", "msgspec")
SUMMARY = "all"
"""The name of the part of the page that tells of all benchmarks."""
MET = {True: "met", False: "**missed**", None: ""}


def machine() -> dict[str, Any]:
    """The date, the machine and the versions of a run."""
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
    """A table's cell as text."""
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def as_text(report: Report) -> str:
    """Question, table, ratios, notes."""
    parts = [f"### {report.name}: {report.question}", f"{report.n}.", table(report.columns, report.rows)]
    return "\n\n".join([*parts, *_ratios(report), *report.notes])


def _ratios(report: Report) -> list[str]:
    rows = [[one.name, written(one.value), one.target, MET[one.is_met]] for one in report.ratios]
    return [table(["ratio", "value", "target", ""], rows)] if rows else []


# --- JSON ------------------------------------------------------------------------------------------------
def write(path: Path, about: Mapping[str, Any], reports: Mapping[str, Report]) -> None:
    """Write the reports as JSON, for `read` and for programs."""
    results = {name: report.as_json() for name, report in reports.items()}
    path.write_text(json.dumps({**about, "results": results}, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> dict[str, Report]:
    """The reports of an earlier run, by their names."""
    results = json.loads(path.read_text())["results"]
    return {name: Report.from_json(found) for name, found in results.items()}


# --- The page --------------------------------------------------------------------------------------------
def renew(page: Path, reports: Mapping[str, Report]) -> dict[str, Report]:
    """Put what was found between its marks in the page, with its plots; what people wrote around them stays, and so
    does what was found by others before. Returns all that is known now.
    """
    kept = page.with_suffix(".json")
    text = page.read_text()
    known = (read(kept) if kept.exists() else {}) | dict(reports)
    known = dict(sorted(known.items(), key=lambda pair: text.find(_mark(pair[0]))))
    write(kept, {}, known)
    pictures = page.with_suffix("")
    pictures.mkdir(exist_ok=True)
    text = put(text, SUMMARY, summary(known))
    for name, report in known.items():
        for old in pictures.glob(f"{name.replace('_', '-')}.*.svg"):
            old.unlink()
        drawn = list(charts(report))
        for file, _, picture in drawn:
            (pictures / file).write_text(picture)
        links = [f"![{_plain(said)}]({pictures.name}/{file})" for file, said, _ in drawn]
        text = put(text, name, as_part(report, links))
    page.write_text(text)
    return known


def as_part(report: Report, pictures: Sequence[str]) -> str:
    """The part of the page about one benchmark."""
    took = f" in {_seconds(report)} s" if report.seconds else ""
    about = f"Measured {report.machine['date']}{took} at a load of {_load(report)}: {report.n}."
    parts = [f"### {report.name}: {report.question}", about, f"Data: {report.data_set}."]
    return "\n\n".join([*parts, table(report.columns, report.rows), *pictures, *_ratios(report), *report.notes])


def summary(reports: Mapping[str, Report]) -> str:
    """All targets in a line a benchmark, and what everything was measured on."""
    rows, missed = [], []
    for name, report in reports.items():
        aimed = [ratio for ratio in report.ratios if ratio.target]
        left = [f"{ratio.name} ({written(ratio.value)}, {ratio.target})" for ratio in aimed if not ratio.is_met]
        missed += [f"- **{name}** misses {'; '.join(left)}."] if left else []
        met = f"{len(aimed) - len(left)} of {len(aimed)}" if aimed else "none set"
        rows.append([name, met, report.machine["date"], _load(report), _seconds(report)])
    columns = ["benchmark", "targets met", "measured", "load", "seconds"]
    machines: dict[str, list[str]] = {}
    for name, report in reports.items():
        machines.setdefault(_machine(report), []).append(name)
    said = [f"{about}." if len(machines) == 1 else f"{', '.join(names)}: {about}." for about, names in machines.items()]
    return "\n\n".join([table(columns, rows), *(["\n".join(missed)] if missed else []), *said])


def _load(report: Report) -> str:
    facts = report.machine
    return " to ".join(f"{facts[name]:g}" for name in ("load_before", "load_after") if name in facts)


def _seconds(report: Report) -> str:
    return f"{report.seconds:.0f}" if report.seconds else ""


def _machine(report: Report) -> str:
    facts = report.machine
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    return (
        f"{facts['cores']} cores of {facts['processor']}, {facts['system']}, Python {facts['python']}, PostgreSQL "
        f"{facts['postgresql']}, Valkey {facts['valkey']}; {packages}"
    )


def _plain(words: str) -> str:
    """For an alternative text: brackets would end it."""
    return words.replace("[", "(").replace("]", ")")


def put(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of that name, at the end where there are none."""
    begin, end = _mark(name), f"<!-- end of {name} -->"
    part = f"{begin}\n\n{text}\n\n{end}"
    if begin not in page:
        return f"{page.rstrip()}\n\n{part}\n"
    before, rest = page.split(begin)
    return f"{before}{part}{rest.split(end)[1]}"


def _mark(name: str) -> str:
    return f"<!-- figures: {name} -->"
