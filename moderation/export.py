"""A user's own reports, for the export."""

from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from moderation.models import Report


class ReportRow(msgspec.Struct):
    """A report by the user."""

    item_id: str | None
    session_id: str | None
    account: str | None
    reason: str
    rule: str
    text: str
    reported_at: datetime


def files(reader: User) -> list[ExportFile]:
    """The export's files."""
    columns = ("item_id", "session_id", "account__username", "reason", "rule__text", "text", "created_at")
    reports = Report.objects.filter(reporter=reader).order_by("pk").values_list(*columns)
    rows = (
        ReportRow(str(item or "") or None, str(session or "") or None, account, reason, rule or "", text, at)
        for item, session, account, reason, rule, text, at in reports.iterator()
    )
    return [ExportFile("reports.jsonl", _("The reports you sent."), rows)]
