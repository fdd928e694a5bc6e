"""The most important test: every page of every home always equals the SQL oracle."""

import pytest

from tests.support.effort import tries
from tests.support.machines.homes import Home, walk_all
from timeline import home
from timeline.inbox import Tail


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("tiny_homes")
def test_every_page_is_what_the_oracle_says() -> None:
    walk_all(Home, examples=tries(10, 100))


class ShortPages(Home):
    """Hidden and folded reposts end the pages."""

    may_be_short = True


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("tiny_homes")
def test_pages_that_stop_at_their_bound_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "SCAN", 3)
    monkeypatch.setattr(home, "SLACK", 0)
    monkeypatch.setattr(Tail, "LENGTH", 3)
    walk_all(ShortPages, examples=tries(5, 60))
