from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.measure import Report
from benchmarks.scale import (
    ACTIVE,
    BUSY,
    BYTES,
    CAP,
    IN_ALL,
    NEVER,
    NO_LEVEL,
    SITES,
    TABLES,
    Costs,
    Graph,
    by_chance,
    compare,
    curve,
    hybrid,
    needs,
    of_dataset,
    outcome,
    per_pair,
    pull_all,
    push_all,
    quantiles,
    recommend,
    thresholds,
)
from tests.support.datasets import as_json, packed

COSTS = Costs(item=1.0, push=0.5, page=2.0, pull=0.25, packed_entry=10, entry=100)


def tiny() -> Graph:
    """1 and 2 follow 3. 2 follows 1. User 3 writes 8 items a day, user 1 one. User 1 opens 2 pages a day, user 2 40."""
    return Graph(
        levels=np.array([2, 3, 0]),
        items=np.array([1.0, 0.0, 8.0]),
        pages=np.array([2.0, 40.0, 0.0]),
        readers=np.array([0, 1, 1]),
        senders=np.array([2, 2, 0]),
    )


@pytest.fixture(scope="module")
def graph() -> Graph:
    return by_chance(3_000, seed=7, pages=3, reads=20)


def cost(graph: Graph, pushed: Any, costs: Costs) -> float:
    return outcome("", graph, pushed, costs).total


def test_costs_by_hand(settings: Any) -> None:
    settings.LEVEL_CAPS = {1: 100, 2: 300, 3: 1000}
    graph = tiny()
    push = outcome("push", graph, push_all(graph), COSTS)
    assert (push.deliveries, push.writing, push.reading) == (17, 9 + 17 * 0.5, 42 * 2)
    assert (push.inbox_bytes, push.outbox_bytes) == (300 * 10 + 1000 * 100, 0)  # capped
    assert (push.lag, push.p50, push.p99) == (1 + 2 * 0.5, 2, 2)
    pull = outcome("pull", graph, pull_all(graph), COSTS)
    assert (pull.writing, pull.reading) == (9, 42 * 2 + (2 * 1 + 40 * 2) * 0.25)
    assert (pull.inbox_bytes, pull.outbox_bytes) == (0, 365 * 10 + 1000 * 100)
    assert (pull.lag, pull.p50, pull.p99) == (1, 2.5, 2.5)
    # User 3 pushes only to the follower of level 3.
    assert hybrid(graph, 2, 3).tolist() == [False, True, True]
    assert per_pair(graph, COSTS).tolist() == [False, True, True]
    best = outcome("per pair", graph, per_pair(graph, COSTS), COSTS)
    assert best.total == 9 + 9 * 0.5 + 84 + 2 * 0.25


def test_every_follow_is_served_once(graph: Graph) -> None:
    for pushed in (push_all(graph), pull_all(graph), hybrid(graph, 20, 2), per_pair(graph, Costs())):
        found = outcome("", graph, pushed, Costs())
        assert found.pushed + found.pulled == len(graph.senders)


def test_the_threshold_ends_at_push_and_at_pull(graph: Graph) -> None:
    awake = Graph(np.maximum(graph.levels, 1), graph.items, graph.pages, graph.readers, graph.senders)
    assert (hybrid(awake, NEVER, NO_LEVEL) == push_all(awake)).all()
    assert (hybrid(awake, 0, NO_LEVEL) == pull_all(awake)).all()
    assert (hybrid(graph, NEVER, NO_LEVEL) == (graph.levels[graph.readers] > 0)).all()


@pytest.mark.parametrize("costs", [Costs(), Costs(pull=1e-7), Costs(push=1e-2)])
def test_the_rule_for_pairs_is_never_dearer(graph: Graph, costs: Costs) -> None:
    least = cost(graph, per_pair(graph, costs), costs)
    others = [push_all(graph), pull_all(graph), *(hybrid(graph, each, 3) for each in (1, 10, 100, NEVER))]
    chance = np.random.default_rng(5)
    others += [chance.random(len(graph.senders)) < share for share in (0.1, 0.5, 0.9)]
    assert all(least <= cost(graph, other, costs) for other in others)
    # Serving any one follow the other way is never cheaper.
    for place in chance.integers(len(graph.senders), size=20):
        turned = per_pair(graph, costs)
        turned[place] ^= True
        assert least <= cost(graph, turned, costs) + 1e-9


def test_the_curve_has_every_threshold_and_push_level(graph: Graph) -> None:
    points = curve(graph, Costs())
    assert {point.push_level for point in points} == {1, 2, 3, 4}
    assert {point.threshold for point in points} == {*thresholds(int(graph.followers().max()))}
    assert all(point.big_vs == 0 for point in points if point.threshold == NEVER)


def test_a_threshold_is_recommended_for_cost_and_for_lag(graph: Graph) -> None:
    cheap_pulls = curve(graph, Costs(pull=1e-9))
    assert recommend(cheap_pulls, lag=5, push_level=3).day.total <= min(point.day.total for point in cheap_pulls) * 1.01
    cheap_pushes = curve(graph, Costs(push=1e-9))
    assert recommend(cheap_pushes, lag=5, push_level=3).threshold == NEVER
    # The most followed would block a worker too long.
    slow = recommend(cheap_pushes, lag=0.0085001, push_level=3)
    assert slow.threshold < NEVER
    assert slow.day.lag <= 0.0085001
    assert recommend(cheap_pushes, lag=1e-6, push_level=3).day.lag == min(point.day.lag for point in cheap_pushes)


def test_shares_and_steps() -> None:
    assert quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 98.0, 1.0]), (0.5, 0.99, 1.0)) == [1, 2, 3]
    assert quantiles(np.array([3.0]), np.array([0.0]), (0.5,)) == [0]
    assert list(thresholds(12)) == [1, 2, 5, 10, NEVER]


def test_chance_is_the_same_for_the_same_seed(graph: Graph) -> None:
    again = by_chance(3_000, seed=7, pages=3, reads=20)
    assert (again.senders == graph.senders).all()
    assert (again.items == graph.items).all()
    assert (graph.readers != graph.senders).all()
    assert len(np.unique(graph.readers * graph.size + graph.senders)) == len(graph.senders)
    assert graph.pages.sum() == pytest.approx(9_000)
    assert graph.items.sum() == pytest.approx(450)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    packed(tmp_path / "users.csv.gz", ["id,name", "7,author-7", "3,author-3"])
    packed(tmp_path / "follows.csv.gz", ["follower_id,followee_id", "3,7"])
    post = {"author_id": 7, "created_at": "2001-02-01T08:32:30Z", "text": "first"}
    packed(tmp_path / "posts.jsonl.gz", as_json(post | {"id": number} for number in (1, 2)))
    return tmp_path


def test_a_data_set(folder: Path) -> None:
    alike = of_dataset(folder, pages=4, reads=2)
    assert (alike.pages.tolist(), alike.items.tolist()) == ([4, 4], [4, 0])
    assert (alike.readers.tolist(), alike.senders.tolist()) == ([1], [0])
    packed(folder / "interactions.csv.gz", ["user_id,item_id", "3,1", "3,1", "3,2", "7,1"])
    found = of_dataset(folder, pages=0.04, reads=2)
    assert found.pages.tolist() == pytest.approx([0.02, 0.06])
    assert found.levels.tolist() == [0, 1]


def test_the_report_tells_of_all_policies(graph: Graph) -> None:
    report = Report("scale", "", [], "")
    compare(report, graph, Costs())
    said = "\n".join(report.notes)
    for words in (
        "| push ",
        "| pull ",
        "| hybrid, as set ",
        "| per pair ",
        "Recommended: a threshold of ",
    ):
        assert words in said
    assert [ratio.value >= 1 for ratio in report.ratios] == [True, True]


# --- Sites of several sizes ----------------------------------------------------------------------------------
def units() -> dict[str, float]:
    acts = (
        "page of home over HTTP: worker",
        "page of home over HTTP: PostgreSQL and Redis",
        "page of home below the inbox",
        "publish",
        "delivery",
        "like",
        "build an inbox of level 3",
        "look at the notifications, with the badge",
        "page of search",
        "refresh of Discover",
        "further page of Discover",
        "event to a stream",
        "play over HTTP, 8 of one user in a request",
        "play over HTTP, 8 of each of 100 users in a batch",
    )
    return dict.fromkeys(acts, 2e-3) | dict.fromkeys((*BYTES, *(f"row: {name}" for name in TABLES)), 100.0)


def test_the_needs_of_a_site_follow_from_the_units() -> None:
    found = {name: [work(site) for site in SITES] for name, work in needs(units()).items()}
    assert found["pages of home/s"][1] == pytest.approx(50e6 * 5 / 86_400 * 3)
    assert found["cores: web"][1] == pytest.approx(found["pages of home/s"][1] * 2e-3)
    assert found["items/s"][3] == 3_500
    assert found["deliveries/s"][3] == pytest.approx(1.41e6, rel=0.01)
    assert found["bytes of inboxes, with a replica"][0] == pytest.approx(2 * 1e6 * ACTIVE * CAP * 100)
    for place in range(len(SITES)):
        whole = sum(values[place] for name, values in found.items() if name.startswith("cores: ")) / BUSY
        assert found[IN_ALL][place] == pytest.approx(whole)
