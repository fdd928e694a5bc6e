"""Run benchmarks: `python -m benchmarks [NAME ...] [--quick] [--json FILE] [--page FILE]`."""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import QUICK, BenchmarkReport, Size
from benchmarks.report import as_text, machine, renew, write

FEEDS_MEMORY = "6gb"
"""More than the windows of 20,000 readers at level 3, so nothing is evicted during a measurement."""

GROUPS = (
    ("idle:Alone", {"idle": "idle:run"}),
    ("outside:LaneMembers", {"outside": "outside:run"}),
    ("load:Crowd", {"load": "load:run", "soak": "soak:run"}),
    (
        "community:Community",
        {
            "home_page": "home_page:run",
            "depth": "home_page:depth",
            "hidden": "home_page:hidden",
            "http_page": "http_page:run",
            "fan_out": "fan_out:run",
            "publish": "publish:run",
            "streams": "streams:run",
            "discover": "discover:run",
            "impressions": "discover:impressions",
            "played": "played:run",
            "costs": "costs:run",
        },
    ),
    ("growth:Followers", {"growth_followers": "growth:followers", "big_v": "growth:big_v"}),
    ("growing:Growing", {"growth_items": "growing:run"}),
    ("discover:RealData", {"discover_quality": "discover:quality"}),
)
"""The data of each group, and its benchmarks in order."""
KNOWN = tuple(name for _, names in GROUPS for name in names)
REAL = ("discover_quality",)
"""Benchmarks that need a data set."""
BY_NAME = ("soak",)
"""Benchmarks that take an hour and run only by name."""


def main() -> None:
    """Run the benchmarks, and write their reports."""
    options = parsed(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops and removes everything at the end
    size = QUICK if options.quick else Size()
    if options.soak:
        size = replace(size, soak_seconds=options.soak)
    if options.items:
        size = size.grown(options.items)
    begin = time.perf_counter()
    reports: dict[str, BenchmarkReport] = {}
    failed = []
    with own_site():
        for name, report in _measured(options, size):
            if report is None:
                failed.append(name)
                continue
            reports[name] = report
            print(as_text(report), end="\n\n", flush=True)
            # Saved after each benchmark, so a later failure loses nothing.
            if options.json:
                write(options.json, reports)
            if options.page:
                renew(options.page, {name: report}, is_whole=options.is_whole)
    print(f"{time.perf_counter() - begin:.0f} s in all; load now {os.getloadavg()[0]:.2f}.")
    missed = [ratio.name for report in reports.values() for ratio in report.ratios if ratio.is_met is False]
    said = [f"Targets missed: {'; '.join(missed)}."] if missed and not options.quick else []
    said += [f"Failed: {', '.join(failed)}."] if failed else []
    if said:
        sys.exit("\n".join(said))


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="manage.py bench", description="Measure ratios against peers and limits.")
    whole = f"Of {', '.join(KNOWN)}. Without a name: all but {', '.join(BY_NAME)}."
    parser.add_argument("name", nargs="*", metavar="NAME", help=whole)
    needs = f"A data set as `load` takes it. {', '.join(REAL)} needs one."
    parser.add_argument("--data", type=Path, metavar="DIR", help=needs)
    parser.add_argument(
        "--items", type=int, metavar="N", help="growth_items: the largest number of items, against a million or less."
    )
    parser.add_argument("--quick", action="store_true", help="Tiny sizes: shows that it runs, measures nothing.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the results as JSON.")
    parser.add_argument("--page", type=Path, metavar="FILE", help="Renew the figures of this Markdown page.")
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="soak: how long it takes.")
    options = parser.parse_args(arguments)
    left_out = BY_NAME if options.data else BY_NAME + REAL
    options.is_whole = not options.name
    options.name = options.name or [name for name in KNOWN if name not in left_out]
    if unknown := set(options.name).difference(KNOWN):
        parser.error(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(KNOWN)}.")
    if not options.data and set(options.name).intersection(REAL):
        parser.error(f"{', '.join(REAL)}: give a data set by --data DIR.")
    return options


def _measured(options: argparse.Namespace, size: Size) -> Iterator[tuple[str, BenchmarkReport | None]]:
    """Run the benchmarks and yield each report. None if one failed: the others still run."""
    for data_name, names in GROUPS:
        chosen = [name for name in options.name if name in names]
        if not chosen:
            continue
        data = named(data_name)(size, options.data)
        data.build()
        data_set = data.described()
        print(f"{data_set}.\n", flush=True)
        for name in chosen:
            facts = machine()
            begin = time.perf_counter()
            try:
                report: BenchmarkReport = named(names[name])(data)
            except Exception:  # noqa: BLE001 (the other benchmarks still run)
                traceback.print_exc()
                yield name, None
                continue
            report.seconds = round(time.perf_counter() - begin, 1)
            report.machine = facts | {"load_after": round(os.getloadavg()[0], 2)}
            report.data_set = data_set
            yield name, report


def named(name: str) -> Any:
    """What a name of `GROUPS` leads to."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"benchmarks.{module}"), attribute)


@contextmanager
def own_site() -> Iterator[None]:
    """Run servers and a migrated database in a temporary folder. Call it before Django reads its settings."""
    with tempfile.TemporaryDirectory(prefix="feedsite-bench-", ignore_cleanup_errors=True) as folder:
        theirs = ("FEEDSITE_", "COVERAGE_")
        for name in [name for name in os.environ if name.startswith(theirs) and name != "FEEDSITE_VENV"]:
            del os.environ[name]
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "feedsite.settings",
            "FEEDSITE_DATA_DIR": folder,
            "FEEDSITE_ENV_FILE": os.devnull,
            "FEEDSITE_FEEDS_MEMORY": FEEDS_MEMORY,
            "FEEDSITE_LOG_LEVEL": "WARNING",
            "FEEDSITE_RATE_SCALE": "1e6",  # calls are counted but never refused
            "FEEDSITE_REDIS_TIMEOUT_SECONDS": "1",  # a busy machine is no outage
        }
        import django
        from django.conf import settings

        with settings.SERVERS.ensure():
            (Path(folder) / "static").mkdir(exist_ok=True)
            django.setup()
            from django.core.management import call_command
            from django.db import connections

            call_command("migrate", interactive=False, verbosity=0)
            call_command("collectstatic", interactive=False, verbosity=0)
            try:
                yield
            finally:
                connections.close_all()


if __name__ == "__main__":
    main()
