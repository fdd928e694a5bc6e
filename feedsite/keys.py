"""Every Redis key of the project: builder, type, member, score, life. Nothing else spells a key.

| key | type | member -> score | bound | lost: |
|---|---|---|---|---|
| `inbox:{uid}` | ZSET | `sender:item` -> item id, and a window's own members | level cap; 30 days | rebuilt from SQL |
| `outbox:{uid}` | ZSET | `sender:item` -> item id, and a window's own members | 1000; 30 days | rebuilt from SQL |
| `tail:{uid}` | ZSET | `sender:item` -> item id, and a window's own members | 100; 5 minutes | pulled from SQL again |
| `fans:active:{uid}:{shard}` | SET | follower id, and `complete` | big-V only | rebuilt from SQL |
| `events` | STREAM | `event` -> JSON (feedsite/events.py) | about 10,000 entries | open pages are told to ask |
| `rate:{scope}:{who}` | STRING | calls in the slot that the first of them began | one slot | the slot starts anew |

A window's own members (`floor`, `epoch`, `run:{id}`, `build:{token}`) are described in timeline/window.py.
"""


def inbox(user_id: int) -> str:
    """Window of the items that a reader follows."""
    return f"inbox:{user_id}"


def outbox(user_id: int) -> str:
    """Window of the items that a sender published."""
    return f"outbox:{user_id}"


def tail(user_id: int) -> str:
    """Window of what a reader pulled last from below the inbox's floor."""
    return f"tail:{user_id}"


def active_fans(user_id: int, shard: int) -> str:
    """One shard of a big-V's followers whose level takes pushes."""
    return f"fans:active:{user_id}:{shard}"


def events() -> str:
    """Stream of what happened, for open connections."""
    return "events"


def rate(scope: str, who: str) -> str:
    """Counter of one caller's calls within the running slot of a rate limit."""
    return f"rate:{scope}:{who}"
