from collections.abc import Mapping

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from accounts import review
from accounts.about.site import current
from accounts.callers import authenticated_user
from items.models import Item
from moderation import reports
from moderation.models import REPORT_LENGTH, ReportReason
from relations.visibility import visible_user
from web.rest import ApiView, IdField, StrictSerializer, TextField, body


class NewReport(StrictSerializer):
    """A report of an item, live session or account. Its author does not learn who reported it."""

    reason = serializers.ChoiceField(ReportReason.choices)
    text = TextField(max_length=REPORT_LENGTH, allow_blank=True, default="")
    rule = IdField(required=False, allow_null=True, help_text="The id of a rule of the site (`read_site`).")

    def validate_rule(self, rule: int | None) -> int | None:
        """Raise ValidationError for a rule not in force."""
        if rule is not None and rule not in {each.id for each in current().rules}:
            raise serializers.ValidationError("Unknown rule.")
        return rule


class ReportView(ApiView):
    scopes = "reports"
    rates: Mapping[str, str] = {"POST": "report"}

    @extend_schema(operation_id="report", request=NewReport, responses={204: None})
    def post(self, request: Request, item_id: int) -> HttpResponse:
        """Report an item, or a repost's original. Repeating the call changes nothing."""
        reporter = authenticated_user(request)
        item = Item.objects.visible_to(reporter).get(pk=item_id)
        fields = body(request, NewReport)
        reports.report(item=item, reporter=reporter, **fields)
        return HttpResponse(status=204)


class AccountReportView(ApiView):
    scopes = "reports"
    rates: Mapping[str, str] = {"POST": "report"}

    @extend_schema(operation_id="report_user", request=NewReport, responses={204: None})
    def post(self, request: Request, username: str) -> HttpResponse:
        """Report an account. Repeating before a decision changes nothing."""
        reporter = authenticated_user(request)
        account = visible_user(username, reporter)
        fields = body(request, NewReport)
        reports.report_account(account=account, reporter=reporter, **fields)
        return HttpResponse(status=204)


class SessionReportView(ApiView):
    scopes = "reports"
    rates: Mapping[str, str] = {"POST": "report"}

    @extend_schema(operation_id="report_live_session", request=NewReport, responses={204: None})
    def post(self, request: Request, session_id: int) -> HttpResponse:
        """Report a live session. Repeating the call changes nothing."""
        reporter = authenticated_user(request)
        if review.sessions.seen(session_id, reporter) is None:
            raise exceptions.NotFound
        fields = body(request, NewReport)
        reports.report_session(session_id=session_id, reporter=reporter, **fields)
        return HttpResponse(status=204)
