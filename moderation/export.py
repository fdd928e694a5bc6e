"""A user's own reports, and the decisions about them, for the export."""

from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from moderation.decisions import KINDS, appeal_of, decisions_about, rule_text
from moderation.models import Decision, Report, Verb


class ReportRow(msgspec.Struct):
    """A report by the user."""

    item_id: str | None
    session_id: str | None
    account: str | None
    reason: str
    rule: str
    text: str
    reported_at: datetime


class DecisionRow(msgspec.Struct):
    """A decision of moderators about the user."""

    id: str
    kind: str
    rule: str
    text: str
    item_id: str | None
    session_id: str | None
    until: datetime | None
    decided_at: datetime
    appeal: str
    appeal_state: str
    answer: str


def files(reader: User) -> list[ExportFile]:
    """The export's files."""
    columns = ("item_id", "session_id", "account__username", "reason", "rule__text", "text", "created_at")
    reports = Report.objects.filter(reporter=reader).order_by("pk").values_list(*columns)
    rows = (
        ReportRow(str(item or "") or None, str(session or "") or None, account, reason, rule or "", text, at)
        for item, session, account, reason, rule, text, at in reports.iterator()
    )
    decisions = (_row(decision) for decision in decisions_about(reader).order_by("pk").iterator())
    return [
        ExportFile("reports.jsonl", _("The reports you sent."), rows),
        ExportFile("decisions.jsonl", _("What moderators decided about you, and your appeals."), decisions),
    ]


def _row(decision: Decision) -> DecisionRow:
    appeal = appeal_of(decision)
    return DecisionRow(
        str(decision.pk),
        KINDS[Verb(decision.verb)],
        rule_text(decision),
        decision.text,
        str(decision.item_id or "") or None,
        str(decision.session_id or "") or None,
        decision.until,
        decision.at,
        appeal.text if appeal else "",
        appeal.state if appeal else "",
        appeal.answer if appeal else "",
    )
