"""The error of the filters, measured by what is known exactly.

A probe asks the filters of sampled users

- about plays that were merged (seen.sample), which they all must know: one that they miss is lost, and an alarm;
- about random ids of 53 bits, which no user played: the share that they claim is the measured error.

See docs/decisions.md: A sample of what was merged is kept exactly.
"""

import logging
import time
from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np
from django.conf import settings

from runtime import metrics
from seen import sample
from seen.filter_store import MONTHS, FilterKey, month_of
from seen.filters import MonthFilter, id_numbers, readable
from seen.forgetting import deleted
from seen.models import MergeRun, Probe
from seen.sample import Drawn
from seen.store import store

logger = logging.getLogger(__name__)

PLAYS_ASKED = 100
"""Plays of each month that are asked about."""
IDS_ASKED = 1_000
"""Ids that no user played, asked about each of the users."""
RUNS_KEPT = timedelta(days=30)
PROBES_KEPT = timedelta(days=365)

Filters = dict[FilterKey, MonthFilter]


def probe(*, now: datetime) -> Probe | None:
    """Ask the filters what is known, and write down how right they were; None while no play was merged.

    One round trip to Redis and one read of the store; half a second of work. A play that is lost is told of once.
    Raises PlayedUnavailableError and StoreUnavailableError.
    """
    begin = time.monotonic()
    plays = sample.some(now=now, count=PLAYS_ASKED)
    if not plays:
        return None
    user_ids = sorted({play.user_id for play in plays})
    months = [month_of(now) - ago for ago in range(MONTHS)]
    filters = _read([FilterKey(user_id, month) for user_id in user_ids for month in months])
    missed = _missed(plays, filters)
    result = Probe(
        probed_at=now,
        users=len(user_ids),
        unplayed=len(user_ids) * IDS_ASKED,
        claimed=sum(
            _claimed([found for month in months if (found := filters.get(FilterKey(user_id, month)))])
            for user_id in user_ids
        ),
        merged=len(plays),
        missed=len(missed),
        error=settings.PLAYED_ERROR_RATE,
        seconds=time.monotonic() - begin,
    )
    result.save()
    for play in missed[:5]:
        logger.error("the filter of user %d and month %d does not know item %d, which was merged", *play[:3])
    sample.drop(missed)
    metrics.played_probed.set(result.unplayed)
    metrics.played_false_positives.set(result.ratio)
    metrics.played_error.set(result.error)
    metrics.played_missed.inc(result.missed)
    return result


def _read(wanted: list[FilterKey]) -> Filters:
    """The wanted filters that there are and that can be read."""
    found = ((key, readable(key.user_id, data)) for key, data in zip(wanted, store().read(wanted), strict=True))
    return {key: one for key, one in found if one is not None}


def _missed(plays: list[Drawn], filters: Filters) -> list[Drawn]:
    """The plays that their filters do not know, but of those whose accounts were deleted meanwhile."""
    missed = [
        play
        for play in plays
        if (found := filters.get(FilterKey(play.user_id, play.month))) is None
        or not found.known(id_numbers([play.item_id]))[0]
    ]
    gone = set(deleted([play.user_id for play in missed])) if missed else set()
    return [play for play in missed if play.user_id not in gone]


def _claimed(filters: Iterable[MonthFilter]) -> int:
    """How many of random ids one of a user's filters takes for played."""
    ids = np.random.default_rng().integers(1, 2**53, IDS_ASKED, dtype=np.uint64)
    is_known = np.zeros(IDS_ASKED, dtype=bool)
    for found in filters:
        is_known |= found.known(ids)
    return int(is_known.sum())


def forget(*, now: datetime) -> int:
    """Remove old merges and probes; how many."""
    runs, _ = MergeRun.objects.filter(started_at__lt=now - RUNS_KEPT).delete()
    probes, _ = Probe.objects.filter(probed_at__lt=now - PROBES_KEPT).delete()
    return runs + probes
