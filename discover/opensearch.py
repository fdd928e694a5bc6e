"""Recall from OpenSearch (FEEDSITE_OPENSEARCH_URL): the reader's interests as a query, scored by the server.

Relevance is the weighted sum of matching interests plus popularity (log1p), times the Gaussian decay of age. Formats:
docs.opensearch.org, Query DSL, Search API. tests/support/opensearch.py checks every request against them.

See docs/decisions.md: OpenSearch only proposes.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings

from accounts.models import User
from discover import decay
from discover.interests import Interests, interests_of
from discover.models import SearchIndex
from discover.opensearch_server import OpenSearchError, server
from discover.postgres import BASE, CAP_SHARE, LAST, LEAST_CAP, WEIGHTS
from discover.recall import RecalledItem, RecallUnavailableError
from runtime import metrics
from storage import ids
from storage.breaker import Breaker, BreakerOpenError

logger = logging.getLogger(__name__)

MOST = 10_000
"""The most hits of one search (index.max_result_window)."""

LIKED_STEPS = 10
"""Items liked by similar people are grouped by weight, one clause per group."""
POPULARITY_FULL = 4.0
"""The decimal logarithm of the popularity with full weight: 10,000."""
FOLLOWED = 0.001
"""The factor of followed senders' relevance. They also come last."""

MAPPINGS = {
    "dynamic": False,
    "properties": {
        "item": {"type": "long"},
        "sender": {"type": "keyword"},
        "created_at": {"type": "date", "format": "strict_date_time"},
        "tags": {"type": "keyword"},
        # items.search.words cuts the text. An analyzer might cut it differently.
        "words": {"type": "keyword", "doc_values": False},
        "popularity": {"type": "integer"},
    },
}
"""A document of the index. Its id is the item's."""


# --- The query -------------------------------------------------------------------------------------------
Reason = tuple[str, float]
"""A reason's code, and its clause's relevance."""


def time_text(moment: datetime) -> str:
    """A time in the format strict_date_time, in milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def search(interests: Interests, *, reader_id: int, count: int, now: datetime) -> tuple[dict[str, Any], list[Reason]]:
    """The body of a search, and the reason of each named clause: clause "3" is the fourth."""
    clauses, reasons = _clauses(interests)
    body = {
        "query": {
            "function_score": {
                "query": _relevance_query(clauses, reader_id=reader_id, now=now),
                "functions": _score_functions(interests),
                "score_mode": "multiply",
                "boost_mode": "multiply",
            }
        },
        # Also orders items so old that their 32-bit score is 0.
        "sort": [{"_score": {"order": "desc"}}, {"item": {"order": "desc"}}],
        "track_total_hits": False,
        # `_cap_senders` leaves some out.
        "size": min(count * 2, MOST),
        "_source": False,
        "docvalue_fields": [{"field": "sender"}, {"field": "popularity"}],
    }
    return body, reasons


def _clauses(interests: Interests) -> tuple[list[dict[str, Any]], list[Reason]]:
    """The clauses of the query, and the reasons of the named ones."""
    reasons: list[Reason] = []
    clauses = [{"constant_score": {"filter": {"match_all": {}}, "boost": BASE}}]

    def add(reason: str, weight: float, condition: dict[str, Any]) -> None:
        if weight > 0:
            clauses.append({"constant_score": {"filter": condition, "boost": weight, "_name": str(len(reasons))}})
            reasons.append((reason, weight))

    for tag, weight in interests.tags:
        add(f"tag:{tag}", WEIGHTS["tags"] * weight, {"term": {"tags": {"value": tag}}})
    for word, weight in interests.words:
        add(f"words:{word}", WEIGHTS["words"] * weight, {"term": {"words": {"value": word}}})
    for sender_id, weight, reason in interests.senders:
        add(reason, WEIGHTS["graph"] * weight, {"term": {"sender": {"value": str(sender_id)}}})
    steps: dict[int, list[str]] = {}
    for item_id, weight in interests.items:
        steps.setdefault(math.ceil(weight * LIKED_STEPS), []).append(str(item_id))
    for step, item_ids in sorted(steps.items(), reverse=True):
        add("liked", WEIGHTS["liked"] * step / LIKED_STEPS, {"ids": {"values": item_ids}})
    return clauses, reasons


def _relevance_query(clauses: list[dict[str, Any]], *, reader_id: int, now: datetime) -> dict[str, Any]:
    return {
        "function_score": {
            "query": {
                "bool": {
                    "should": clauses,
                    "minimum_should_match": 1,
                    "filter": [{"range": {"item": {"lt": ids.compose(now, 0)}}}],
                    "must_not": [{"term": {"sender": {"value": str(reader_id)}}}],
                }
            },
            "functions": [
                {
                    "field_value_factor": {"field": "popularity", "modifier": "log1p", "missing": 0},
                    "weight": WEIGHTS["popular"] / POPULARITY_FULL,
                }
            ],
            "max_boost": WEIGHTS["popular"],
            "boost_mode": "sum",
        }
    }


def _score_functions(interests: Interests) -> list[dict[str, Any]]:
    functions: list[dict[str, Any]] = [
        {
            "gauss": {
                "created_at": {
                    "origin": time_text(ids.moment(interests.origin)),
                    "offset": _milliseconds(settings.DISCOVER_OFFSET_DAYS),
                    "scale": _milliseconds(settings.DISCOVER_SCALE_DAYS),
                    "decay": settings.DISCOVER_DECAY,
                }
            }
        }
    ]
    if interests.followed:
        followed = sorted(map(str, interests.followed))
        functions.append({"filter": {"terms": {"sender": followed}}, "weight": FOLLOWED})
    return functions


def _milliseconds(days: float) -> str:
    return f"{timedelta(days=days) // timedelta(milliseconds=1)}ms"


# --- The answer ------------------------------------------------------------------------------------------
class _Fields(msgspec.Struct):
    sender: list[str]
    popularity: list[int] = []


class _Hit(msgspec.Struct):
    fields: _Fields
    id: str = msgspec.field(name="_id")
    matched_queries: list[str] = []


class _Hits(msgspec.Struct):
    hits: list[_Hit]


class _SearchAnswer(msgspec.Struct):
    timed_out: bool
    hits: _Hits


FAILURES = (OpenSearchError, msgspec.MsgspecError, ValueError, IndexError)

breaker = Breaker(name="opensearch", failures=FAILURES, slow_share=math.inf)


class OpenSearchRecall:
    """Finds candidates with OpenSearch, as it scores them."""

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[RecalledItem]:
        """The best candidates. Raises RecallUnavailableError, also while the index is loading."""
        if breaker.is_open:
            raise RecallUnavailableError("OpenSearch failed a moment ago")
        _check_loaded()
        interests = interests_of(reader, now=now)
        body, reasons = search(interests, reader_id=reader.pk, count=count, now=now)
        try:
            with breaker.guard(settings.OPENSEARCH_TIMEOUT_SECONDS):
                found = _candidates(_search(body), reasons, interests)
        except BreakerOpenError as error:
            raise RecallUnavailableError(str(error)) from error
        except FAILURES as error:
            metrics.opensearch_failures.labels("search").inc()
            logger.warning("OpenSearch failed, so PostgreSQL searches instead: %s", error)
            raise RecallUnavailableError(str(error)) from error
        if not found:
            _check_loaded()  # it may have been emptied since
        found.sort(key=lambda one: (-one.score, -one.item_id))
        return _cap_senders(found, count)


def _check_loaded() -> None:
    if not SearchIndex.objects.filter(name=server().name, position=0).exists():
        raise RecallUnavailableError("the index is being loaded")


def _cap_senders(candidates: Sequence[RecalledItem], count: int) -> list[RecalledItem]:
    """Keep the first `count` candidates, and of each sender no more than recall from PostgreSQL would."""
    cap = max(LEAST_CAP, int(count * CAP_SHARE))
    of_sender: Counter[int] = Counter()
    kept = []
    for candidate in candidates:
        of_sender[candidate.sender_id] += 1
        if of_sender[candidate.sender_id] <= cap:
            kept.append(candidate)
    return kept[:count]


def _search(body: Mapping[str, Any]) -> Sequence[_Hit]:
    answer = msgspec.convert(server().search(body, settings.OPENSEARCH_TIMEOUT_SECONDS), _SearchAnswer)
    if answer.timed_out:
        raise OpenSearchError("it ran out of time")
    return answer.hits.hits


def _candidates(hits: Iterable[_Hit], reasons: Sequence[Reason], interests: Interests) -> list[RecalledItem]:
    """The hits as candidates. Computes their scores as logarithms: the server's 32-bit scores are too coarse."""
    rate, offset = decay.rate(), settings.DISCOVER_OFFSET_DAYS
    newest = interests.origin >> ids.SEQUENCE_BITS
    candidates = []
    for hit in hits:
        item_id, sender_id = int(hit.id), int(hit.fields.sender[0])
        likes = max(hit.fields.popularity, default=0)
        popular = WEIGHTS["popular"] * min(1.0, math.log10(1 + max(likes, 0)) / POPULARITY_FULL)
        reason, most = ("popular", popular) if popular > BASE else ("fresh", BASE)
        relevance = BASE + popular
        for name in hit.matched_queries:
            why, weight = reasons[int(name)]
            relevance += weight
            if weight > most:
                reason, most = why, weight
        age = (newest - (item_id >> ids.SEQUENCE_BITS)) / decay.DAY_MILLISECONDS
        score = math.log(relevance) - rate * max(age - offset, 0.0) ** 2
        if sender_id in interests.followed:
            score, reason = score - LAST, "followed"
        candidates.append(RecalledItem(item_id, sender_id, score, reason))
    return candidates
