import random
from pathlib import Path

import pytest
from django.conf import settings

from seen.ring import NODES
from tests.support.plays import SERVER_KILLS, hours_of, simulation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(180)]

LAPS, PLAYS, USERS, ITEMS = 2, 4_000, 300, 3_000


@pytest.mark.long
def test_no_acknowledged_play_is_forgotten_whatever_is_killed(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 (the same in every run)
    plays = [(int(USERS * chance.random() ** 2) + 1, chance.randrange(1, ITEMS)) for _ in range(PLAYS)]
    with simulation(tmp_path, seed=4, kill_every=0.05, shards=60, task_shards=3) as simulated:
        for number, hours in enumerate(hours_of(plays, LAPS)):
            simulated.lap(hours, is_stormy=number % 2 == 0)
        for _ in range(NODES + 1):
            simulated.hour([])
        assert simulated.waiting() == set(), "after a lap everything is in the filters"
        simulated.check(list(simulated.acknowledged))
    counts = simulated.counts
    kills = counts["killed tasks"] + counts["killed servers"]
    assert counts["killed servers"] == LAPS // 2 * SERVER_KILLS
    assert counts["killed tasks"] > 0
    assert counts["forgotten"] == 0, f"of {counts['checked']} acknowledged plays, after {kills} kills"
    assert counts["left over"] == 0, "after a lap without kills only the last hour's plays wait"
    assert counts["lost marks"] <= kills
    assert counts["wrong"] <= counts["asked"] * settings.PLAYED_ERROR_RATE
