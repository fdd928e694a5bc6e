"""53 bits, exact as a double, ordered by time, equal in Python and PostgreSQL."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from storage import ids

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
