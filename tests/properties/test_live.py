"""Every page of every walk always equals the SQL oracle."""

import pytest

from tests.support.effort import tries
from tests.support.machines.live import Live, walk_all


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("tiny_live")
def test_every_page_of_every_walk_is_what_the_oracle_says() -> None:
    walk_all(Live, examples=tries(6, 40))
