"""The source of candidates: OpenSearch, or PostgreSQL without it."""

import logging
from datetime import datetime

from django.conf import settings

from accounts.models import User
from discover.opensearch import OpenSearchRecall
from discover.postgres import PostgresRecall
from discover.recall import Recall, RecalledItem, RecallUnavailableError
from runtime import metrics

logger = logging.getLogger(__name__)

opensearch: Recall = OpenSearchRecall()
postgres: Recall = PostgresRecall()


def recall(reader: User, *, count: int, now: datetime) -> list[RecalledItem]:
    """Recall from the first server that answers."""
    if settings.OPENSEARCH_URL:
        try:
            return _recall_from("opensearch", opensearch, reader, count, now)
        except RecallUnavailableError as error:
            logger.info("PostgreSQL finds the posts instead of OpenSearch: %s", error)
    return _recall_from("postgres", postgres, reader, count, now)


def _recall_from(name: str, recaller: Recall, reader: User, count: int, now: datetime) -> list[RecalledItem]:
    with metrics.discover_recall_seconds.labels(name).time():
        found = recaller.candidates(reader, count=count, now=now)
    metrics.discover_recalled.labels(name).inc(len(found))
    return found
