"""The site's settings, read from the environment by pydantic-settings.

What no operator would change is a constant elsewhere. msgspec is faster, but reports one error at a time.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from runtime.addresses import names_cluster, parse_bucket
from runtime.embedded import Servers
from runtime.option_kinds import (
    AccelPath,
    AdminPath,
    Backups,
    Broker,
    Bucket,
    Feeds,
    Folder,
    Host,
    Hosts,
    Line,
    Mail,
    Memory,
    OpenSearch,
    Origin,
    Origins,
    Place,
    PlayedKey,
    Postgresql,
    Rates,
    Redis,
    Secret,
    Secrets,
    Sender,
    Token,
    TrustedOrigins,
    Zone,
)

BASE_DIR = Path(__file__).resolve().parent.parent
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Processors that this process may use. macOS only tells those of the machine."""
YEAR_SECONDS = 31_536_000
"""Minimum age with which browsers' preload lists accept a site."""


def option(
    default: Any,
    text: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    otherwise: str = "",
    example: str = "",
    name: str | None = None,
) -> Any:
    """Declare a setting, between `ge` and `le`.

    Documents show `otherwise` instead of an unhelpful default, `.env.example` shows `example`. `name`: the variable, if
    it differs from the field.
    """
    shown: dict[str, Any] = {"otherwise": otherwise, "example": example}
    return Field(default, description=text, ge=ge, le=le, json_schema_extra=shown, validation_alias=name)


def rule_error(sentence: str) -> PydanticCustomError:
    """The error of a rule between settings."""
    return PydanticCustomError(RULE, "{sentence}", {"sentence": sentence})


RULE = "rule"
SECTIONS = {
    "port": ("Where", ""),
    "database_url": (
        "Servers",
        "An address replaces the embedded server. docs/servers.md says how each server must be configured.",
    ),
    "web_processes": ("Processes", ""),
    "allowed_hosts": ("In public", ""),
    "email_required": ("Accounts and tokens", ""),
    "email_url": ("Mail", "docs/runbook.md has examples (Mail does not go out)."),
    "log_format": ("Logs", ""),
    "metrics_token": ("Metrics", ""),
    "level_1_cap": ("Timelines", ""),
    "stream": ("Live updates", ""),
    "rates": ("Rate limits", "Calls in a period, counted per user, or per address for visitors."),
    "moderation_link_days": ("Moderation", "Rules that hold items for review. 0 turns a rule off."),
    "discover_seen": ("Discover and notifications", ""),
    "media_image_mb": ("Pictures and videos", ""),
    "backup_to": ("Backups", ""),
    "played_store_url": ("Played history", ""),
}
"""Sections of the documents, by their first setting: title and text."""


# One or two lines a setting.
# fmt: off
class Options(BaseSettings):
    """The settings of one environment, checked."""

    model_config = SettingsConfigDict(
        env_prefix="FEEDSITE_", validate_default=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    port: int = option(8000, "The port on which `up` serves pages.", name="PORT", ge=1, le=65_535)
    host: Place = option("127.0.0.1", "The address on which `up` listens.")
    data_dir: Folder = option(BASE_DIR / "var",
        "The folder for embedded servers, logs, static files, pictures, plays and the secret key.",
        otherwise="`var/` beside manage.py", example="/srv/feedsite/data")
    venv: Line = option("", "The virtual environment. Set it in the environment, not in a file.",
        otherwise="`.venv` beside manage.py", example="/srv/feedsite/venv")
    wheels: Line = option("", "A folder of wheels, for a machine without internet. Set it in the environment, not in a "
        "file.",
        otherwise="pip's package index", example="/srv/wheels")
    env_file: Line = option("", "The settings file to read instead of `.env`. Set it in the environment.",
        otherwise="`.env` beside manage.py, if there is one", example="/etc/feedsite.env")
    time_zone: Zone = option("UTC", "The site's time zone: for nightly jobs and for readers without one.",
        example="Asia/Shanghai")
    sign_up: Annotated[Literal["", "open", "invite", "approval", "closed"], BeforeValidator(str.lower)] = option("",
        "Who can join: everybody, people with an invitation, people an admin approves, or nobody.",
        otherwise="chosen in the admin (at first: open)", example="closed")
    domain: Host = option("localhost", "Only for compose: the site's host name, for Caddy and the allowed hosts.",
        example="feeds.example.org")

    database_url: Postgresql = option("", "PostgreSQL, which holds all data.",
        otherwise="the embedded server", example="postgresql://feedsite:secret@db.internal/feedsite")
    replica_url: Postgresql = option("", "A streaming replica of PostgreSQL, for searches and Discover.",
        otherwise="the primary serves all reads", example="postgresql://feedsite:secret@standby.internal/feedsite")
    database_timeout_seconds: float = option(3.5, "Maximum seconds for an SQL statement of web, stream and gRPC.",
        ge=0.001, le=86_400)
    prepare: bool = option(True, "Set 0 behind PgBouncer with transaction pooling (docs/servers.md, PgBouncer).")
    redis_url: Feeds = option("", "The feeds server: a Redis, or a Redis Cluster "
        "(`redis+cluster://user:password@node1:6379,node2:6379`).",
        otherwise="the embedded server", example="redis://feeds.internal/0")
    redis_timeout_seconds: float = option(0.2,
        "How long a page waits for the feeds server before PostgreSQL serves it.", ge=0.001, le=86_400)
    broker_url: Broker = option("", "Celery's queue, on a server that never evicts data.",
        otherwise="the feeds server, else the embedded server", example="redis://broker.internal/0")
    cache_url: Redis = option("",
        "Rate counters, copies of sessions, suggestions and popular hashtags, on a server that never evicts data.",
        otherwise="the broker's server if it is a Redis, else the feeds server", example="redis://broker.internal/2")
    played_url: Redis = option("", "Plays that are not merged yet, on a Redis that never evicts data and syncs each "
        "write.",
        otherwise="the broker's server if it is a Redis, else the feeds server, else the embedded server",
        example="redis://plays.internal/1")
    feeds_memory: Memory = option("512mb", "Maximum memory of the embedded feeds server. When full it evicts data.")

    web_processes: int = option(PROCESSORS, "Web processes.",
        otherwise="one per processor", example="4", ge=1, le=1024)
    web_threads: int = option(4, "Threads per web process.", ge=1, le=1024)
    web_wait_seconds: float = option(0.5, "How long a request waits for a free thread before it gets 503 with "
        "Retry-After.", ge=0.05, le=60)
    web_memory_mb: int = option(512, "A web process with more MiB of memory is replaced, between two requests.",
        ge=128, le=65_536)
    worker_processes: int = option(PROCESSORS, "Worker processes.",
        otherwise="one per processor", example="4", ge=1, le=1024)
    worker_memory_mb: int = option(384, "A worker process with more MiB of memory is replaced, between two tasks.",
        ge=128, le=65_536)
    outside_processes: int = option(2, "The most worker processes that only wait for other servers, read uploaded "
        "archives and convert videos. There is one while that is enough. One of each machine converts at a time.",
        ge=1, le=1024)
    small: bool = option(False, "Set 1 on a machine with 1 GB: other defaults get lower (docs/scaling.md, A small "
        "machine).")

    allowed_hosts: Hosts = option(["localhost", "127.0.0.1", "[::1]"],
        "The site's host names, beside that of FEEDSITE_URL. Requests for other names get 400.",
        example="feeds.example.org")
    url: Origin = option("", "The site's own address. Links in letters begin with it.",
        otherwise="the first of FEEDSITE_ALLOWED_HOSTS, with https if FEEDSITE_HTTPS=1, on localhost with PORT",
        example="https://feeds.example.org")
    csrf_trusted_origins: TrustedOrigins = option([], "Origins whose forms the site trusts. `https://*.example.org`: "
        "all subdomains.", otherwise="none", example="https://feeds.example.org")
    https: bool = option(False, "Set 1 behind a proxy that ends TLS and sets the header Forwarded. Cookies are then "
        "for HTTPS only, and HTTP is redirected.")
    proxy: bool | None = option(None, "Set 1 behind a proxy that sets the header Forwarded on every request: the site "
        "trusts it.", otherwise="as FEEDSITE_HTTPS", example="1")
    hsts_seconds: int = option(YEAR_SECONDS, "With FEEDSITE_HTTPS=1: how long browsers insist on HTTPS "
        "(Strict-Transport-Security). You cannot undo it. 0: no such header.", ge=0, le=10 * YEAR_SECONDS)
    secret_key: Secret = option("", "Signs sessions and links: 50 random characters or more.",
        otherwise="made in the data folder")
    secret_key_fallbacks: Secrets = option([], "Earlier secret keys, for old data (docs/runbook.md, Rotate keys).",
        otherwise="none")
    admin_path: AdminPath = option("admin", "The path of the admin.")
    debug: bool = option(False, "1: a failing page shows code and settings. Never use it in public.")

    email_required: bool = option(False, "Set 1 to require an e-mail address. Members can change it but not remove it.")
    token_days: int = option(90, "Days until an API token expires.", ge=1, le=36_500)
    app_token_days: int = option(365, "Days until the token of an unused app expires.", ge=1, le=36_500)

    email_url: Mail = option("console://", "Where letters go: smtp+tls (STARTTLS), smtps (TLS), smtp (plain), "
        "filemail:///FOLDER (one file each), or console:// (the log). In user and password write %40 for @, %3A for :, "
        "%2F for /.", example="smtp+tls://user:password@mail.example.org:587")
    email_from: Sender = option("", "The sender of letters.",
        otherwise="noreply at the host of FEEDSITE_URL, with the site's name", example="Feeds <noreply@example.org>")

    log_format: Annotated[Literal["plain", "json"], BeforeValidator(str.lower)] = option("plain",
        "plain: lines for people. json: one JSON object per line.")
    log_level: Annotated[Literal["", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(str.upper)] = (
        option("", "The lowest level to log.",
            otherwise="INFO, and WARNING for workers", example="INFO"))
    access_log: bool | None = option(None, "1: one line per request.", otherwise="1 with json, else 0", example="1")

    metrics_token: Token = option("", "The bearer token with which other machines read /metrics: 16 random characters "
        "or more.", otherwise="only this machine may read")
    check_readers: int = option(20, "Readers whose windows are compared with PostgreSQL every minute. 0: none.",
        ge=0, le=100_000)

    level_1_cap: int = option(100, "Maximum inbox entries of readers seen within a month (level 1): below level 2's.",
        ge=1, le=100_000)
    level_2_cap: int = option(300, "Maximum inbox entries of readers seen within a week (level 2): at least 50 below "
        "the feeds server's zset-max-listpack-entries (512).", ge=1, le=100_000)
    level_3_cap: int = option(1000, "Maximum inbox entries of readers seen within a day (level 3).", ge=1, le=100_000)
    outbox_cap: int = option(1000, "Maximum items in a big-V's outbox.", ge=1, le=100_000)
    follow_cap: int = option(2000, "How many users one user may follow.", ge=1, le=100_000)
    big_v_threshold: int = option(100_000, "Users with this many followers become big-V. 0: only admins make big-Vs.",
        ge=0, le=10**12)

    stream: bool = option(True, "0: pages open no streams. They poll for news.")
    stream_port: int = option(0, "The port where browsers reach the stream process. 0: the site's own, through a "
        "proxy, or the next free one under `up` without a proxy.", ge=0, le=65_535)
    stream_origins: Origins = option([], "Origins whose pages may read streams from another port.",
        otherwise="those of FEEDSITE_ALLOWED_HOSTS", example="https://feeds.example.org")
    stream_cap: int = option(10_000, "Maximum open streams of one process.", ge=1, le=1_000_000)

    rates: Rates = option({}, "Rates to change. docs/settings.md, The rates, lists them.",
        otherwise="those of the table", example="login=20/minute,publish=120/minute")
    rate_scale: float = option(1.0, "Multiplies every rate, for load tests. One call always passes.", ge=0, le=1e9)

    moderation_link_days: int = option(3, "Hold items with links if the account is younger than this many days.",
        ge=0, le=36_500)
    moderation_burst: int = option(30, "Hold a sender's items beyond this many in ten minutes.", ge=0, le=1_000_000)
    moderation_same_text: int = option(5, "Hold a sender's same text beyond this many times in an hour.",
        ge=0, le=1_000_000)
    moderation_reports: int = option(3, "Hold a published item after reports by this many readers.",
        ge=0, le=1_000_000)

    discover_seen: Annotated[Literal["auto", "impressions", "plays", "both"], BeforeValidator(str.lower)] = option(
        "auto", "What Discover hides: posts shown in the last week (impressions), opened in three months (plays), or "
        "both. auto: impressions, and plays if a service reports them.")
    discover_scale_days: float = option(14.0, "After one day and this many days a post scores half in Discover. News: "
        "2, a forum: 60.", ge=0.001, le=36_500)
    opensearch_url: OpenSearch = option("", "OpenSearch, which finds posts for Discover. If it fails, PostgreSQL does.",
        otherwise="PostgreSQL finds them", example="https://user:password@search.internal:9200/feedsite")
    impression_capacity: int = option(100_000, "Impressions per day and filter, each 2 bytes of the feeds server. "
        "There are 16 filters for 7 days.", ge=1000, le=100_000_000)
    notification_days: int = option(90, "Days after its last change until a notification is deleted.",
        ge=1, le=36_500)

    media_image_mb: int = option(10, "Maximum MiB of a picture's file.", ge=1, le=1024)
    media_video_mb: int = option(40, "Maximum MiB of a video's file.", ge=1, le=4096)
    media_video_minutes: int = option(10, "Maximum minutes of a video.", ge=1, le=1440)
    media_video_daily_seconds: int = option(3600, "Maximum processor seconds of a day for converting one member's "
        "videos.", ge=1, le=86_400)
    archive_mb: int = option(512, "Maximum MiB of an archive from another site. It needs twice as much disk and 256 "
        "MiB.", ge=1, le=16_384)
    media_megapixels: int = option(50, "Maximum megapixels of a picture, or of all frames of an animation. Decoding "
        "needs up to 448 MiB and 14 bytes per pixel: 1.1 GiB for 50.", ge=1, le=250)
    media_accel_path: AccelPath = option("", "nginx's internal path of the folder `media/files`, if nginx sends the "
        "files (docs/proxy.md).", otherwise="the site sends them", example="/protected-media/")
    media_sizes_seconds: int = option(20, "Seconds of each minute in which a worker makes the sizes of pictures and "
        "the posters of videos from before version 0.2. 0: pause.", ge=0, le=60)
    media_store: Bucket = option("", "An S3 bucket for pictures and videos. In key and secret write %2F for /. "
        "`endpoint=`: the API's origin, if not https://host. `public=`: where browsers fetch files. Also `region=` and "
        "`style=virtual` (docs/servers.md).",
        otherwise="the data folder", example="s3://key:secret@s3.example.org/bucket?public=https://cdn.example.org")
    link_cards: bool = option(True, "1: posts show a preview of their first link. Its server learns the site's "
        "address.")

    backup_to: Backups = option("", "A folder or bucket for nightly backups. They hold secrets: nobody else may read "
        "it.", otherwise="the site makes no backups by itself", example="/var/lib/feedsite/backups")
    backup_days: int = option(7, "Keep one backup for each of this many days, and for each of four weeks.",
        ge=1, le=3660)

    played_store_url: Redis = option("", "The store of month filters: Kvrocks, or another server with the Redis "
        "protocol and data on disk.", otherwise="LMDB in the data folder", example="redis://kvrocks.internal:6666/0")
    played_timeout_seconds: float = option(0.5, "How long a request waits for the plays server and the store before it "
        "goes on without, or gets 503.", ge=0.001, le=86_400)
    played_store_gb: int = option(1024, "Maximum GiB of the LMDB file: address space at once, disk as it grows.",
        ge=1, le=65_536)
    grpc_host: Place = option("127.0.0.1", "The address where gRPC listens: plain HTTP/2, for a proxy that ends TLS.")
    grpc_port: int = option(0, "The port of gRPC. 0: no gRPC.", example="8002", ge=0, le=65_535)
    played_old_url: Redis = option("", "The old Redis with all plays, during a migration (docs/plays.md).",
        otherwise="no migration", example="redis://old.internal/0")
    played_old_key: PlayedKey = option("played:{uid}", "The key of a user's ZSET in the old Redis, from ids to "
        "milliseconds.")
    # fmt: on

    @property
    def base_dir(self) -> Path:
        """The folder of manage.py."""
        return BASE_DIR

    @cached_property
    def servers(self) -> Servers:
        """The embedded servers that this site needs."""
        names = ("database_url", "redis_url", "broker_url", "played_url")
        return Servers(self.data_dir, {f"FEEDSITE_{name.upper()}": getattr(self, name) for name in names})

    @property
    def is_proxied(self) -> bool:
        """Whether a proxy stands before the site, and leads streams to their process."""
        return self.https or bool(self.proxy) or self.url.startswith("https:")

    @property
    def metrics_folder(self) -> Path:
        """The folder for metrics of all programs under `up`."""
        return self.servers.home.run / "metrics"

    # --- Rules between settings ------------------------------------------------------------------------------
    # An invalid setting is missing in `info.data`. Errors that follow from it are not reported.
    @field_validator("level_2_cap", "level_3_cap")
    @classmethod
    def _caps_rise(cls, cap: int, info: ValidationInfo) -> int:
        level = int(str(info.field_name).split("_")[1])
        below = info.data.get(f"level_{level - 1}_cap")
        if below is not None and cap <= below:
            name, lower = (f"FEEDSITE_LEVEL_{each}_CAP" for each in (level, level - 1))
            raise rule_error(f"{name} is {cap}. It must be higher than {lower}, which is {below}.")
        return cap

    @field_validator("replica_url")
    @classmethod
    def _replica_has_a_primary(cls, url: str, info: ValidationInfo) -> str:
        if url and info.data.get("database_url") == "":
            raise rule_error("FEEDSITE_REPLICA_URL is set, but FEEDSITE_DATABASE_URL, its primary, is not.")
        return url

    @field_validator("broker_url", "cache_url", "played_url")
    @classmethod
    def _cluster_is_for_feeds(cls, url: str, info: ValidationInfo) -> str:
        serves_all = info.field_name == "broker_url" or info.data.get("broker_url", "").startswith("amqp")
        if not url and serves_all and names_cluster(info.data.get("redis_url", "")):
            name = f"FEEDSITE_{str(info.field_name).upper()}"
            raise rule_error(f"Set {name} to a single server: the cluster of FEEDSITE_REDIS_URL is for feeds only.")
        return url

    @field_validator("backup_to")
    @classmethod
    def _backups_are_not_public(cls, place: str, info: ValidationInfo) -> str:
        media = info.data.get("media_store", "")
        if place.startswith("s3://") and media and _bucket_of(place) == _bucket_of(media):
            raise rule_error(
                "FEEDSITE_BACKUP_TO is the bucket of FEEDSITE_MEDIA_STORE. Backups hold secrets: use another bucket."
            )
        return place

    # --- Spaces, and a small machine -------------------------------------------------------------------------
    @model_validator(mode="before")
    @classmethod
    def _without_spaces(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Strip spaces from values, and drop empty ones. A secret key may begin or end with a space."""
        texts = {name: value if name == "secret_key" else value.strip() for name, value in values.items()}
        return {name: value for name, value in texts.items() if value.strip()}

    @model_validator(mode="after")
    def _apply_small_values(self) -> Self:
        for name, value in SMALL_VALUES.items():
            if self.small and name not in self.model_fields_set:
                setattr(self, name, value)
        return self


def _bucket_of(url: str) -> tuple[str, str]:
    address = parse_bucket(url)
    return address.endpoint, address.name


SMALL_VALUES = {
    "web_processes": 1,
    "web_memory_mb": 256,
    "worker_processes": 1,
    "worker_memory_mb": 192,
    "outside_processes": 1,
    "feeds_memory": "64mb",
    "media_megapixels": 12,
    "stream_cap": 1000,
}
"""Defaults with `FEEDSITE_SMALL=1`. `up` prints what they mean (runtime/up.py)."""
VARIABLES = {
    str(field.validation_alias or f"FEEDSITE_{name.upper()}"): name for name, field in Options.model_fields.items()
}
"""Variable → field of `Options`."""
INTERNAL = frozenset({"FEEDSITE_SUPERVISED", "FEEDSITE_PROGRAM"})
"""Variables set by the site's own programs."""
