"""No query plan grows with the site: every statement is explained on a grown site.

tests/support/grown.py makes the site. Each table has `MANY` rows, and two users have `MANY` of everything.
tests/support/scenario.py requests every address and runs every task and command: as these two, a new user, a stranger
and an admin. Each statement is explained with sequential scans off, so a missing index shows in the rows touched: those
scans return and those filters drop. Prepared statements are explained with parameters and as the generic plan.

What keeps a plan small:

- Find ids first: a UNION of two index scans, not `id IN (…) OR lower(username) = ANY(…)`.
- `EXISTS (… OFFSET 0)` stays one probe a row. Without OFFSET PostgreSQL may hash all followers for twenty items.
- Start at the bounded side: a reader follows at most `FOLLOW_CAP`, a star has any number of followers.
- LIMIT inside a count: `SELECT count(*) FROM (SELECT … LIMIT 10000)`.
- An order that an index has, with the filters as probes.
"""

from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from django.core.management import get_commands
from django.urls import URLResolver, get_resolver

from feedsite import celery
from items.models import LISTED
from moderation import rules
from tests.support import scenario
from tests.support.grown import MANY, Grown
from tests.support.plans import Explained, Recorder, bare, explained, hashes_of_other_rows, texts, worst
from tests.support.scenario import Scenario

CAP = 9_500
"""Rows one statement may touch. A grown table has at least `MANY`. A page makes a few probes for each of 500
followees.
"""


class Allowed(NamedTuple):
    step: str
    """Start of the steps' names: a user of the scenario, `task` or `admin`. Empty means any."""
    text: str
    """Part of it, with single spaces."""
    rows: int
    reason: str

    def fits(self, one: Explained) -> bool:
        return one.step.startswith(self.step) and self.text in " ".join(one.statement.split())


WHOLE = 12 * MANY
"""The limit of statements that read a whole table."""
ALLOWED = (
    # Pages with bounds of their own.
    Allowed("", f"unnest(ARRAY{LISTED})", 35_000, "counts items.profiles.profile.COUNTED items"),
    Allowed(
        "",
        "SELECT max(item_id), min(item_id), count(*) FROM ( SELECT item_id FROM items_itemdocument",
        8_000,
        "a sample of items.search, of fixed length",
    ),
    Allowed("", "SELECT i.id FROM items_item i JOIN accounts_user s", 20_000, "the same sample, intersected"),
    Allowed(
        "",
        "WITH asked AS MATERIALIZED ( SELECT $1::bigint[] AS ids",
        80_000,
        "discover.exclusions: 500 candidates, and what the reader answered and was shown within a day",
    ),
    Allowed(
        "",
        "SELECT tag, (array_agg(item_id",
        25_000,
        "items.tags.popular: the newest 5,000 uses of hashtags, every five minutes",
    ),
    Allowed(
        "",
        "WITH found AS ( SELECT * FROM unnest($1::bigint[]",
        20_000,
        "discover.postgres: 500 candidates of each kind",
    ),
    Allowed(
        "", "WITH term AS ( SELECT * FROM unnest(", 30_000, "discover.postgres: the newest posts that have rare words"
    ),
    Allowed(
        "",
        "WITH mine AS MATERIALIZED ( SELECT followee_id",
        40_000,
        "discover.interests reads the newest 40 follows of 50 users; without statistics of one user the plan sorts",
    ),
    Allowed(
        "",
        "WHERE i.sender_id = $2 AND i.reply_to_id IS",
        120_000,
        "a sender's items by index; the plan for an average sender, who has few, sorts them",
    ),
    Allowed(
        "",
        "SELECT id FROM ( SELECT d.item_id AS id FROM",
        80_000,
        "items.search: the newest documents, of fixed length, compared one by one",
    ),
    Allowed(
        "",
        "WITH candidate AS ( SELECT u.id FROM accounts_user u WHERE lower(u.username)",
        25_000,
        "items.search.user_search: CANDIDATES of a name; big-Vs",
    ),
    Allowed(
        "star", "WITH tags AS MATERIALIZED ( WITH own", 20_000, "discover.interests and discover.postgres: their bounds"
    ),
    Allowed("star", "WITH tags AS MATERIALIZED", 14_000, "home with 100 hashtags beside 500 followees"),
    Allowed(
        "",
        'DELETE FROM "moderation_pictureattempt"',
        12_000,
        "a rule keeps its newest 1,000; here it begins with 9,000",
    ),
    # The user's own data, a few times an hour.
    *(
        Allowed(who, "", WHOLE, "an export of all that is one's own")
        for who in (
            "star: GET /api/v1/users/me/export",
            "reader: GET /api/v1/users/me/export",
            "star: GET /settings/export/",
            "reader: GET /settings/export/",
        )
    ),
    *(
        Allowed(step, "SELECT p.conversation_id", 350_000, "each private mention that one can read, with its people")
        for who in ("reader", "star")
        for step in (f"{who}: GET /api/v1/users/me/export", f"{who}: GET /settings/export/")
    ),
    # The stream: a row per connection and post, at 400 connections and 100 posts.
    Allowed("stream", "AS one (reader, tag, list, place)", 250_000, "who of the watchers sees each post"),
    Allowed("stream", "WITH i AS MATERIALIZED ( SELECT event.place", 12_000, "the rules of a post for 100 posts"),
    Allowed("stream", "SELECT met.* FROM unnest(", 220_000, "what each of those who are told did with it"),
    Allowed("stream", "SELECT quote.* FROM (SELECT pair.item", 100_000, "what each of those who are told sees in it"),
    # Workers: batches.
    Allowed("task items.remove_refused_cards", "items_linkcard", 25_000, "the cards of a host that staff refused"),
    Allowed("task", "follower_id > $2 AND f.follower_id <= $3", 30_000, "a part of 5,000 followers"),
    Allowed("task", "UPDATE timeline_delivery d SET attempts", 12_000, "the first 2,000 followers with the claim"),
    Allowed(
        "task",
        "SELECT u.id FROM (SELECT follower_id FROM relations_follow WHERE followee_id",
        WHOLE,
        "a big-V's active fans, once a day",
    ),
    Allowed("task notifications.ring", "WITH bells AS MATERIALIZED", 30_000, "a batch of 1,000 bells"),
    Allowed("task", "DELETE FROM notifications_", 60_000, "a batch of 5,000"),
    Allowed("task items.end_polls", "INSERT INTO notifications_notification", 20_000, "a batch of 1,000 voters"),
    Allowed("", "INSERT INTO items_vote (item_id, user_id, choices) SELECT %s", WHOLE, "made by the scenario"),
    Allowed("task timeline.materialise_inbox", "WITH senders AS MATERIALIZED", 20_000, "an inbox of its full length"),
    Allowed("task timeline.rise", "WITH senders AS MATERIALIZED", 20_000, "an inbox of its full length"),
    Allowed("task timeline.deepen_inbox", "WITH senders AS MATERIALIZED", 20_000, "an inbox of its full length"),
    Allowed("task accounts.lower_levels", "WITH due AS MATERIALIZED", WHOLE, "a batch of users, every ten minutes"),
    Allowed("task timeline.sweep", "UPDATE timeline_delivery", WHOLE, "passes parked rows, which an admin clears"),
    Allowed("task live.sweep", "UPDATE live_replaydelivery", WHOLE, "passes parked rows, which an admin clears"),
    Allowed("question of timeline.sweep", "", WHOLE, "passes parked rows, which an admin clears"),
    Allowed("question of live.sweep", "", WHOLE, "passes parked rows, which an admin clears"),
    Allowed("doctor", 'FROM "discover_itemchange"', WHOLE, "counts the rows of a queue, 100,000 of them at most"),
    Allowed("task operation.observe", "FROM timeline_delivery", WHOLE, "counts the rows of a queue"),
    Allowed("task operation.observe", "FROM live_replaydelivery", WHOLE, "counts the rows of a queue"),
    Allowed("task operation.observe", "SELECT work, extract(epoch", WHOLE, "the oldest rows of all queues"),
    Allowed("task timeline.check_sample", "SELECT item_id FROM timeline_delivery", WHOLE, "the rows of a queue"),
    Allowed("command timeline_check", "SELECT item_id FROM timeline_delivery", WHOLE, "the rows of a queue"),
    Allowed("task accounts.sweep_deletions", "accounts_deletion", WHOLE, "the rows of a queue"),
    # Workers: rare full scans.
    Allowed(
        "task discover.refresh_popular",
        "WITH newest AS MATERIALIZED",
        400_000,
        "discover.refreshing: RECENT posts, ACTS acts and 200 followers of each sender",
    ),
    Allowed("task discover.refresh_words", "discover_wordrarity", WHOLE, "a sample of the newest 100,000 documents"),
    Allowed("task live.measure", 'FROM "live_livesession" GROUP BY', WHOLE, "counts all sessions"),
    Allowed("task operation.census", "FROM accounts_user GROUP BY level", WHOLE, "counts all users"),
    Allowed("task operation.census", 'FROM "mail_letter"', WHOLE, "the letters of a day, every five minutes"),
    # Staff searches. EstimatedPaginator limits their pages.
    Allowed("admin", "", WHOLE, "a list of the admin: few people, one table at a time"),
)
UNSPOKEN = {
    "operation/locks.py": "PostgreSQL's own tables, and an operator's line",
    "notifications/desk.py": "what stands there without the package of moderation",
    "items/conversations/recipients.py:SELECTNOT": "of one person, who takes no requests; as ADDRESSED asks it",
    "runtime/management/commands/migrate.py": "before there is a site",
    "accounts/levels/policy.py": "one row",
    "storage/indexes.py": "migrations",
    "storage/site_key.py": "one row",
    "storage/postgresql/": "asks a server how it is, of no table",
    "storage/replica.py": "asks a replica how far it is, of no table that grows",
    "storage/quiet.py": "the frame of the questions, which are explained",
    "community/demo.py": "makes the demo community, once",
    "community/importing.py": "loads a data set, once",
    "accounts/joining/actions.py:SELECT'name'": "`load` asks by the indexes of names for those of a data set",
    "items/search/indexing.py:COPY": "`reindex` reads all items in parts",
    "items/search/indexing.py:TRUNCATE": "`reindex`",
    "items/search/indexing.py:SELECTi.id,i.title": "`reindex` reads all items in parts",
    "items/search/user_search.py:SELECT": "asked where a replica proposed",
    "timeline/oracle.py": "the oracle looks at all a reader follows; for comparisons",
    "timeline/check.py": "compares windows with the oracle",
    "discover/indexing.py": "OpenSearch's own queue; parts of fixed length",
    "seen/migration/migrate.py": "the lock of a command",
    "operation/doctor/postgresql.py": "PostgreSQL's own tables",
    "operation/kept_backups.py": "a lock",
    "operation/dumps.py": "PostgreSQL's own tables",
    "operation/backup.py": "`restore`: PostgreSQL's own tables, and deleted accounts in parts",
    "web/health.py": "asks a server how it is, of no table",
    "accounts/joining/actions.py:SELECTpg_advisory": "a lock, once in a site's life",
    "accounts/signing_in/grants.py": "the stream's process: one probe for each connection",
    "live/snapshot.py": "one row, where Redis does not answer",
    "live/pull.py": "the parts of statements that live.feed makes",
    "timeline/fanout.py": "bounds of ranges of a big-V's followers: FAN_OUT_RANGE at a time",
    "seen/access.py": "one user",
    "seen/forgetting.py": "one user",
}
"""Text the scenario does not execute, and why: by file, or file and first words."""
UNRUN_COMMANDS = {
    "status": "statements of the gauges",
    "backup": "reads all, by pg_dump",
    "bench": "measures",
    "check_all": "tests",
    "check_key": "one row",
    "demo": "makes the demo community",
    "discover_index": "loads OpenSearch in parts",
    "await_servers": "asks nothing of tables",
    "upgrade": "asks the catalogue of PostgreSQL, and runs other commands",
    "document_layout": "asks nothing",
    "document_settings": "asks nothing",
    "doctor": "looks at servers",
    "flush": "removes all",
    "generateschema": "",
    "load": "loads a data set",
    "makemigrations": "asks which migrations are applied",
    "messages": "",
    "migrate": "",
    "prepare": "migrates",
    "played_grpc": "a server",
    "played_migrate": "reads the old Redis",
    "policy": "one row",
    "readonly": "one row",
    "reindex": "reads all items in parts",
    "restore": "writes all",
    "runserver": "",
    "program": "becomes another program, and asks nothing",
    "seal_factors": "reads all second factors in parts, by hand",
    "sendtestemail": "asks the mail server",
    "restart": "signals, without Django",
    "setup": "makes a role and a database, without Django",
    "spectacular": "",
    "up": "a server",
}
UNASKED = {
    "about/icons/<int:logo_id>/<slug:name>.png": "no statement",
    "settings/notifications/push/<int:subscription_id>": "a row by its id",
    "settings/notifications/push/<int:subscription_id>/remove": "the same",
    "settings/notifications/push/<int:subscription_id>/trial": "the same",
    "api/v1/stream": "served by the stream's process; `told` of the scenario asks its question",
    "api/v1/streaming": "the same, `told` asks as apps do",
    "api/v1/streaming/": "the same",
    "api/v1/streaming/health": "no statement",
    "api/v1/streaming/<path:path>": "the same as of api/v1/streaming",
    "^api/": "what is not there",
    ".well-known/oauth-authorization-server": "over https alone; no statement",
    "api/v1/statuses/<id:status_id>/mute": "422, of a status that is seen, as other acts ask for it",
    "api/v1/statuses/<id:status_id>/unmute": "the same",
    "api/v1/notifications/<id:notification_id>": "what the list of notifications asks, for three",
    "api/v2/notifications/<str:group_key>": "what the list of notifications asks, for one day",
    "api/v2/notifications/<str:group_key>/accounts": "what the list of notifications asks, for one day",
    "api/v2/notifications/<str:group_key>/dismiss": "what a notification that is put away asks, for each of a group",
    "api/v1/follow_requests/<id:account_id>/authorize": "the own API's verb and statements",
    "api/v1/follow_requests/<id:account_id>/reject": "the same",
    "first-admin/<str:token>": "the question of `account first-admin`, and a sign-up",
    "live/<number:session_id>/<slug:verb>": "the API's verbs",
}
UNRUN_TASKS = {
    "operation.back_up": "reads all, by pg_dump",
    "discover.index": "OpenSearch's own queue",
    "media.finish_moves": "what media.sweep does first",
    "notifications.announce": "what an announcement of a request asks, of one user",
    "notifications.put_away": "what clearing asks in its request, once more",
    "seen.merge_user": "plays, which are in no table",
    "timeline.fan_out_range": "what timeline.fan_out does, for a range",
    "timeline.materialise_outbox": "the newest 1,000 items of a sender",
}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_no_plan_grows(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATE_SCALE = 1e6
    settings.MEDIA_WAIT_SECONDS = settings.MEDIA_SECONDS = 60.0  # a picture may wait on a busy machine
    celery.app.loader.import_default_modules()
    with explained() as recorder:
        recorder.is_silent = True
        played = Scenario(Grown(), recorder)
        recorder.is_silent = False
        monkeypatch.setattr(rules, "_list", None)  # an earlier test's word list
        monkeypatch.setattr(celery.app, "send_task", played.send_task)
        scenario.play(played)
    tasks = {name for name, task in celery.app.tasks.items() if not task.__module__.startswith(("celery.", "tests."))}
    problems = {
        "refused": played.refused,
        "tasks that did not run": tasks - played.ran - UNRUN_TASKS.keys(),
        "commands that did not run": commands() - played.commands - UNRUN_COMMANDS.keys(),
        "addresses that were not asked for": {
            one for one in routes() - played.asked - UNASKED.keys() if not one.startswith("^api/")
        },
        "statements that were never explained": never(recorder),
        "statements that could not be explained": recorder.failed,
        "statements that touch too much": grown(recorder),
        "statements that may ask a hash of another row": {
            f"{one.step}: {found}: {' '.join(one.statement.split())[:300]}"
            for one in recorder.explained
            for found in hashes_of_other_rows(one.plan)
        },
    }
    found = "\n".join(f"{name}:\n  " + "\n  ".join(map(str, several)) for name, several in problems.items() if several)
    assert not found, found


def grown(recorder: Recorder) -> list[str]:
    over: dict[str, list[Explained]] = defaultdict(list)
    for one in recorder.explained:
        if one.touched > max([CAP, *(allowed.rows for allowed in ALLOWED if allowed.fits(one))]):
            over[one.statement].append(one)
    found = sorted(
        (max(several, key=lambda one: one.touched) for several in over.values()), key=lambda one: -one.touched
    )
    return [
        f"{one.touched} rows ({worst(one.plan)}), {one.kind} plan, {one.step}: {' '.join(one.statement.split())[:400]}"
        for one in found
    ]


def never(recorder: Recorder) -> list[str]:
    executed = [bare(statement) for statement in recorder.executed]
    return [
        text.place
        for text in texts()
        if not any(text.is_in(statement) for statement in executed)
        and not any(f"{text.file}:{text.parts[0]}".startswith(place) for place in UNSPOKEN)
    ]


def commands() -> set[str]:
    rooms = {text.file.split("/")[0] for text in texts()} | {"drf_spectacular"}
    return {name for name, app in get_commands().items() if str(app) in rooms}


def routes() -> set[str]:
    """The admin's pages for one row are requested for each model's newest row."""

    def walk(patterns: Any, prefix: str) -> Any:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, prefix + str(pattern.pattern))
            else:
                yield prefix + str(pattern.pattern)

    found = {route for route in walk(get_resolver().url_patterns, "") if not route.startswith("admin/")}
    return {route for route in found if not route.endswith("/") or route.removesuffix("/") not in found}
