"""A user's own reports, for the export."""

from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from storage.connections import stream

REPORTS = """
    SELECT r.item_id::text, r.session_id::text, u.username, r.reason, coalesce(b.text, ''), r.text, r.created_at
    FROM moderation_report r LEFT JOIN about_rule b ON b.id = r.rule_id
        LEFT JOIN accounts_user u ON u.id = r.account_id
    WHERE r.reporter_id = %(reader)s ORDER BY r.id
"""


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
    rows = (ReportRow(*row) for row in stream(REPORTS, {"reader": reader.pk}))
    return [ExportFile("reports.jsonl", _("The reports you sent."), rows)]
