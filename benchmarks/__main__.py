"""Run the benchmarks: `python -m benchmarks [NAME ...] [--quick] [--json FILE] [--page FILE]`."""

import argparse
import importlib
import json
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.ground import QUICK, Size, own_site

COMMUNITY = (
    "memory",
    "round_trips",
    "home_page",
    "depth",
    "http_page",
    "fan_out",
    "publish_to_inbox",
    "streams",
    "discover",
    "likes",
    "search",
    "moderation",
    "impressions",
    "played",
)
LIVE = ("live",)
"""What is measured on hosts with live sessions."""
NAMES = (*COMMUNITY, *LIVE)
REAL = ("discover_walk", "discover_quality")
"""What is measured on a real data set."""
PLAYED = ("played_simulation",)
"""What plays the interactions of one."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="manage.py bench", description="Measure ratios against peers and limits.")
    known = (*NAMES, *REAL, *PLAYED)
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"Of {', '.join(known)}; without one, all.")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help=f"A data set as `load` takes it: for {', '.join(REAL + PLAYED)}."
    )
    parser.add_argument("--quick", action="store_true", help="Tiny sizes: shows that it runs, measures nothing.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the results as JSON.")
    parser.add_argument("--page", type=Path, metavar="FILE", help="Renew the figures in this Markdown file.")
    options = parser.parse_args()
    names = options.name or [*NAMES, *(REAL + PLAYED if options.data else ())]
    if unknown := set(names).difference(known):
        parser.error(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}.")
    if not options.data and set(names).intersection(REAL + PLAYED):
        parser.error(f"{', '.join(REAL + PLAYED)}: give a data set by --data DIR.")
    size = QUICK if options.quick else Size()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends with everything stopped and removed
    begin = time.perf_counter()
    with own_site():
        from benchmarks.community import Community
        from benchmarks.hosts import Hosts
        from benchmarks.real import Interactions, RealData
        from benchmarks.report import as_page, as_text, machine, write_page

        facts = machine()
        data_sets, reports = [], []
        groups = (
            (COMMUNITY, Community(size)),
            (LIVE, Hosts(size)),
            (REAL, options.data and RealData(options.data, size)),
            (PLAYED, options.data and Interactions(options.data, size)),
        )
        for some, data in groups:
            chosen = [name for name in names if name in some]
            if not chosen:
                continue
            data.build()
            data_sets.append(data.described())
            print(f"{data_sets[-1]}.\n", flush=True)
            for name in chosen:
                report = importlib.import_module(f"benchmarks.{name}").run(data)
                reports.append(report)
                print(as_text(report), end="\n\n", flush=True)
    data_set = "; ".join(data_sets)
    seconds = round(time.perf_counter() - begin)
    print(f"{seconds} s in all; load now {os.getloadavg()[0]:.2f}.")
    if options.json:
        results = {report.name: report.as_json() for report in reports}
        facts |= {"seconds": seconds, "size": asdict(size), "data_set": data_set}
        options.json.write_text(json.dumps({"machine": facts, "results": results}, indent=2) + "\n")
    if options.page:
        write_page(options.page, as_page(facts, data_set, reports))
    missed = [ratio.name for report in reports for ratio in report.ratios if ratio.is_met is False]
    if missed and not options.quick:
        sys.exit(f"Targets missed: {'; '.join(missed)}.")


if __name__ == "__main__":
    main()
