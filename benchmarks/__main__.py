"""Run the benchmarks: `python -m benchmarks [NAME ...] [--quick] [--json FILE] [--page FILE] [--from FILE]`."""

import argparse
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import scaling
from benchmarks.ground import QUICK, Size, own_site
from benchmarks.measure import Report
from benchmarks.report import as_text, machine, read, renew, write

COMMUNITY = (
    "memory",
    "round_trips",
    "home_page",
    "depth",
    "hidden",
    "http_page",
    "fan_out",
    "publish",
    "cluster",
    "publish_to_inbox",
    "streams",
    "discover",
    "likes",
    "search",
    "moderation",
    "impressions",
    "played",
    "costs",
)
LIVE = ("live",)
"""Benchmarks on hosts with live sessions."""
PICTURES = ("pictures", "strangers")
"""Benchmarks on posts with pictures, and on who reads posts."""
FOLLOWERS = ("growth_followers", "big_v")
"""Benchmarks on senders with up to a million followers."""
GRAPHS = ("growth_graph",)
"""Benchmarks on one community in growing sizes."""
ALONE = ("idle",)
"""Benchmarks on a site of their own, started by `up`."""
LOAD = ("load",)
"""Benchmarks on a crowd that uses a site under `up`."""
NAMES = (*ALONE, *LOAD, *COMMUNITY, *LIVE, *PICTURES, *FOLLOWERS, *GRAPHS)
REAL = ("discover_walk", "discover_quality")
"""Benchmarks on a real data set."""
LIKED = ("discover_liked",)
"""Benchmarks on the interactions of a data set, taken as posts and likes."""
PLAYED = ("played_simulation",)
"""Benchmarks that play the interactions of one: for half an hour, so by its name only."""
LONG = ("soak",)
"""Benchmarks that take an hour, so by their names only."""
GROWN = ("growth_items",)
"""Benchmarks on up to 50 million items: for hours and 40 GB, so by their names only."""
SWEPT = ("sweeps",)
"""Benchmarks on rows that expire: by their names only, for they ask whether something holds, not how fast it is."""
BY_NAME = (*PLAYED, *LONG, *GROWN, *SWEPT)
KNOWN = (*NAMES, *REAL, *LIKED, *BY_NAME)


def main() -> None:
    """Run the wanted benchmarks, and write their reports as JSON, page and plots."""
    options = parsed(sys.argv[1:])
    if options.earlier:
        _save(options, {}, read(options.earlier))
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends with everything stopped and removed
    size = QUICK if options.quick else Size()
    if options.soak:
        size = replace(size, soak_seconds=options.soak)
    if options.items:
        size = replace(size, grown_items=(*size.grown_items[:-1], options.items))
    begin = time.perf_counter()
    reports: dict[str, Report] = {}
    failed = []
    with own_site(options.keep):
        for name, report in _measured(options, size):
            if report is None:
                failed.append(name)
                continue
            reports[name] = report
            print(as_text(report), end="\n\n", flush=True)
            # Saved after each benchmark, so that its figures stay if a later one fails.
            _save(options, {"seconds": round(time.perf_counter() - begin), "size": asdict(size)}, reports)
    print(f"{time.perf_counter() - begin:.0f} s in all; load now {os.getloadavg()[0]:.2f}.")
    missed = [ratio.name for report in reports.values() for ratio in report.ratios if ratio.is_met is False]
    said = [f"Targets missed: {'; '.join(missed)}."] if missed and not options.quick else []
    said += [f"Failed: {', '.join(failed)}."] if failed else []
    if said:
        sys.exit("\n".join(said))


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options, with the names of what is to be run."""
    parser = argparse.ArgumentParser(prog="manage.py bench", description="Measure ratios against peers and limits.")
    whole = f"Of {', '.join(KNOWN)}; without one, all but {', '.join(BY_NAME)}."
    on_data = ", ".join(REAL + LIKED + PLAYED)
    needs = f"A data set as `load` takes it: for {on_data}, and for {', '.join(GRAPHS)} if given."
    parser.add_argument("name", nargs="*", metavar="NAME", help=whole)
    parser.add_argument("--data", type=Path, metavar="DIR", help=needs)
    kept = f"Work in this folder and leave it: what {', '.join(GROWN)} generated there is taken again."
    parser.add_argument("--keep", type=Path, metavar="DIR", help=kept)
    items = f"Items of the largest community of {', '.join(GROWN)}: 50 million take 40 GB and an hour or more."
    parser.add_argument("--items", type=int, metavar="N", help=items)
    parser.add_argument("--quick", action="store_true", help="Tiny sizes: shows that it runs, measures nothing.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the results as JSON.")
    parser.add_argument("--page", type=Path, metavar="FILE", help="Renew the figures and plots of this Markdown page.")
    parser.add_argument("--soak", type=float, metavar="SECONDS", help=f"For {', '.join(LONG)}: how long it takes.")
    earlier = "Measure nothing: take what --json wrote in an earlier run."
    parser.add_argument("--from", type=Path, metavar="FILE", dest="earlier", help=earlier)
    options = parser.parse_args(arguments)
    options.name = options.name or [*NAMES, *(REAL + LIKED if options.data else ())]
    if unknown := set(options.name).difference(KNOWN):
        parser.error(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(KNOWN)}.")
    if not (options.data or options.earlier) and set(options.name).intersection(REAL + LIKED + PLAYED):
        parser.error(f"{on_data}: give a data set by --data DIR.")
    return options


def _measured(options: argparse.Namespace, size: Size) -> Iterator[tuple[str, Report | None]]:
    """Each benchmark's report, or None where it failed: the others are still worth measuring."""
    from benchmarks.community import Community
    from benchmarks.crowd import Crowd
    from benchmarks.followers import Followers
    from benchmarks.graphs import Graphs
    from benchmarks.grown import Grown
    from benchmarks.hosts import Hosts
    from benchmarks.idle import Alone
    from benchmarks.pictures import Pictured
    from benchmarks.real import Interactions, RealData, Worked
    from benchmarks.sweeps import Swept

    groups = (
        (ALONE, Alone(size)),
        (LOAD + LONG, Crowd(size)),
        (COMMUNITY, Community(size)),
        (LIVE, Hosts(size)),
        (PICTURES, Pictured(size)),
        (FOLLOWERS, Followers(size)),
        (GRAPHS, Graphs(options.data, size)),
        (SWEPT, Swept(size)),
        (GROWN, Grown(size)),
        (REAL, options.data and RealData(options.data, size)),
        (LIKED, options.data and Worked(options.data, size)),
        (PLAYED, options.data and Interactions(options.data, size)),
    )
    for some, data in groups:
        chosen = [name for name in options.name if name in some]
        if not chosen:
            continue
        data.build()
        data_set = data.described()
        print(f"{data_set}.\n", flush=True)
        for name in chosen:
            facts = machine()
            begin = time.perf_counter()
            try:
                report: Report = importlib.import_module(f"benchmarks.{name}").run(data)
            except Exception:  # noqa: BLE001 (after any error the others go on)
                traceback.print_exc()
                yield name, None
                continue
            report.seconds = round(time.perf_counter() - begin, 1)
            report.machine = facts | {"load_after": round(os.getloadavg()[0], 2)}
            report.data_set = data_set
            yield name, report


def _save(options: argparse.Namespace, about: dict[str, Any], reports: dict[str, Report]) -> None:
    if options.json:
        write(options.json, about, reports)
    if options.page:
        known = renew(options.page, reports)
        scaling.renew(options.page.with_name("scaling.md"), known)


if __name__ == "__main__":
    main()
