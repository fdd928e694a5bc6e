"""The queue of moderation in the admin, users as moderators see them, the lists of words and senders, the reports and
the log.
"""

from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME, ActionForm
from django.contrib.admin.views.main import ChangeList
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
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from accounts import review
from accounts.big_v_admin import handle_column
from accounts.models import User
from accounts.review import Subject
from accounts.templatetags.people import full_name_of, handle_of
from items.models import Status
from items.templatetags.reading import excerpt
from moderation import actions, by_hand, rules, sentences, subjects
from moderation.models import (
    Case,
    Decision,
    Report,
    SenderKind,
    SenderRule,
    State,
    WordRule,
)
from relations.admin import CountedUserAdmin
from relations.visibility import standing
from web.admin import ActingAdmin, LogAdmin, ask, counted
from web.paginator import EstimatedPaginator
from web.rest import parse_id

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


def in_queue(cases: QuerySet[Case]) -> QuerySet[Case]:
    """The open cases of what would be seen if it were approved.

    See docs/decisions.md: An open case is a state, and the queue is a query.
    """
    of_items = Q(item__sender__is_active=True) & ~Q(item__status=Status.DELETED)
    return cases.filter(of_items | Q(item=None, host__is_active=True), state=State.OPEN)


class StateFilter(admin.SimpleListFilter):
    """The queue unless something else is asked for."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, and all cases."""
        return [("open", _("open, also of what is gone")), *State.choices[1:], ("all", _("all"))]

    def choices(self, changelist: Any) -> Any:
        """The choices; the first is the queue."""
        first, *rest = super().choices(changelist)
        return [{**first, "display": _("waiting")}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Case]) -> QuerySet[Case]:
        """The cases in the chosen state; without a choice those in the queue."""
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


class QueuePaginator(EstimatedPaginator):
    """Whether a case waits is asked of its item and of its sender, so fewer are counted."""

    exact_up_to = 1_000


class CaseList(ChangeList):
    """The cases of a page, with what those of live sessions are about by one question."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page of cases, and the sessions of all of them at once."""
        super().get_results(request)
        self.result_list = cases = list(self.result_list)
        found = review.sessions.find([case.session_id for case in cases if case.session_id])
        for case in cases:
            case.session = found.get(case.session_id)


@admin.register(Case)
class CaseAdmin(LogAdmin):
    """The queue, oldest first. A case's page shows all that a decision needs, and takes it."""

    paginator = QueuePaginator
    list_display = ("excerpt", "sender", "why", "report_count", "opened")
    list_filter = (StateFilter, "source")
    list_select_related = ("item__sender", "host", "decided_by")
    ordering = ("id",)
    sortable_by = ("opened",)
    search_fields = ("item__id",)
    search_help_text = _("The id of an item or a live session, or the whole name of its sender.")
    actions = ("approve", "reject", "ban")
    action_form = SeenForm

    # --- Columns
    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that reads sessions at once."""
        return CaseList

    def get_urls(self) -> list[URLPattern]:
        """The admin's own addresses, and that of acting by hand."""
        act = path("act/", self.admin_site.admin_view(self.act_view), name="moderation_case_act")
        return [act, *super().get_urls()]

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """What moderators do without a report."""
        return by_hand.act(request, self.admin_site)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Case]:
        """The cases with the number of their reports."""
        cases: QuerySet[Case] = super().get_queryset(request)
        return cases.annotate(report_count=_count(Report.objects.all(), "case"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Case], search_term: str
    ) -> tuple[QuerySet[Case], bool]:
        """The cases of a sender, or of the item or session of an id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        senders = User.objects.named(term.removeprefix("@"))
        of = list(senders.values_list("pk", flat=True))
        found = Q(host__in=of)
        if number := parse_id(term):
            found |= Q(item=number) | Q(session_id=number)
        return queryset.filter(found), False

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """In the queue itself all are open."""
        return (*self.list_display, "state", "decided_by") if "state" in request.GET else self.list_display

    @admin.display(description=_("waiting"), ordering="pk")
    def opened(self, case: Case) -> str:
        """How long the case has been open, or was, for people."""
        return timesince(case.opened_at, case.decided_at, depth=1)

    @admin.display(description=_("item"))
    def excerpt(self, case: Any) -> str:
        """The beginning of the text that the case is about."""
        if case.item:
            return excerpt(rules.said(case.item), 80) or gettext("(nothing)")
        subject: Subject | None = case.session
        if subject is None:
            return gettext("(a live session that is gone)")
        return gettext("Live: %(title)s") % {"title": excerpt(subject.title, 80)}

    @admin.display(description=_("sender"))
    def sender(self, case: Case) -> SafeString:
        """The sender, with a link."""
        return handle_of(case.sender)

    @admin.display(description=_("why"))
    def why(self, case: Case) -> str:
        """The reasons that opened the case, as a sentence."""
        return excerpt("; ".join(map(sentences.explained, case.reasons)) or gettext("reports"), 80)

    @admin.display(description=_("reports"))
    def report_count(self, case: Any) -> int:
        """The number of reports of the case."""
        return int(case.report_count)

    # --- Permissions
    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether the request may decide cases."""
        return request.user.has_perm("moderation.decide_case")

    def has_view_permission(self, request: HttpRequest, obj: Case | None = None) -> bool:
        """Whether the request may see cases; the permission to decide them is enough."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    # --- Many at once
    @admin.action(description=_("Approve (publishes; dismisses reports)"), permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Case]) -> None:
        """Approve the chosen cases."""
        self._each(request, queryset, "approve")

    @admin.action(description=_("Reject"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Case]) -> None:
        """Reject the chosen cases."""
        self._each(request, queryset, "reject")

    @admin.action(description=_("Reject and ban the senders …"), permissions=["decide"])
    def ban(self, request: HttpRequest, queryset: QuerySet[Case]) -> TemplateResponse | None:
        """Asks first."""
        if "confirmed" in request.POST:
            self._each(request, queryset, "ban")
            return None
        cases = list(queryset.select_related("item__sender", "host").order_by("pk")[:AT_ONCE])
        able = [case for case in cases if actions.may_be_banned(case.sender, request.user)]  # type: ignore[arg-type]
        if len(able) < len(cases):
            self.message_user(request, counted(_staff, len(cases) - len(able)), messages.WARNING)
        if not able:
            return None
        cases = able
        fields = [("action", "ban"), *((ACTION_CHECKBOX_NAME, case.pk) for case in cases)]
        return self._ask(request, cases, fields)

    def _each(self, request: HttpRequest, queryset: QuerySet[Case], verb: str) -> None:
        cases = list(queryset.order_by("pk")[: AT_ONCE + 1])
        if len(cases) > AT_ONCE:
            words = gettext("Nothing was done: these are more than %(count)s, the most that are changed at once.")
            self.message_user(request, words % {"count": AT_ONCE}, messages.ERROR)
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
        if decided:
            self.message_user(request, counted(DONE[verb], decided), messages.SUCCESS)
        for count, why in ((late, _late), (edited, _edited), (staff, _staff)):
            if count:
                self.message_user(request, counted(why, count), messages.WARNING)

    def _do(self, request: HttpRequest, case: Case, verb: str, state: str, seen: datetime, note: str) -> None:
        by = request.user
        assert isinstance(by, User)  # noqa: S101 (the admin lets no strangers in)
        if verb == "approve":
            actions.approve(case=case, by=by, note=note, state=state, modified_at=seen)
        elif verb == "reject":
            actions.reject(case=case, by=by, note=note, state=state)
        else:
            actions.reject_and_ban(case=case, by=by, note=note, state=state)

    def _ask(self, request: HttpRequest, cases: list[Case], fields: list[tuple[str, Any]]) -> TemplateResponse:
        senders = {case.sender.pk: case.sender for case in cases}
        rejected = counted(
            lambda n: ngettext("%(count)s case will be rejected", "%(count)s cases will be rejected", n), len(cases)
        )
        banned = counted(
            lambda n: ngettext(
                "and %(count)s sender banned: they are signed out, and their profiles and posts are hidden until the "
                "ban is lifted.",
                "and %(count)s senders banned: they are signed out, and their profiles and posts are hidden until the "
                "ban is lifted.",
                n,
            ),
            len(senders),
        )
        return ask(
            self.admin_site,
            request,
            self.opts,
            title=gettext("Reject and ban"),
            meaning=f"{rejected} {banned}",
            button=gettext("Reject and ban"),
            lines=[full_name_of(sender) for sender in senders.values()],
            fields=fields,
        )

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
            name = {"user": f"@{case.sender.username}"}
            if actions.unban(user=case.sender, by=request.user, reason=note):  # type: ignore[arg-type]
                self.message_user(request, gettext("The ban of %(user)s was lifted.") % name, messages.SUCCESS)
            else:
                self.message_user(request, gettext("%(user)s was not banned any more.") % name, messages.WARNING)
            return again
        if verb == "ban" and "confirmed" not in request.POST:
            fields = {"verb": verb, "state": state, "note": note, "modified_at": request.POST["modified_at"]}
            return self._ask(request, [case], list(fields.items()))
        try:
            self._do(request, case, verb, state, seen, note)
        except actions.DecidedError as error:
            other = error.case.decided_by
            words = gettext("Decided meanwhile by %(user)s: %(state)s.")
            facts = {"user": other.username if other else "-", "state": error.case.get_state_display()}
            self.message_user(request, words % facts, messages.ERROR)
            return again
        except actions.ChangedError:
            self.message_user(request, gettext("The words were edited meanwhile. Look at them again."), messages.ERROR)
            return again
        except PermissionError:
            self.message_user(request, gettext("The sender is staff and cannot be banned here."), messages.ERROR)
            return again
        done = {
            "approve": gettext("Approved."),
            "reject": gettext("Rejected."),
            "ban": gettext("Rejected, and %(user)s banned.") % {"user": f"@{case.sender.username}"},
        }[verb]
        following = in_queue(Case.objects.filter(pk__gt=case.pk)).order_by("pk").first()
        if following is None or state != State.OPEN:
            self.message_user(request, done, messages.SUCCESS)
            return redirect("admin:moderation_case_changelist") if state == State.OPEN else again
        self.message_user(request, f"{done} {gettext('This is the next.')}", messages.SUCCESS)
        return redirect("admin:moderation_case_change", following.pk)

    def _context(self, request: HttpRequest, case: Case) -> dict[str, Any]:
        item, sender, subject = case.item, case.sender, subjects.of(case)
        hits = list(case.words.values_list("text", "whole"))
        earlier = Case.objects.filter(host=sender).exclude(pk=case.pk)
        return self.admin_site.each_context(request) | {
            "title": gettext("Case %(id)s") % {"id": case.pk},
            "opts": self.opts,
            "case": case,
            "item": item,
            "subject": subject,
            "sender": sender,
            "followers": standing(sender, AnonymousUser()).followers,
            "listed": (listed := SenderRule.objects.filter(user=sender).first()),
            "is_banned": listed is not None and listed.kind == SenderKind.BAN,
            "why": [sentences.explained(reason) for reason in case.reasons],
            "earlier": dict(earlier.order_by().values_list("state").annotate(Count("pk"))),
            "item_title": rules.with_hits(subject.title if subject else "", hits),
            "item_text": rules.with_hits(subject.text if subject else "", hits),
            "reports": case.reports.select_related("reporter").order_by("pk")[:SHOWN],
            "log": [(line.at, sentences.sentence(line), sentences.why(line)) for line in _decisions(case)],
            "may_decide": self.has_decide_permission(request),
            "modified_at": (subject.modified_at if subject else timezone.now()).isoformat(),
            "is_edited": subject is not None and subject.modified_at - subject.created_at > timedelta(seconds=1),
            "previous": in_queue(Case.objects.filter(pk__lt=case.pk)).order_by("-pk").first(),
            "following": in_queue(Case.objects.filter(pk__gt=case.pk)).order_by("pk").first(),
        }


def _decisions(case: Case) -> list[Decision]:
    """What was decided of what the case is about, and of its sender (bans, warnings, lists), the newest first."""
    about = Q(item=case.item_id) if case.item_id else Q(session_id=case.session_id)
    of_sender = Q(user=case.sender, item=None, session_id=None)
    both = (
        Decision.objects.filter(which).select_related("by", "user").order_by("-pk")[:SHOWN]
        for which in (about, of_sender)
    )
    return sorted(chain(*both), key=lambda line: -line.pk)[:SHOWN]


DONE = {
    "approve": lambda n: ngettext("%(count)s case approved.", "%(count)s cases approved.", n),
    "reject": lambda n: ngettext("%(count)s case rejected.", "%(count)s cases rejected.", n),
    "ban": lambda n: ngettext(
        "%(count)s case rejected, the sender banned.", "%(count)s cases rejected, the senders banned.", n
    ),
}


def _late(n: int) -> str:
    return ngettext("%(count)s case had been decided meanwhile.", "%(count)s cases had been decided meanwhile.", n)


def _edited(n: int) -> str:
    return ngettext(
        "%(count)s case not approved: edited since this list was made. Look again.",
        "%(count)s cases not approved: edited since this list was made. Look again.",
        n,
    )


def _staff(n: int) -> str:
    return ngettext(
        "%(count)s case not decided: the sender is staff.", "%(count)s cases not decided: the sender is staff.", n
    )


@admin.register(Report)
class ReportAdmin(LogAdmin):
    """Reports by readers, to read."""

    list_display = (
        "created_at",
        "of_item",
        "session_id",
        handle_column("reporter", _("reporter")),
        "reason",
        "text",
        "of_case",
    )
    fields = ("id", "created_at", "item", "session_id", "reporter", "reason", "text", "of_case")
    readonly_fields = fields
    list_filter = ("reason",)
    list_select_related = ("reporter", "case")
    search_fields = ("=item__id", "=session_id", "=reporter__username")
    search_help_text = _("The id of an item or a live session, or the whole name of who reported it.")

    @admin.display(description=_("item"), empty_value="-")
    def of_item(self, report: Report) -> int | None:
        """The id of the reported item; None if it was a session."""
        return report.item_id

    @admin.display(description=_("case"))
    def of_case(self, report: Report) -> SafeString:
        """The state of the report's case, with a link."""
        address = reverse("admin:moderation_case_change", args=[report.case_id])
        return format_html('<a href="{}">{}</a>', address, report.case.get_state_display())


@admin.register(Decision)
class DecisionAdmin(LogAdmin):
    """The audit log, in sentences."""

    list_display = ("at", "sentence", "why")
    list_display_links = ("at",)
    list_filter = ("verb",)
    list_select_related = ("by", "user")
    sortable_by = ("at",)
    search_fields = ("=item__id", "=session_id", "=by__username", "=user__username")
    search_help_text = _("The id of an item or a live session, or the whole name of a moderator or a user.")
    fields = ("at", "sentence", "why", "changes")
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Decision], search_term: str
    ) -> tuple[QuerySet[Decision], bool]:
        """The decisions about or by a user, or of an id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        users = list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True))
        found = Q(user__in=users) | Q(by__in=users)
        if number := parse_id(term):
            found |= Q(item=number) | Q(session_id=number)
        return queryset.filter(found), False

    @admin.display(description=_("what was done"))
    def sentence(self, decision: Decision) -> SafeString:
        """The decision as a sentence."""
        return sentences.sentence(decision)

    @admin.display(description=_("why"))
    def why(self, decision: Decision) -> str:
        """The reasons of the decision."""
        return sentences.why(decision)

    @admin.display(description=_("what it changed"))
    def changes(self, decision: Decision) -> str:
        """The values before the decision."""
        return sentences.changes(decision)


# --- Users and senders -----------------------------------------------------------------------------------
RELATED = [
    (_("items"), "items_item", "sender__id__exact={id}"),
    (_("live sessions"), "live_livesession", "host__id__exact={id}"),
    (_("cases"), "moderation_case", "host__id__exact={id}&state=all"),
    (_("decisions"), "moderation_decision", "user__id__exact={id}"),
    (_("reports made"), "moderation_report", "reporter__id__exact={id}"),
    (_("rule"), "moderation_senderrule", "user__id__exact={id}"),
    (_("follows"), "relations_follow", "follower__id__exact={id}"),
    (_("followers"), "relations_follow", "followee__id__exact={id}"),
    (_("blocks"), "relations_block", "blocker__id__exact={id}"),
    (_("blocked by"), "relations_block", "blocked__id__exact={id}"),
    (_("mutes"), "relations_mute", "muter__id__exact={id}"),
    (_("muted by"), "relations_mute", "muted__id__exact={id}"),
    (_("API tokens"), "knox_authtoken", "user__id__exact={id}"),
]
"""The lists that a user's page leads to: name, the admin's name of the list, query."""


class ModeratedUserAdmin(CountedUserAdmin):
    """Users with their rule, and the ways to all that is theirs. operation.admin registers it."""

    list_display = (*CountedUserAdmin.list_display, "rule")
    readonly_fields = (*CountedUserAdmin.readonly_fields, "rule")
    change_form_template = "admin/accounts/user/moderated.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Users with the rule that they are under."""
        rule = SenderRule.objects.filter(user=OuterRef("pk")).values("kind")
        users: QuerySet[User] = super().get_queryset(request)
        return users.annotate(rule_kind=Subquery(rule))

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """The fields of a user, and their rule."""
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj is None else [*fieldsets, (_("Moderation"), {"fields": ("rule",)})]

    @admin.display(description=_("rule"))
    def rule(self, user: Any) -> Any:
        """The rule that the user is under, for people."""
        return RULES.get(user.rule_kind, "-")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of a user, with links to lists of what is theirs."""
        user = User.objects.filter(pk=parse_id(object_id) or 0).first()
        related = {"related": self._related(request, user)} if user else {}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | related)

    def _related(self, request: HttpRequest, user: User) -> list[tuple[Any, str]]:
        """The lists of what is theirs, as far as the one who asks may see them: name and address."""
        lists = {
            f"{model._meta.app_label}_{model._meta.model_name}": one for model, one in admin.site._registry.items()
        }
        return [
            (title, f"{reverse(f'admin:{name}_changelist')}?{query.format(id=user.pk)}")
            for title, name, query in RELATED
            if lists[name].has_view_permission(request)
        ]

    def reactivate_one(self, request: HttpRequest, user: User) -> bool:
        """A ban is a rule, which moderators lift; users who are not banned come back."""
        if self.has_moderate_permission(request) and actions.unban(user=user, by=request.user):  # type: ignore[arg-type]
            return True
        return actions.reactivate_unless_banned(user=user)


RULES = {
    SenderKind.BLACK: _("black list"),
    SenderKind.WHITE: _("white list"),
    SenderKind.BAN: _("banned"),
}


class SenderRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The form of a sender's rule."""

    by: User
    """The moderator."""

    def clean(self) -> dict[str, Any]:
        """The fields. Raises ValidationError for a ban of staff or of oneself."""
        fields: dict[str, Any] = self.cleaned_data
        user = fields.get("user") or (self.instance.user if self.instance.pk else None)
        if fields.get("kind") == SenderKind.BAN and user and not actions.may_be_banned(user, self.by):
            raise ValidationError({"kind": _("Staff cannot be banned here, and you cannot ban yourself.")})
        return fields


@admin.register(SenderRule)
class SenderRuleAdmin(ActingAdmin):
    """The black and the white list, and the bans."""

    list_display = (
        handle_column("user", _("user")),
        "kind",
        "reason",
        handle_column("by", _("by")),
        "created_at",
        "is_active",
    )
    list_filter = ("kind",)
    list_select_related = ("user", "by")
    search_fields = ("=user__username",)
    search_help_text = _("The whole name of a user.")
    autocomplete_fields = ("user",)
    ordering = ("-id",)
    actions = ("unban",)
    delete_confirmation_template = "admin/moderation/senderrule/delete.html"
    delete_selected_confirmation_template = "admin/moderation/senderrule/delete_many.html"

    @admin.display(description=_("active"), boolean=True)
    def is_active(self, rule: SenderRule) -> bool:
        """Whether the user may sign in and be seen."""
        return rule.user.is_active

    def get_readonly_fields(self, request: HttpRequest, obj: SenderRule | None = None) -> tuple[str, ...]:
        """The user of a rule that exists; of a new one none."""
        return ("user",) if obj else ()

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """The field of the kind; bans only for staff who may lift them."""
        if db_field.name == "kind" and not self.has_unban_permission(request):
            kwargs["choices"] = [choice for choice in db_field.get_choices() if choice[0] != SenderKind.BAN]
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    # --- Permissions
    def has_unban_permission(self, request: HttpRequest) -> bool:
        """Whether the request may lift bans."""
        return request.user.has_perm("moderation.decide_case")

    def has_change_permission(self, request: HttpRequest, obj: SenderRule | None = None) -> bool:
        """Whether the request may change this rule."""
        return super().has_change_permission(request, obj) and self._may(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: SenderRule | None = None) -> bool:
        """Whether the request may remove this rule."""
        return super().has_delete_permission(request, obj) and self._may(request, obj)

    def _may(self, request: HttpRequest, rule: SenderRule | None) -> bool:
        """A ban is lifted by those who ban."""
        return rule is None or rule.kind != SenderKind.BAN or self.has_unban_permission(request)

    # --- Writing
    form = SenderRuleForm

    def get_form(self, request: HttpRequest, obj: SenderRule | None = None, change: bool = False, **kwargs: Any) -> Any:
        """The form, which is told the moderator."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.by = request.user
        return form

    def save_model(self, request: HttpRequest, obj: SenderRule, form: Any, change: bool) -> None:
        """Set the rule by its verb, which writes the log."""
        obj.pk = actions.list_sender(user=obj.user, kind=obj.kind, by=request.user, reason=obj.reason).pk  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: SenderRule) -> None:
        """Remove the rule by its verb, which writes the log."""
        actions.unlist_sender(user=obj.user, by=request.user)  # type: ignore[arg-type]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SenderRule]) -> None:
        """Remove the rules one by one."""
        for rule in queryset.select_related("user"):
            self.delete_model(request, rule)

    @admin.action(description=_("Lift the bans"), permissions=["unban"])
    def unban(self, request: HttpRequest, queryset: QuerySet[SenderRule]) -> None:
        """Lift the chosen bans."""
        done = left = 0
        for rule in self.chosen(request, queryset.select_related("user")):
            if actions.unban(user=rule.user, by=request.user):  # type: ignore[arg-type]
                done += 1
            else:
                left += 1
        if done:
            self.message_user(request, by_hand.DONE["unban"](done) % {"count": done}, messages.SUCCESS)
        if left:
            self.message_user(request, by_hand.LEFT["unban"](left) % {"count": left}, messages.WARNING)


# --- Words -----------------------------------------------------------------------------------------------
class ManyWordsForm(forms.Form):
    """The form that adds many words at once."""

    words = forms.CharField(
        label=_("Words"), widget=forms.Textarea(attrs={"rows": 15, "cols": 60}), help_text=_("One a line.")
    )
    whole = forms.BooleanField(label=_("Whole words only"), required=False, initial=True)
    note = forms.CharField(label=_("Note"), max_length=200, required=False)

    def clean_words(self) -> list[str]:
        """The words, one for each line that is not empty."""
        lines = self.cleaned_data["words"].splitlines()
        return [line.strip() for line in lines if line.strip()]


@admin.register(WordRule)
class WordRuleAdmin(ActingAdmin):
    """The list of words. A change is in force for all items that are published from then on."""

    list_display = ("text", "whole", "is_enabled", "note", "hits")
    list_filter = ("is_enabled", "whole")
    search_fields = ("text", "note")
    ordering = ("text",)
    actions = ("enable", "disable")

    def get_queryset(self, request: HttpRequest) -> QuerySet[WordRule]:
        """Words with the number of cases that they opened."""
        words: QuerySet[WordRule] = super().get_queryset(request)
        return words.annotate(hits=_count(Case.words.through._default_manager.all(), "wordrule"))

    @admin.display(description=_("held"))
    def hits(self, rule: Any) -> int:
        """Cases that it opened or joined."""
        return int(rule.hits)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The rules alone: however many cases name them stay, and only forget it."""
        names = [str(rule) for rule in objs]
        lacking = set() if self.has_delete_permission(request) else {self.opts.verbose_name}
        return names, {self.opts.verbose_name_plural: len(names)}, lacking, []

    def get_urls(self) -> list[URLPattern]:
        """The admin's own addresses, and that of adding many words."""
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
                if new:
                    self.message_user(request, counted(_added, new), messages.SUCCESS)
                if known := len(set(fields["words"])) - new:
                    self.message_user(request, counted(_known, known), messages.WARNING)
                return redirect("admin:moderation_wordrule_changelist")
        context = self.admin_site.each_context(request) | {
            "title": gettext("Add words"),
            "opts": self.opts,
            "form": form,
        }
        return TemplateResponse(request, "admin/moderation/wordrule/many.html", context)

    def save_model(self, request: HttpRequest, obj: WordRule, form: Any, change: bool) -> None:
        """Write the word by its verb, which writes the log."""
        actions.put_word(rule=obj, by=request.user)  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: WordRule) -> None:
        """Remove the word by its verb, which writes the log."""
        actions.drop_word(rule=obj, by=request.user)  # type: ignore[arg-type]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WordRule]) -> None:
        """Remove the words one by one."""
        for rule in queryset:
            self.delete_model(request, rule)

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[WordRule]) -> None:
        """Enable the chosen words."""
        changed = self._set(request, queryset, True)
        self._told(
            request,
            changed,
            lambda n: ngettext("%(count)s word rule was enabled.", "%(count)s word rules were enabled.", n),
            gettext("Nothing was done: they are enabled already."),
        )

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[WordRule]) -> None:
        """Disable the chosen words."""
        changed = self._set(request, queryset, False)
        self._told(
            request,
            changed,
            lambda n: ngettext("%(count)s word rule was disabled.", "%(count)s word rules were disabled.", n),
            gettext("Nothing was done: they are disabled already."),
        )

    def _set(self, request: HttpRequest, queryset: QuerySet[WordRule], is_enabled: bool) -> int:
        changed = [rule for rule in self.chosen(request, queryset) if rule.is_enabled != is_enabled]
        for rule in changed:
            rule.is_enabled = is_enabled
            actions.put_word(rule=rule, by=request.user)  # type: ignore[arg-type]
        return len(changed)

    def _told(self, request: HttpRequest, changed: int, done: Any, nothing: str) -> None:
        if changed:
            self.message_user(request, counted(done, changed), messages.SUCCESS)
        else:
            self.message_user(request, nothing, messages.WARNING)


def _added(n: int) -> str:
    return ngettext("%(count)s word added.", "%(count)s words added.", n)


def _known(n: int) -> str:
    return ngettext("%(count)s word was known already.", "%(count)s words were known already.", n)
