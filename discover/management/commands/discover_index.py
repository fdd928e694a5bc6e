from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from discover import indexing
from discover.opensearch_server import OpenSearchError


class Command(BaseCommand):
    """Load OpenSearch with all public posts."""

    help = "Load all public posts into OpenSearch, newest first. If it was stopped, it continues."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --anew."""
        parser.add_argument("--anew", action="store_true", help="Delete the index first.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Load the index. Raises CommandError."""
        if not settings.OPENSEARCH_URL:
            raise CommandError("FEEDSITE_OPENSEARCH_URL is not set.")
        try:
            indexing.create(anew=options["anew"])
            with tqdm(total=indexing.count_left(), unit="item", disable=options["verbosity"] == 0) as bar:
                while count := indexing.load_batch(wait=True):
                    bar.update(count)
                while indexing.write_changes():
                    pass
        except OpenSearchError as error:
            raise CommandError(f"OpenSearch: {error}.") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run it again to continue.", returncode=130) from None
        self.stdout.write(f"Loaded {bar.n:,} items.")
