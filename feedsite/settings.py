"""All settings. runtime/options.py describes those from the environment (`env`); the rest are constants."""

import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery.schedules import crontab
from django.conf.locale import LANG_INFO
from django.utils.translation import to_language
from psycopg.conninfo import conninfo_to_dict

from runtime import addresses, embedded, environment
from runtime.options import PROCESSORS
from runtime.rate_table import RATES as DEFAULT_RATES

BASE_DIR = Path(__file__).resolve().parent.parent
env = OPTIONS = environment.read(BASE_DIR)


def database(url: str) -> dict[str, Any]:
    """Django's settings for the PostgreSQL at `url`."""
    found = conninfo_to_dict(url)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    return {name: found.pop(key, "") for name, key in names.items()} | {"OPTIONS": found}


def replica_database(primary: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Django's settings for the replica: read-only, and with a short connect timeout."""
    options = given.get("OPTIONS", {})
    said = f"{options.get('options', '')} -c default_transaction_read_only=on".strip()
    is_pooled = primary.get("DISABLE_SERVER_SIDE_CURSORS", False)
    return given | {
        "ENGINE": "storage.postgresql",
        "CONN_MAX_AGE": primary["CONN_MAX_AGE"],
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
        "OPTIONS": primary["OPTIONS"] | options | {"connect_timeout": 2} | ({} if is_pooled else {"options": said}),
        "TEST": {"MIRROR": "default"},
    }


# --- Where things live -----------------------------------------------------------------------------------
# The supervisor reads the same values without Django.
DATA_DIR, SERVERS = env.data_dir, env.servers

DEBUG = env.debug
SECRET_KEY = env.secret_key or embedded.secret_key(DATA_DIR)
SECRET_KEY_FALLBACKS = env.secret_key_fallbacks
ALLOWED_HOSTS = [*env.allowed_hosts, *filter(None, [urlsplit(env.url).hostname])]
CSRF_TRUSTED_ORIGINS = env.csrf_trusted_origins
HTTPS = env.https
PROXY = HTTPS if env.proxy is None else env.proxy

# Links in letters begin with it. No request can change it.
SITE_URL = env.url.rstrip("/") or addresses.site_url(ALLOWED_HOSTS, HTTPS, env.port)

# Only for tests: web.outbound may call servers on this machine, on any port.
OUTBOUND_TO_LOOPBACK = False

HOST, PORT = env.host, env.port
WEB_THREADS = env.web_threads
WEB_WAIT_SECONDS = env.web_wait_seconds

# --- Apps ------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "accounts.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.forms",
    "rest_framework",
    "oauth2_provider",
    "corsheaders",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "runtime",
    "storage",
    "web",
    "media",
    "accounts.about",
    "accounts.mail",
    "accounts.apps.AccountsConfig",
    "relations",
    "items",
    "timeline",
    "notifications",
    "moderation",
    "seen",
    "discover",
    "live",
    "feedsite.public",
    "clientapi",
    "community",
    "community.archives",
    "operation",
]

MIDDLEWARE = [
    "web.requests.RequestMiddleware",
    "web.proxy.ProxyMiddleware",
    "web.headers.HeadersMiddleware",
    "web.health.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "accounts.about.read_only.ReadOnlyMiddleware",
    "feedsite.api_path.ApiMiddleware",
    "web.static_files.StaticFiles",
    "items.pages.open_pages.OpenPageMiddleware",
    "web.compression.CompressionMiddleware",
    "web.pages.RateMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.signing_in.sessions.AuthenticationMiddleware",
    "accounts.about.members_only.MembersOnlyMiddleware",
    "accounts.levels.presence.PresenceMiddleware",
    "accounts.locale.ReaderLocaleMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts.access.ReaderMiddleware",
    "web.outage.OutageMiddleware",
]
# Middlewares for API requests without a session, instead of those after ApiMiddleware.
API_MIDDLEWARE = [
    "web.compression.CompressionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "accounts.about.members_only.MembersOnlyMiddleware",
    "accounts.levels.presence.PresenceMiddleware",
    "web.outage.OutageMiddleware",
]

ROOT_URLCONF = "feedsite.urls"
WSGI_APPLICATION = "feedsite.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,  # the widgets of django.forms
        "OPTIONS": {
            "environment": "feedsite.jinja.environment",
            "context_processors": [
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accounts.about.context_processors.site",
                "notifications.context_processors.nav_counts",
                "web.pages.csrf",
                "web.pages.page_name",
                "web.pages.stream",
                "web.pages.theme",
                "web.headers.nonce",
            ],
        },
    },
    {  # the admin and pages of libraries
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates" / "django"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "web.headers.nonce",
            ],
        },
    },
]
STRICT_TEMPLATES = DEBUG
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# --- PostgreSQL ------------------------------------------------------------------------------------------
DATABASES = {"default": database(env.database_url or SERVERS.database_url)}
# A TCP connection to a lost server is given up after these times.
LOST_ON_THE_WAY = {"tcp_user_timeout": 10_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
DATABASES["default"] |= {
    "ENGINE": "storage.postgresql",
    "CONN_MAX_AGE": 600,
    "OPTIONS": LOST_ON_THE_WAY
    | DATABASES["default"].get("OPTIONS", {})
    # Only storage.connections.fetch prepares statements. psycopg never does so by itself.
    | {"connect_timeout": 3, "prepare_threshold": 2**31 - 1},
}
# True behind a pooler that lends sessions per transaction. Then no statement is prepared, and no session setting made.
# See docs/servers.md, PgBouncer.
POOLED = not env.prepare
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = POOLED
DATABASE_TIMEOUT_SECONDS = env.database_timeout_seconds
REPLICA_URL = env.replica_url
# If it lags by more, no request reads from it. Whoever wrote reads the primary for longer, because the lag was measured
# up to a second ago. A read waits for the replica at most REPLICA_TIMEOUT_SECONDS.
REPLICA_LAG_SECONDS = 10.0
REPLICA_PIN_SECONDS = REPLICA_LAG_SECONDS + 5
REPLICA_TIMEOUT_SECONDS = 2.0
if REPLICA_URL:
    DATABASES["replica"] = replica_database(DATABASES["default"], database(REPLICA_URL))
DATABASE_ROUTERS = ["storage.replica.Router"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Redis: the feeds server may evict, rate counters and the broker must not ------------------------------
REDIS_URL = env.redis_url or SERVERS.redis_url
BROKER_URL = env.broker_url or env.redis_url or SERVERS.broker_url
# Rate counters. If this server evicts, an attacker can fill it to reset the counters, and keep guessing passwords.
CACHE_URL = env.cache_url or (
    SERVERS.cache_url if "broker" in SERVERS.names else BROKER_URL if embedded.is_redis(BROKER_URL) else REDIS_URL
)
REDIS_TIMEOUT_SECONDS = env.redis_timeout_seconds

CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": [CACHE_URL],
        "KEY_FUNCTION": "storage.keys.cached",
        "OPTIONS": {
            "CONNECTION_FACTORY": "storage.cache.Factory",
            "SERIALIZER": "storage.cache.Serializer",
            "IGNORE_EXCEPTIONS": True,
        },
    }
}

# --- Celery ----------------------------------------------------------------------------------------------
CELERY_BROKER_URL = BROKER_URL
# By default kombu accepts any certificate unless the address has `ssl_cert_reqs`.
CELERY_BROKER_USE_SSL = {"ssl_cert_reqs": ssl.CERT_REQUIRED} if BROKER_URL.startswith("rediss://") else None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = False  # the delivery table re-enqueues; redelivery could loop forever
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CHANNEL_ERROR_RETRY = True  # a full broker refuses, and must not end the worker
CELERY_BROKER_CONNECTION_TIMEOUT = 0.5
CELERY_TASK_PUBLISH_RETRY = False  # the sweeper retries, so publishing never waits for the broker
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 0.5,
    "socket_connect_timeout": 0.5,
    "visibility_timeout": 300,
    "retry_on_timeout": False,
    # RabbitMQ only: wait for its confirmation. Otherwise messages to a dead one seem to be sent. The timeouts are for
    # its other answers, for example to a closed channel.
    "confirm_publish": True,
    "read_timeout": 0.5,
    "write_timeout": 0.5,
    # Reconnect within CONNECTION_TIMEOUT. kombu's first pause would be two seconds.
    "interval_start": 0.1,
    "interval_step": 0,
    "interval_max": 0.1,
}
OUTSIDE_PROCESSES = env.outside_processes
# Tasks that wait for strangers' hosts or read their files (storage.queue.OUTSIDE). Sweeps wait behind the tasks that
# they may send again, so a full lane gets no second ones.
CELERY_TASK_ROUTES = dict.fromkeys(
    (
        "items.give_link_card",
        "items.read_link_pages",
        "media.convert_videos",
        "media.make_sizes",
        "moving.run_import",
        "moving.sweep",
        "notifications.push",
        "notifications.push_device",
        "notifications.push_trial",
        "notifications.sweep_pushes",
    ),
    "outside",
)
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
# Messages expire after their period, because the next one says the same. Workers compare with their own clock, so allow
# for one that is an hour fast.
CLOCKS_APART_SECONDS = 3900.0


def _every(seconds: float, task: str) -> dict[str, Any]:
    return {"task": task, "schedule": seconds, "options": {"expires": seconds + CLOCKS_APART_SECONDS}}


CELERY_BEAT_SCHEDULER = "storage.quiet.Scheduler"
CELERY_BEAT_SCHEDULE = {
    name: _every(seconds, task)
    for name, task, seconds in (
        ("sweep deliveries", "timeline.sweep", 5.0),
        ("fold counts of items", "items.fold_counts", 2.0),
        ("fold follower counts", "relations.fold_follower_counts", 5.0),
        ("end mutes", "relations.end_mutes", 30.0),
        ("sweep imports of lists", "relations.sweep_imports", 30.0),
        ("sweep imports of archives", "moving.sweep", 30.0),
        ("lower levels", "accounts.lower_levels", 600.0),
        ("notice a failover of PostgreSQL", "accounts.follow_timeline", 5.0),
        ("end polls", "items.end_polls", 30.0),
        ("forget idempotency keys", "items.forget_idempotency_keys", 3600.0),
        ("read pages of link cards", "items.read_link_pages", 10.0),
        ("sweep link cards", "items.sweep_link_cards", 3600.0),
        ("publish scheduled posts", "items.publish_scheduled", 10.0),
        ("forget expired filters", "items.forget_filters", 3600.0),
        ("clear sessions", "accounts.clear_sessions", 86_400.0),
        ("forget applications", "accounts.forget_applications", 3600.0),
        ("forget unused apps", "clientapi.forget_unused", 600.0),
        ("sweep deletions", "accounts.sweep_deletions", 30.0),
        ("sweep recounts", "accounts.sweep_recounts", 30.0),
        ("sweep push messages", "notifications.sweep_pushes", 5.0),
        ("sweep bells", "notifications.sweep_bells", 30.0),
        ("forget old notifications", "notifications.forget_old", 3600.0),
        ("see how rare words are", "discover.refresh_words", 900.0),
        ("see what is popular", "discover.refresh_popular", 120.0),
        ("check impressions", "seen.check_impressions", 300.0),
        ("record impressions", "discover.record_impressions", 2.0),
        ("forget issued pages", "discover.forget_issued_pages", 3600.0),
        ("sweep live sessions", "live.sweep", 5.0),
        ("start and end live sessions", "live.run", 2.0),
        ("measure live sessions", "live.measure", 30.0),
        ("forget kept snapshots", "live.forget_snapshots", 600.0),
        ("send what resets passwords", "accounts.send_resets", 10.0),
        ("sweep letters", "mail.sweep", 10.0),
        ("sweep media", "media.sweep", 60.0),
        ("extend the sitemap", "public.extend_sitemap", 600.0),
        ("forget attempts with blocked pictures", "moderation.forget_attempts", 3600.0),
        ("count figures of moderation", "moderation.count_figures", 3600.0),
        ("end suspensions", "moderation.end_suspensions", 60.0),
        ("sweep files of media", "media.sweep_files", 3600.0),
        ("convert videos", "media.convert_videos", 10.0),
        ("make sizes of old pictures", "media.make_sizes", 60.0),
    )
}

# Twice an hour, each run with the whole hour's node. Daily work at a quiet hour. Purging follows the site's clock.
CELERY_BEAT_SCHEDULE |= {
    "merge plays": _every(1200, "seen.merge_plays") | {"schedule": crontab(minute="5,35")},
    "mark strays": {"task": "seen.mark_strays", "schedule": crontab(hour="5", minute="15")},
    "watch plays": _every(60.0, "seen.watch_plays"),
    "forget merges": {"task": "seen.forget_runs", "schedule": crontab(hour="5", minute="30")},
    "purge filters": {"task": "seen.purge_filters", "schedule": crontab(minute="*/10")},
}

CELERY_BEAT_SCHEDULE |= {
    "observe": _every(20.0, "operation.observe"),
    "count users": _every(300.0, "operation.census"),
    "compare with the oracle": _every(60.0, "timeline.check_sample"),
}

BACKUP_TO_SECRET = env.backup_to
BACKUP_DAYS, BACKUP_WEEKS = env.backup_days, 4
if BACKUP_TO_SECRET:
    CELERY_BEAT_SCHEDULE["back up"] = _every(600.0, "operation.back_up")

# --- Mail: a server, a folder or the log (runtime/addresses.py) ----------------------------------------------
_MAIL = addresses.parse_mail(env.email_url)
EMAIL_BACKEND = _MAIL.backend
EMAIL_HOST, EMAIL_PORT = _MAIL.host, _MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL.user, _MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.scheme == "smtp+tls", _MAIL.scheme == "smtps"
EMAIL_FILE_PATH = _MAIL.folder or None
# Maximum seconds for each answer of the server. accounts.mail.sending says what that costs.
EMAIL_TIMEOUT = 5.0
EMAIL_DOMAIN = urlsplit(SITE_URL).hostname or "localhost"
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.email_from or f"noreply@{EMAIL_DOMAIN}"

# --- The site --------------------------------------------------------------------------------------------
SIGN_UP = env.sign_up
# Undecided applications for accounts are deleted after this many days.
APPLICATION_DAYS = 30

# --- Accounts --------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
SESSION_ENGINE = "accounts.signing_in.sessions"
AUTHENTICATION_BACKENDS = ["accounts.signing_in.sessions.Backend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
EMAIL_REQUIRED = env.email_required
PASSWORD_RESET_TIMEOUT = 4 * 3600
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# --- Timelines -------------------------------------------------------------------------------------------
# Inbox length by level: 0 dormant (no inbox), 1 seen within a month, 2 within a week, 3 within a day.
LEVEL_CAPS = {
    1: env.level_1_cap,
    2: env.level_2_cap,
    3: env.level_3_cap,
}
LEVEL_AGES = {3: timedelta(days=1), 2: timedelta(days=7), 1: timedelta(days=30)}
# A window is trimmed to its cap when it exceeds it by this many entries. Caps 1 and 2 plus the slack should stay below
# the server's zset-max-listpack-entries (512).
WINDOW_SLACK = 50
WINDOW_TTL = timedelta(days=30)
OUTBOX_CAP = env.outbox_cap
FOLLOW_CAP = env.follow_cap
# A big-V's items are pushed from this level on; others pull. Only for new sites: later `manage.py policy` changes it.
BIG_V_PUSH_LEVEL = 3
# Readers with fewer followees have no inbox: one pull serves their pages. Only for new sites, as above.
INBOX_FROM = 0
ACTIVE_FANS_SHARDS = 16
BIG_V_THRESHOLD = env.big_v_threshold
LAST_SEEN_INTERVAL = timedelta(minutes=10)
# Maximum pending deliveries that a page merges. Above this it uses SQL.
PENDING_CAP = 300
FAN_OUT_RANGE = 20_000
FAN_OUT_ATTEMPTS = 5
FAN_OUT_RETRY_AFTER = timedelta(seconds=10)

# --- Live updates ----------------------------------------------------------------------------------------
STREAM = env.stream
# `up` sets it. 0: a proxy leads there.
STREAM_PORT = env.stream_port
STREAM_ORIGINS = env.stream_origins
STREAM_CAP = env.stream_cap
STREAM_USER_CAP = 10
# Sessions, tokens and users of open connections are checked again after this many seconds.
STREAM_RECHECK_SECONDS = 20.0
# Threads that open connections, each with a connection to PostgreSQL.
STREAM_THREADS = 4

# --- Moderation: items held for review before they are published; 0 turns a rule off ----------------------

MODERATION_LINK_AGE = timedelta(days=env.moderation_link_days)
MODERATION_BURST = env.moderation_burst
MODERATION_BURST_SPAN = timedelta(minutes=10)
MODERATION_SAME_TEXT = env.moderation_same_text
MODERATION_REPORTS = env.moderation_reports
MODERATION_REPORTER_AGE = timedelta(days=3)

# --- Notifications ---------------------------------------------------------------------------------------
NOTIFICATION_LIFE = timedelta(days=env.notification_days)

# --- Discover: the recommended feed ----------------------------------------------------------------------
# Candidates per refresh, and the maximum depth if most were seen.
RECALL_COUNT = 500
RECALL_DEPTH = 8000
# How long the rest of a refresh is kept for scrolling.
CANDIDATES_TTL = timedelta(minutes=30)
# An item's score falls by a Gaussian curve of its age: to DECAY at SCALE days after the first OFFSET days.
DISCOVER_SCALE_DAYS = env.discover_scale_days
DISCOVER_OFFSET_DAYS = 1.0
DISCOVER_DECAY = 0.5
OPENSEARCH_URL = env.opensearch_url
if OPENSEARCH_URL:
    CELERY_BEAT_SCHEDULE["tell OpenSearch"] = _every(2.0, "discover.index")
# Seconds that a refresh waits for it.
OPENSEARCH_TIMEOUT_SECONDS = 0.5
DISCOVER_SEEN = env.discover_seen
# Maximum items of one sender per page.
SENDER_CAP = 2
# Bloom filters of impressions (discover/impressions.py): BF.* (module), bitmap, or whatever the server has.
BLOOM = "auto"
# Filters per day. Another number forgets the week; another capacity does not.
IMPRESSION_SHARDS = 16
IMPRESSION_CAPACITY = env.impression_capacity
# Share of unseen items that one day's filter reports as seen. Seven filters are asked.
IMPRESSION_ERROR_RATE = 0.001

# --- Items that readers have seen ------------------------------------------------------------------------
# Last opened posts, and last seen replies, known to recommendations. 0: none.
RECENT_VIEWS = 10
RECENT_REPLY_VIEWS = 100

# --- Played history --------------------------------------------------------------------------------------
# Also for issued items.
PLAYED_URL = env.played_url or (
    SERVERS.played_url if "plays" in SERVERS.names else BROKER_URL if embedded.is_redis(BROKER_URL) else REDIS_URL
)
PLAYED_TIMEOUT_SECONDS = env.played_timeout_seconds
PLAYED_STORE_URL = env.played_store_url
PLAYED_STORE_BYTES = env.played_store_gb * 2**30
# Maximum share of unplayed ids reported as played.
PLAYED_ERROR_RATE = 0.001
PLAYED_SHARDS = 5000
# Maximum plays of a user that wait to be merged. At half of it, they are merged early.
PLAYED_WAITING_CAP = 10_000
PLAYED_TASK_SHARDS = 50
PLAYED_OLD_URL = env.played_old_url
PLAYED_OLD_KEY = env.played_old_key
GRPC_HOST, GRPC_PORT = env.grpc_host, env.grpc_port

# --- Live sessions ---------------------------------------------------------------------------------------
# A planned session becomes missed if not started after this time.
LIVE_GRACE = timedelta(minutes=120)
# A live session becomes a replay after this time.
LIVE_LONGEST = timedelta(hours=24)
# Maximum live and upcoming sessions per host.
LIVE_SCHEDULED_CAP = 100
# Replays in a reader's inbox. With the slack below zset-max-listpack-entries (512).
LIVE_REPLAYS_CAP = 300
# How long a walk through the live feed may pause.
LIVE_SNAPSHOT_TTL = timedelta(minutes=30)
# Maximum snapshots of that feed per reader. The least recently used is dropped.
LIVE_SNAPSHOTS_CAP = 10

# --- Metrics ---------------------------------------------------------------------------------------------
METRICS_TOKEN = env.metrics_token
CHECK_READERS = env.check_readers

# --- REST ------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.signing_in.tokens.TokenAuthentication",
        "clientapi.oauth.bearer.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "web.openapi.Schema",
    "EXCEPTION_HANDLER": "web.rest.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "TEST_REQUEST_RENDERER_CLASSES": [
        "rest_framework.renderers.JSONRenderer",
        "rest_framework.renderers.MultiPartRenderer",
    ],
}
CSRF_FAILURE_VIEW = "web.outage.csrf_failure"
TOKEN_DAYS = env.token_days
# Maximum tokens per user. The oldest is revoked.
TOKEN_CAP = 50

# --- OAuth 2: programs that act for users (accounts/signing_in_models.py, clientapi) -------------------------------
OAUTH2_PROVIDER_APPLICATION_MODEL = "accounts.ClientApp"
APP_TOKEN_DAYS = env.app_token_days
OAUTH2_PROVIDER = {
    "SCOPES_BACKEND_CLASS": "clientapi.oauth.scopes.Scopes",
    "OAUTH2_VALIDATOR_CLASS": "clientapi.oauth.validator.Validator",
    "ACCESS_TOKEN_EXPIRE_SECONDS": APP_TOKEN_DAYS * 86_400,
    # Long enough for people to copy a code.
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 600,
    # Most Mastodon clients send no challenge. If one does, it is checked.
    "PKCE_REQUIRED": False,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http", "urn"],
    "REFRESH_TOKEN_REUSE_PROTECTION": True,  # there are none
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
}

# Web apps on any site may call, but only with a token. Cookies are not sent.
CORS_URLS_REGEX = r"^/(?:api/|oauth/(?:token|revoke)$|nodeinfo/|\.well-known/)"
CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
CORS_ALLOW_HEADERS = ["authorization", "content-type", "idempotency-key", "accept", "x-requested-with"]
CORS_EXPOSE_HEADERS = [
    "Link",
    "Retry-After",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Request-Id",
    "X-Feed-Source",
]
CORS_PREFLIGHT_MAX_AGE = 86_400

# Sign-ups count per address. Logins count per address and name, per address, per name, and for all known browsers of a
# name (accounts/signing_in/guard.py). `password`: a signed-in user is asked for it again. `attempt`: unverified tokens
# and sessions per address (web/rates.py). All else counts per user, or per address without one.
RATES = {name: rate.default for name, rate in DEFAULT_RATES.items()} | env.rates
RATE_SCALE = env.rate_scale

SPECTACULAR_SETTINGS = {
    "TITLE": "feedsite",
    "DESCRIPTION": "A social-timeline site: an exact home timeline of whom one follows.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "PREPROCESSING_HOOKS": ["web.openapi.without_slash"],
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "web.openapi.empty_is_absent"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string"}},
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "ItemTypeEnum": "items.models.ItemType",
        "VisibilityEnum": "items.models.Visibility",
        "FilterActionEnum": "items.models.FilterAction",
    },
}

# --- Pages -----------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "locale"]
# English, and each language with a compiled catalogue (`manage.py messages --new`), by its own name.
LANGUAGES = [("en", "English")] + [
    (code, LANG_INFO[code]["name_local"])
    for code in sorted(to_language(path.parts[-3]) for path in BASE_DIR.glob("locale/*/LC_MESSAGES/django.mo"))
]
# In others the admin is in English, and their catalogues have the texts of members alone.
ADMIN_LANGUAGES = ["en", "zh-hans"]
FORMAT_MODULE_PATH = "web.formats"
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_AGE = 31_536_000
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
SITE_ZONE = env.time_zone
# How often open pages of home and live sessions ask for news.
HOME_POLL_SECONDS = 20.0
# How often an open Discover page asks for something new.
DISCOVER_REFRESH_SECONDS = 300.0
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "web.static_files.ScriptFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "web.static_files.StaticStorage"},
}

# --- Pictures and videos ---------------------------------------------------------------------------------
# Stored files, uploads in progress, and decoders' folders.
MEDIA_DIR = DATA_DIR / "media"
MEDIA_ROOT = MEDIA_DIR / "files"
# Django's error pages hide settings with SECRET in their name.
MEDIA_STORE_SECRET_URL = env.media_store
MEDIA_STORE_TIMEOUT_SECONDS = 5.0
_PUBLIC = addresses.parse_bucket(MEDIA_STORE_SECRET_URL).public if MEDIA_STORE_SECRET_URL else ""
# Prefix of a file's address (media.objects.address).
MEDIA_ADDRESS = MEDIA_URL = f"{_PUBLIC}/" if _PUBLIC else "/media/"
# Where pages may load media from, besides the site itself.
MEDIA_ORIGIN = addresses.origin(_PUBLIC)
MEDIA_IMAGE_BYTES = env.media_image_mb * 2**20
MEDIA_VIDEO_BYTES = env.media_video_mb * 2**20
MEDIA_VIDEO_SECONDS = env.media_video_minutes * 60
# Maximum processor seconds for one video, and for a member's videos of a day.
MEDIA_VIDEO_CPU_SECONDS = 900.0
MEDIA_VIDEO_DAY_SECONDS = float(env.media_video_daily_seconds)
MEDIA_PIXELS = env.media_megapixels * 1_000_000
# Pictures decoded in parallel on this machine, maximum seconds for one, and maximum seconds of waiting.
MEDIA_PROCESSES = 1 if env.small else PROCESSORS
MEDIA_SECONDS = 20.0
MEDIA_SIZES_SECONDS = env.media_sizes_seconds
MEDIA_WAIT_SECONDS = 5.0
MEDIA_ACCEL_PATH = env.media_accel_path
# Uploads are written to this folder as they arrive. web.uploads limits them.
MEDIA_INCOMING = MEDIA_DIR / "incoming"
FILE_UPLOAD_HANDLERS = ["web.uploads.FileHandler"]
ARCHIVE_BYTES = env.archive_mb * 2**20
# Archives from other sites and their unpacked files.
IMPORTS_DIR = DATA_DIR / "imports"
LINK_CARDS = env.link_cards
# Half of the workers stay free.
LINK_CARDS_AT_ONCE = max(1, OUTSIDE_PROCESSES // 2)

# --- Security --------------------------------------------------------------------------------------------
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = env.hsts_seconds if HTTPS else 0
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # names below the site's, and the browsers' own list
# Apps on phones and desktops have redirect addresses on their own machine, and send no challenge (OAUTH2_PROVIDER).
SILENCED_SYSTEM_CHECKS += ["oauth2_provider.W008", "oauth2_provider.W010"]
SECURE_PROXY_SSL_HEADER = ("feedsite.scheme", "https") if PROXY else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
ADMIN_PATH = env.admin_path.strip("/") + "/"
# Only the site's own pages use its static files. web.headers adds the other headers.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# --- Logging ---------------------------------------------------------------------------------------------
LOG_FORMAT = env.log_format
ACCESS_LOG = LOG_FORMAT == "json" if env.access_log is None else env.access_log
LOG_LEVEL = env.log_level
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "about": {"()": "runtime.logs.AboutFilter"},
        "outages": {"()": "runtime.logs.OutageFilter"},
        "refusals": {"()": "runtime.logs.RefusalFilter"},
    },
    "formatters": {
        "plain": {"format": "%(asctime)s %(levelname)s %(name)s%(about)s: %(message)s"},
        "json": {"()": "runtime.logs.JsonFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["about", "outages", "refusals"],
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL or "INFO"},
    "loggers": {
        # One line per program at its start, at any level.
        "feedsite.starts": {"level": "INFO"},
        # They log members' texts. The site logs failures itself.
        "opensearch": {"level": "CRITICAL"},
        "opensearchpy.trace": {"level": "CRITICAL"},
    },
}
