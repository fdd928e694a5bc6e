from django.db import models


class SitemapPart(models.Model):
    """A part of the sitemap: public posts from `first_id` up to the next part. Only the last part grows."""

    first_id = models.BigIntegerField(primary_key=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"from {self.first_id}"
