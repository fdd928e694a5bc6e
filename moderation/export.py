"""What moderation adds to a user's own data: what they reported. Who reported them is nobody's to know."""

from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from storage.connections import stream

REPORTS = """
    SELECT item_id::text, session_id::text, reason, text, created_at FROM moderation_report
    WHERE reporter_id = %(reader)s ORDER BY id
"""


class ReportRow(msgspec.Struct):
    item_id: str | None
    session_id: str | None
    reason: str
    text: str
    reported_at: datetime


def files(reader: User) -> list[ExportFile]:
    rows = (ReportRow(*row) for row in stream(REPORTS, {"reader": reader.pk}))
    return [ExportFile("reports.jsonl", _("what you reported"), rows)]
