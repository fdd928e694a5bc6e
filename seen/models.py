"""What is written down of the work on the time ring."""

from django.db import models


class MergeRun(models.Model):
    """One task's work on its part of a node, for whoever looks after the site. Nothing is decided by it."""

    node = models.PositiveSmallIntegerField()
    task_shard = models.PositiveSmallIntegerField()
    started_at = models.DateTimeField()
    seconds = models.FloatField()
    users = models.IntegerField(default=0)
    plays = models.IntegerField(default=0)
    error = models.CharField(max_length=200, blank=True)

    class Meta:
        permissions = [("act_for_others", "Can report and ask what other users have seen")]
        indexes = [models.Index(fields=["-started_at"], name="merge_run_latest")]

    def __str__(self) -> str:
        return f"node {self.node}, task shard {self.task_shard}, {self.started_at:%Y-%m-%d %H:%M}"
