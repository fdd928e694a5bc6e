import pytest

from tests.support.effort import tries
from tests.support.machines.recommended import Discover, pull_all


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_nothing_comes_twice() -> None:
    pull_all(Discover, examples=tries(4, 60))
