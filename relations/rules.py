"""How users stand to each other, as SQL. No other package names these tables.

Arguments are SQL expressions of user ids. OFFSET 0 forces one index probe; the planner might hash a million followers.

See docs/decisions.md: A rule for many readers ends with OFFSET 0.
"""

READER = "%(reader)s"
"""The reader's id. It is 0 for readers who are not signed in: no relation has this id."""
STRANGER = "0"
"""A reader who is not signed in. With this in place of `READER` the rules ask no relation."""
PROBED = "OFFSET 0"


def is_one_reader(reader: str) -> bool:
    """Whether an expression is one reader for the whole statement."""
    return reader == READER or reader.isdigit()


# --- Questions -------------------------------------------------------------------------------------------
def follows(follower: str, followee: str, also: str = "", *, is_probe: bool = True) -> str:
    """Whether one follows the other. `also`: conditions on the follow `f`. `is_probe` False lets the planner hash one
    reader's followees.
    """
    condition = f"f.follower_id = {follower} AND f.followee_id = {followee} {also}"
    return _relates("relations_follow f", (follower, followee), condition, is_probe=is_probe)


def has_requested(follower: str, followee: str, also: str = "") -> str:
    """Whether one asks to follow the other."""
    condition = f"f.follower_id = {follower} AND f.followee_id = {followee} {also}"
    return _exists("relations_followrequest f", condition)


def blocks(blocker: str, blocked: str, *, is_probe: bool = True) -> str:
    """Whether one blocks the other. `is_probe` is as in `follows`."""
    condition = f"b.blocker_id = {blocker} AND b.blocked_id = {blocked}"
    return _relates("relations_block b", (blocker, blocked), condition, is_probe=is_probe)


def mutes(muter: str, muted: str, also: str = "") -> str:
    """Whether one mutes the other. `also`: conditions on the mute `m`. Expired mutes count until deleted."""
    return _relates("relations_mute m", (muter, muted), f"m.muter_id = {muter} AND m.muted_id = {muted} {also}")


def mute_end(muter: str, muted: str) -> str:
    """When a mute ends. NULL without an end or a mute."""
    return f"(SELECT m.expires_at FROM relations_mute m WHERE m.muter_id = {muter} AND m.muted_id = {muted})"


def note_about(owner: str, subject: str) -> str:
    """What one noted about the other, or an empty text."""
    found = f"SELECT n.text FROM relations_accountnote n WHERE n.owner_id = {owner} AND n.subject_id = {subject}"
    return f"coalesce(({found}), '')"


def follows_without_reposts(follower: str, followee: str) -> str:
    """Whether one follows the other without their reposts."""
    return follows(follower, followee, "AND NOT f.reposts")


def has_bell(follower: str, followee: str) -> str:
    """Whether one is notified of each post of the other, or will be once a request is accepted."""
    rings = "AND f.bell"
    return f"({follows(follower, followee, rings)} OR {has_requested(follower, followee, rings)})"


def unblocked(one: str, other: str) -> str:
    """Whether neither blocks the other."""
    return f"(NOT {blocks(one, other)} AND NOT {blocks(other, one)})"


def wanted_conditions(reader: str, sender: str) -> dict[str, str]:
    """The conditions for a sender in a reader's feeds, by what each excludes."""
    return {
        "blocked": f"NOT {blocks(reader, sender)}",
        "blocked_by": f"NOT {blocks(sender, reader)}",
        "muted": f"NOT {mutes(reader, sender)}",
    }


def wanted_at_home_conditions(reader: str, sender: str) -> dict[str, str]:
    """The conditions of `wanted_conditions`, and that the sender is in none of the reader's exclusive lists."""
    return wanted_conditions(reader, sender) | {"exclusive": not_in_exclusive_list(reader, sender)}


def not_in_exclusive_list(reader: str, sender: str) -> str:
    """Whether a sender is in none of the reader's exclusive lists."""
    return "NOT " + _exists(
        "relations_listmember lm JOIN relations_list l ON l.id = lm.list_id",
        f"lm.owner_id = {reader} AND lm.member_id = {sender} AND l.is_exclusive",
    )


def is_wanted(reader: str, sender: str) -> str:
    """Whether neither blocks the other, and the reader does not mute the sender."""
    return f"({' AND '.join(wanted_conditions(reader, sender).values())})"


def is_wanted_at_home(reader: str, sender: str) -> str:
    """Whether the reader's home shows a followed sender."""
    return f"({' AND '.join(wanted_at_home_conditions(reader, sender).values())})"


def gets_notifications_from(reader: str, sender: str) -> str:
    """Whether a reader gets notifications from a user."""
    return f"({unblocked(reader, sender)} AND NOT {mutes(reader, sender, 'AND m.notifications')})"


def may_know_of(user: str, reader: str, *, is_probe: bool = True) -> str:
    """Whether a reader may know of the user with the alias `user`, even one they block. `is_probe` False is for
    exports.
    """
    return f"{user}.is_active AND NOT {blocks(f'{user}.id', reader, is_probe=is_probe)}"


def may_be_named(user: str, reader: str) -> str:
    """Like `may_know_of`, but with mutual blocks."""
    return f"{user}.is_active AND (NOT {blocks(f'{user}.id', reader)} OR {blocks(reader, f'{user}.id')})"


def may_be_proposed(user: str, reader: str) -> str:
    """Whether to suggest a user: active, another, and neither followed, asked, blocked nor muted by the reader."""
    other = f"{user}.id"
    return (
        f"{user}.is_active AND {other} <> {reader} AND NOT {follows(reader, other)} "
        f"AND NOT {has_requested(reader, other)} AND {is_wanted(reader, other)}"
    )


def _relates(table: str, users: tuple[str, str], condition: str, *, is_probe: bool = True) -> str:
    return "false" if STRANGER in users else _exists(table, condition, is_probe=is_probe)


def _exists(table: str, condition: str, *, is_probe: bool = True) -> str:
    return f"EXISTS (SELECT FROM {table} WHERE {condition} {PROBED if is_probe else ''})"


# --- Lists: queries to which conditions may be added with AND -------------------------------------------------
def followees(follower: str, columns: str = "followee_id") -> str:
    """A query of a user's followees. `columns` are of relations.models.Follow."""
    return f"SELECT {columns} FROM relations_follow WHERE follower_id = {follower}"


def followees_without_reposts(follower: str) -> str:
    """A query of followees without reposts, as `followee_id`: few, with their own index."""
    return followees(follower) + " AND NOT reposts"


def followed_big_vs(follower: str, columns: str = "v.id") -> str:
    """A query of the big-Vs that a user follows. `columns` are of the big-V `v`."""
    return f"SELECT {columns} FROM accounts_user v WHERE v.is_big_v AND {follows(follower, 'v.id', is_probe=False)}"


def followed_tags(follower: str, columns: str = "g.name") -> str:
    """A query of the hashtags that a user follows. `columns` are of Tag `g` and TagFollow `h`."""
    return f"""
    SELECT {columns} FROM relations_tagfollow h JOIN relations_tag g ON g.id = h.tag_id WHERE h.user_id = {follower}
    """


def tag_follows(follower: str, columns: str = "h.tag_id") -> str:
    """A query of the ids of hashtags that a user follows. `columns` are of TagFollow `h`."""
    return f"SELECT {columns} FROM relations_tagfollow h WHERE h.user_id = {follower}"


def known_tags(columns: str, condition: str) -> str:
    """A query of hashtags ever followed. `columns` and `condition` are of Tag `g`."""
    return f"SELECT {columns} FROM relations_tag g WHERE {condition}"


def followers(followee: str, columns: str = "follower_id") -> str:
    """A query of the followers of a user. `columns` are of Follow."""
    return f"SELECT {columns} FROM relations_follow WHERE followee_id = {followee}"


def bells_of(followee: str) -> str:
    """A query of the followers who are notified of each post of a user, as `follower_id`."""
    return f"{followers(followee)} AND bell"


def blocked_by(blocker: str) -> str:
    """A query of the users whom a user blocks, as `blocked_id`."""
    return f"SELECT blocked_id FROM relations_block WHERE blocker_id = {blocker}"


def blockers_of(blocked: str) -> str:
    """A query of the users who block a user, as `blocker_id`."""
    return f"SELECT blocker_id FROM relations_block WHERE blocked_id = {blocked}"


def muted_by(muter: str) -> str:
    """A query of the users whom a user mutes, as `muted_id`."""
    return f"SELECT muted_id FROM relations_mute WHERE muter_id = {muter}"


def members(of_list: str, columns: str = "member_id") -> str:
    """A query of the members of a list. `columns` are of ListMember."""
    return f"SELECT {columns} FROM relations_listmember WHERE list_id = {of_list}"
