"""The model: costs by hand, what every policy must keep, and which is never dearer."""

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from community.problems import DatasetError
from operation.graphs import by_chance, of_dataset, of_site
from operation.simulation import (
    NEVER,
    NO_LEVEL,
    Costs,
    Graph,
    curve,
    hybrid,
    outcome,
    per_pair,
    pull_all,
    push_all,
    quantiles,
    recommend,
    thresholds,
)
from relations import actions as relations
from tests.support.datasets import as_json, packed
from tests.support.factories import ItemFactory, UserFactory

COSTS = Costs(item=1.0, push=0.5, page=2.0, pull=0.25, packed_entry=10, entry=100)


def tiny() -> Graph:
    """1 and 2 follow 3; 2 follows 1. User 3 writes 8 items a day, 1 writes one; 1 opens 2 pages a day, 2 opens 40."""
    return Graph(
        ids=np.array([1, 2, 3]),
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
    assert (push.inbox_bytes, push.outbox_bytes) == (300 * 10 + 1000 * 100, 0)  # 8 a day for a year, cut at the caps
    assert (push.lag, push.p50, push.p99) == (1 + 2 * 0.5, 2, 2)
    pull = outcome("pull", graph, pull_all(graph), COSTS)
    assert (pull.writing, pull.reading) == (9, 42 * 2 + (2 * 1 + 40 * 2) * 0.25)
    assert (pull.inbox_bytes, pull.outbox_bytes) == (0, 365 * 10 + 1000 * 100)
    assert (pull.lag, pull.p50, pull.p99) == (1, 2.5, 2.5)
    # User 3 has two followers, and pushes to the one of level 3 only.
    assert hybrid(graph, 2, 3).tolist() == [False, True, True]
    # Half the items against a quarter of the pages: 4 > 0.5, 4 < 10, 0.5 < 10.
    assert per_pair(graph, COSTS).tolist() == [False, True, True]
    best = outcome("per pair", graph, per_pair(graph, COSTS), COSTS)
    assert best.total == 9 + 9 * 0.5 + 84 + 2 * 0.25
    assert [(sender.id, sender.followers, sender.pushes, sender.work) for sender in best.senders] == [
        (3, 2, 1, 1.5),
        (1, 1, 1, 1.5),
        (2, 0, 0, 1.0),
    ]


def test_every_follow_is_served_once(graph: Graph) -> None:
    for pushed in (push_all(graph), pull_all(graph), hybrid(graph, 20, 2), per_pair(graph, Costs())):
        found = outcome("", graph, pushed, Costs())
        assert found.pushed + found.pulled == len(graph.senders)


def test_the_threshold_ends_at_push_and_at_pull(graph: Graph) -> None:
    awake = Graph(graph.ids, np.maximum(graph.levels, 1), graph.items, graph.pages, graph.readers, graph.senders)
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
    # Whatever follow is served the other way makes it no cheaper.
    for place in chance.integers(len(graph.senders), size=20):
        turned = per_pair(graph, costs)
        turned[place] ^= True
        assert least <= cost(graph, turned, costs) + 1e-9


def test_the_curve_is_what_the_policies_cost(graph: Graph) -> None:
    points = curve(graph, Costs())
    assert {point.push_level for point in points} == {1, 2, 3, 4}
    for point in points:
        found = outcome("", graph, hybrid(graph, point.threshold, point.push_level), Costs())
        assert (point.total, point.lag) == (pytest.approx(found.total), pytest.approx(found.lag))


def test_a_threshold_is_recommended_for_cost_and_for_lag(graph: Graph) -> None:
    cheap_pulls = curve(graph, Costs(pull=1e-9))
    assert recommend(cheap_pulls, lag=5, push_level=3).total <= min(point.total for point in cheap_pulls) * 1.01
    cheap_pushes = curve(graph, Costs(push=1e-9))
    assert recommend(cheap_pushes, lag=5, push_level=3).threshold == NEVER
    # Pushes cost nothing to speak of, but the most followed would keep a worker too long.
    slow = recommend(cheap_pushes, lag=0.0085001, push_level=3)
    assert slow.threshold < NEVER
    assert slow.lag <= 0.0085001
    assert recommend(cheap_pushes, lag=1e-6, push_level=3).lag == min(point.lag for point in cheap_pushes)


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


# --- Graphs and the command ------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.django_db
def test_the_sites_own_graph() -> None:
    reader, sender, gone = UserFactory(level=2), UserFactory(), UserFactory(is_active=False)
    for follower in (reader, gone):
        relations.follow(follower=follower, followee=sender)
    item = ItemFactory(sender=sender)
    ItemFactory(sender=reader, reply_to=item)
    found = of_site(now=timezone.now() + timedelta(minutes=1), days=2, reads=50)
    assert found.ids.tolist() == [reader.pk, sender.pk]
    assert found.levels.tolist() == [2, 3]
    assert (found.readers.tolist(), found.senders.tolist()) == ([0], [1])
    assert found.items.tolist() == [0, 0.5]
    assert found.pages.tolist() == [5, 20]
    out = io.StringIO()
    call_command("simulate", "--json", days="2", stdout=out)
    assert json.loads(out.getvalue())["follows"] == 1
    for_people = io.StringIO()
    call_command("simulate", verbosity=0, stdout=for_people)
    assert f"  @{sender.username}, 1 followers" in for_people.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    packed(tmp_path / "users.csv.gz", ["id,name", "7,author-7", "3,author-3"])
    packed(tmp_path / "follows.csv.gz", ["follower_id,followee_id", "3,7"])
    post = {"author_id": 7, "created_at": "2001-02-01T08:32:30Z", "text": "first"}
    packed(tmp_path / "posts.jsonl.gz", as_json(post | {"id": number} for number in (1, 2)))
    return tmp_path


def test_a_data_set(folder: Path) -> None:
    alike = of_dataset(folder, pages=4, reads=2, quiet=True)
    assert (alike.ids.tolist(), alike.pages.tolist(), alike.items.tolist()) == ([3, 7], [4, 4], [0, 4])
    assert (alike.readers.tolist(), alike.senders.tolist()) == ([0], [1])
    packed(folder / "interactions.csv.gz", ["user_id,item_id", "3,1", "3,1", "3,2", "7,1"])
    found = of_dataset(folder, pages=0.04, reads=2, quiet=True)
    assert found.pages.tolist() == pytest.approx([0.06, 0.02])
    assert found.levels.tolist() == [1, 0]
    packed(folder / "interactions.csv.gz", ["user_id,item_id", "3,1", "x,1"])
    with pytest.raises(DatasetError, match=r"interactions.csv.gz line 3: "):
        of_dataset(folder, pages=4, reads=2, quiet=True)


def test_the_command_tells_and_draws(tmp_path: Path) -> None:
    out, err, file = io.StringIO(), io.StringIO(), tmp_path / "curve.svg"
    call_command("simulate", users="500", svg=file, stdout=out, stderr=err)
    assert "Recommended: FEEDSITE_BIG_V_THRESHOLD=" in out.getvalue()
    assert "per pair" in err.getvalue()
    drawing = ElementTree.parse(file).getroot()  # noqa: S314 (our own)
    places = "{http://www.w3.org/2000/svg}path"
    assert sum("dashed" in path.get("class", "") for path in drawing.iter(places)) == 3
    out = io.StringIO()
    call_command("simulate", "--json", users="500", push_cost="1e-3", stdout=out)
    figures = json.loads(out.getvalue())
    assert figures["costs"]["push"] == pytest.approx(1e-9)
    assert [each["policy"] for each in figures["policies"]] == [
        "push", "pull", "hybrid, as set", "hybrid, recommended", "per pair"
    ]  # fmt: skip
    assert figures["recommended"]["threshold"] == 0


@pytest.mark.long
@pytest.mark.django_db
def test_a_site_where_everybody_is_dormant() -> None:
    ItemFactory(sender=UserFactory(level=0))
    with pytest.raises(CommandError, match="all users are dormant"):
        call_command("simulate", verbosity=0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no item was published within 30 days"),
        ({"users": "1"}, "--users: '1' is no whole number from 2 to"),
        ({"users": "x"}, "--users: 'x'"),
        ({"users": "9", "seed": "-1"}, "--seed: '-1'"),
        ({"users": "9", "reads": "nan"}, "--reads: 'nan' is no number above 0"),
        ({"users": "9", "pages": "0"}, "--pages: '0'"),
        ({"users": "9", "pull_cost": "inf"}, "--pull-cost: 'inf'"),
        ({"days": "0"}, "--days: '0'"),
        ({"data": Path("/nowhere")}, "No such file"),
        ({"users": "9", "svg": Path("/nowhere/curve.svg")}, "No such file"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message) as refused:
        call_command("simulate", verbosity=0, **options)
    assert refused.value.returncode == 1
    assert "\n" not in str(refused.value)
