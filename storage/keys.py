"""Every Redis key of the site. No other module spells a key.

| key | type | member -> score | bound | if lost |
|---|---|---|---|---|
| `inbox:{uid}` | ZSET | window (storage/window.py) | level cap; 30 days | rebuilt from SQL |
| `outbox:{uid}` | ZSET | window | 1000; 30 days | rebuilt from SQL |
| `outbox:tag:{id}` | ZSET | window, of a hashtag (relations.models.Tag) | 1000; 30 days unread | rebuilt from SQL |
| `tail:{uid}` | ZSET | window | 100; 5 minutes | pulled again from SQL |
| `big_vs:{uid}` | STRING | sources of merged outboxes, by commas | readers who merge; 30 days | read from SQL |
| `fans:active:{uid}:{shard}` | SET | follower id, `complete:{generation}` | big-V only; a day | rebuilt from SQL |
| `bf:global:{YYYYMMDD}:{shard}` | Bloom filter | `{uid}:{item}` | 7 days | items of the week may come again |
| `bf:global:{YYYYMMDD}:{shard}:{nth}` | bitmap | overflow of the filter | 3 a day and shard; 7 days | the same |
| `bf:over:{YYYYMMDD}:{shard}` | STRING | the overflow was reported | 7 days | reported again |
| `feed:cache:{uid}` | LIST | item ids | 30 minutes | recalled again |
| `feed:reasons:{the list's key}` | LIST | `item:reason`, for each of them | 30 minutes | shown without a reason |
| `feed:recall:{uid}` | STRING | candidates (discover/kept.py) | 200; 30 minutes | recalled again |
| `user:views:topic:{uid}` | LIST | item ids, newest first, unique | 10; 7 days | viewed items may come again |
| `user:views:reply:{uid}` | LIST | reply ids, newest first, unique | 100; 7 days | the same, with their threads |
| `user:views:times:{the list's key}` | HASH | item id -> when, in ms since 1970 | as its list | as its list |
| `played:recent:{uid}` | ZSET | item id -> ms since 1970 of the play | 10,000; until merged | **plays are lost** |
| `played:kept` | STRING | a user played something | 7 months from the last play | written by the next play |
| `played:trial:{token}` | any | a value of a backup that is tried | a minute | tried again |
| `played:early:{uid}` | STRING | an early merge of the user was requested | 5 seconds | requested again |
| `played:user:{node}:{shard}` | SET | user ids | until merged | the daily task adds them again |
| `issued:{uid}` | LIST | item ids, newest first | 100; 30 days | issued items may come again |
| `played:filter:{month}:{uid}` | STRING | seen/filters.py | the sixth month after | **plays are lost** |
| `played:filter:{shelf}:{uid}` | STRING | 0 to 2: seen/migration | during a migration | **old plays are lost** |
| `played:months` | HASH | `{month}:filters`, `{month}:size` -> number | | counts restart |
| `live:lineup:{uid}` | ZSET | session -> ± start in ms; `version:{generation}` | 100; 30 days | rebuilt from SQL |
| `live:replays:{uid}` | ZSET | window of `host:position` -> position | 300; 30 days | rebuilt from SQL |
| `live:snapshot:{uid}:{digest}` | LIST | live/snapshot.py | 10 a reader; 30 minutes | readers must start again |
| `live:snapshots:{uid}` | ZSET | digest -> last use, µs since 1970 | 10; 30 minutes | snapshots expire by themselves |
| `events` | STREAM | `event` -> JSON (storage/events.py) | about 10,000 entries | open pages are told to ask |
| `rate:{scope}:{who}` | STRING | calls in the current slot | one slot | the slot starts again |
| `credential:{digest}` | STRING | id of its user (a token or session) | 7 days from its last call | an attempt |
| `cache:1:session:{digest}` | STRING | copy of a session's row (accounts/signing_in) | an hour | read from SQL |
| `cache:1:tags:popular` | STRING | hashtags, each with items (items/tags/popular.py) | 5 minutes | counted again |
| `cache:1:tags:days` | STRING | daily uses of popular hashtags (items/tags/trending.py) | 10 minutes | counted again |
| `cache:1:page:{digest}` | STRING | a page for strangers (items/pages/open_pages.py) | 15 seconds | rendered again |
| `cache:1:suggestions:{uid}:{count}` | STRING | user ids (relations/suggestions.py) | 10 minutes | found again |
| `cache:1:notice:{user}` | STRING | a task will announce acts (notifications/actions.py) | 1 second | done twice |
| `cache:1:mail:turn` | STRING | a worker sends letters (accounts/mail) | 90 seconds | several send at once |
| `cache:1:mail:pause` | STRING | the mail server is left alone | 30 seconds | it is asked sooner |
| `cache:1:beat` | STRING | the beat that works, behind a pooler (storage/quiet.py) | 15 seconds | several send tasks |
| `cache:1:observed` | STRING | when beat last worked (operation/gauges.py) | a day | written again in 20 s |
"""

from datetime import date


def inbox(user_id: int) -> str:
    """A reader's inbox."""
    return f"inbox:{user_id}"


def outbox(user_id: int) -> str:
    """A big-V's outbox."""
    return f"outbox:{user_id}"


def tag_outbox(tag_id: int) -> str:
    """A hashtag's outbox."""
    return f"outbox:tag:{tag_id}"


def tail(user_id: int) -> str:
    """A reader's tail."""
    return f"tail:{user_id}"


def merged_outboxes(user_id: int) -> str:
    """The hint of outboxes to merge."""
    return f"big_vs:{user_id}"


def active_fans(user_id: int, shard: int) -> str:
    """One shard of a big-V's active fans."""
    return f"fans:active:{user_id}:{shard}"


def of_user(user_id: int, fan_shards: int) -> list[str]:
    """The keys of a user in the feeds whose names need no more than the user."""
    seen = [views(user_id), reply_views(user_id)]
    return [
        inbox(user_id),
        outbox(user_id),
        tail(user_id),
        merged_outboxes(user_id),
        *(active_fans(user_id, shard) for shard in range(fan_shards)),
        candidates(user_id),
        candidate_reasons(user_id),
        kept_recall(user_id),
        *seen,
        *map(view_times, seen),
        lineup(user_id),
        replays(user_id),
    ]


def impressions(day: date, shard: int) -> str:
    """The Bloom filter of a shard's impressions on a day (UTC)."""
    return f"bf:global:{day:%Y%m%d}:{shard}"


def further_impressions(key: str, nth: int) -> str:
    """The nth overflow filter of a filter. 0: the filter itself."""
    return f"{key}:{nth}" if nth else key


def impressions_over(day: date, shard: int) -> str:
    """Mark that a filter's overflow was reported."""
    return f"bf:over:{day:%Y%m%d}:{shard}"


def candidates(user_id: int) -> str:
    """A reader's recalled candidates that were not shown yet."""
    return f"feed:cache:{user_id}"


def candidate_reasons(user_id: int) -> str:
    """Why each of a reader's candidates was recalled. In the candidates' slot, to write both or none."""
    return f"feed:reasons:{{{candidates(user_id)}}}"


def kept_recall(user_id: int) -> str:
    """A reader's last recall, for the next refreshes."""
    return f"feed:recall:{user_id}"


def views(user_id: int) -> str:
    """The items that a reader opened last."""
    return f"user:views:topic:{user_id}"


def reply_views(user_id: int) -> str:
    """The replies that a reader saw last."""
    return f"user:views:reply:{user_id}"


def view_times(views_key: str) -> str:
    """When a reader viewed the items of a list of views. In the list's slot."""
    return f"user:views:times:{{{views_key}}}"


PLAYS = {"played:recent:*": b"zset", "played:user:*": b"set", "issued:*": b"list", "played:kept": b"string"}
"""Patterns and types of the keys for a backup: plays that no filter has, issued items, and the mark that there are
plays.
"""


def played_recent(user_id: int) -> str:
    """A user's plays that no filter has yet."""
    return f"played:recent:{user_id}"


def played_trial(token: str) -> str:
    """A value of a backup that is tried."""
    return f"played:trial:{token}"


def played_kept() -> str:
    """Mark of a site with plays (seen.usage)."""
    return "played:kept"


def played_early(user_id: int) -> str:
    """Mark that an early merge was requested."""
    return f"played:early:{user_id}"


def played_users(node: int, shard: int) -> str:
    """The users of a shard with plays in a node's hour."""
    return f"played:user:{node}:{shard}"


def issued(user_id: int) -> str:
    """The items that a user was issued last."""
    return f"issued:{user_id}"


def played_filter(user_id: int, month: int) -> str:
    """A user's filter of a month."""
    return f"played:filter:{month}:{user_id}"


def played_months() -> str:
    """The number and bytes of all users' play filters by month."""
    return "played:months"


def lineup(user_id: int) -> str:
    """A host's live and upcoming sessions (live/lineup.py)."""
    return f"live:lineup:{user_id}"


def replays(user_id: int) -> str:
    """A reader's window of replays."""
    return f"live:replays:{user_id}"


def snapshot(user_id: int, digest: str) -> str:
    """The order of live sessions that a reader's walk froze."""
    return f"live:snapshot:{{{user_id}}}:{digest}"


def snapshots(user_id: int) -> str:
    """A reader's snapshots by last use. In the slot of the snapshots: one script writes both."""
    return f"live:snapshots:{{{user_id}}}"


def events() -> str:
    """The stream of events for open connections."""
    return "events"


def rate(scope: str, who: str) -> str:
    """A caller's calls in the current slot."""
    return f"rate:{scope}:{who}"


def credential(digest: str) -> str:
    """Mark of a valid token or session (web/rates.py)."""
    return f"credential:{digest}"


def cached(name: str, prefix: str, version: int) -> str:
    """An entry of Django's cache."""
    return f"cache:{version}:{name}"


def session(digest: str) -> str:
    """The cached copy of a session's row."""
    return f"session:{digest}"


def suggestions(user_id: int, count: int) -> str:
    """Users suggested to a reader."""
    return f"suggestions:{user_id}:{count}"


def popular_tags() -> str:
    """Popular hashtags, in Django's cache."""
    return "tags:popular"


def tag_days() -> str:
    """Daily uses of popular hashtags, in Django's cache."""
    return "tags:days"


def page(digest: str) -> str:
    """A page for strangers, in Django's cache."""
    return f"page:{digest}"


def mail_turn() -> str:
    """Mark that a worker sends letters."""
    return "mail:turn"


def late_notice(user_id: int) -> str:
    """Mark that a task will announce a user's acts."""
    return f"notice:{user_id}"


def mail_pause() -> str:
    """Mark that the mail server is left alone."""
    return "mail:pause"


def beat() -> str:
    """The beat that works, behind a pooler."""
    return "beat"


def observed() -> str:
    """When beat last worked."""
    return "observed"
