from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.about import site
from accounts.models import User
from clientapi.accounts.people import accounts_of
from clientapi.entities import Account, time_text
from clientapi.errors import ClientView, InvalidError, caller_of
from clientapi.params import Params
from items.models import Item
from moderation import reports
from moderation.models import REPORT_LENGTH, ReportReason
from relations.visibility import users_visible_to
from web.rest import FeedResponse, count_call

REPORTED = 20
"""Maximum statuses per report."""
REASONS = {"spam": ReportReason.SPAM, "legal": ReportReason.ILLEGAL}
CATEGORIES = frozenset({"spam", "legal", "violation", "other"})


class ReportBody(msgspec.Struct):
    """Mastodon's Report. It does not tell the outcome."""

    id: str
    action_taken: bool
    action_taken_at: str | None
    category: str
    comment: str
    forwarded: bool
    created_at: str
    status_ids: list[str]
    rule_ids: list[str]
    target_account: Account
    collection_ids: list[str] = []


class ReportsView(ClientView):
    scopes = "reports"
    rates: Mapping[str, str] = {"POST": "report"}

    def post(self, request: Request) -> HttpResponse:
        """Report an account, or statuses of it, each status as its own report."""
        reporter, params = caller_of(request), Params(request)
        account = params.id("account_id")
        target = users_visible_to(reporter).get(pk=account or 0)
        items = _reported(params, target.pk, reporter)
        if len(items) > 1:  # the site's own address takes one item per call
            count_call(self.rates["POST"], str(reporter.pk), len(items) - 1)
        category = params.choice("category", CATEGORIES, default="other")
        reason = REASONS.get(category, ReportReason.OTHER)
        rules = _rules(params)
        first, further = next(iter(rules), None), _further_rules(rules[1:])
        comment = params.text("comment", most=REPORT_LENGTH - len(further))
        fields: dict[str, Any] = {"reason": reason, "text": comment + further, "rule": first}
        if not items:
            reports.report_account(account=target, reporter=reporter, **fields)
        for item in items:
            reports.report(item=item, reporter=reporter, **fields)
        body = ReportBody(
            id=str(items[0].pk if items else target.pk),
            action_taken=False,
            action_taken_at=None,
            category=category,
            comment=comment,
            forwarded=False,
            created_at=time_text(datetime.now(UTC)),
            status_ids=[str(item.pk) for item in items],
            rule_ids=[str(rule) for rule in rules],
            target_account=accounts_of([target])[0],
        )
        return FeedResponse(body)


def _reported(params: Params, target_id: int, reporter: User) -> list[Item]:
    ids = params.ids("status_ids", most=REPORTED)
    items = list(Item.objects.visible_to(reporter).filter(pk__in=ids, sender=target_id))
    if len(items) < len(ids):
        raise exceptions.NotFound
    return items


def _rules(params: Params) -> list[int]:
    known = {rule.id for rule in site.current().rules}
    rules = params.ids("rule_ids", most=len(known) + 1)
    if not known.issuperset(rules):
        raise InvalidError("Validation failed: There is no such rule")
    return rules


def _further_rules(rules: list[int]) -> str:
    """The numbers of further rules, for the text: a report has one rule."""
    numbers = [str(rule.number) for rule in site.current().rules if rule.id in rules]
    return f"\n+ {', '.join(numbers)}" if numbers else ""
