"""Item ids: 53-bit integers that are sort key, ZSET score and cursor at once.

41 bits of milliseconds since 2000-01-01 UTC (good until 2069) and 12 bits of a sequence. An id is exact as a double
(a ZSET score) and as a JavaScript number. PostgreSQL makes the ids of published items (`feedsite_next_id()`,
storage/sql/ids.sql); an import composes them from the original time. Uniqueness rests on the sequence and the primary
key, not on the clock.
"""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
SEQUENCE_BITS = 12
MAX_ID = 2**53 - 1
NO_BOUND = MAX_ID + 1
"""Above every id, of rows of any table too: where a page begins that has no cursor, and where the last part ends."""
MILLISECOND = timedelta(milliseconds=1)


def compose(moment: datetime, sequence: int) -> int:
    """The id of something that happened at `moment` (aware; millisecond precision), `sequence` in 0..4095."""
    if not 0 <= sequence < 2**SEQUENCE_BITS:
        raise ValueError(f"sequence {sequence} does not fit {SEQUENCE_BITS} bits")
    item_id = ((moment - EPOCH) // MILLISECOND << SEQUENCE_BITS) | sequence
    if not 0 < item_id <= MAX_ID:
        raise ValueError(f"{moment} lies outside 2000..2069")
    return item_id


def moment(item_id: int) -> datetime:
    """The time an id was made at, to the millisecond."""
    return EPOCH + (item_id >> SEQUENCE_BITS) * MILLISECOND
