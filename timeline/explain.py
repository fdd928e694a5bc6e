"""Explains a reader's home: its windows, what the next page costs, and why an item is in it or not.

Changes nothing, in PostgreSQL or Redis. The reasons are the conditions of the statements that verify pages
(timeline.rules).
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_noop as _

from accounts.levels import policy
from accounts.models import User
from items.models import Status, Visibility
from items.visibility import original_visible
from relations import rules
from storage import keys
from storage.connections import FeedsUnavailableError, count_asked, feeds, feeds_errors, fetch, pipelined, script
from storage.window import INFINITY, RUN, Entry, only_looking, to_number, to_score
from timeline.fold import FOLDED, REACH, folds
from timeline.home import walked
from timeline.pull import around
from timeline.rules import carried, holds, kinds, original_shown, reposts_wanted
from timeline.senders import TAGGED, Scope

SHOWN = 20
"""Outboxes and pending deliveries to list."""
WARM, RUNS, PAGE = 6, 5, 20
"""Warm-up pages (to cache plans and scripts), measured pages, and items per page."""
SENTENCES = {
    # The state of a window, and why PostgreSQL served a page (timeline.truth.Missed).
    "in_use": gettext_lazy("in use"),
    "no_generation": gettext_lazy("not used: the policy has no generation yet, after a failover of PostgreSQL"),
    "building": gettext_lazy("under construction"),
    "no_floor": gettext_lazy("not used: it has no floor"),
    "other_run": gettext_lazy("not used: it was built in another run of the Redis server"),
    "other_epoch": gettext_lazy("not used: it was built for another epoch or policy"),
    "windows": gettext_lazy("The windows serve the whole page."),
    "dormant": gettext_lazy(
        "The reader has not come for a month and has no inbox. PostgreSQL serves each page with one query."
    ),
    "few": gettext_lazy(
        "The reader follows few people, so the policy gives them no inbox. PostgreSQL serves each page with one query."
    ),
    "missing": gettext_lazy(
        "A window is missing or cannot be used yet. PostgreSQL serves the page, and a worker builds it."
    ),
    "redis": gettext_lazy("Redis does not answer, so PostgreSQL serves the page."),
    "outboxes": gettext_lazy("There are so many outboxes to merge that PostgreSQL is faster, so it serves the page."),
    "floor": gettext_lazy("The page reaches below the floor of a window, so PostgreSQL serves it."),
    "hidden": gettext_lazy("The reader may not see most items in the windows, so PostgreSQL serves the page."),
    "merged": gettext_lazy("Pages merge these outboxes with the inbox."),
    "pushed": gettext_lazy("Pages do not merge these outboxes: their posts are pushed to the inbox."),
    "unused": gettext_lazy("Pages do not merge these outboxes: no inbox is in use, so PostgreSQL serves the page."),
    "no_big_v": gettext_lazy("The reader follows no big account."),
    "no_tag": gettext_lazy("The reader follows no hashtag."),
    "deactivated": gettext_lazy("The account is deactivated and cannot open pages."),
    # An item: where pages find it, or why they hide it.
    "shown": gettext_lazy("The reader sees it at home."),
    "inbox": gettext_lazy("It is in the inbox."),
    "by_tag": gettext_lazy("The reader follows one of its hashtags, not its sender."),
    "outbox": gettext_lazy("It is in the outbox of its sender or hashtag, which pages merge."),
    "pending": gettext_lazy("Its delivery is not complete. Until then pages read it from the table of deliveries."),
    "sql": gettext_lazy("PostgreSQL serves it, because it is below a window's floor, or a window is not in use."),
    "lost": gettext_lazy("It is missing from the windows. Run `manage.py timeline_check --repair`."),
    "not_shown": gettext_lazy("The reader does not see it at home."),
    "absent": gettext_lazy("There is no such item."),
    "status": gettext_lazy("It is not published."),
    "reply": gettext_lazy("It is a reply. Home shows no replies."),
    "mentioned": gettext_lazy("It is a private mention. Home shows no private mentions."),
    "self": gettext_lazy("Only its sender sees it."),
    "original": gettext_lazy("It reposts an item that the reader may not see."),
    "original_muted": gettext_lazy("It reposts an item of a sender that the reader mutes."),
    "not_followed": gettext_lazy("The reader does not follow its sender."),
    "blocked": gettext_lazy("The reader blocks its sender."),
    "blocked_by": gettext_lazy("Its sender blocks the reader."),
    "muted": gettext_lazy("The reader mutes its sender."),
    "exclusive": gettext_lazy("Its sender is in one of the reader's exclusive lists."),
    "reposts_left_out": gettext_lazy("The reader hides reposts by its sender."),
    "inactive": gettext_lazy("Its sender is suspended or deactivated."),
    "mutuals": gettext_lazy("It is for mutual follows, and its sender does not follow the reader."),
    "folded": gettext_lazy("It is hidden as a repeat: home shows the original just below, or a newer repost."),
}

# KEYS[1]. Replies nil if the key is missing, else: whether it is of this run, the scores of `floor`, `epoch` and
# `pushes`, the entries above the floor, whether it is being built, and its TTL in seconds.
GLANCE = script(
    RUN
    + """
    local key = KEYS[1]
    if redis.call('EXISTS', key) == 0 then return false end
    local floor = redis.call('ZSCORE', key, 'floor')
    local entries, builds = 0, false
    if floor and floor ~= 'inf' then entries = redis.call('ZCOUNT', key, '(' .. floor, '(inf') end
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, 'inf', 'inf')) do
        builds = builds or string.sub(member, 1, 6) == 'build:'
    end
    local is_current = redis.call('ZSCORE', key, run()) ~= false
    return {is_current and 1 or 0, floor, redis.call('ZSCORE', key, 'epoch'), redis.call('ZSCORE', key, 'pushes'),
        entries, builds and 1 or 0, redis.call('TTL', key)}
    """
)
STANDING = f"""
    SELECT {policy.has_inbox()}, {policy.EPOCH}, {policy.PUSH_GENERATION}, {policy.PUSH_LEVEL}, {policy.INBOX_FROM},
        {policy.GENERATION}
    FROM accounts_user u WHERE u.id = %(reader)s
"""  # noqa: S608 (constants)
BIG_VS = f"""
    SELECT u.id, u.username, {policy.outbox_epoch()}, count(*) OVER ()
    FROM ({rules.followed_big_vs(rules.READER, "v.*")}) u ORDER BY u.id LIMIT %(shown)s
"""  # noqa: S608 (constants)
TAGS = rules.followed_tags(rules.READER, f"g.id, g.name, g.epoch # {policy.GENERATION}") + " ORDER BY g.name"
# The newest of the whole site, as pages read it.
PENDING = f"""
    WITH tags AS MATERIALIZED ({TAGGED.tags}), scanned AS MATERIALIZED (
        SELECT d.item_id, d.sender_id, d.parked_at FROM timeline_delivery d ORDER BY d.item_id DESC LIMIT %(pending)s
    )
    SELECT item_id, parked_at IS NOT NULL FROM scanned
    WHERE sender_id = %(reader)s OR {rules.follows(rules.READER, "scanned.sender_id")}
        OR {carried("scanned.item_id")} IS NOT NULL
    ORDER BY item_id DESC
"""  # noqa: S608
# By name: on every item, and on other people's items.
OF_ALL = kinds() | {
    "original": original_visible("i"),
    "original_muted": f"(NOT {original_visible('i')} OR {original_shown('i')})",
}
OF_OTHERS = {
    "not_followed": rules.follows(rules.READER, "i.sender_id"),
    **rules.wanted_at_home(rules.READER, "i.sender_id"),
    "reposts_left_out": reposts_wanted(),
    **holds(),
}
CONDITIONS = OF_ALL | {name: f"(i.sender_id = %(reader)s OR {text})" for name, text in OF_OTHERS.items()}
OF_SENDERS = {"inactive", *rules.wanted_at_home("", "")}
"""The conditions that also hide an item found by a hashtag alone (rules.welcome)."""
ITEM = f"""
    {TAGGED.with_tags_alone()}
    SELECT i.sender_id, s.username, s.is_big_v, i.status, i.visibility, i.repost_of_id, d.item_id IS NOT NULL,
        d.parked_at IS NOT NULL, {policy.outbox_epoch("s")}, ARRAY[{", ".join(CONDITIONS.values())}],
        {carried("i.id")}
    FROM items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN timeline_delivery d ON d.item_id = i.id
    WHERE i.id = %(item)s
"""  # noqa: S608 (constants)


class _Standing(NamedTuple):
    has_inbox: bool
    epoch: int | None
    push_generation: int
    push_level: int
    inbox_from: int
    generation: int | None


class _BigV(NamedTuple):
    """`total`: of all followed big-Vs."""

    id: int
    username: str
    epoch: int | None
    total: int


class _Tag(NamedTuple):
    id: int
    name: str
    epoch: int | None

    @property
    def key(self) -> str:
        """The key of the hashtag's outbox."""
        return keys.tag_outbox(self.id)


class _Item(NamedTuple):
    """`holds`: a value for each of `CONDITIONS`. `tags`: the followed hashtags of a public post."""

    sender_id: int
    sender: str
    is_big_v: bool
    status: str
    visibility: str
    repost_of: int | None
    is_pending: bool
    is_parked: bool
    outbox_epoch: int | None
    holds: list[bool]
    tags: list[str] | None


class Part(msgspec.Struct):
    """A part of an explanation: keys of `SENTENCES`, facts by English name (None: unknown), ids to explain next."""

    title: str
    words: list[str]
    facts: dict[str, Any] = {}
    items: list[str] = []

    @property
    def sentences(self) -> list[Any]:
        """The sentences of `words`, translated."""
        return [SENTENCES[word] for word in self.words]


def explain_home(reader: User, *, item_id: int | None = None) -> dict[str, Part]:
    """Explain a reader's home and optionally an item, by parts. Bounded work."""
    with _reading_only():
        # Deliveries first: one that is no longer pending is in the windows.
        (own,) = fetch(STANDING, {"reader": reader.pk}, into=_Standing._make)
        big_vs = fetch(BIG_VS, {"reader": reader.pk, "shown": SHOWN}, into=_BigV._make)
        tags = fetch(TAGS, {"reader": reader.pk}, into=_Tag._make)
        cap = settings.PENDING_CAP + 1
        pending = fetch(PENDING, {"reader": reader.pk, "pending": cap})
        found = [] if item_id is None else fetch(ITEM, {"reader": reader.pk, "item": item_id}, into=_Item._make)
        windows = _windows(
            {keys.inbox(reader.pk): (gettext("Inbox"), own.epoch)}
            | {keys.outbox(each.id): (f"@{each.username}", each.epoch) for each in big_vs}
            | {each.key: (f"#{each.name}", each.epoch) for each in tags[:SHOWN]}
        )
        inbox, *outboxes = windows.values()
        if own.generation is None or not own.has_inbox:
            inbox.words = ["no_generation" if own.generation is None else "few" if reader.level else "dormant"]
        merges = own.push_generation == 0 or inbox.facts.get("push generation") != own.push_generation
        merging = "unused" if inbox.words != ["in_use"] else "merged" if merges else "pushed"
        parts = {} if item_id is None else {"item": _item(reader, item_id, found, inbox, tags, merges=merges)}
        parts["next_page"] = _next_page(reader)
    parts["reader"] = Part(
        gettext("The reader"),
        [] if reader.is_active else ["deactivated"],
        {
            _("level"): reader.level,
            _("last seen"): reader.last_seen_at,
            _("following"): reader.following_count,
            _("push generation"): own.push_generation,
            _("big accounts deliver from level"): own.push_level,
            _("inboxes from followees"): own.inbox_from,
        },
    )
    parts["inbox"] = inbox
    followed = {_("big accounts"): big_vs[0].total if big_vs else 0}
    title = gettext("Outboxes of the big accounts that the reader follows")
    parts["big_vs"] = Part(title, [merging if big_vs else "no_big_v"], followed)
    parts |= {f"outbox of {each.id}": outbox for each, outbox in zip(big_vs, outboxes, strict=False)}
    followed = {_("hashtags"): len(tags)}
    merging = "no_tag" if not tags else "unused" if merging == "unused" else "merged"
    parts["tags"] = Part(gettext("Outboxes of the hashtags that the reader follows"), [merging], followed)
    parts |= {f"outbox of #{each.name}": outbox for each, outbox in zip(tags, outboxes[len(big_vs) :], strict=False)}
    parked = sum(is_parked for _item_id, is_parked in pending)
    counts = {_("pending"): len(pending), _("given up"): parked, _("there may be more"): len(pending) == cap}
    newest = [str(pending_id) for pending_id, _is_parked in pending[:SHOWN]]
    parts["pending"] = Part(gettext("Pending deliveries"), [], counts, newest)
    return parts


@contextmanager
def _reading_only() -> Iterator[None]:
    """A transaction or savepoint in which PostgreSQL refuses to write."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        yield


# --- Windows ---------------------------------------------------------------------------------------------
def _windows(wanted: Mapping[str, tuple[str, int | None]]) -> dict[str, Part]:
    """Windows by key, from their titles and expected epochs."""
    commands: list[Any] = []
    for key in wanted:
        commands += [("EVALSHA", GLANCE, 1, key), ("MEMORY", "USAGE", key, "SAMPLES", 0)]
    try:
        with feeds_errors():
            replies = pipelined(feeds(), commands)
    except FeedsUnavailableError:
        return {key: Part(title, ["redis"]) for key, (title, _epoch) in wanted.items()}
    return {
        key: _window(title, expected, glance, size)
        for (key, (title, expected)), glance, size in zip(wanted.items(), replies[::2], replies[1::2], strict=True)
    }


def _window(title: str, expected: int | None, glance: list[Any] | None, size: int | None) -> Part:
    if glance is None:
        return Part(title, ["missing"], {_("expected epoch"): expected})
    is_current, floor_score, epoch_score, pushes, entries, builds, life = glance
    floor = to_score(floor_score) if floor_score else None
    epoch = to_number(epoch_score) if epoch_score else None
    wrong = {
        "no_generation": expected is None,
        "no_floor": floor is None,
        "other_run": not is_current,
        "other_epoch": epoch != expected,
        "building": builds or floor == INFINITY,
    }
    facts = {
        _("entries"): entries,
        _("floor"): None if floor in (None, INFINITY) else str(floor),
        _("epoch"): epoch,
        _("expected epoch"): expected,
        _("push generation"): to_number(pushes),
        _("of this run of the server"): bool(is_current),
        _("bytes"): size,
        _("seconds to live"): life,
    }
    return Part(title, [next((state for state, is_so in wrong.items() if is_so), "in_use")], facts)


# --- An item ---------------------------------------------------------------------------------------------
def _item(
    reader: User, item_id: int, found: Sequence[_Item], inbox: Part, followed: Sequence[_Tag], *, merges: bool
) -> Part:
    part = Part(gettext("Item %(id)s") % {"id": item_id}, ["not_shown", "absent"])
    if not found:
        return part
    (item,) = found
    reasons = [name for name, holds in zip(CONDITIONS, item.holds, strict=True) if not holds]
    tags = [tag for tag in followed if tag.name in (item.tags or ())] if reasons else []
    if tags:
        reasons = [name for name in reasons if name in OF_SENDERS]
    stands_for = 0
    if item.repost_of is not None and not reasons:
        stands_for = folds(Scope.home_of(reader), last_id=item_id + 1, count=1).get(item_id, 0)
        if stands_for == FOLDED:
            reasons, stands_for = ["folded"], 0
            part.items = _folded_into(reader, item_id, item.repost_of)
    outbox = None
    if item.is_big_v:
        (outbox,) = _windows({keys.outbox(item.sender_id): ("", item.outbox_epoch)}).values()
    in_inbox, in_outbox = _held(Entry(item_id, item.sender_id), keys.inbox(reader.pk), keys.outbox(item.sender_id))
    is_above = item_id > int(inbox.facts["floor"] or 0) if inbox.words == ["in_use"] else None
    part.facts = {
        _("sender"): f"@{item.sender}",
        _("status"): str(Status(item.status).label),
        _("visibility"): str(Visibility(item.visibility).label),
        _("reposts that it stands for"): stands_for,
        _("fan-out pending"): item.is_pending,
        _("given up"): item.is_parked,
        _("in the inbox"): in_inbox,
        _("in the outbox of its sender"): in_outbox,
        _("above the floor of the inbox"): is_above,
    }
    if reasons:
        part.words = ["not_shown", *reasons]
    elif tags:
        part.words = ["shown", "by_tag", "pending" if item.is_pending else _by_tag(item_id, item, tags, inbox)]
    elif item.is_pending or not is_above or in_inbox:
        part.words = ["shown", "pending" if item.is_pending else "inbox" if is_above else "sql"]
    elif outbox is None or not merges:
        part.words = ["shown", "lost"]
    else:
        part.words = ["shown", _by_outbox(item_id, outbox, in_it=bool(in_outbox))]
    return part


def _by_outbox(item_id: int, outbox: Part, *, in_it: bool) -> str:
    """Where pages find an item of this outbox."""
    if outbox.words != ["in_use"] or item_id <= int(outbox.facts["floor"] or 0):
        return "sql"
    return "outbox" if in_it else "lost"


def _by_tag(item_id: int, item: _Item, tags: Sequence[_Tag], inbox: Part) -> str:
    """Where pages find an item of these hashtags alone."""
    if inbox.words != ["in_use"]:
        return "sql"
    windows = _windows({tag.key: ("", tag.epoch) for tag in tags})
    held = _held(Entry(item_id, item.sender_id), *windows)
    places = {
        _by_outbox(item_id, one, in_it=bool(is_held)) for one, is_held in zip(windows.values(), held, strict=True)
    }
    return next(place for place in ("sql", "outbox", "lost") if place in places)


def _folded_into(reader: User, item_id: int, repost_of: int) -> list[str]:
    """What a repost is folded into: the original close below, or the next newer repost of it."""
    entries = around(Scope.home_of(reader), last_id=item_id + 1, above=REACH, below=1 + REACH)
    if any(one == repost_of for one, _root in entries):
        return [str(repost_of)]
    return [str(one) for one in sorted(one for one, root in entries if root == repost_of and one > item_id)[:1]]


def _held(entry: Entry, *windows: str) -> list[bool | None]:
    """Whether each window has the entry; None without Redis."""
    try:
        with feeds_errors():
            return [
                score is not None for score in pipelined(feeds(), [("ZSCORE", key, entry.member) for key in windows])
            ]
    except FeedsUnavailableError:
        return [None] * len(windows)


# --- The next page ---------------------------------------------------------------------------------------
def _next_page(reader: User) -> Part:
    """Make the first page several times, without writing to Redis."""
    times = []
    for _run in range(WARM + RUNS):
        with count_asked() as asked, only_looking():
            begin = time.perf_counter()
            walk = walked(reader, last_id=None, limit=PAGE)
            times.append(time.perf_counter() - begin)
    missed = walk.findings.missed if "sql" in walk.findings.sources else None
    facts = {
        _("sources"): ",".join(sorted(walk.findings.sources)),
        _("items of the page"): len(walk.progress.shown[:PAGE]),
        _("statements"): asked.statements,
        _("round trips to Redis"): asked.round_trips,
        _("milliseconds"): round(1000 * statistics.median(times[WARM:]), 2),
    }
    return Part(gettext("The next page"), [missed or "windows"], facts)
