from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class MergeRun(models.Model):
    """A merge of plays by one task. Not recorded if it found no user."""

    node = models.PositiveSmallIntegerField(_("node"))
    task_shard = models.PositiveSmallIntegerField(_("task shard"))
    started_at = models.DateTimeField(_("started at"))
    seconds = models.FloatField(_("seconds"))
    users = models.IntegerField(_("users"), default=0)
    plays = models.IntegerField(_("plays"), default=0)
    error = models.CharField(_("error"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("merge")
        verbose_name_plural = _("merges of plays")
        permissions = [("act_for_others", gettext_noop("Can report and ask what other users have seen"))]
        indexes = [models.Index(fields=["-started_at"], name="merge_run_latest")]

    def __str__(self) -> str:
        facts = {"node": self.node, "task_shard": self.task_shard}
        return str(_("node %(node)s, task shard %(task_shard)s") % facts)
