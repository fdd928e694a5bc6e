"""Every variable of the environment that the site reads: one table, of which settings, checks and documents are made.

runtime/environment.py checks the environment by it and reads the values; feedsite/settings.py names them.
`manage.py document_settings` writes `.env.example` and docs/settings.md from it.

See docs/decisions.md: Code written by hand, and why it stays.
"""

from collections.abc import Callable
from typing import NamedTuple

from runtime.cluster_address import names_cluster
from runtime.option_kinds import (
    BROKER,
    BUCKET,
    DAYS,
    FEEDS,
    HOST,
    MAIL,
    MEMORY,
    MINUTES,
    OPENSEARCH,
    ORIGIN,
    PATH,
    PLACE,
    PORT,
    POSTGRESQL,
    REDIS,
    SECONDS,
    SENDER,
    TRUSTED,
    Address,
    Choice,
    Kind,
    Listing,
    Number,
    Rate,
    Switch,
    Text,
    Whole,
    Zone,
)

PREFIX = "FEEDSITE_"
SHOWN = 60
"""Characters of a wrong value that a message repeats."""
YEAR_SECONDS = 31_536_000
"""Seconds; the least age with which browsers' lists take a site."""


class Option(NamedTuple):
    """One variable.

    `default` is written as the variable would be. Where it is empty there is none, and `otherwise` says what holds
    instead. `example` is a value for `.env.example` where the default would teach nothing.
    """

    name: str
    kind: Kind
    default: str
    text: str
    otherwise: str = ""
    example: str = ""
    is_secret: bool = False

    def is_private(self) -> bool:
        """Whether the value must not be shown."""
        return self.is_secret or isinstance(self.kind, Address)

    def wrong(self, value: str, reason: str, old_name: str = "") -> str:
        """The sentence that refuses a value, which may have been set by an old name. `reason` holds nothing of the
        value that is private.
        """
        name = f"{self.name} (set as {old_name})" if old_name else self.name
        if self.is_private():
            return f"{name} is not {self.kind.allowed}{f': {reason}' if reason else ''}."
        shown = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
        return f"{name} is {shown!r}; it must be {self.kind.allowed}{f': {reason}' if reason else ''}."


class Group(NamedTuple):
    """Options that belong together; `text` holds for all of them."""

    title: str
    text: str
    options: tuple[Option, ...]


# --- The table -------------------------------------------------------------------------------------------
# One or two lines an option, read best without the formatter.
# fmt: off
GROUPS = (
    Group("Where", "", (
        Option("PORT", PORT, "8000",
            "The port on which `up` serves pages."),
        Option("FEEDSITE_HOST", PLACE, "127.0.0.1",
            "The address on which `up` listens."),
        Option("FEEDSITE_DATA_DIR", Text(), "",
            "The folder of embedded servers, logs, static files, filters of plays and secret key.",
            otherwise="`var/` beside manage.py", example="/srv/feedsite/data"),
        Option("FEEDSITE_VENV", Text(), "",
            "The virtual environment. Read from the environment only, not from a file.",
            otherwise="`.venv` beside manage.py", example="/srv/feedsite/venv"),
        Option("FEEDSITE_WHEELS", Text(), "",
            "A folder of wheels, for a machine without internet: the environment is made from it alone. Read from the "
            "environment only, not from a file.",
            otherwise="wheels come from the package index of pip", example="/srv/wheels"),
        Option("FEEDSITE_ENV_FILE", Text(), "",
            "The file of variables that is read instead of `.env`. Read from the environment only, not from a file.",
            otherwise="`.env` beside manage.py, if there is one", example="/etc/feedsite.env"),
        Option("FEEDSITE_TIME_ZONE", Zone(), "UTC",
            "The site's zone: in its night filters of plays expire, and readers whose zone is not known see its times.",
            example="Asia/Shanghai"),
        Option("FEEDSITE_SIGN_UP", Choice(("open", "invite", "approval", "closed")), "",
            "The way to join: open to all, by invitation, by approval of an admin, or closed.",
            otherwise="the admin's choice, at first open", example="closed"),
        Option("FEEDSITE_APPLICATION_DAYS", DAYS, "30",
            "How long an application for an account is kept on which no admin decides."),
        Option("FEEDSITE_DOMAIN", HOST, "localhost",
            "The site's host name under compose: what Caddy serves, and the first of the allowed hosts.",
            example="feeds.example.org"),
    )),
    Group("Servers", "Each one that is given replaces the embedded one; docs/operations.md says what each must keep.", (
        Option("FEEDSITE_DATABASE_URL", POSTGRESQL, "",
            "PostgreSQL, the truth.",
            otherwise="the embedded server", example="postgresql://feedsite:secret@db.internal/feedsite"),
        Option("FEEDSITE_REPLICA_URL", POSTGRESQL, "",
            "A streaming replica of it, for reads that may lag.",
            otherwise="the primary serves all reads", example="postgresql://feedsite:secret@standby.internal/feedsite"),
        Option("FEEDSITE_REPLICA_LAG_SECONDS", Number(0, 86400, "seconds"), "10",
            "How far the replica may be behind; beyond it the primary serves its reads."),
        Option("FEEDSITE_REPLICA_TIMEOUT_SECONDS", SECONDS, "2",
            "How long a read waits for the replica before the primary."),
        Option("FEEDSITE_DATABASE_CONN_MAX_AGE_SECONDS", Whole(0, 86400, "seconds"), "600",
            "How long a connection to PostgreSQL is kept; 0: for one request."),
        Option("FEEDSITE_DATABASE_TIMEOUT_SECONDS", SECONDS, "3.5",
            "How long a statement of web, stream and gRPC may take."),
        Option("FEEDSITE_PREPARE", Switch(), "1",
            "Statements are prepared, and sessions have settings of their own; 0: neither, for a pooler in front of "
            "PostgreSQL that lends a session for a transaction (PgBouncer)."),
        Option("FEEDSITE_REDIS_URL", FEEDS, "",
            "The feeds server, a Redis or a Redis Cluster (redis+cluster://user:password@node1:6379,node2:6379; "
            "rediss+cluster: TLS).",
            otherwise="the embedded server", example="redis://feeds.internal/0"),
        Option("FEEDSITE_REDIS_TIMEOUT_SECONDS", SECONDS, "0.2",
            "How long a page waits for the feeds server before PostgreSQL serves it."),
        Option("FEEDSITE_CACHE_URL", REDIS, "",
            "Rate counters, copies of sessions, suggestions and popular hashtags; on a server that does not evict.",
            otherwise="the broker's server where it is a Redis, else the feeds server",
            example="redis://broker.internal/2"),
        Option("FEEDSITE_BROKER_URL", BROKER, "",
            "Celery's queue, on a server that does not evict.",
            otherwise="the feeds server if that is given, else the embedded server",
            example="redis://broker.internal/0"),
        Option("FEEDSITE_PLAYED_URL", REDIS, "",
            "Plays that are not merged yet, on a Redis that does not evict and syncs at every write.",
            otherwise="the broker's server if that is given and a Redis, the feeds server if only that is given, "
                "else the embedded server",
            example="redis://plays.internal/1"),
        Option("FEEDSITE_FEEDS_MEMORY", MEMORY, "512mb",
            "Memory of the embedded feeds server; beyond it the server evicts."),
    )),
    Group("Processes", "", (
        Option("FEEDSITE_WEB_PROCESSES", Whole(1, 1024), "",
            "Processes that serve pages under `up`.",
            otherwise="one a processor", example="4"),
        Option("FEEDSITE_WEB_THREADS", Whole(1, 1024), "4",
            "Threads of each of them that answer requests: what `up` starts, and what a granian that is started "
            "otherwise has."),
        Option("FEEDSITE_WEB_WAIT_SECONDS", Number(0.05, 60, "seconds"), "0.5",
            "For so long a request may wait for such a thread. Later it is answered 503 with Retry-After, and nothing "
            "of it is done."),
        Option("FEEDSITE_WEB_MEMORY_MB", Whole(128, 65536, "MiB"), "512",
            "Resident memory beyond which such a process is replaced by a fresh one, after it has answered what it is "
            "at."),
        Option("FEEDSITE_WORKER_PROCESSES", Whole(1, 1024), "",
            "Processes of the Celery worker under `up`.",
            otherwise="one a processor", example="4"),
        Option("FEEDSITE_WORKER_MEMORY_MB", Whole(128, 65536, "MiB"), "384",
            "Resident memory beyond which such a process is replaced by a fresh one, between two tasks."),
        Option("FEEDSITE_SMALL", Switch(), "0",
            "1 fits the site and its embedded servers into a machine of 1 GB: it sets others of these variables where "
            "they are not set, and gives the embedded PostgreSQL less memory (docs/operations.md, A small machine)."),
    )),
    Group("In public", "", (
        Option("FEEDSITE_ALLOWED_HOSTS", Listing(HOST), "localhost,127.0.0.1,[::1]",
            "The names under which the site may be asked for.",
            example="feeds.example.org"),
        Option("FEEDSITE_URL", ORIGIN, "",
            "The site's own address, with which links in letters begin.",
            otherwise="the first of FEEDSITE_ALLOWED_HOSTS, by https where FEEDSITE_HTTPS=1, on this machine with PORT",
            example="https://feeds.example.org"),
        Option("FEEDSITE_CSRF_TRUSTED_ORIGINS", Listing(TRUSTED), "",
            "Other origins whose forms are believed, with their scheme; `https://*.example.org` names all below one.",
            otherwise="none", example="https://feeds.example.org"),
        Option("FEEDSITE_HTTPS", Switch(), "0",
            "1 behind a proxy that ends TLS and sets Forwarded: cookies are for HTTPS only, plain HTTP is led there."),
        Option("FEEDSITE_PROXY", Switch(), "",
            "1 behind a proxy that sets the header Forwarded on every request, which is believed then.",
            otherwise="as FEEDSITE_HTTPS", example="1"),
        Option("FEEDSITE_HSTS_SECONDS", Whole(0, 10 * YEAR_SECONDS, "seconds"), str(YEAR_SECONDS),
            "With FEEDSITE_HTTPS=1, how long a browser that was here asks by HTTPS only (Strict-Transport-Security)."
            " It cannot be taken back: until the time is over such browsers do not come in without a valid "
            "certificate. 0 sends nothing any more."),
        Option("FEEDSITE_HSTS_SUBDOMAINS", Switch(), "0",
            "1 says the same of every name below the site's, also of those that other servers answer; it cannot be "
            "taken back either."),
        Option("FEEDSITE_HSTS_PRELOAD", Switch(), "0",
            "1 lets anybody enter the site into the list that browsers are delivered with. A name leaves that list "
            "only with new versions of the browsers, months later. Needs FEEDSITE_HSTS_SUBDOMAINS=1 and an age of a "
            f"year ({YEAR_SECONDS} seconds)."),
        Option("FEEDSITE_SECRET_KEY", Text(), "",
            "Signs sessions and links: 50 random characters or more.",
            otherwise="made in the data folder", is_secret=True),
        Option("FEEDSITE_SECRET_KEY_FALLBACKS", Listing(Text()), "",
            "Secret keys of before: what they signed counts, and what they sealed opens (docs/operations.md).",
            otherwise="none", is_secret=True),
        Option("FEEDSITE_ADMIN_PATH", PATH, "admin",
            "Where the admin is."),
        Option("FEEDSITE_DEBUG", Switch(), "0",
            "1 shows code and settings where a page fails; never in public."),
    )),
    Group("Accounts", "", (
        Option("FEEDSITE_EMAIL_REQUIRED", Switch(), "0",
            "1: accounts must have an e-mail address, which their owners change and do not remove."),
    )),
    Group("Mail", "docs/operations.md has examples.", (
        Option("FEEDSITE_EMAIL_URL", MAIL, "console://",
            "Where letters go: smtp+tls (STARTTLS, port 587), smtps (TLS, port 465), smtp (plain, port 25), "
            "filemail:///FOLDER (a file each), or console:// (the log of the worker). An @, : or / in user or password "
            "is %40, %3A, %2F.",
            example="smtp+tls://user:password@mail.example.org:587"),
        Option("FEEDSITE_EMAIL_FROM", SENDER, "",
            "The sender of letters.",
            otherwise="noreply at the host of FEEDSITE_URL, by the site's name", example="Feeds <noreply@example.org>"),
        Option("FEEDSITE_EMAIL_TIMEOUT_SECONDS", Number(0.1, 30, "seconds"), "5",
            "How long the mail server may take for an answer; then it is left alone for half a minute."),
    )),
    Group("Logs", "", (
        Option("FEEDSITE_LOG_FORMAT", Choice(("plain", "json")), "plain",
            "Lines for people, or one JSON object each; under `up` every line of every program."),
        Option("FEEDSITE_LOG_LEVEL", Choice(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")), "",
            "The least level that is logged.",
            otherwise="INFO; WARNING for beat and worker under `up`", example="INFO"),
        Option("FEEDSITE_ACCESS_LOG", Switch(), "",
            "1: a line a request.",
            otherwise="1 with json, else 0", example="1"),
    )),
    Group("Metrics", "", (
        Option("FEEDSITE_METRICS_TOKEN", Text(r"[!-~]+", "printable characters without spaces"), "",
            "The bearer token with which /metrics may be read from other machines: 16 random characters or more.",
            otherwise="this machine only", is_secret=True),
        Option("FEEDSITE_CHECK_READERS", Whole(0, 100000), "20",
            "Readers a minute whose windows are compared with PostgreSQL; 0: none."),
        Option("FEEDSITE_CHECK_SECONDS", Number(0.001, 60, "seconds"), "2",
            "How long this may take."),
        Option("FEEDSITE_TRACES", Switch(), "0",
            "1: requests and tasks are traced by OpenTelemetry, which the OTEL_* variables configure. The extra "
            "`traces` has to be installed (docs/operations.md)."),
    )),
    Group("Timelines", "", (
        Option("FEEDSITE_LEVEL_1_CAP", Whole(1, 100000), "100",
            "Inbox entries of readers seen within a month (level 1). The caps must rise from level to level."),
        Option("FEEDSITE_LEVEL_2_CAP", Whole(1, 100000), "300",
            "Within a week (level 2). With the slack it should stay under the feeds server's "
            "zset-max-listpack-entries (512)."),
        Option("FEEDSITE_LEVEL_3_CAP", Whole(1, 100000), "1000",
            "Within a day (level 3)."),
        Option("FEEDSITE_WINDOW_SLACK", Whole(0, 100000), "50",
            "Entries beyond its cap that a window may hold before it is trimmed."),
        Option("FEEDSITE_OUTBOX_CAP", Whole(1, 100000), "1000",
            "Items that the outbox of a big-V holds."),
        Option("FEEDSITE_FOLLOW_CAP", Whole(1, 100000), "2000",
            "Users that one may follow."),
        Option("FEEDSITE_PENDING_CAP", Whole(1, 100000), "300",
            "Pending deliveries that a page merges before it takes the SQL path."),
        Option("FEEDSITE_BIG_V_THRESHOLD", Whole(0, 10 ** 12), "100000",
            "Followers that make a big-V; 0: admins only. `simulate` recommends a number for the site."),
        Option("FEEDSITE_BIG_V_PUSH_LEVEL", Whole(1, 4), "3",
            "The level from which followers are pushed a big-V's items, 4: none; the others pull. Of a new site "
            "only: later `policy` changes it."),
        Option("FEEDSITE_INBOX_FROM", Whole(0, 100000), "0",
            "Followees from which a reader has an inbox; one pull serves the others. 0: every active reader. "
            "Of a new site only: later `policy` changes it; `simulate` recommends a number for the site."),
        Option("FEEDSITE_ACTIVE_FANS_SHARDS", Whole(1, 16384), "16",
            "Keys of the active followers of one big-V."),
        Option("FEEDSITE_FAN_OUT_RANGE", Whole(2, 10000000), "20000",
            "Followers that one task delivers to."),
        Option("FEEDSITE_FAN_OUT_ATTEMPTS", Whole(1, 100), "5",
            "Attempts before a delivery is parked."),
        Option("FEEDSITE_FAN_OUT_RETRY_SECONDS", Number(0, 86400, "seconds"), "10",
            "How old a delivery is before the sweeper's first try; the pause doubles with each."),
    )),
    Group("Pages", "", (
        Option("FEEDSITE_HOME_POLL_SECONDS", Number(1, 86400, "seconds"), "20",
            "How often an open home or Live page asks for news where it hears none."),
        Option("FEEDSITE_DISCOVER_REFRESH_SECONDS", Number(1, 86400, "seconds"), "300",
            "How often an open Discover page asks for new recommendations."),
        Option("FEEDSITE_READING_GAP_SECONDS", Number(0, 31536000, "seconds"), "600",
            "How long a reader is away before the home offers to go on where they left off."),
    )),
    Group("Live updates", "", (
        Option("FEEDSITE_STREAM", Switch(), "1",
            "0: pages open no streams, and poll."),
        Option("FEEDSITE_STREAM_PORT", Whole(0, 65535), "0",
            "The port at which browsers reach the stream process; 0: the next free port under `up`, elsewhere a "
            "proxy leads there."),
        Option("FEEDSITE_STREAM_ORIGINS", Listing(ORIGIN), "",
            "Origins whose pages may read streams across ports.",
            otherwise="those of FEEDSITE_ALLOWED_HOSTS", example="https://feeds.example.org"),
        Option("FEEDSITE_STREAM_CAP", Whole(1, 1000000), "10000",
            "Open streams of one process."),
        Option("FEEDSITE_STREAM_USER_CAP", Whole(1, 1000000), "10",
            "Open streams of one user in it."),
        Option("FEEDSITE_STREAM_THREADS", Whole(1, 1024), "4",
            "Threads that open streams; each has a connection to PostgreSQL."),
        Option("FEEDSITE_STREAM_RECHECK_SECONDS", Number(0.1, 3600, "seconds"), "20",
            "How often sessions, tokens and users of open streams are looked at again."),
    )),
    Group("Rate limits", "Calls in a period, counted for a user, or for an address where none is signed in.", (
        Option("FEEDSITE_RATE_SCALE", Number(0, 1000000000.0), "1",
            "Multiplies every rate, for load tests; one call always passes."),
        Option("FEEDSITE_RATE_ATTEMPT", Rate(), "300/minute",
            "Tokens and sessions not known to be good, an address."),
        Option("FEEDSITE_RATE_SIGNUP", Rate(), "20/hour",
            "Sign-ups, an address."),
        Option("FEEDSITE_RATE_SIGNUP_DAY", Rate(), "50/day",
            "The same, in a longer time."),
        Option("FEEDSITE_RATE_SIGNUP_NETWORK", Rate(), "200/day",
            "Sign-ups, a network: the first three numbers of an IPv4 address, the /48 of IPv6."),
        Option("FEEDSITE_RATE_INVITE", Rate(), "20/hour",
            "Codes of invitations that are none, an address."),
        Option("FEEDSITE_RATE_INVITE_MAIL", Rate(), "20/day",
            "Letters with invitations, a member."),
        Option("FEEDSITE_RATE_INVITE_ADDRESS", Rate(), "3/day",
            "Letters with invitations to one address, from all members; further ones are not sent."),
        Option("FEEDSITE_RATE_LOGIN", Rate(), "10/minute",
            "Logins, an address and name."),
        Option("FEEDSITE_RATE_LOGIN_ADDRESS", Rate(), "300/hour",
            "Logins, an address, whatever the names."),
        Option("FEEDSITE_RATE_LOGIN_NAME", Rate(), "100/hour",
            "Logins, a name, whatever the addresses; browsers known to its owner are counted apart."),
        Option("FEEDSITE_RATE_LOGIN_DEVICES", Rate(), "50/hour",
            "Logins, a name, all browsers known to its owner together."),
        Option("FEEDSITE_RATE_APP", Rate(), "60/hour",
            "Apps that register themselves, an address."),
        Option("FEEDSITE_RATE_APP_NETWORK", Rate(), "300/hour",
            "The same, a network: the first three numbers of an IPv4 address, the /48 of IPv6."),
        Option("FEEDSITE_RATE_PASSWORD", Rate(), "10/hour",
            "Signed-in users who are asked for their password again."),
        Option("FEEDSITE_RATE_LOGIN_CODE", Rate(), "20/hour",
            "Codes of second factors at sign-in, a name; each browser known to its owner is counted apart."),
        Option("FEEDSITE_RATE_EMAIL", Rate(), "10/hour",
            "E-mail addresses that a user adds, and codes that they try."),
        Option("FEEDSITE_RATE_RESET", Rate(), "20/hour",
            "Letters to set another password that a network address asks for, and links of them that it tries."),
        Option("FEEDSITE_RATE_RESET_NAME", Rate(), "5/hour",
            "Letters to set another password, an account."),
        Option("FEEDSITE_RATE_MAIL", Rate(), "10/minute",
            "Letters to one address; further ones wait."),
        Option("FEEDSITE_RATE_EXPORT", Rate(), "5/hour",
            "Downloads of one's own data."),
        Option("FEEDSITE_RATE_PUBLISH", Rate(), "60/minute",
            "Posts, replies and reposts."),
        Option("FEEDSITE_RATE_UPLOAD", Rate(), "60/minute",
            "Pictures and videos."),
        Option("FEEDSITE_RATE_WRITE", Rate(), "300/minute",
            "Other changes."),
        Option("FEEDSITE_RATE_SEARCH", Rate(), "60/minute",
            "Searches."),
        Option("FEEDSITE_RATE_READ", Rate(), "1200/minute",
            "Other reads."),
        Option("FEEDSITE_RATE_RESUME", Rate(), "30/minute",
            "Streams that go on after an event; beyond it they are told to ask."),
        Option("FEEDSITE_RATE_PLAYED", Rate(), "6000/minute",
            "Plays, issued items and questions about them; services need many."),
        Option("FEEDSITE_RATE_PLAYED_IDS", Rate(), "20000/day",
            "Ids of plays that are reported of one user."),
        Option("FEEDSITE_RATE_DISCOVER", Rate(), "120/minute",
            "Pages of Discover."),
        Option("FEEDSITE_RATE_REPORT", Rate(), "30/hour",
            "Reports."),
        Option("FEEDSITE_RATE_LIVE", Rate(), "60/minute",
            "Changes of live sessions."),
    )),
    Group("Tokens", "", (
        Option("FEEDSITE_TOKEN_DAYS", DAYS, "90",
            "How long an API token lives."),
        Option("FEEDSITE_TOKEN_CAP", Whole(1, 10000), "50",
            "Tokens a user may hold; the oldest gives way. Tokens of apps are counted apart."),
        Option("FEEDSITE_APP_TOKEN_DAYS", DAYS, "365",
            "How long the token of an app lives that is not used."),
    )),
    Group("Moderation", "Items held for review before they are published; 0 turns a rule off.", (
        Option("FEEDSITE_MODERATION_LINK_DAYS", Whole(0, 36500, "days"), "3",
            "Items with links, of accounts younger than this."),
        Option("FEEDSITE_MODERATION_BURST", Whole(0, 1000000), "30",
            "Items of one sender beyond so many within FEEDSITE_MODERATION_BURST_MINUTES."),
        Option("FEEDSITE_MODERATION_BURST_MINUTES", Whole(1, 525600, "minutes"), "10",
            "The time for the burst."),
        Option("FEEDSITE_MODERATION_SAME_TEXT", Whole(0, 1000000), "5",
            "The same text of one sender beyond so many times within an hour."),
        Option("FEEDSITE_MODERATION_REPORTS", Whole(0, 1000000), "3",
            "Readers whose reports put a published item back into review."),
        Option("FEEDSITE_MODERATION_REPORTER_DAYS", Whole(0, 36500, "days"), "3",
            "Readers of accounts younger than this open a case by a report, but do not count for that."),
    )),
    Group("Notifications", "", (
        Option("FEEDSITE_NOTIFICATION_DAYS", DAYS, "90",
            "How long entries are kept to which nothing is added."),
    )),
    Group("Discover", "", (
        Option("FEEDSITE_RECALL_COUNT", Whole(1, 10000), "500",
            "Candidates that a refresh asks for."),
        Option("FEEDSITE_RECALL_DEPTH", Whole(1, 100000), "8000",
            "How many it goes through at most where the reader has seen most of them."),
        Option("FEEDSITE_CANDIDATES_MINUTES", MINUTES, "30",
            "How long the rest of a refresh waits to be scrolled in."),
        Option("FEEDSITE_DISCOVER_SENDER_CAP", Whole(1, 1000), "2",
            "Items of one sender in a page."),
        Option("FEEDSITE_DISCOVER_SCALE_DAYS", Number(0.001, 36500, "days"), "14",
            "A post of this age, beyond the offset, is worth FEEDSITE_DISCOVER_DECAY of a new one."),
        Option("FEEDSITE_DISCOVER_OFFSET_DAYS", Number(0, 36500, "days"), "1",
            "Younger posts lose nothing."),
        Option("FEEDSITE_DISCOVER_DECAY", Number(0, 1, inside=True), "0.5",
            "That part of its worth."),
        Option("FEEDSITE_DISCOVER_SEEN", Choice(("auto", "impressions", "plays", "both")), "auto",
            "Discover leaves out these: the impressions of a week, the plays of three months, both, or (auto) the "
            "impressions and, where plays are reported to the site, those; with plays or both, opening an item is a "
            "play, and Discover's pages are issued."),
        Option("FEEDSITE_OPENSEARCH_URL", OPENSEARCH, "",
            "OpenSearch, which recalls; PostgreSQL does whenever it fails.",
            otherwise="PostgreSQL recalls", example="https://user:password@search.internal:9200/feedsite"),
        Option("FEEDSITE_OPENSEARCH_TIMEOUT_SECONDS", SECONDS, "0.5",
            "How long a refresh waits for it before PostgreSQL recalls."),
        Option("FEEDSITE_BLOOM", Choice(("auto", "module", "bitmap")), "auto",
            "The filters of impressions: BF.* of the feeds server (module), without (bitmap), or what it has."),
        Option("FEEDSITE_IMPRESSION_SHARDS", Whole(1, 16384), "16",
            "Filters a day; another number forgets what was shown this week."),
        Option("FEEDSITE_IMPRESSION_CAPACITY", Whole(1000, 100000000), "100000",
            "Impressions a day and filter; about 2 bytes each are allocated, for 7 days."),
        Option("FEEDSITE_IMPRESSION_ERROR_RATE", Number(0, 1, inside=True), "0.001",
            "The share of unseen items that one day's filter takes for seen; seven are asked."),
        Option("FEEDSITE_RECENT_VIEWS", Whole(0, 10000), "10",
            "Posts that a reader opened last, which are not recommended again; 0: none."),
        Option("FEEDSITE_RECENT_REPLY_VIEWS", Whole(0, 10000), "100",
            "Replies that a reader saw last, whose threads are not recommended; 0: none."),
    )),
    Group("Pictures and videos", "", (
        Option("FEEDSITE_MEDIA_IMAGE_MB", Whole(1, 1024, "MiB"), "10",
            "How large the file of a picture may be."),
        Option("FEEDSITE_MEDIA_VIDEO_MB", Whole(1, 4096, "MiB"), "40",
            "How large the file of a video may be."),
        Option("FEEDSITE_ARCHIVE_MB", Whole(1, 16384, "MiB"), "512",
            "How large an archive may be that a member brings from another site; its upload takes twice as much of the "
            "disk, and its import 256 MiB more than it."),
        Option("FEEDSITE_MEDIA_MEGAPIXELS", Whole(1, 250, "megapixels"), "50",
            "How many pixels a picture may have, or all frames of an animation together. A decoder may take 448 MiB "
            "and 14 bytes a pixel: 1.1 GiB of address space with 50, 0.6 GiB with 12."),
        Option("FEEDSITE_MEDIA_FRAMES", Whole(1, 10000), "500",
            "How many frames an animation may have."),
        Option("FEEDSITE_MEDIA_PROCESSES", Whole(1, 1024), "",
            "Pictures that this machine decodes at once.",
            otherwise="one a processor", example="2"),
        Option("FEEDSITE_MEDIA_SECONDS", SECONDS, "20",
            "Processor time that decoding one may take; three times as long in all."),
        Option("FEEDSITE_MEDIA_WAIT_SECONDS", SECONDS, "5",
            "How long an upload waits for its turn before it is answered 503."),
        Option("FEEDSITE_MEDIA_ACCEL_PATH", Text(r"/[!-~]*/", "a path that begins and ends with a slash"), "",
            "The internal address of the folder `media/files` in nginx, which then sends the files (X-Accel-Redirect).",
            otherwise="the site sends them", example="/protected-media/"),
        Option("FEEDSITE_MEDIA_STORE", BUCKET, "",
            "A bucket of an S3-compatible store for the files, which holds nothing else; a / in key or secret is %2F. "
            "`endpoint=` is the origin of its API where that is not https://host, `public=` where browsers fetch files "
            "(without it the site sends them), `region=` and `style=virtual` are for stores that want them.",
            otherwise="the data folder", example="s3://key:secret@s3.example.org/bucket?public=https://cdn.example.org"),
        Option("FEEDSITE_MEDIA_STORE_TIMEOUT_SECONDS", SECONDS, "5",
            "How long the bucket may take for an answer; an upload is answered 503 then."),
    )),
    Group("Live sessions", "", (
        Option("FEEDSITE_LIVE_GRACE_MINUTES", MINUTES, "120",
            "A planned session that is not started is missed so long after its time."),
        Option("FEEDSITE_LIVE_LONGEST_HOURS", Number(0.001, 87600, "hours"), "24",
            "A live session that is not ended becomes a replay after so long."),
        Option("FEEDSITE_LIVE_SCHEDULED_CAP", Whole(1, 10000), "100",
            "Sessions that one host may have live or upcoming."),
        Option("FEEDSITE_LIVE_REPLAYS_CAP", Whole(1, 100000), "300",
            "Replays that a reader's inbox of them holds; with the slack it should stay under "
            "zset-max-listpack-entries (512)."),
        Option("FEEDSITE_LIVE_SNAPSHOT_MINUTES", MINUTES, "30",
            "How long a walk through the live feed may pause before it must begin anew."),
        Option("FEEDSITE_LIVE_SNAPSHOTS_CAP", Whole(1, 1000), "10",
            "Orders of that feed that one reader's walks go by; the one that was used longest ago gives way."),
    )),
    Group("Played history", "", (
        Option("FEEDSITE_PLAYED_TIMEOUT_SECONDS", SECONDS, "0.5",
            "How long a request waits for the server of plays, for that of the filters and for the old Redis before it "
            "does without or is answered 503."),
        Option("FEEDSITE_PLAYED_STORE_URL", REDIS, "",
            "The store of the month filters: Kvrocks, or another server of the Redis protocol that keeps strings on "
            "disk.",
            otherwise="LMDB in the data folder", example="redis://kvrocks.internal:6666/0"),
        Option("FEEDSITE_PLAYED_STORE_GB", Whole(1, 65536, "GiB"), "1024",
            "How large the LMDB file may become: it takes address space at once, and the disk as it grows."),
        Option("FEEDSITE_PLAYED_ERROR_RATE", Number(0, 1, inside=True), "0.001",
            "The share of ids never played that is taken for played, at most."),
        Option("FEEDSITE_PLAYED_SHARDS", Whole(1, 1000000), "5000",
            "Sets of users on a node of the time ring."),
        Option("FEEDSITE_PLAYED_TASK_SHARDS", Whole(1, 100000), "50",
            "Tasks that merge them."),
        Option("FEEDSITE_PLAYED_WAITING_CAP", Whole(1000, 10000000), "10000",
            "Plays of one user that may wait; half of it is merged early, more is answered 429. A call brings up to "
            "500."),
        Option("FEEDSITE_ISSUED_COUNT", Whole(1, 100000), "100",
            "Issued items that are remembered."),
        Option("FEEDSITE_GRPC_HOST", PLACE, "127.0.0.1",
            "The address on which services ask over gRPC: plain HTTP/2, for a proxy that ends TLS."),
        Option("FEEDSITE_GRPC_PORT", Whole(0, 65535), "0",
            "Its port; 0: no gRPC, and no process for it.",
            example="8002"),
        Option("FEEDSITE_GRPC_THREADS", Whole(1, 1024), "4",
            "Calls that it works on at a time; each has a connection to PostgreSQL."),
        Option("FEEDSITE_PLAYED_OLD_URL", REDIS, "",
            "During a migration, the Redis that had all plays before, for every process.",
            otherwise="no migration", example="redis://old.internal/0"),
        Option("FEEDSITE_PLAYED_OLD_KEY", Text(r"[!-~]*\{uid\}[!-~]*", "a key with {uid} in it"), "played:{uid}",
            "The key there of a user's ZSET, id to milliseconds."),
    )),
)
# fmt: on

OPTIONS = {option.name: option for group in GROUPS for option in group.options}
RATES = {
    name.removeprefix(f"{PREFIX}RATE_").lower(): name
    for name, option in OPTIONS.items()
    if isinstance(option.kind, Rate)
}
"""Scope of a rate → the variable that sets it."""
SMALL = f"{PREFIX}SMALL"
SMALL_VALUES = {
    "FEEDSITE_WEB_PROCESSES": "1",
    "FEEDSITE_WEB_MEMORY_MB": "256",
    "FEEDSITE_WORKER_PROCESSES": "1",
    "FEEDSITE_WORKER_MEMORY_MB": "192",
    "FEEDSITE_FEEDS_MEMORY": "64mb",
    "FEEDSITE_MEDIA_PROCESSES": "1",
    "FEEDSITE_MEDIA_MEGAPIXELS": "12",
    "FEEDSITE_STREAM_CAP": "1000",
}
"""The values that `FEEDSITE_SMALL=1` gives to variables that are not set (runtime.environment.read)."""
SMALL_MEANS = (
    "a small machine (FEEDSITE_SMALL=1): one process serves pages and one works off tasks, the feeds server has 64 MB, "
    "pictures up to 12 megapixels are taken, one at a time, and 1,000 streams"
)
"""The sentence by which `up` says at its start what that gives up."""
INTERNAL = frozenset({"FEEDSITE_SUPERVISED"})
"""Names that the site's programs give each other."""
RETIRED = {
    "FEEDSITE_PROXIES": "set FEEDSITE_PROXY=1, and let the proxy set the header Forwarded "
    "(docs/operations.md, Behind a proxy)",
}
"""Names that were read once and must not be ignored in silence."""
RENAMED = {
    "FEEDSITE_DATABASE_CONN_MAX_AGE": "FEEDSITE_DATABASE_CONN_MAX_AGE_SECONDS",
    "FEEDSITE_DATABASE_TIMEOUT": "FEEDSITE_DATABASE_TIMEOUT_SECONDS",
    "FEEDSITE_FAN_OUT_RETRY_AFTER": "FEEDSITE_FAN_OUT_RETRY_SECONDS",
    "FEEDSITE_IMPRESSION_ERROR": "FEEDSITE_IMPRESSION_ERROR_RATE",
    "FEEDSITE_LIVE_SCHEDULED": "FEEDSITE_LIVE_SCHEDULED_CAP",
    "FEEDSITE_LIVE_SNAPSHOTS": "FEEDSITE_LIVE_SNAPSHOTS_CAP",
    "FEEDSITE_OPENSEARCH_TIMEOUT": "FEEDSITE_OPENSEARCH_TIMEOUT_SECONDS",
    "FEEDSITE_PLAYED_ERROR": "FEEDSITE_PLAYED_ERROR_RATE",
    "FEEDSITE_PLAYED_TIMEOUT": "FEEDSITE_PLAYED_TIMEOUT_SECONDS",
    "FEEDSITE_PLAYED_WAITING": "FEEDSITE_PLAYED_WAITING_CAP",
    "FEEDSITE_REDIS_TIMEOUT": "FEEDSITE_REDIS_TIMEOUT_SECONDS",
    "FEEDSITE_REPLICA_LAG": "FEEDSITE_REPLICA_LAG_SECONDS",
    "FEEDSITE_REPLICA_TIMEOUT": "FEEDSITE_REPLICA_TIMEOUT_SECONDS",
    "FEEDSITE_STREAM_LIMIT": "FEEDSITE_STREAM_CAP",
    "FEEDSITE_STREAM_USER_LIMIT": "FEEDSITE_STREAM_USER_CAP",
}
"""Names of version 0.1.0 → names of now. The old ones are read, with a warning, until version 0.3.0."""


# --- Options that contradict another ---------------------------------------------------------------------
class Rule(NamedTuple):
    """A rule between options; `broken` gets their values and answers whether the rule is broken."""

    names: tuple[str, ...]
    broken: Callable[..., bool]
    text: str


RULES = (
    Rule(
        ("FEEDSITE_LEVEL_1_CAP", "FEEDSITE_LEVEL_2_CAP", "FEEDSITE_LEVEL_3_CAP"),
        lambda one, two, three: not one < two < three,
        "FEEDSITE_LEVEL_1_CAP, FEEDSITE_LEVEL_2_CAP and FEEDSITE_LEVEL_3_CAP are {}, {} and {}; each must be "
        "above the one before.",
    ),
    Rule(
        ("FEEDSITE_REPLICA_URL", "FEEDSITE_DATABASE_URL"),
        lambda replica, primary: bool(replica) and not primary,
        "FEEDSITE_REPLICA_URL is set without FEEDSITE_DATABASE_URL; it must be a replica of a server that is given.",
    ),
    Rule(
        ("FEEDSITE_REDIS_URL", "FEEDSITE_BROKER_URL"),
        lambda feeds, broker: names_cluster(feeds or "") and not broker,
        "Set FEEDSITE_BROKER_URL to a single server: FEEDSITE_REDIS_URL names a cluster, which is for feeds only.",
    ),
    *(
        Rule(
            ("FEEDSITE_REDIS_URL", "FEEDSITE_BROKER_URL", name),
            lambda feeds, broker, own: names_cluster(feeds or "") and not own and (broker or "").startswith("amqp"),
            f"Set {name} to a single server: FEEDSITE_REDIS_URL names a cluster, which is for feeds only.",
        )
        for name in ("FEEDSITE_CACHE_URL", "FEEDSITE_PLAYED_URL")
    ),
    Rule(
        ("FEEDSITE_RECALL_COUNT", "FEEDSITE_RECALL_DEPTH"),
        lambda count, depth: count > depth,
        "FEEDSITE_RECALL_COUNT is {} and FEEDSITE_RECALL_DEPTH {}; the depth must not be below the count.",
    ),
    Rule(
        ("FEEDSITE_PLAYED_TASK_SHARDS", "FEEDSITE_PLAYED_SHARDS"),
        lambda tasks, shards: tasks > shards,
        "FEEDSITE_PLAYED_TASK_SHARDS is {} and FEEDSITE_PLAYED_SHARDS {}; there must not be more tasks than sets.",
    ),
    Rule(
        ("FEEDSITE_HSTS_PRELOAD", "FEEDSITE_HSTS_SUBDOMAINS", "FEEDSITE_HSTS_SECONDS"),
        lambda preload, subdomains, seconds: preload and not (subdomains and seconds >= YEAR_SECONDS),
        f"FEEDSITE_HSTS_PRELOAD is 1; it needs FEEDSITE_HSTS_SUBDOMAINS=1 and FEEDSITE_HSTS_SECONDS of "
        f"{YEAR_SECONDS} or more.",
    ),
)
