"""Item ids: 53-bit integers that serve as sort key, ZSET score and cursor.

41 bits are milliseconds since 2000-01-01 UTC (until 2069), 12 bits a sequence. Exact as a double and in JavaScript.
PostgreSQL makes them (storage/sql/ids.sql); imports compose them. The sequence and the primary key keep ids
unique, not the clock.

If PostgreSQL's clock is set back by 2 seconds to 7 days, ids go on from the greatest until the clock is there again. So
new items stand above older ones, with times ahead of the clock. See docs/decisions.md: Ids go on if the clock is set
back.
"""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
SEQUENCE_BITS = 12
MAX_ID = 2**53 - 1
NO_BOUND = MAX_ID + 1
"""Above the ids of all tables: where a page without a cursor begins, and where the last part ends."""
MILLISECOND = timedelta(milliseconds=1)


def compose(moment: datetime, sequence: int) -> int:
    """The id of an aware `moment` and a `sequence` in 0..4095."""
    if not 0 <= sequence < 2**SEQUENCE_BITS:
        raise ValueError(f"sequence {sequence} does not fit {SEQUENCE_BITS} bits")
    item_id = ((moment - EPOCH) // MILLISECOND << SEQUENCE_BITS) | sequence
    if not 0 < item_id <= MAX_ID:
        raise ValueError(f"{moment} lies outside 2000..2069")
    return item_id


def moment(item_id: int) -> datetime:
    """The time of an id, to the millisecond."""
    return EPOCH + (item_id >> SEQUENCE_BITS) * MILLISECOND
