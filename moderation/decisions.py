"""Decisions that their subjects can read: what was done, by which rule, and why. Never by whom.

See docs/decisions.md: A decision is a row that its subject reads.
"""

from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy

from accounts import addresses
from accounts.models import User
from accounts.signing_in.suspension import Suspension
from items.models import Item, Status
from items.pages.reading import excerpt, full_time
from moderation.log import log_decision
from moderation.models import GROUNDS_LENGTH, Appeal, Decision, SenderKind, SenderRule, Verb
from notifications import actions as notifications
from storage.paging import Part, below, part_of

ABOUT_LETTERS = 200
"""Most characters of the text in question that a notification quotes."""
APPEAL_LIFE = timedelta(days=30)
"""How long a decision can be appealed."""

KINDS = {
    Verb.REJECT: "removal",
    Verb.HIDE: "pictures",
    Verb.END: "session_end",
    Verb.WARN: "warning",
    Verb.LIST: "limit",
    Verb.BAN: "suspension",
}
"""Decisions that are told, and their names in the API."""
SENTENCES = {
    Verb.HIDE: gettext_lazy("Pictures removed"),
    Verb.END: gettext_lazy("Live session ended"),
    Verb.WARN: gettext_lazy("Warning"),
    Verb.LIST: gettext_lazy("Posts reviewed before others see them"),
    Verb.BAN: gettext_lazy("Account suspended"),
}
REMOVED = gettext_lazy("Post removed"), gettext_lazy("Live session removed")


class Grounds(NamedTuple):
    """What the subject reads about a decision: the moderators' words, and a rule of the site."""

    text: str = ""
    rule_id: int | None = None


NONE = Grounds()


def log_for_subject(
    by: User | None,
    verb: Verb,
    *,
    grounds: Grounds,
    item: Item | None = None,
    user: User | None = None,
    until: datetime | None = None,
    about: str = "",
    **fields: Any,
) -> Decision:
    """Log a decision, and notify its subject, in the transaction of the act. A suspended one gets a letter, too.

    `about`: the text in question.
    """
    subject = user or (item.sender if item else None)
    assert subject is not None  # noqa: S101 (such a decision is about somebody)
    text = grounds.text[:GROUNDS_LENGTH]
    decision = log_decision(
        by, verb, item=item, user=subject, is_told=True, rule_id=grounds.rule_id, text=text, until=until, **fields
    )
    if verb == Verb.HIDE and item:
        notifications.notify_of_pictures(item=item, decision_id=decision.pk, text=text)
        return decision
    detail = "reject_session" if verb == Verb.REJECT and item is None else verb.value
    about = " ".join(about.split())
    quoted = f"“{excerpt(about, ABOUT_LETTERS)}”" if about else ""
    words = "\n".join(filter(None, (text, quoted)))
    notifications.notify_of_decision(user=subject, decision_id=decision.pk, detail=detail, text=words)
    if verb == Verb.BAN:
        _send_letter(decision, subject)
    return decision


def _send_letter(decision: Decision, user: User) -> None:
    with translation.override(user.language or translation.get_language()):
        until = full_time(decision.until) if decision.until else ""
    addresses.send_notice(user, "suspended", until=until, rule=rule_text(decision), reason=decision.text)


def decisions_about(user: User) -> QuerySet[Decision]:
    """The decisions that the user reads, newest first."""
    told = Decision.objects.filter(user=user, is_told=True).select_related("rule", "appeal", "item")
    return told.order_by("-pk")


def newest_about(user: User, verb: Verb) -> Decision | None:
    """The user's newest decision of a kind."""
    return decisions_about(user).filter(verb=verb).first()


def kind_text(decision: Decision) -> str:
    """What was done, in a few words."""
    if decision.verb == Verb.REJECT:
        return str(REMOVED[decision.item_id is None])
    return str(SENTENCES[Verb(decision.verb)])


def rule_text(decision: Decision) -> str:
    """The rule of the site that was broken, or ""."""
    return decision.rule.text if decision.rule else ""


def appeal_of(decision: Decision) -> Appeal | None:
    """The decision's appeal."""
    return getattr(decision, "appeal", None)


def may_appeal(decision: Decision) -> bool:
    """Whether an appeal is still possible."""
    return appeal_of(decision) is None and timezone.now() - decision.at <= APPEAL_LIFE


class ShownDecision(NamedTuple):
    """A decision for its subject's pages."""

    id: int
    title: str
    rule: str
    text: str
    until: datetime | None
    at: datetime
    item_id: int | None
    """Of a post that its sender can open."""
    appeal: Appeal | None
    may_appeal: bool


def shown(decision: Decision) -> ShownDecision:
    """A decision for its subject's pages."""
    item = decision.item if decision.item and decision.item.status != Status.DELETED else None
    return ShownDecision(
        decision.pk,
        kind_text(decision),
        rule_text(decision),
        decision.text,
        decision.until,
        decision.at,
        item.pk if item else None,
        appeal_of(decision),
        may_appeal(decision),
    )


def decisions_page(user: User, *, last_id: int | None, limit: int, item_id: int | None = None) -> Part[Decision]:
    """The decisions below `last_id`, perhaps about one item alone."""
    rows = decisions_about(user).filter(pk__lt=below(last_id))
    if item_id is not None:
        rows = rows.filter(item=item_id)
    return part_of(list(rows[: limit + 1]), limit, attrgetter("pk"))


def suspension_of(user: User) -> Suspension | None:
    """The user's suspension, with its decision."""
    rule = SenderRule.objects.filter(user=user, kind=SenderKind.BAN).first()
    if rule is None:
        return None
    decision = newest_about(user, Verb.BAN)
    if decision is None:
        return Suspension("", "", rule.until, None)
    return Suspension(rule_text(decision), decision.text, rule.until, decision.pk)
