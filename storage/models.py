from django.db import models


class SiteKey(models.Model):
    """The fingerprint of the site's secret key, in its only row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    fingerprint = models.CharField(max_length=64)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="site_key_one_row")]

    def __str__(self) -> str:
        return self.fingerprint
