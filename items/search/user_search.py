from collections.abc import Sequence
from functools import cache
from typing import Any

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.names import grams, grams_of
from accounts.rows import user_columns, user_of
from items.search.query import Query
from relations.rules import READER, followees, follows, may_know_of
from storage.connections import fetch, id_array
from storage.replica import PRIMARY, read_from_replica

CANDIDATES = 2_000
"""Names ranked. The reader's followees and all big-Vs are always included."""
FEW = 5
"""With fewer matches, similar names are added."""
SIMILAR_CANDIDATES = 200
SIMILAR = 0.4
"""Least similarity of two names, from 0 to 1 (Dice's coefficient of their grams)."""
SHORTEST_MISSPELT = 4
NAME_WORDS = 8

NAME = "feedsite_name(u.username, u.display_name)"
KNOWN_AS = f"coalesce(u.folded_name, {NAME})"
SHOWN = "coalesce(substr(u.folded_name, length(u.username) + 2), lower(u.display_name))"
"""The display name, folded."""
VISIBLE_USER = may_know_of("u", READER)


def search_users(query: Query, reader: User | AnonymousUser, *, limit: int = 20) -> list[User]:
    """Users with a matching name: the exact one, followees, names with that beginning, most followers. Misspelt names
    are found if few match.
    """
    words = query.names[:NAME_WORDS]
    if not words:
        return []
    name = " ".join(words)
    params: dict[str, Any] = {"reader": reader.pk or 0, "name": name, "count": limit}
    params |= {f"word{number}": word for number, word in enumerate(words)}
    params["grams"] = grams_of(list(words))
    users, on = read_from_replica(reader.pk, lambda on: (_find_users(words, params, on), on))
    if on != PRIMARY and users:
        rows = fetch(_users_sql(), {"ids": id_array(user.pk for user in users), "reader": reader.pk or 0})
        users = [user_of(row) for row in rows]
    return users[:limit]


def _find_users(words: Sequence[str], params: dict[str, Any], on: str) -> list[User]:
    name = params["name"]
    users = [user_of(row) for row in fetch(_name_match_sql(len(words)), params, on=on)]
    if len(users) < FEW and len(words) == 1 and len(name) >= SHORTEST_MISSPELT:
        half = len(name) // 2
        # Runs of three, also of a name of four letters: too many names have the same two letters.
        back = name[min(half, len(name) - 3) :]
        halves = {"front": grams(f" {name[:half]}"), "back": grams(back)}
        similar = fetch(_similar_sql(), params | halves | {"grams": grams(f" {name}", 2) + grams(name)}, on=on)
        known = {user.pk for user in users}
        users += [user for row in similar if (user := user_of(row)).pk not in known]
    return users


@cache
def _users_sql() -> str:
    return f"""
        SELECT {user_columns("u")} FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS found (id, place)
        JOIN accounts_user u ON u.id = found.id WHERE {VISIBLE_USER} ORDER BY found.place
    """


def _gram_conditions(grams: str) -> tuple[str, str]:
    return (
        f"feedsite_grams({NAME}) @> %({grams})s::text[]",
        f"u.folded_name IS NOT NULL AND feedsite_grams(u.folded_name) @> %({grams})s::text[]",
    )


@cache
def _name_match_sql(count: int) -> str:
    fits = " AND ".join(f"position(%(word{number})s IN {KNOWN_AS}) > 0" for number in range(count))
    indexed = " UNION ".join(
        f"(SELECT u.id FROM accounts_user u WHERE {has} AND {fits} LIMIT {CANDIDATES})"
        for has in _gram_conditions("grams")
    )
    return f"""
        WITH candidate AS (
            SELECT u.id FROM accounts_user u WHERE lower(u.username) = %(name)s
            UNION SELECT u.id FROM ({followees(READER)}) f JOIN accounts_user u ON u.id = f.followee_id WHERE {fits}
            UNION SELECT u.id FROM accounts_user u WHERE u.is_big_v AND {fits}
            UNION {indexed}
        )
        SELECT {user_columns("u")} FROM candidate JOIN accounts_user u ON u.id = candidate.id WHERE {VISIBLE_USER}
        ORDER BY lower(u.username) = %(name)s DESC,
            {follows(READER, "u.id")} DESC,
            starts_with(lower(u.username), %(name)s) OR starts_with({SHOWN}, %(name)s) DESC,
            u.follower_count DESC, u.id
        LIMIT %(count)s
    """


@cache
def _similar_sql() -> str:
    similarity = """(
        SELECT 2.0 * count(*) FILTER (WHERE gram = ANY(%(grams)s::text[]))
            / (count(*) + cardinality(%(grams)s::text[]))
        FROM unnest(feedsite_grams({name})) AS gram)
    """
    # How many of these are in the names, at least for `SIMILAR`. Counting all grams of a name takes 100 µs.
    common = f"""(
        SELECT count(*) FROM unnest(%(grams)s::text[]) AS gram
        WHERE position(gram IN ' ' || lower(u.username)) > 0 OR position(gram IN ' ' || {SHOWN}) > 0)
    """
    # A typing error leaves one half of a name unchanged.
    halves = " UNION ".join(
        f"(SELECT u.id FROM accounts_user u WHERE {has} LIMIT {SIMILAR_CANDIDATES})"
        for half in ("front", "back")
        for has in _gram_conditions(half)
    )
    return f"""
        SELECT {user_columns("u")} FROM ({halves}) candidate JOIN accounts_user u ON u.id = candidate.id
        CROSS JOIN LATERAL (SELECT greatest({similarity.format(name="lower(u.username)")},
            {similarity.format(name=SHOWN)}) AS value OFFSET 0) likeness
        WHERE {VISIBLE_USER} AND likeness.value >= {SIMILAR}
            AND {common} >= cardinality(%(grams)s::text[]) * {SIMILAR / (2 - SIMILAR)}
        ORDER BY likeness.value DESC, u.follower_count DESC, u.id LIMIT %(count)s
    """
