"""The queue of moderation in the admin, the lists of words and senders, the reports and the log."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME, ActionForm
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from accounts.models import User
from feedsite.admin import LogAdmin
from feedsite.paginator import EstimatedPaginator
from feedsite.rest import parse_id
from items.models import Status
from items.templatetags.reading import excerpt
from moderation import actions, rules, subjects
from moderation.models import (
    Case,
    Decision,
    Report,
    SenderKind,
    SenderRule,
    State,
    WordRule,
)
from relations.visibility import standing

AT_ONCE = 100
"""Cases that one action decides, one by one."""
SHOWN = 100
"""Reports, and lines of the log, on the page of a case."""
MARGIN = timedelta(seconds=2)
"""What was edited so shortly before a list was made may not be in it."""


def _count(rows: QuerySet[Any], field: str) -> Coalesce:
    """How many `rows` point at the listed one by `field`."""
    counted = rows.filter(**{field: OuterRef("pk")}).order_by().values(field).values(count=Count("pk"))
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def in_queue(cases: QuerySet[Case]) -> QuerySet[Case]:
    """The open cases of what would be seen if it were approved."""
    of_items = Q(item__sender__is_active=True) & ~Q(item__status=Status.DELETED)
    return cases.filter(of_items | Q(host__is_active=True), state=State.OPEN)


class StateFilter(admin.SimpleListFilter):
    """The queue unless something else is asked for."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "open, whatever became of the item"), *State.choices[1:], ("all", "all")]

    def choices(self, changelist: Any) -> Any:
        first, *rest = super().choices(changelist)
        return [{**first, "display": "waiting"}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Case]) -> QuerySet[Case]:
        if self.value() == "all":
            return queryset
        if self.value() in State.values:
            return queryset.filter(state=self.value())
        return in_queue(queryset)


class SeenForm(ActionForm):
    """Says since when the moderator has looked at the list."""

    seen = forms.CharField(
        required=False, label="", widget=forms.HiddenInput, initial=lambda: (timezone.now() - MARGIN).isoformat()
    )


@admin.register(Case)
class CaseAdmin(LogAdmin):
    """The queue, oldest first. A case's page shows all that a decision needs, and takes it."""

    list_display = ("excerpt", "sender", "why", "report_count", "opened")
    list_filter = (StateFilter, "source")
    list_select_related = ("item__sender", "host", "decided_by")
    ordering = ("id",)
    sortable_by = ("opened",)
    search_fields = ("item__id",)
    search_help_text = "The id of an item or a live session, or the whole name of its sender."
    actions = ("approve", "reject", "ban")
    action_form = SeenForm

    # --- What is listed
    def get_queryset(self, request: HttpRequest) -> QuerySet[Case]:
        cases: QuerySet[Case] = super().get_queryset(request)
        return cases.annotate(report_count=_count(Report.objects.all(), "case"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Case], search_term: str
    ) -> tuple[QuerySet[Case], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        senders = User.objects.named(term.removeprefix("@"))
        of = list(senders.values_list("pk", flat=True))
        found = Q(item__sender__in=of) | Q(host__in=of)
        if number := parse_id(term):
            found |= Q(item=number) | Q(session_id=number)
        return queryset.filter(found), False

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """In the queue itself all are open."""
        return (*self.list_display, "state", "decided_by") if "state" in request.GET else self.list_display

    @admin.display(description="waiting", ordering="pk")
    def opened(self, case: Case) -> str:
        return timesince(case.opened_at, case.decided_at, depth=1)

    @admin.display(description="item")
    def excerpt(self, case: Case) -> str:
        if case.item:
            said = rules.said(case.item)
        else:
            subject = subjects.of(case)
            said = f"Live: {subject.title}" if subject else "(a live session that is gone)"
        return excerpt(said, 80) or "(nothing)"

    @admin.display(description="sender")
    def sender(self, case: Case) -> str:
        return str(case.sender.username)

    @admin.display(description="why")
    def why(self, case: Case) -> str:
        return excerpt("; ".join(case.reasons) or "reports", 80)

    @admin.display(description="reports")
    def report_count(self, case: Any) -> int:
        return int(case.report_count)

    # --- Who may
    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("moderation.decide_case")

    def has_view_permission(self, request: HttpRequest, obj: Case | None = None) -> bool:
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    # --- Many at once
    @admin.action(description="Approve (publishes; dismisses reports)", permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Case]) -> None:
        self._each(request, queryset, "approve")

    @admin.action(description="Reject", permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Case]) -> None:
        self._each(request, queryset, "reject")

    @admin.action(description="Reject and ban the senders …", permissions=["decide"])
    def ban(self, request: HttpRequest, queryset: QuerySet[Case]) -> TemplateResponse | None:
        """Asks first."""
        if "confirmed" in request.POST:
            self._each(request, queryset, "ban")
            return None
        cases = list(queryset.select_related("item__sender", "host").order_by("pk")[:AT_ONCE])
        return self._ask(request, cases, {"action": "ban", ACTION_CHECKBOX_NAME: [case.pk for case in cases]})

    def _each(self, request: HttpRequest, queryset: QuerySet[Case], verb: str) -> None:
        cases = list(queryset.order_by("pk")[: AT_ONCE + 1])
        if len(cases) > AT_ONCE:
            self.message_user(request, f"At most {AT_ONCE} cases at once.", messages.ERROR)
            return
        seen = parse_datetime(request.POST.get("seen", "")) or timezone.now() - timedelta(days=36_500)
        decided = late = edited = staff = 0
        for case in cases:
            try:
                self._do(request, case, verb, State.OPEN, seen, "")
                decided += 1
            except actions.DecidedError:
                late += 1
            except actions.ChangedError:
                edited += 1
            except PermissionError:
                staff += 1
        done = {"approve": "approved", "reject": "rejected", "ban": "rejected, the sender banned"}[verb]
        self.message_user(request, f"{_plural(decided, 'case')} {done}.")
        for count, why in (
            (late, "had been decided meanwhile."),
            (edited, "not approved: edited since this list was made. Look again."),
            (staff, "not decided: the sender is staff."),
        ):
            if count:
                self.message_user(request, f"{_plural(count, 'case')} {why}", messages.WARNING)

    def _do(self, request: HttpRequest, case: Case, verb: str, state: str, seen: datetime, note: str) -> None:
        by = request.user
        assert isinstance(by, User)  # noqa: S101 (the admin lets nobody else in)
        if verb == "approve":
            actions.approve(case=case, by=by, note=note, state=state, modified_at=seen)
        elif verb == "reject":
            actions.reject(case=case, by=by, note=note, state=state)
        else:
            actions.reject_and_ban(case=case, by=by, note=note, state=state)

    def _ask(self, request: HttpRequest, cases: list[Case], fields: dict[str, Any]) -> TemplateResponse:
        senders = {case.sender.pk: case.sender for case in cases}
        context = self.admin_site.each_context(request) | {
            "title": "Reject and ban",
            "opts": self.opts,
            "cases": cases,
            "senders": list(senders.values()),
            "fields": [
                (name, one) for name, value in fields.items() for one in (value if isinstance(value, list) else [value])
            ],
        }
        return TemplateResponse(request, "admin/moderation/case/ban.html", context)

    # --- One
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of a case; what is posted to it is the decision."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        number = parse_id(object_id)
        case = Case.objects.select_related("item__sender", "host", "decided_by").filter(pk=number or 0).first()
        if case is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if request.method != "POST":
            return TemplateResponse(request, "admin/moderation/case/change_form.html", self._context(request, case))
        if not self.has_decide_permission(request):
            raise PermissionDenied
        return self._take(request, case)

    def _take(self, request: HttpRequest, case: Case) -> HttpResponse:
        verb, state, note = (request.POST.get(name, "") for name in ("verb", "state", "note"))
        seen = parse_datetime(request.POST.get("modified_at", ""))
        again = redirect("admin:moderation_case_change", case.pk)
        if verb not in ("approve", "reject", "ban", "unban") or seen is None:
            return again
        note = note.strip()[:500]
        if verb == "unban":
            actions.unban(user=case.sender, by=request.user, reason=note)  # type: ignore[arg-type]
            self.message_user(request, f"Back again: {case.sender}.", messages.SUCCESS)
            return again
        if verb == "ban" and "confirmed" not in request.POST:
            fields = {"verb": verb, "state": state, "note": note, "modified_at": request.POST["modified_at"]}
            return self._ask(request, [case], fields)
        try:
            self._do(request, case, verb, state, seen, note)
        except actions.DecidedError as error:
            who = error.case.decided_by or "nobody"
            self.message_user(request, f"Decided meanwhile by {who}: {error.case.state}.", messages.ERROR)
            return again
        except actions.ChangedError:
            self.message_user(request, "The post was edited meanwhile. Look at it again.", messages.ERROR)
            return again
        except PermissionError:
            self.message_user(request, "The sender is staff, and is not banned here.", messages.ERROR)
            return again
        done = {"approve": "Approved", "reject": "Rejected", "ban": f"Rejected, and {case.sender} banned"}[verb]
        following = in_queue(Case.objects.filter(pk__gt=case.pk)).order_by("pk").first()
        if following is None or state != State.OPEN:
            self.message_user(request, f"{done}.", messages.SUCCESS)
            return redirect("admin:moderation_case_changelist") if state == State.OPEN else again
        self.message_user(request, f"{done}. This is the next.", messages.SUCCESS)
        return redirect("admin:moderation_case_change", following.pk)

    def _context(self, request: HttpRequest, case: Case) -> dict[str, Any]:
        item, sender, subject = case.item, case.sender, subjects.of(case)
        hits = list(case.words.values_list("text", "whole"))
        earlier = Case.objects.filter(Q(item__sender=sender) | Q(host=sender)).exclude(pk=case.pk)
        log = Decision.objects.filter(item=item) if item else Decision.objects.filter(session_id=case.session_id)
        return self.admin_site.each_context(request) | {
            "title": f"Case {case.pk}",
            "opts": self.opts,
            "case": case,
            "item": item,
            "subject": subject,
            "sender": sender,
            "followers": standing(sender, AnonymousUser()).followers,
            "listed": SenderRule.objects.filter(user=sender).first(),
            "earlier": dict(earlier.order_by().values_list("state").annotate(Count("pk"))),
            "item_title": rules.with_hits(subject.title if subject else "", hits),
            "item_text": rules.with_hits(subject.text if subject else "", hits),
            "reports": case.reports.select_related("reporter").order_by("pk")[:SHOWN],
            "log": log.select_related("by").order_by("-pk")[:SHOWN],
            "may_decide": self.has_decide_permission(request),
            "modified_at": (subject.modified_at if subject else timezone.now()).isoformat(),
            "is_edited": subject is not None and subject.modified_at - subject.created_at > timedelta(seconds=1),
            "previous": in_queue(Case.objects.filter(pk__lt=case.pk)).order_by("-pk").first(),
            "following": in_queue(Case.objects.filter(pk__gt=case.pk)).order_by("pk").first(),
        }


@admin.register(Report)
class ReportAdmin(LogAdmin):
    list_display = ("created_at", "item_id", "session_id", "reporter", "reason", "text", "of_case")
    list_filter = ("reason",)
    list_select_related = ("reporter", "case")
    search_fields = ("=item__id", "=session_id", "=reporter__username")
    search_help_text = "The id of an item or a live session, or the whole name of who reported it."

    @admin.display(description="case")
    def of_case(self, report: Report) -> SafeString:
        address = reverse("admin:moderation_case_change", args=[report.case_id])
        return format_html('<a href="{}">{}</a>', address, report.case.state)


@admin.register(Decision)
class DecisionAdmin(LogAdmin):
    """The audit log."""

    list_display = ("at", "who", "verb", "item_id", "session_id", "user", "note")
    list_filter = ("verb",)
    list_select_related = ("by", "user")
    sortable_by = ("at",)
    search_fields = ("=item__id", "=session_id", "=by__username", "=user__username")
    search_help_text = "The id of an item or a live session, or the whole name of a moderator or a user."

    @admin.display(description="by")
    def who(self, decision: Decision) -> str:
        return decision.by.username if decision.by else "(the site)"


@admin.register(SenderRule)
class SenderRuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """The black and the white list."""

    list_display = ("user", "kind", "reason", "by", "created_at", "is_active")
    list_filter = ("kind",)
    list_select_related = ("user", "by")
    search_fields = ("=user__username",)
    search_help_text = "The whole name of a user."
    autocomplete_fields = ("user",)
    ordering = ("-id",)
    show_full_result_count = False
    paginator = EstimatedPaginator
    actions = ("unban",)

    @admin.display(description="active", boolean=True)
    def is_active(self, rule: SenderRule) -> bool:
        return rule.user.is_active

    def get_readonly_fields(self, request: HttpRequest, obj: SenderRule | None = None) -> tuple[str, ...]:
        return ("user",) if obj else ()

    def has_unban_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("moderation.decide_case")

    def save_model(self, request: HttpRequest, obj: SenderRule, form: Any, change: bool) -> None:
        obj.pk = actions.list_sender(user=obj.user, kind=obj.kind, by=request.user, reason=obj.reason).pk  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: SenderRule) -> None:
        actions.unlist_sender(user=obj.user, by=request.user)  # type: ignore[arg-type]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SenderRule]) -> None:
        for rule in queryset.select_related("user"):
            self.delete_model(request, rule)

    @admin.action(description="Unban (off the black list, active again)", permissions=["unban"])
    def unban(self, request: HttpRequest, queryset: QuerySet[SenderRule]) -> None:
        users = [rule.user for rule in queryset.filter(kind=SenderKind.BLACK).select_related("user")]
        back = sum(actions.unban(user=user, by=request.user) for user in users)  # type: ignore[arg-type]
        self.message_user(request, f"{_plural(back, 'user')} back.")


class ManyWordsForm(forms.Form):
    words = forms.CharField(widget=forms.Textarea(attrs={"rows": 15, "cols": 60}), help_text="One a line.")
    whole = forms.BooleanField(label="Whole words only", required=False, initial=True)
    note = forms.CharField(max_length=200, required=False)

    def clean_words(self) -> list[str]:
        lines = self.cleaned_data["words"].splitlines()
        return [line.strip() for line in lines if line.strip()]


@admin.register(WordRule)
class WordRuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """The list of words. A change is in force for whatever is published from then on."""

    list_display = ("text", "whole", "is_enabled", "note", "hits")
    list_filter = ("is_enabled", "whole")
    search_fields = ("text", "note")
    ordering = ("text",)
    show_full_result_count = False
    paginator = EstimatedPaginator
    actions = ("enable", "disable")

    def get_queryset(self, request: HttpRequest) -> QuerySet[WordRule]:
        words: QuerySet[WordRule] = super().get_queryset(request)
        return words.annotate(hits=_count(Case.words.through._default_manager.all(), "wordrule"))

    @admin.display(description="held")
    def hits(self, rule: Any) -> int:
        """Cases that it opened or joined."""
        return int(rule.hits)

    def get_urls(self) -> list[URLPattern]:
        many = path("many/", self.admin_site.admin_view(self.many_view), name="moderation_wordrule_many")
        return [many, *super().get_urls()]

    def many_view(self, request: HttpRequest) -> HttpResponse:
        """Add many words at once; all or none."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ManyWordsForm(request.POST or None)
        if form.is_valid():
            fields = form.cleaned_data
            try:
                new = actions.add_words(
                    texts=fields["words"],
                    whole=fields["whole"],
                    note=fields["note"],
                    by=request.user,  # type: ignore[arg-type]
                )
            except ValidationError as error:
                form.add_error("words", error.messages)
            else:
                known = len(set(fields["words"])) - new
                self.message_user(request, f"{_plural(new, 'word')} added, {known} known already.", messages.SUCCESS)
                return redirect("admin:moderation_wordrule_changelist")
        context = self.admin_site.each_context(request) | {"title": "Add words", "opts": self.opts, "form": form}
        return TemplateResponse(request, "admin/moderation/wordrule/many.html", context)

    def save_model(self, request: HttpRequest, obj: WordRule, form: Any, change: bool) -> None:
        actions.put_word(rule=obj, by=request.user)  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: WordRule) -> None:
        actions.drop_word(rule=obj, by=request.user)  # type: ignore[arg-type]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WordRule]) -> None:
        for rule in queryset:
            self.delete_model(request, rule)

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[WordRule]) -> None:
        self._set(request, queryset, True)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[WordRule]) -> None:
        self._set(request, queryset, False)

    def _set(self, request: HttpRequest, queryset: QuerySet[WordRule], is_enabled: bool) -> None:
        changed = list(queryset.exclude(is_enabled=is_enabled))
        for rule in changed:
            rule.is_enabled = is_enabled
            actions.put_word(rule=rule, by=request.user)  # type: ignore[arg-type]
        self.message_user(request, f"{_plural(len(changed), 'word')} {'enabled' if is_enabled else 'disabled'}.")
