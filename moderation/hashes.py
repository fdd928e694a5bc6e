"""Blocked pictures, found by hash. One statement compares media with all rules, at most `RULES`.

See docs/decisions.md: Blocked pictures are compared by 64 bits.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Subquery
from django.db.models.functions import Now

from accounts.models import User
from items.models import Item
from media.models import MediaFile
from moderation.log import log_decision
from moderation.models import PictureAction, PictureAttempt, PictureRule, Verb
from storage.connections import fetch, id_array

RULES = 5_000
"""Most rules. Comparing media with this many takes about 2 ms."""
PLAIN = 8
"""A hash with fewer ones or zeros says too little about its picture."""
LOOKED = 5_000
"""Newest media compared on a rule's page."""
LISTED = 50
ATTEMPTS = 1_000
"""Newest attempts kept per rule."""
LIFE = timedelta(days=90)
BATCH = 1_000

# Writing rules and comparing exclude each other.
SHARED = "SELECT FROM pg_advisory_xact_lock_shared(hashtext('feedsite.picturerules'))"
ALONE = "SELECT FROM pg_advisory_xact_lock(hashtext('feedsite.picturerules'))"
SAME = """(r.sha256 = m.sha256 OR bit_count((r.phash # m.phash)::bit(64)) <= r.distance)"""
OFFERED = f"""
    SELECT DISTINCT r.id, r.action
    FROM unnest(%(digests)s::text[], %(hashes)s::bigint[]) AS m (sha256, phash)
    JOIN moderation_picturerule r ON r.is_enabled AND {SAME} ORDER BY r.id
"""
USED = f"""
    SELECT DISTINCT r.id, r.note FROM media_mediafile m
    JOIN moderation_picturerule r ON r.is_enabled AND {SAME}
    WHERE m.id = ANY(%(ids)s::bigint[]) ORDER BY r.id
"""
FOUND = f"""
    SELECT m.id FROM moderation_picturerule r CROSS JOIN LATERAL (
        (SELECT id, sha256, phash FROM media_mediafile ORDER BY id DESC LIMIT %(looked)s)
        UNION (SELECT id, sha256, phash FROM media_mediafile WHERE sha256 = r.sha256 ORDER BY id DESC LIMIT %(listed)s)
    ) m WHERE r.id = %(rule)s AND {SAME} ORDER BY m.id DESC LIMIT %(listed)s
"""


class DuplicateHashError(Exception):
    """There is a rule for this file."""

    def __init__(self, rule: PictureRule) -> None:
        super().__init__(rule)
        self.rule = rule


class TooManyRulesError(Exception):
    """There are `RULES` rules."""


class MatchedRule(NamedTuple):
    """A rule that an item's picture matches."""

    rule: int
    note: str


# --- Comparing -------------------------------------------------------------------------------------------
def refusing_rules(offered: Sequence[MediaFile], *, is_face: bool) -> list[int]:
    """Rules that refuse media. Every rule refuses a face: it cannot wait in the queue."""
    fetch(SHARED)
    params = {"digests": [row.sha256 for row in offered], "hashes": [row.phash for row in offered]}
    return [rule for rule, action in fetch(OFFERED, params) if is_face or action == PictureAction.REJECT]


def matching_rules(item: Item) -> list[MatchedRule]:
    """Rules that an item's pictures match."""
    ids = [int(entry["id"]) for entry in item.media]
    if not ids:
        return []
    fetch(SHARED)
    return [MatchedRule(*row) for row in fetch(USED, {"ids": id_array(ids)})]


def usable_hash(phash: int | None) -> int | None:
    """The hash, or None if it says too little."""
    ones = (phash & (2**64 - 1)).bit_count() if phash is not None else 0
    return phash if PLAIN <= ones <= 64 - PLAIN else None


def matching_media(rule: PictureRule) -> list[MediaFile]:
    """Matches among the newest media. At most `LISTED`."""
    params = {"rule": rule.pk, "looked": LOOKED, "listed": LISTED}
    rows = MediaFile.objects.filter(pk__in=[pk for (pk,) in fetch(FOUND, params)], is_private=False)
    return list(rows.order_by("-pk"))


# --- Rules -----------------------------------------------------------------------------------------------
@transaction.atomic
def block(*, rule: PictureRule, by: User) -> PictureRule:
    """Add a rule for media used from now on. Raises KnownError, TooManyRulesError."""
    fetch(ALONE)
    if known := PictureRule.objects.filter(sha256=rule.sha256).first():
        raise DuplicateHashError(known)
    if PictureRule.objects.count() >= RULES:
        raise TooManyRulesError
    rule.phash, rule.by = usable_hash(rule.phash), by
    rule.save()
    log_decision(by, Verb.BLOCK, note=rule.note, after=_rule_facts(rule))
    return rule


@transaction.atomic
def change_rule(*, rule: PictureRule, by: User) -> None:
    fetch(ALONE)
    before = PictureRule.objects.get(pk=rule.pk)
    rule.save(update_fields=["action", "distance", "note", "is_enabled"])
    log_decision(by, Verb.BLOCK, note=rule.note, before=_rule_facts(before), after=_rule_facts(rule))


@transaction.atomic
def unblock(*, rule: PictureRule, by: User) -> None:
    """Remove a rule and its attempts."""
    fetch(ALONE)
    facts = _rule_facts(rule)
    PictureAttempt.objects.filter(rule=rule).delete()
    PictureRule.objects.filter(pk=rule.pk).delete()
    log_decision(by, Verb.UNBLOCK, note=rule.note, before=facts)


def _rule_facts(rule: PictureRule) -> dict[str, Any]:
    facts = {"rule": rule.pk, "action": rule.action, "distance": rule.distance, "is_enabled": rule.is_enabled}
    return facts | {"sha256": rule.sha256}


# --- Attempts --------------------------------------------------------------------------------------------
@transaction.atomic
def count_attempts(*, user_id: int, rules: Iterable[int], item: Item | None = None) -> None:
    """Record attempts to send blocked media."""
    locked = PictureRule.objects.select_for_update(no_key=True).filter(pk__in=set(rules)).order_by("pk")
    for rule in locked:
        PictureAttempt.objects.create(rule=rule, user_id=user_id, item_id=item.pk if item else None)
        PictureRule.objects.filter(pk=rule.pk).update(attempts=F("attempts") + 1, last_attempt_at=Now())
        own = PictureAttempt.objects.filter(rule=rule)
        own.filter(pk__lte=Subquery(own.order_by("-pk").values("pk")[ATTEMPTS : ATTEMPTS + 1])).delete()


def forget_attempts() -> int:
    """Delete attempts older than `LIFE`. Rules keep their totals."""
    total = 0
    while count := _delete_attempts(PictureAttempt.objects.filter(at__lt=Now() - LIFE), BATCH):
        total += count
    return total


def forget_user(*, user: User, limit: int) -> int:
    """Delete up to `limit` attempts of a deleted account."""
    return _delete_attempts(PictureAttempt.objects.filter(user=user), limit)


def _delete_attempts(attempts: Any, limit: int) -> int:
    return int(PictureAttempt.objects.filter(pk__in=attempts.order_by("at", "pk").values("pk")[:limit]).delete()[0])
