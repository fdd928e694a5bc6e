from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from storage.postgresql import LONG_SECONDS, statement_timeout
from tests.support.factories import UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bounds() -> Iterator[list[str]]:
    """The `statement_timeout` of each statement."""
    seen: list[str] = []

    def note(execute: Callable[..., Any], *args: Any) -> Any:
        seen.append(connection.connection.execute("SHOW statement_timeout").fetchone()[0])
        return execute(*args)

    connection.close()
    with statement_timeout(2.0), connection.execute_wrapper(note):
        yield seen
    connection.close()


def test_pages_of_the_admin_may_wait_longer_than_others(bounds: list[str]) -> None:
    keeper = UserFactory(username="keeper", is_staff=True, is_superuser=True)
    client = logged_in(keeper)
    del bounds[:]
    assert client.get("/settings/devices").status_code == 200
    assert set(bounds) == {"2s"}
    del bounds[:]
    assert client.get("/admin/items/item/").status_code == 200
    assert f"{LONG_SECONDS / 60:.0f}min" in bounds
    del bounds[:]
    assert client.get("/settings/devices").status_code == 200
    assert set(bounds) == {"2s"}, "the next page of the thread is held to the ordinary bound again"
