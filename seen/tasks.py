from django.conf import settings

from seen import merging, status
from storage.connections import database_now
from storage.queue import task


@task("seen.merge_plays")
def merge_plays() -> None:
    """Enqueue the merge of the last hour's plays. Twice an hour: the second pass gets what the first missed."""
    for task_shard in range(settings.PLAYED_TASK_SHARDS):
        merge_task_shard.delay(task_shard)


@task("seen.merge_task_shard")
def merge_task_shard(task_shard: int) -> None:
    """Merge one part of the ring."""
    merging.merge_task_shard(task_shard, now=database_now())


@task("seen.merge_user")
def merge_user(user_id: int) -> None:
    """Merge the plays of a user who has filled half of their room."""
    merging.merge_early(user_id, now=database_now())


@task("seen.mark_strays")
def mark_strays() -> None:
    """Mark users whose plays wait without a mark."""
    merging.mark_strays(now=database_now())


@task("seen.purge_filters")
def purge_filters() -> None:
    """Remove expired filters."""
    merging.purge(now=database_now())


@task("seen.watch_plays")
def watch_plays() -> None:
    """Set the metrics of the played history."""
    status.measure(now=database_now())


@task("seen.forget_runs")
def forget_runs() -> None:
    """Delete old records of merges."""
    merging.forget_runs(now=database_now())
