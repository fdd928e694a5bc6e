"""The ring: six nodes of an hour each, with sharded sets of users who played something.

The hourly task works on the previous node, where no mark is added. A second pass gets users whom it missed, and the
rest wait one lap.

Source: the deduplication article, 3.2.2 and 3.3.
"""

from datetime import datetime

from django.conf import settings

from seen.hashing import splitmix64

NODES = 6
HOUR_SECONDS = 3600


def node_of(moment: datetime) -> int:
    """The node that gets the marks of plays at this moment."""
    return int(moment.timestamp()) // HOUR_SECONDS % NODES


def node_before(moment: datetime) -> int:
    """The node to merge at this moment: the one before `node_of`."""
    return (node_of(moment) - 1) % NODES


def shard_of(user_id: int) -> int:
    """The shard of this user's marks, from 0."""
    return splitmix64(user_id) % int(settings.PLAYED_SHARDS)


def shards_of_task(task_shard: int) -> range:
    """The shards that one task merges."""
    shards, tasks = settings.PLAYED_SHARDS, settings.PLAYED_TASK_SHARDS
    return range(shards * task_shard // tasks, shards * (task_shard + 1) // tasks)
