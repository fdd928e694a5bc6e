"""How the caller and others stand to each other: one statement, however many are asked about."""

from collections.abc import Sequence

from accounts.models import User
from clientapi.entities import Relationship
from relations.rules import READER, asks, blocks, follows, leaves_reposts_out, may_be_named, mutes
from storage.connections import fetch, id_array

ASKED = 80
"""Users that one call may ask about."""
RELATIONSHIPS = f"""
    SELECT u.id, {follows(READER, "u.id")}, {leaves_reposts_out(READER, "u.id")}, {follows("u.id", READER)},
        {blocks(READER, "u.id")}, {mutes(READER, "u.id")}, {mutes(READER, "u.id", "AND m.notifications")},
        {asks(READER, "u.id")}, {asks("u.id", READER)}
    FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS asked (id, place) JOIN accounts_user u ON u.id = asked.id
    WHERE {may_be_named("u", READER)} ORDER BY asked.place
"""  # noqa: S608 (constants)


def relationships(reader: User, ids: Sequence[int]) -> list[Relationship]:
    """The reader's relationships to these users, as far as the reader may know of them, in this order."""
    rows = fetch(RELATIONSHIPS, {"reader": reader.pk, "ids": id_array(ids)}) if ids else []
    return [
        Relationship(
            id=str(user_id),
            following=following,
            showing_reblogs=following and not without_reposts,
            notifying=False,
            languages=None,
            followed_by=followed_by,
            blocking=blocking,
            blocked_by=False,
            muting=muting,
            muting_notifications=muting_notifications,
            requested=requested,
            requested_by=requested_by,
            domain_blocking=False,
            endorsed=False,
            note="",
        )
        for (
            user_id,
            following,
            without_reposts,
            followed_by,
            blocking,
            muting,
            muting_notifications,
            requested,
            requested_by,
        ) in rows
    ]
