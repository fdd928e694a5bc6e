"""`manage.py simulate`: what the follows would cost by every policy, and the threshold to take."""

import math
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from accounts import policy
from accounts.models import User
from community.importing import one_line
from community.problems import DatasetError
from operation.curves import picture
from operation.graphs import GraphError, by_chance, of_dataset, of_site
from operation.inboxes import Saving, of_graph, recommended, savings
from operation.simulation import (
    NEVER,
    NO_LEVEL,
    Costs,
    Graph,
    Mask,
    Outcome,
    Point,
    curve,
    hybrid,
    outcome,
    per_pair,
    pull_all,
    push_all,
    recommend,
)

MOST_USERS = 5_000_000
"""Users who fit into the memory of a small machine, with their follows."""
MOST_DAYS = 10_000
HEADS = ("policy", "pushed", "pulled", "deliveries", "writing", "reading", "total", "Redis, MB", "p50", "p99", "lag, s")
INBOX_HEADS = (
    "inbox_from", "readers", "deliveries", "memory", "pages", "delivered", "MB", "writing", "reading", "total",
    "by inbox", "by pull",
)  # fmt: skip
UNITS = {"item": 1e3, "push": 1e6, "page": 1e3, "pull": 1e6, "inbox": 1e3, "sql": 1e3, "followee": 1e6}
"""Units of the options for costs in a second: ms and µs."""


def positive(name: str, value: Any) -> float:
    """The value of an option as a number above 0. Raises CommandError for anything else."""
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not (math.isfinite(number) and number > 0):
        raise CommandError(f"--{name}: {value!r} is no number above 0.")
    return number


def whole(name: str, value: Any, least: int, most: int) -> int:
    """The value of an option as a whole number from `least` to `most`. Raises CommandError for anything else."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < 16 and least <= int(text) <= most):
        raise CommandError(f"--{name}: {value!r} is no whole number from {least:,} to {most:,}.")
    return int(text)


def costs_of(options: dict[str, Any]) -> Costs:
    """The costs as the options give them, else as they were measured. Raises CommandError."""
    given = {name: options[f"{name}_cost"] for name in UNITS}
    changed = {name: positive(f"{name}-cost", value) for name, value in given.items() if value is not None}
    return replace(Costs(), **{name: value / UNITS[name] for name, value in changed.items()})


class Command(BaseCommand):
    """`simulate`: compares policies of pushing and pulling."""

    help = "Simulate a day under push, pull, the threshold and a rule for each follow, and recommend a threshold."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The source of the graph, its rates, and unit costs."""
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--data", type=Path, metavar="DIR", help="a data set's follows and posts, not the site's")
        source.add_argument("--users", metavar="N", help="a graph by chance of N users")
        parser.add_argument("--seed", default=1, help="of the graph by chance (1)")
        parser.add_argument("--days", default=30, help="of the site's items that give the rates (30)")
        parser.add_argument("--pages", default=5.0, help="a user opens a day on average, with --data or --users (5)")
        parser.add_argument("--reads", default=100.0, help="pages to one item (100)")
        parser.add_argument("--lag", default=5.0, help="seconds a worker may take for an item (5)")
        costs = Costs()
        for name, unit in UNITS.items():
            said = f"{'ms' if unit == 1e3 else 'µs'} of a core ({getattr(costs, name) * unit:g})"
            parser.add_argument(f"--{name}-cost", metavar="TIME", help=said)
        parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the curve over thresholds")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """Simulate every policy and threshold, and print the costs and the best."""
        began = time.monotonic()
        self.quiet = options["json"] or options["verbosity"] == 0
        costs = costs_of(options)
        lag = positive("lag", options["lag"])
        try:
            name, graph = self.graph(options)
            is_site = not options["data"] and options["users"] is None
            level = policy.current().push_level if is_site else policy.configured().push_level
        except (DatasetError, GraphError) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"The database refused: {one_line(error)}") from None
        self.say(f"{graph.size:,} users, {len(graph.senders):,} follows: the curve")
        points = curve(graph, costs)
        best = recommend(points, lag=lag, push_level=level)
        threshold = settings.BIG_V_THRESHOLD or NEVER
        masks: dict[str, Callable[[], Mask]] = {
            "push": lambda: push_all(graph),
            "pull": lambda: pull_all(graph),
            "hybrid, as set": lambda: hybrid(graph, threshold, level),
            "hybrid, recommended": lambda: hybrid(graph, best.threshold, best.push_level),
            "per pair": lambda: per_pair(graph, costs),
        }
        outcomes = []
        for label, mask in masks.items():
            self.say(label)
            outcomes.append(outcome(label, graph, mask(), costs))
        if options["svg"]:
            straight = [each for each in outcomes if "hybrid" not in each.policy]
            try:
                options["svg"].write_text(picture(points, straight, best, fixed=graph.fixed(costs), title=name))
            except OSError as error:
                raise CommandError(f"{options['svg']}: {error.strerror}") from None
        saved = savings(of_graph(graph, hybrid(graph, threshold, level)), costs)
        if options["json"]:
            figures = _figures(graph, costs, outcomes, points, best)
            figures["inbox_from"] = {
                "recommended": recommended(saved).inbox_from,
                "savings": [asdict(each) for each in saved],
            }
            self.stdout.write(msgspec.json.encode(figures).decode())
        else:
            names = names_of([sender.id for sender in outcomes[0].senders]) if is_site else {}
            self.tell(graph, costs, outcomes, best, names)
            self.tell_inboxes(saved)
            self.say(f"{time.monotonic() - began:.1f} s")

    def graph(self, options: dict[str, Any]) -> tuple[str, Graph]:
        """The graph that is asked for, and its name."""
        pages, reads = positive("pages", options["pages"]), positive("reads", options["reads"])
        days = whole("days", options["days"], 1, MOST_DAYS)
        seed = whole("seed", options["seed"], 0, 2**32)
        if options["data"]:
            return "The data set", of_dataset(options["data"], pages=pages, reads=reads, quiet=self.quiet)
        if options["users"] is not None:
            users = whole("users", options["users"], 2, MOST_USERS)
            self.say(f"{users:,} users by chance")
            return f"{users:,} users by chance", by_chance(users, seed=seed, pages=pages, reads=reads)
        self.say("The site's follows and items")
        return "This site", of_site(now=timezone.now(), days=days, reads=reads)

    def say(self, words: str) -> None:
        """Progress, beside what is asked for."""
        if not self.quiet:
            self.stderr.write(words, lambda styled: styled)
            self.stderr.flush()

    def tell(self, graph: Graph, costs: Costs, outcomes: list[Outcome], best: Point, names: dict[int, str]) -> None:
        """Print the costs of every policy as a table, then the largest senders and the best threshold."""
        write = self.stdout.write
        write(f"{graph.size:,} users, {len(graph.senders):,} follows")
        write(f"A day: {graph.items.sum():,.1f} items, {graph.pages.sum():,.0f} pages.")
        write(f"A delivery costs {costs.push * 1e6:.1f} µs, a pull {costs.pull * 1e6:.1f} µs.")
        write("Below: seconds of a core a day; a page in ms; lag: a worker's, from publishing to the last inbox.\n")
        row = "{:<20}{:>12}{:>12}{:>14}{:>12}{:>12}{:>12}{:>11}{:>9}{:>9}{:>9}"
        write(row.format(*HEADS))
        for each in outcomes:
            write(
                row.format(
                    each.policy,
                    f"{each.pushed:,}",
                    f"{each.pulled:,}",
                    f"{each.deliveries:,.0f}",
                    *(f"{seconds:,.2f}" for seconds in (each.writing, each.reading, each.total)),
                    f"{(each.inbox_bytes + each.outbox_bytes) / 1e6:,.1f}",
                    f"{each.p50 * 1e3:.2f}",
                    f"{each.p99 * 1e3:.2f}",
                    f"{each.lag:.3f}",
                )
            )
        write("\nThe senders with the most followers: pushes an item, and seconds of a worker to the last inbox")
        for place, sender in enumerate(outcomes[0].senders):
            pushes = "; ".join(
                f"{each.policy} {each.senders[place].pushes:,} ({each.senders[place].work:.3f} s)" for each in outcomes
            )
            name = f"@{names[sender.id]}" if sender.id in names else f"user {sender.id}"
            write(f"  {name}, {sender.followers:,} followers, {sender.items:.3g} items a day: {pushes}")
        settled = "0 (off)" if best.threshold == NEVER else str(best.threshold)
        write(f"\nRecommended: FEEDSITE_BIG_V_THRESHOLD={settled}; manage.py policy --push-level {best.push_level}")
        others = "nobody" if best.push_level == NO_LEVEL else f"followers of level {best.push_level} and above"
        write(f"  {best.big_vs:,} big-Vs, who push to {others}; {best.total:,.2f} s a day.")

    def tell_inboxes(self, saved: list[Saving]) -> None:
        """The savings and costs of each `inbox_from`, as the policy is set otherwise."""
        write = self.stdout.write
        write(
            "\nReaders with fewer followees than `inbox_from` without an inbox, under the hybrid as set: shares of the"
        )
        write("readers, deliveries, memory and pages; what a day saves, seconds of a core; these readers' pages, ms.")
        row = "{:<12}{:>9}{:>12}{:>9}{:>9}{:>13}{:>9}{:>10}{:>10}{:>8}{:>9}{:>8}"
        write(row.format(*INBOX_HEADS))
        for each in saved:
            write(
                row.format(
                    each.inbox_from,
                    *(f"{share:.0%}" for share in (each.readers, each.deliveries, each.memory, each.pages)),
                    f"{each.delivered:,.0f}",
                    f"{each.bytes / 1e6:,.1f}",
                    *(f"{seconds:,.2f}" for seconds in (each.writing, each.reading, each.total)),
                    *(f"{seconds * 1e3:.2f}" for seconds in (each.before, each.after)),
                )
            )
        best = recommended(saved)
        write(f"Recommended: manage.py policy --inbox-from {best.inbox_from}; {best.total:,.2f} s a day less.")


def names_of(user_ids: list[int]) -> dict[int, str]:
    """User names by id: of the site's own users, not of a graph by chance or of a data set."""
    return dict(User.objects.filter(pk__in=user_ids).values_list("pk", "username"))


def _figures(graph: Graph, costs: Costs, outcomes: list[Outcome], points: list[Point], best: Point) -> dict[str, Any]:
    """A threshold that no sender reaches is 0, as in the settings."""
    spelled = [asdict(point) | {"threshold": point.threshold % NEVER} for point in [best, *points]]
    return {
        "users": graph.size,
        "follows": len(graph.senders),
        "items": float(graph.items.sum()),
        "pages": float(graph.pages.sum()),
        "costs": {field.name: getattr(costs, field.name) for field in fields(costs)},
        "policies": [asdict(each) | {"total": each.total} for each in outcomes],
        "recommended": spelled[0],
        "curve": spelled[1:],
    }
