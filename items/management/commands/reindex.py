"""`manage.py reindex`: write down anew what items are found by."""

from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from items.indexing import reindex


class Command(BaseCommand):
    """`reindex`: cuts all texts into words and tags again."""

    help = "Cut all texts into words and tags again. Publishing waits meanwhile: ten seconds for 400,000 items."

    def handle(self, *args: Any, **options: Any) -> None:
        """Index all items anew, and print their number."""
        with transaction.atomic():
            count = reindex()
        self.stdout.write(f"{count:,} items.")
