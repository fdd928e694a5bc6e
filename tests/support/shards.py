"""Where the rows of every statement would stand on several primaries, by distribution columns as Citus has them.

The plans that PostgreSQL makes say which columns a statement compares. Tables whose distribution columns are compared
with one another, or with the same value, have the rows that it joins on one node.

`TEST_SHARDS=1 python -m pytest tests/architecture/test_plans.py` writes docs/shards.md by it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.plans import Explained, Text, bare, texts

ONE, PARALLEL, REFERENCE, CHANGE = "stays on one node", "each node by itself", "reference tables alone", "must change"

COLUMNS: Mapping[str, str] = {
    # Rows about a user, by that user.
    "accounts_user": "id",
    **dict.fromkeys(
        (
            "account_emailaddress",
            "accounts_bigvchange",
            "accounts_clientapp",
            "accounts_deletion",
            "accounts_invited",
            "accounts_user_groups",
            "accounts_user_user_permissions",
            "discover_issuedpage",
            "discover_notinterested",
            "django_session",
            "items_bookmark",
            "items_like",
            "knox_authtoken",
            "live_host",
            "live_reminder",
            "mail_letter",
            "mfa_authenticator",
            "notifications_readmark",
            "notifications_silenced",
            "oauth2_provider_accesstoken",
            "oauth2_provider_grant",
            "oauth2_provider_refreshtoken",
            "relations_csvimport",
            "relations_followercountchange",
            "timeline_importeduser",
            "usersessions_usersession",
            "feedsite_written",
        ),
        "user_id",
    ),
    "relations_follow": "follower_id",
    "relations_followrequest": "follower_id",
    "relations_block": "blocker_id",
    "relations_mute": "muter_id",
    "relations_list": "owner_id",
    "relations_listmember": "owner_id",
    "notifications_notification": "recipient_id",
    "notifications_act": "recipient_id",
    "items_filter": "owner_id",
    "media_mediafile": "owner_id",
    "timeline_readingposition": "reader_id",
    "live_walksnapshot": "reader_id",
    "accounts_invitation": "made_by_id",
    # Items and live sessions, by the sender or host.
    "items_item": "sender_id",
    "items_pin": "sender_id",
    "items_idempotencykey": "sender_id",
    "timeline_delivery": "sender_id",
    "timeline_backfill": "sender_id",
    "live_livesession": "host_id",
    "live_replaydelivery": "host_id",
    # Rows about an item, by the item as long as they do not name its sender.
    "items_itemcounts": "item_id",
    "items_countchange": "item_id",
    "items_itemdocument": "item_id",
    "items_itemtag": "item_id",
    "items_itemversion": "item_id",
    "discover_popularitem": "item_id",
    "discover_itemchange": "item_id",
    "timeline_deliveryrange": "delivery_id",
}
"""The distribution column of each table; all other tables are small and seldom written: reference tables."""


class Change(NamedTuple):
    """A change of the schema by which rows stand beside those that they are read with."""

    does: str
    copies: Mapping[str, str] = {}
    """A second copy of a table, by this column."""
    follows: Mapping[str, tuple[str, str]] = {}
    """A table gets the distribution column of another, to whose id this column refers: column, other table."""
    everywhere: frozenset[str] = frozenset()
    """Tables of which every node has what reads need."""


CHANGES = (
    Change(
        "Every node has the cards of all users: id, name, display name, avatar, big-V, active; what moves (when seen, "
        "counts) stays with the user.",
        everywhere=frozenset({"accounts_user"}),
    ),
    Change(
        "Follows, requests, blocks and mutes are kept twice, by either side, written by one transaction of two nodes.",
        copies={
            "relations_follow": "followee_id",
            "relations_followrequest": "followee_id",
            "relations_block": "blocked_id",
            "relations_mute": "muted_id",
            "relations_listmember": "member_id",
        },
    ),
    Change(
        "Counts, words, tags and versions of an item bear its sender and stand beside it.",
        follows=dict.fromkeys(
            (
                "items_itemcounts",
                "items_countchange",
                "items_itemdocument",
                "items_itemtag",
                "items_itemversion",
                "discover_popularitem",
                "discover_itemchange",
                "items_pin",
                "timeline_delivery",
            ),
            ("item_id", "items_item"),
        )
        | {"timeline_deliveryrange": ("delivery_id", "timeline_delivery")},
    ),
    Change(
        "Acts are joined by their recipient too, members of lists by its owner in every join, reminders by the host.",
        follows={
            "notifications_act": ("notification_id", "notifications_notification"),
            "relations_listmember": ("list_id", "relations_list"),
            "live_reminder": ("session_id", "live_livesession"),
            "live_replaydelivery": ("session_id", "live_livesession"),
        },
    ),
)
COMPARED = re.compile(r"\(?((?:\w+\.)?\w+)\)?(?:::\w+)? = (ANY )?\(?((?:\w+\.)?\w+\b|'[^']*'(?:::\w+)?|\$\d+|\$?\w+)")
CONDITIONS = ("Index Cond", "Recheck Cond", "Filter", "Join Filter", "Hash Cond", "Merge Cond", "TID Cond")


class Verdict(NamedTuple):
    """The class of a statement, and the groups of tables whose rows come to it from different nodes."""

    kind: str
    groups: tuple[tuple[str, ...], ...] = ()


class Groups:
    """Terms that are equal to one another."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def of(self, term: str) -> str:
        """The term that stands for all that are equal to this one."""
        while (above := self._above.get(term, term)) != term:
            term = above
        return term

    def join(self, one: str, other: str) -> None:
        self._above[self.of(one)] = self.of(other)


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A plan's nodes, from the top."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def judged(plan: Mapping[str, Any], changes: Sequence[Change] = ()) -> Verdict:
    """The class of a statement with this plan, which was made with the values of its parameters, after the changes."""
    scanned, groups, values = _read(plan)
    everywhere = {table for change in changes for table in change.everywhere}
    written = {node.get("Relation Name") for node in nodes(plan) if node["Node Type"] in ("ModifyTable", "LockRows")}
    places = {
        alias: _places(alias, table, scanned, groups, changes)
        for alias, table in scanned.items()
        if table in COLUMNS and not (table in everywhere and table not in written)
    }
    if not places:
        return Verdict(REFERENCE)
    parts: dict[str, set[str]] = defaultdict(set)
    for alias, possible in sorted(places.items(), key=lambda one: len(one[1])):
        # Where rows have several places, one that others have: those of a single place came before.
        parts[next((place for place in possible if place in parts), possible[0])].add(scanned[alias])
    if len(parts) > 1:
        return Verdict(CHANGE, tuple(sorted({tuple(sorted(part)) for part in parts.values()})))
    (place,) = parts
    is_bound = any(groups.of(value) == place and not value.startswith("any ") for value in values)
    return Verdict(ONE if is_bound else PARALLEL)


def _read(plan: Mapping[str, Any]) -> tuple[dict[str, str], Groups, set[str]]:
    """The tables that a plan scans by alias, the terms that it finds equal, and the values among these."""
    groups, values, scanned = Groups(), set(), {}
    for node in nodes(plan):
        alias = node.get("Alias", node.get("Relation Name", ""))
        if table := node.get("Relation Name"):
            scanned[alias] = table
        for name in CONDITIONS:
            for left, many, right in COMPARED.findall(str(node.get(name, ""))):
                one, other = (_term(alias, each) for each in (left, right))
                if many:
                    other = f"any {other}"
                groups.join(one, other)
                values |= {term for term in (one, other) if "." not in term}
    return scanned, groups, values


def _term(alias: str, text: str) -> str:
    """A column with its alias, or a value."""
    return text if "." in text or text[0] in "'$" or text.isdigit() else f"{alias}.{text}"


def _places(alias: str, table: str, scanned: Mapping[str, str], groups: Groups, changes: Sequence[Change]) -> list[str]:
    """Where the rows of a scan may be read."""
    found = [groups.of(f"{alias}.{COLUMNS[table]}")]
    for change in changes:
        if column := change.copies.get(table):
            found.append(groups.of(f"{alias}.{column}"))
        if table in change.follows:
            column, other = change.follows[table]
            reference = groups.of(f"{alias}.{column}")
            found += [
                groups.of(f"{beside}.{COLUMNS[other]}")
                for beside, name in scanned.items()
                if name == other
                and groups.of(f"{beside}.{'item_id' if other == 'timeline_delivery' else 'id'}") == reference
            ]
    return list(dict.fromkeys(found))


def verdicts(explained: Iterable[Explained], changes: Sequence[Change] = ()) -> dict[str, Verdict]:
    """Of each statement, by its custom plan that is hardest to place."""
    order = (REFERENCE, ONE, PARALLEL, CHANGE)
    found: dict[str, Verdict] = {}
    for one in explained:
        if one.kind == "custom":
            verdict = judged(one.plan, changes)
            before = found.get(one.statement)
            if before is None or order.index(before.kind) < order.index(verdict.kind):
                found[one.statement] = verdict
    return found


# --- The document ----------------------------------------------------------------------------------------
REMEDIES: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"notifications_act", "notifications_notification"}),
        "names the recipient of the act beside its notification",
    ),
    (
        frozenset({"items_countchange", "items_like"}),
        "writes the change of the count by a second statement, on the item's node",
    ),
    (frozenset({"items_countchange", "items_itemcounts"}), "folds on each node what stands there, by the sender"),
    (frozenset({"relations_list"}), "is given the list's owner, who is the reader"),
    (
        frozenset({"live_reminder", "live_livesession"}),
        "asks for the reminders on the host's node, and for the reader's marks on theirs",
    ),
    (
        frozenset({"timeline_delivery", "relations_follow"}),
        "asks which senders the reader follows first, and for the deliveries of these then",
    ),
    (
        frozenset({"items_item"}),
        "finds ids first, and asks for the item, its original and its root on their senders' nodes then",
    ),
)
"""Tables whose rows meet in a statement, and how it changes; the first that fits."""
ITSELF = "names the distribution column beside the id where it finds rows and then changes them"
OTHERWISE = "asks two statements, the second by what the first has found"
LEAST = 60
"""Letters of a text by which a statement is known to be of it."""
BEGIN, END = "<!-- begin: written by tests/support/shards.py -->", "<!-- end -->"


def document(explained: Sequence[Explained]) -> str:
    """The part of docs/shards.md between `BEGIN` and `END`."""
    shown = ONE, PARALLEL, REFERENCE, CHANGE
    lines = [f"| after the changes up to | {' | '.join(shown)} |", "|---|--:|--:|--:|--:|"]
    for number in range(len(CHANGES) + 1):
        kinds = Counter(verdict.kind for verdict in verdicts(explained, CHANGES[:number]).values())
        lines.append(f"| {number or 'none'} | {' | '.join(str(kinds[kind]) for kind in shown)} |")
    lines += ["", "## The changes", *(f"{number}. {change.does}" for number, change in enumerate(CHANGES, 1)), ""]
    lines += [
        "## Statements that must change still",
        "Rows of the tables beside a `+` come from different nodes.",
        "",
        "| statement of | tables | instead it |",
        "|---|---|---|",
    ]
    spoken = texts()
    rows = set()
    for statement, verdict in verdicts(explained, CHANGES).items():
        if verdict.kind == CHANGE:
            met = frozenset(table for group in verdict.groups for table in group)
            remedy = ITSELF if len(met) == 1 else next((does for some, does in REMEDIES if some <= met), OTHERWISE)
            rows.add(f"| {_place(statement, spoken)} | {' + '.join(map(', '.join, verdict.groups))} | {remedy} |")
    return "\n".join([*lines, *sorted(rows), ""])


def write(path: Path, explained: Sequence[Explained]) -> None:
    """Write docs/shards.md anew, but for what people wrote above."""
    above, _, _ = path.read_text().partition(BEGIN)
    path.write_text(f"{above}{BEGIN}\n{document(explained)}{END}\n")


def _place(statement: str, spoken: Iterable[Text]) -> str:
    """The file that spells the statement out."""
    text = bare(statement)
    found = max(((sum(map(len, one.parts)), one.file) for one in spoken if one.is_in(text)), default=(0, ""))
    return found[1] if found[0] > LEAST else "of the ORM"
