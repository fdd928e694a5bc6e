from collections.abc import Mapping

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from accounts import review
from accounts.about.site import current
from accounts.callers import authenticated_user
from items.models import Item
from moderation import appeals, reports
from moderation.decisions import KINDS, appeal_of, decisions_page, rule_text
from moderation.models import APPEAL_LENGTH, REPORT_LENGTH, ReportReason, Verb
from moderation.models import Appeal as AppealRow
from moderation.models import Decision as DecisionRow
from relations.visibility import visible_user
from storage.paging import as_text
from web.rest import ApiView, FeedResponse, IdField, Problem, StrictSerializer, TextField, body
from web.times import Time


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


class Appeal(msgspec.Struct):
    """An appeal. The state is `waiting`, `accepted` or `rejected`."""

    text: str
    state: str
    answer: str
    created_at: Time

    @classmethod
    def of(cls, row: AppealRow) -> "Appeal":
        return cls(row.text, row.state, row.answer, row.created_at)


class Decision(msgspec.Struct):
    """What moderators did: `removal` (of a post or live session), `pictures`, `session_end`, `warning`, `limit` (they
    review all posts first) or `suspension`. `item`: the id of the post. `until`: null if there is no end.
    """

    id: str
    kind: str
    rule: str | None
    text: str
    item: str | None
    until: Time | None
    created_at: Time
    appeal: Appeal | None

    @classmethod
    def of(cls, row: DecisionRow) -> "Decision":
        appeal = appeal_of(row)
        return cls(
            str(row.pk),
            KINDS[Verb(row.verb)],
            rule_text(row) or None,
            row.text,
            as_text(row.item_id),
            row.until,
            row.at,
            Appeal.of(appeal) if appeal else None,
        )


class DecisionPage(msgspec.Struct):
    """Decisions, newest first."""

    items: list[Decision]
    last_id: str | None
    has_more: bool


class NewAppeal(StrictSerializer):
    """An appeal against a decision."""

    text = TextField(max_length=APPEAL_LENGTH)


class DecisionsView(ApiView):
    scopes = "accounts"
    pages_of = DecisionPage

    @extend_schema(operation_id="list_decisions")
    def get(self, request: Request) -> HttpResponse:
        """What moderators decided about you and your posts."""
        page = decisions_page(authenticated_user(request), **self.bounds)
        return FeedResponse(
            DecisionPage([Decision.of(row) for row in page.shown], as_text(page.last_id), page.has_more)
        )


class AppealView(ApiView):
    scopes = "accounts"
    rates: Mapping[str, str] = {"POST": "appeal"}

    @extend_schema(
        operation_id="appeal",
        request=NewAppeal,
        responses={
            201: Appeal,
            409: OpenApiResponse(Problem, "Appealed before (the code is `appealed`), or after 30 days (`too_late`)."),
        },
    )
    def post(self, request: Request, decision_id: int) -> HttpResponse:
        """Appeal a decision about you, once, within 30 days."""
        user, text = authenticated_user(request), body(request, NewAppeal)["text"]
        row = appeals.appeal(user=user, decision_id=decision_id, text=text)
        row.refresh_from_db()
        return FeedResponse(Appeal.of(row), status=201)
