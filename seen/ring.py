"""The time ring: six nodes of an hour each, on which users are marked who played something, in shards.

A play marks its user on the node of the hour. The hourly task works on the node before it only, so that no mark is set
where it works. A user whom it misses is met by the hour's second pass, and the rest one lap later.

Source: the deduplication article, 3.2.2 and 3.3.
"""

from datetime import datetime

from django.conf import settings

from seen.hashing import splitmix64

NODES = 6
HOUR_SECONDS = 3600


def node_of(moment: datetime) -> int:
    """The node on which plays of this moment are marked."""
    return int(moment.timestamp()) // HOUR_SECONDS % NODES


def node_before(moment: datetime) -> int:
    """The node whose hour is over, which is merged at this moment."""
    return (node_of(moment) - 1) % NODES


def shard_of(user_id: int) -> int:
    """The number of the shard that holds this user's marks, from 0."""
    return splitmix64(user_id) % int(settings.PLAYED_SHARDS)


def shards_of_task(task_shard: int) -> range:
    """The shards that one task works on; together the tasks have every shard once."""
    shards, tasks = settings.PLAYED_SHARDS, settings.PLAYED_TASK_SHARDS
    return range(shards * task_shard // tasks, shards * (task_shard + 1) // tasks)
