"""53 bits, exact as a double, ordered by time, equal in Python and PostgreSQL."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from storage import ids
from tests.support.at_once import at_once

FIRST, LAST = ids.EPOCH, ids.EPOCH + timedelta(milliseconds=2**41 - 1)
moments = st.datetimes(datetime(2000, 1, 1), datetime(2069, 9, 6)).map(lambda naive: naive.replace(tzinfo=UTC))  # noqa: DTZ001 (made aware)
sequences = st.integers(0, 4095)


@pytest.mark.slow
@given(moments, sequences)
def test_an_id_carries_its_time_and_is_exact_everywhere(moment: datetime, sequence: int) -> None:
    if moment == FIRST and sequence == 0:
        return  # 0 is no id
    item_id = ids.compose(moment, sequence)
    assert 0 < item_id <= ids.MAX_ID
    assert int(float(item_id)) == item_id  # a ZSET score
    assert json.loads(json.dumps(float(item_id))) == item_id  # a JavaScript number
    assert timedelta(0) <= moment - ids.moment(item_id) < ids.MILLISECOND
    assert item_id & 4095 == sequence


@pytest.mark.slow
@given(moments, sequences, moments, sequences)
def test_ids_sort_by_time_and_then_by_sequence(one: datetime, first: int, two: datetime, second: int) -> None:
    one, two = (
        moment.replace(microsecond=moment.microsecond // 1000 * 1000, year=max(moment.year, 2001))
        for moment in (one, two)
    )
    assert (ids.compose(one, first) < ids.compose(two, second)) == ((one, first) < (two, second))


@pytest.mark.slow
def test_the_limits() -> None:
    assert ids.compose(FIRST, 1) == 1
    assert ids.compose(LAST, 4095) == ids.MAX_ID == 2**53 - 1
    assert LAST.year == 2069
    for moment, sequence in [(FIRST, 0), (LAST + ids.MILLISECOND, 0), (FIRST - ids.MILLISECOND, 5)]:
        with pytest.raises(ValueError, match="outside 2000"):
            ids.compose(moment, sequence)
    for sequence in (-1, 4096):
        with pytest.raises(ValueError, match="12 bits"):
            ids.compose(datetime(2020, 1, 1, tzinfo=UTC), sequence)


def test_offsets_name_the_same_moment() -> None:
    east = timezone(timedelta(hours=8))
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    assert ids.compose(noon.astimezone(east), 7) == ids.compose(noon, 7)


@pytest.mark.django_db
def test_postgresql_reads_the_time_as_python_does() -> None:
    samples = [1, ids.MAX_ID, *(ids.compose(datetime(2001, 2, 3, 4, 5, 6, 7000 * n, tzinfo=UTC), n) for n in range(99))]
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, feedsite_id_time(id) FROM unnest(%s::bigint[]) AS t (id)", [samples])
        rows = cursor.fetchall()
    assert len(rows) == len(samples)
    assert all(ids.moment(item_id) == moment for item_id, moment in rows)


@pytest.mark.django_db
def test_postgresql_makes_distinct_ids_of_now() -> None:
    before = datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT feedsite_next_id() FROM generate_series(1, 4096)")
        made = [row[0] for row in cursor.fetchall()]
    after = datetime.now(UTC)
    assert len({item_id & 4095 for item_id in made}) == 4096  # every number of the sequence
    assert len(set(made)) == 4096
    assert all(before - ids.MILLISECOND <= ids.moment(item_id) <= after for item_id in made)


# --- A clock that is set back ------------------------------------------------------------------------------
@pytest.fixture
def shifted() -> Iterator[Callable[[timedelta], None]]:
    """Shifts PostgreSQL's clock for the function, as another session would see it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('feedsite_last_id', 1, false)")

        def shift(by: timedelta) -> None:
            cursor.execute("CREATE SCHEMA IF NOT EXISTS shifted; SET search_path = shifted, pg_catalog, public")
            cursor.execute(
                "CREATE OR REPLACE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
                f" $$ SELECT pg_catalog.clock_timestamp() + interval '{by.total_seconds()} s' $$; DISCARD PLANS"
            )

        yield shift
        cursor.execute("RESET search_path; DROP SCHEMA IF EXISTS shifted CASCADE")
        cursor.execute("SELECT setval('feedsite_last_id', 1, false)")


def next_ids(count: int = 1) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT public.feedsite_next_id() FROM generate_series(1, %s)", [count])
        return [row[0] for row in cursor.fetchall()]


def ahead(item_id: int) -> timedelta:
    return ids.moment(item_id) - datetime.now(UTC)


MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.mark.django_db
@pytest.mark.parametrize("by", [timedelta(seconds=5), timedelta(hours=1), 2 * DAY, 7 * DAY - MINUTE])
def test_ids_go_on_from_the_greatest_after_the_clock_was_set_back(
    shifted: Callable[[timedelta], None], by: timedelta
) -> None:
    shifted(by)
    before = next_ids(5_000)
    shifted(timedelta(0))
    after = next_ids(10_000)
    assert after == sorted(set(after)), "each once, also beyond the 4096 of a millisecond"
    assert max(before) < after[0]
    assert by - MINUTE < ahead(after[-1]) < by + MINUTE, "created_at is still derived from the id"
    shifted(by + MINUTE)  # the clock is there again
    again = next_ids(2_000)
    assert after[-1] < min(again)
    assert abs(ahead(again[0]) - by - MINUTE) < timedelta(seconds=30)


@pytest.mark.django_db
@pytest.mark.parametrize("by", [7 * DAY + MINUTE, 400 * DAY])
def test_beyond_a_week_the_clock_counts(shifted: Callable[[timedelta], None], by: timedelta) -> None:
    """As if those ids were not there. Later they do not come back."""
    shifted(by)
    before = next_ids()
    for now in (timedelta(0), by - 3 * DAY):
        shifted(now)
        found = next_ids(3)
        assert all(abs(ahead(each) - now) < MINUTE for each in found)
        assert max(found) < before[0]


@pytest.mark.django_db
def test_a_small_step_back_changes_nothing(shifted: Callable[[timedelta], None]) -> None:
    shifted(timedelta(milliseconds=900))
    next_ids()
    shifted(timedelta(0))
    assert abs(ahead(next_ids()[0])) < timedelta(milliseconds=500)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_many_at_once_go_on_without_a_number_twice(transactional_db: None) -> None:
    """The value is as after a clock that was two days ahead, and some sessions begin before the others."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('feedsite_last_id', %s, false)", [ids.compose(datetime.now(UTC) + 2 * DAY, 0)])
    try:
        found = at_once(*[lambda: [next_ids()[0] for _ in range(200)]] * 8)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval('feedsite_last_id', 1, false)")
    every = [each for one in found for each in one]
    assert len(set(every)) == 1_600
    assert all(one == sorted(one) for one in found)
    assert all(abs(ahead(each) - 2 * DAY) < MINUTE for each in every)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_many_at_once_while_the_value_is_raised(transactional_db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('feedsite_last_id', 1, false)")
    found = at_once(*[lambda: [next_ids()[0] for _ in range(500)]] * 8)
    assert len({each for one in found for each in one}) == 4_000
    assert all(abs(ahead(each)) < MINUTE for one in found for each in one)
