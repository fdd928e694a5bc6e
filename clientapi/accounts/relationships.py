from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from accounts.models import User
from clientapi.entities import Relationship, time_text
from relations.rules import (
    READER,
    blocks,
    follows,
    follows_without_reposts,
    has_bell,
    has_requested,
    may_be_named,
    mute_end,
    mutes,
    note_about,
)
from storage.connections import fetch, id_array

ASKED = 80
"""Maximum users per call."""
RELATIONSHIPS = f"""
    SELECT u.id, {follows(READER, "u.id")}, {follows_without_reposts(READER, "u.id")}, {follows("u.id", READER)},
        {blocks(READER, "u.id")}, {mutes(READER, "u.id")}, {mutes(READER, "u.id", "AND m.notifications")},
        {has_requested(READER, "u.id")}, {has_requested("u.id", READER)},
        {mute_end(READER, "u.id")}, {note_about(READER, "u.id")}, {has_bell(READER, "u.id")}
    FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS asked (id, place) JOIN accounts_user u ON u.id = asked.id
    WHERE {may_be_named("u", READER)} ORDER BY asked.place
"""


class _RelationshipRow(NamedTuple):
    user_id: int
    following: bool
    without_reposts: bool
    followed_by: bool
    blocking: bool
    muting: bool
    muting_notifications: bool
    requested: bool
    requested_by: bool
    mute_ends: datetime | None
    note: str
    bell: bool


def relationships(reader: User, ids: Sequence[int]) -> list[Relationship]:
    """Relations to the users that the reader may know of, by one statement."""
    if not ids:
        return []
    rows = fetch(RELATIONSHIPS, {"reader": reader.pk, "ids": id_array(ids)}, into=_RelationshipRow._make)
    return [
        Relationship(
            id=str(row.user_id),
            following=row.following,
            showing_reblogs=row.following and not row.without_reposts,
            notifying=row.bell,
            languages=None,
            followed_by=row.followed_by,
            blocking=row.blocking,
            blocked_by=False,
            muting=row.muting,
            muting_notifications=row.muting_notifications,
            requested=row.requested,
            requested_by=row.requested_by,
            domain_blocking=False,
            endorsed=False,
            note=row.note,
            muting_expires_at=time_text(row.mute_ends) if row.mute_ends else None,
        )
        for row in rows
    ]
