"""The moderation queue in the admin."""

import re
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME, ActionForm
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from accounts import review
from accounts.about.site import current
from accounts.models import User
from accounts.people import badged_username, full_name_of
from accounts.review import Subject
from items.models import OPEN_TO_ALL, Item, Status, was_edited
from items.pages.reading import excerpt
from media import attaching
from media.admin import ShotList, thumbnails
from moderation import actions, by_hand, pictures, rules, senders, sentences, subjects
from moderation.case_acts import VERBS, acts_of
from moderation.decisions import NONE, decisions_about
from moderation.forms import GroundsForm
from moderation.models import Case, CaseState, Decision, ReplyTemplate, Report, SenderKind, SenderRule, Verb
from moderation.reading import cases_for, log_reading
from relations.visibility import profile_relation
from web.admin import Area, DecidingMixin, LogAdmin, confirmation_page, count_referring, sentence_with_count
from web.paginator import CappedPaginator
from web.rest import parse_id

PICTURE_VERB = re.compile(r"(hide|show)-(all|[0-9]{1,16})", re.ASCII)
"""Values of picture buttons: action, and a picture's id or all."""
AT_ONCE = 100
"""Cases per action."""
OTHERS = 5
"""Newest other cases of the author on a case's page."""
SHOWN = 100
"""Reports and log entries on a case's page."""
RULES_NAMED = 5
"""Reported rules shown in the queue."""
MARGIN = timedelta(seconds=2)
"""A list of cases may miss an edit made this shortly before it."""


def in_queue(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Open cases whose subject would be visible if approved."""
    of_items = Q(item__sender__is_active=True) & ~Q(item__status=Status.DELETED)
    return cases.filter(of_items | Q(item=None, host__is_active=True), state=CaseState.OPEN)


class CaseStateFilter(admin.SimpleListFilter):
    """Filters cases by state. The queue is the default."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, and all."""
        return [("open", _("open, including deleted")), *CaseState.choices[1:], ("all", _("all"))]

    def choices(self, changelist: Any) -> Any:
        """The first choice is the queue."""
        first, *rest = super().choices(changelist)
        return [{**first, "display": _("waiting")}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Case]) -> QuerySet[Case]:
        """The chosen state, else the queue."""
        if self.value() == "all":
            return queryset
        if self.value() in CaseState.values:
            return queryset.filter(state=self.value())
        return in_queue(queryset)


class SeenForm(ActionForm):
    """Remembers when the moderator saw the list."""

    seen = forms.CharField(
        required=False, label="", widget=forms.HiddenInput, initial=lambda: (timezone.now() - MARGIN).isoformat()
    )


class QueuePaginator(CappedPaginator):
    """Counts fewer rows, because each checks its item and sender."""

    exact_up_to = 1_000


class CaseList(ShotList):
    """One call reads a page's sessions, one query its pictures."""

    def get_results(self, request: HttpRequest) -> None:
        """Add sessions and pictures."""
        super().get_results(request)
        cases = self.result_list
        found = review.sessions.find([case.session_id for case in cases if case.session_id])
        for case in cases:
            case.session = subject = found.get(case.session_id)
            if subject is not None:
                case.shots = list(subject.media)


@admin.register(Case)
class CaseAdmin(DecidingMixin, LogAdmin):
    """The queue, oldest first."""

    area = Area.MODERATION
    rank = 1
    paginator = QueuePaginator
    list_display = ("excerpt", "pictures", "sender", "why", "report_count", "opened")
    list_filter = (CaseStateFilter, "source")
    list_select_related = ("item__sender", "item__root", "host", "decided_by")
    ordering = ("id",)
    sortable_by = ("opened",)
    search_fields = ("item__id",)
    search_help_text = _("ID of a post or live session, or full username of its author.")
    actions = ("approve", "reject", "ban")
    action_form = SeenForm

    class Media:
        js = ("moderation/case.js",)

    def wants_proof(self, request: HttpRequest) -> bool:
        """Whether the request bans somebody."""
        return "ban" in (request.POST.get("verb"), request.POST.get("action"))

    def waiting(self, request: HttpRequest) -> QuerySet[Case]:
        """The queue."""
        return in_queue(cases_for(request.user))  # type: ignore[arg-type]

    # --- Columns
    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Use CaseList."""
        return CaseList

    def get_urls(self) -> list[URLPattern]:
        """Add the page to act without a report."""
        act = path("act/", self.admin_site.admin_view(self.act_view), name="moderation_case_act")
        find = path("find/", self.admin_site.admin_view(self.find_view), name="moderation_case_find")
        return [act, find, *super().get_urls()]

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Lead from a menu of the site to the open case of an item or user, or to the page to act without one."""
        for name, of in (("items", {}), ("users", {"item": None, "session_id": None})):
            if number := parse_id(request.GET.get(name, "")):
                about = {"item" if name == "items" else "host": number, **of}
                case = cases_for(request.user).filter(**about, state=CaseState.OPEN).first()  # type: ignore[arg-type]
                if case is not None:
                    return redirect("admin:moderation_case_change", case.pk)
                if self.has_decide_permission(request):
                    return redirect(f"{reverse('admin:moderation_case_act')}?{name}={number}")
        return redirect("admin:moderation_case_changelist")

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Act without a report."""
        return by_hand.act_on_chosen(request, self.admin_site)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Case]:
        """The cases that the caller may see, with the number of reports."""
        cases = cases_for(request.user).order_by(*self.get_ordering(request))  # type: ignore[arg-type]
        named = Report.objects.filter(case=OuterRef("pk"), rule__isnull=False).order_by().values("rule_id").distinct()
        return cases.annotate(
            report_count=count_referring(Report.objects.all(), "case"), rules_named=ArraySubquery(named[:RULES_NAMED])
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Case], search_term: str
    ) -> tuple[QuerySet[Case], bool]:
        """Find by sender, or id of item or session."""
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
        """Hide the state in the queue, where all are open."""
        return (*self.list_display, "state", "decided_by") if "state" in request.GET else self.list_display

    @admin.display(description=_("waiting"), ordering="pk")
    def opened(self, case: Case) -> str:
        """How long it is or was open."""
        return timesince(case.opened_at, case.decided_at, depth=1)

    @admin.display(description=_("post"))
    def excerpt(self, case: Any) -> str:
        """The beginning of its text. What is not for all is read on the case's page, which logs it."""
        if case.item and not case.item.is_open_to_all:
            return gettext("(%(audience)s: open it to read)") % {"audience": case.item.get_visibility_display()}
        if case.item:
            return excerpt(rules.item_text(case.item), 80) or gettext("(no text)")
        if case.session_id is None:
            return gettext("Account: %(name)s") % {"name": case.sender.username}
        subject: Subject | None = case.session
        if subject is None:
            return gettext("(deleted live session)")
        return gettext("Live: %(title)s") % {"title": excerpt(subject.title, 80)}

    @admin.display(description=_("pictures"))
    def pictures(self, case: Any) -> SafeString:
        """The subject's pictures, as its text."""
        if case.item and not case.item.is_open_to_all:
            return SafeString()
        return thumbnails(case.shots, is_veiled=case.item is not None and case.item.is_sensitive)

    @admin.display(description=_("author"))
    def sender(self, case: Case) -> SafeString:
        return badged_username(case.sender)

    @admin.display(description=_("why"))
    def why(self, case: Any) -> str:
        """Reasons, and rules named by reports."""
        said = excerpt("; ".join(map(sentences.explain_reason, case.reasons)) or gettext("reports"), 80)
        numbers = {rule.id: rule.number for rule in current().rules}
        named = sorted(numbers[rule] for rule in case.rules_named if rule in numbers)
        return "; ".join([said, *(gettext("rule %(number)s") % {"number": number} for number in named)])

    @admin.display(description=_("reports"))
    def report_count(self, case: Any) -> int:
        """The number of reports."""
        return int(case.report_count)

    # --- Permissions
    def has_view_permission(self, request: HttpRequest, obj: Case | None = None) -> bool:
        """Whether the caller may see cases. The permission to decide is enough."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    # --- Many at once
    @admin.action(description=_("Approve (publish, dismiss reports)"), permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Case]) -> None:
        """Approve the chosen cases."""
        self._decide_each(request, queryset, "approve")

    @admin.action(description=_("Reject"), permissions=["decide"])
    def reject(self, request: HttpRequest, queryset: QuerySet[Case]) -> None:
        """Reject the chosen cases."""
        self._decide_each(request, queryset, "reject")

    @admin.action(description=_("Reject and suspend authors …"), permissions=["decide"])
    def ban(self, request: HttpRequest, queryset: QuerySet[Case]) -> TemplateResponse | None:
        """Reject the chosen cases and ban their senders, after a confirmation."""
        if "confirmed" in request.POST:
            self._decide_each(request, queryset, "ban")
            return None
        cases = list(queryset.select_related("item__sender", "host").order_by("pk")[:AT_ONCE])
        able = [case for case in cases if senders.may_be_banned(case.sender, request.user)]  # type: ignore[arg-type]
        if len(able) < len(cases):
            self.message_user(
                request, sentence_with_count(_staff_author_text, len(cases) - len(able)), messages.WARNING
            )
        if not able:
            return None
        cases = able
        fields = [("action", "ban"), *((ACTION_CHECKBOX_NAME, case.pk) for case in cases)]
        return self._confirm_ban(request, cases, fields)

    def _decide_each(self, request: HttpRequest, queryset: QuerySet[Case], verb: str) -> None:
        cases = list(queryset.order_by("pk")[: AT_ONCE + 1])
        if len(cases) > AT_ONCE:
            words = gettext("Nothing changed: choose %(count)s at most.")
            self.message_user(request, words % {"count": AT_ONCE}, messages.ERROR)
            return
        seen = _parse_moment(request.POST.get("seen", "")) or timezone.now() - timedelta(days=36_500)
        decided = late = edited = barred = staff = 0
        for case in cases:
            try:
                self._decide(request, case, verb, CaseState.OPEN, seen)
                decided += 1
            except actions.DecidedError:
                late += 1
            except actions.ChangedError:
                edited += 1
            except review.JudgeError:
                barred += 1
            except PermissionError:
                staff += 1
        if decided:
            self.message_user(request, sentence_with_count(DONE[verb], decided), messages.SUCCESS)
        for count, why in (
            (late, _already_decided_text),
            (edited, _edited_since_text),
            (barred, review.not_judged_message),
            (staff, _staff_author_text),
        ):
            if count:
                self.message_user(request, sentence_with_count(why, count), messages.WARNING)

    def _decide(
        self, request: HttpRequest, case: Case, verb: str, state: str, seen: datetime, form: GroundsForm | None = None
    ) -> None:
        by = request.user
        assert isinstance(by, User)  # noqa: S101 (the admin lets no strangers in)
        fields: dict[str, Any] = form.cleaned_data if form else {"note": "", "until": None}
        grounds = form.grounds if form else NONE
        told: dict[str, Any] = {"case": case, "by": by, "state": state, "note": fields["note"], "grounds": grounds}
        match verb:
            case "approve":
                actions.approve(case=case, by=by, note=fields["note"], state=state, modified_at=seen)
            case "warn":
                actions.approve_and_warn(**told, modified_at=seen)
            case "reject":
                actions.reject(**told)
            case "limit":
                actions.reject_and_limit(**told)
            case _:
                actions.reject_and_ban(**told, until=fields["until"])

    def _confirm_ban(self, request: HttpRequest, cases: list[Case], fields: list[tuple[str, Any]]) -> TemplateResponse:
        senders = {case.sender.pk: case.sender for case in cases}
        rejected = sentence_with_count(
            lambda n: ngettext("This rejects %(count)s case", "This rejects %(count)s cases", n), len(cases)
        )
        banned = sentence_with_count(
            lambda n: ngettext(
                "and suspends %(count)s author. They're logged out, and their profile and posts are hidden "
                "until you lift the suspension.",
                "and suspends %(count)s authors. They're logged out, and their profiles and posts are hidden "
                "until you lift the suspension.",
                n,
            ),
            len(senders),
        )
        return confirmation_page(
            self.admin_site,
            request,
            self.opts,
            title=gettext("Reject and suspend"),
            meaning=f"{rejected} {banned}",
            button=gettext("Reject and suspend"),
            lines=[full_name_of(sender) for sender in senders.values()],
            fields=fields,
        )

    # --- One
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """A case's page. A POST decides. Opening it logs that the caller read what is not for all."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        number = parse_id(object_id)
        cases = cases_for(request.user).select_related(*self.list_select_related)  # type: ignore[arg-type]
        case = cases.filter(pk=number or 0).first()
        if case is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if request.method != "POST":
            if case.item:
                log_reading(case.item, request.user)  # type: ignore[arg-type]
            return TemplateResponse(request, "admin/moderation/case/change_form.html", self._context(request, case))
        if not self.has_decide_permission(request):
            raise PermissionDenied
        try:
            review.check_judge(case.sender, request.user)  # type: ignore[arg-type]
        except review.JudgeError as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect("admin:moderation_case_change", case.pk)
        return self._handle_decision(request, case)

    def _handle_decision(self, request: HttpRequest, case: Case) -> HttpResponse:
        verb, state = (request.POST.get(name, "").replace("\0", "") for name in ("verb", "state"))
        seen = _parse_moment(request.POST.get("modified_at", ""))
        again = redirect("admin:moderation_case_change", case.pk)
        picture = PICTURE_VERB.fullmatch(verb)
        if not picture and verb != "unban" and (verb not in VERBS or seen is None):
            return again
        form = GroundsForm(request.POST)
        if not form.is_valid():
            context = self._context(request, case) | {"form": form}
            return TemplateResponse(request, "admin/moderation/case/change_form.html", context)
        if picture:
            self._decide_pictures(request, case, *picture.groups(), form=form)
            return again
        if verb == "unban":
            self._unban(request, case.sender, form.cleaned_data["note"])
            return again
        if verb == "ban" and "confirmed" not in request.POST:
            names = ("verb", "state", "modified_at", *form.fields)
            return self._confirm_ban(request, [case], [(name, request.POST.get(name, "")) for name in names])
        assert seen is not None  # noqa: S101 (checked above)
        return self._decide_one(request, case, verb, state, seen, form)

    def _decide_one(
        self, request: HttpRequest, case: Case, verb: str, state: str, seen: datetime, form: GroundsForm
    ) -> HttpResponse:
        again = redirect("admin:moderation_case_change", case.pk)
        try:
            self._decide(request, case, verb, state, seen, form)
        except actions.DecidedError as error:
            other = error.case.decided_by
            words = gettext("Already decided by %(user)s: %(state)s.")
            facts = {"user": other.username if other else "-", "state": error.case.get_state_display()}
            self.message_user(request, words % facts, messages.ERROR)
            return again
        except actions.ChangedError:
            self.message_user(request, gettext("The author edited the text. Check it again."), messages.ERROR)
            return again
        except PermissionError:
            self.message_user(request, gettext("The author is staff. You can't suspend them here."), messages.ERROR)
            return again
        done = {
            "approve": gettext("Approved."),
            "warn": gettext("Kept. %(user)s is warned."),
            "reject": gettext("Removed."),
            "limit": gettext("Removed. %(user)s is limited."),
            "ban": gettext("Removed. %(user)s is suspended."),
        }[verb] % {"user": f"@{case.sender.username}"}
        following = self._queue(request).filter(pk__gt=case.pk).order_by("pk").first()
        if following is None or state != CaseState.OPEN:
            self.message_user(request, done, messages.SUCCESS)
            return redirect("admin:moderation_case_changelist") if state == CaseState.OPEN else again
        then = gettext("Here's the next one.")
        self.message_user(request, f"{done} {then}", messages.SUCCESS)
        return redirect("admin:moderation_case_change", following.pk)

    def _unban(self, request: HttpRequest, user: User, note: str) -> None:
        name = {"user": f"@{user.username}"}
        if senders.unban(user=user, by=request.user, reason=note):  # type: ignore[arg-type]
            self.message_user(request, gettext("%(user)s is no longer suspended.") % name, messages.SUCCESS)
        else:
            self.message_user(request, gettext("%(user)s wasn't suspended.") % name, messages.WARNING)

    def _decide_pictures(self, request: HttpRequest, case: Case, verb: str, which: str, *, form: GroundsForm) -> None:
        by: User = request.user  # type: ignore[assignment]
        ids = None if which == "all" else [int(which)]
        note, grounds = form.cleaned_data["note"], form.grounds
        if case.item and verb == "hide":
            count = pictures.hide(item=case.item, by=by, ids=ids, note=note, grounds=grounds)
        elif case.item:
            count = pictures.show(item=case.item, by=by, ids=ids, note=note)
        else:
            session = {"session_id": case.session_id or 0, "medium_id": ids[0] if ids else 0}
            count = int(verb == "hide" and pictures.uncover(**session, by=by, note=note, grounds=grounds))
        if count:
            self.message_user(request, sentence_with_count(by_hand.DONE_PICTURES[verb], count), messages.SUCCESS)
        else:
            self.message_user(
                request, gettext("Nothing changed: the pictures were already like this."), messages.WARNING
            )

    def _context(self, request: HttpRequest, case: Case) -> dict[str, Any]:
        item, sender, subject = case.item, case.sender, subjects.subject_of(case)
        quoted = item.quote_of if item else None
        may_decide = self.has_decide_permission(request) and review.may_judge(sender, request.user)  # type: ignore[arg-type]
        media = attaching.media_by_item([item.pk]).get(item.pk, []) if item else subject.media if subject else ()
        hits = list(case.words.values_list("text", "whole"))
        earlier = Case.objects.filter(host=sender).exclude(pk=case.pk)
        return self.admin_site.each_context(request) | {
            "title": gettext("Case %(id)s") % {"id": case.pk},
            "opts": self.opts,
            "case": case,
            "item": item,
            "subject": subject,
            "sender": sender,
            "followers": profile_relation(sender, AnonymousUser()).followers,
            "listed": (listed := SenderRule.objects.filter(user=sender).first()),
            "is_banned": listed is not None and listed.kind == SenderKind.BAN,
            "why": [sentences.explain_reason(reason) for reason in case.reasons],
            "form": GroundsForm(),
            "templates": ReplyTemplate.objects.all(),
            "acts_of_case": acts_of(case, subject) if may_decide else [],
            "above": _above(item) if item else [],
            "others": earlier.order_by("-pk").annotate(report_count=count_referring(Report.objects.all(), "case"))[
                :OTHERS
            ],
            "told": dict(decisions_about(sender).order_by().values_list("verb").annotate(Count("pk"))),
            "earlier": dict(earlier.order_by().values_list("state").annotate(Count("pk"))),
            "item_title": rules.mark_hits(subject.title if subject else "", hits),
            "item_text": rules.mark_hits(subject.text if subject else "", hits),
            "media": media,
            "quoted": quoted if quoted and quoted.is_open_to_all else None,
            "has_hidden": any(one.hidden_at for one in media),
            "has_shown": not all(one.hidden_at for one in media),
            "acts": may_decide and (item is None or item.status != Status.DELETED),
            "may_block": request.user.has_perm("moderation.add_picturerule"),
            "is_veiled": item is not None and item.is_sensitive,
            "reports": case.reports.select_related("reporter", "rule").order_by("pk")[:SHOWN],
            "log": [(line.at, sentences.sentence(line), sentences.why(line)) for line in _decisions(case)],
            "may_decide": may_decide,
            "modified_at": (subject.modified_at if subject else timezone.now()).isoformat(),
            "is_edited": subject is not None and was_edited(subject.created_at, subject.modified_at),
            "previous": self._queue(request).filter(pk__lt=case.pk).order_by("-pk").first(),
            "following": self._queue(request).filter(pk__gt=case.pk).order_by("pk").first(),
        }

    @staticmethod
    def _queue(request: HttpRequest) -> QuerySet[Case]:
        return in_queue(cases_for(request.user))  # type: ignore[arg-type]


def _above(item: Item) -> list[Item]:
    """The root and the answered post, if staff may read them."""
    ids = {pk for pk in (item.root_id, item.reply_to_id) if pk is not None}
    return list(Item.objects.filter(OPEN_TO_ALL, pk__in=ids).select_related("sender").order_by("pk")) if ids else []


def _decisions(case: Case) -> list[Decision]:
    whiches = [Q(user=case.sender, item=None, session_id=None)]
    if case.item_id or case.session_id:
        whiches.append(Q(item=case.item_id) if case.item_id else Q(session_id=case.session_id))
    decided = Decision.objects.exclude(verb=Verb.READ)
    both = (decided.filter(which).select_related("by", "user", "rule").order_by("-pk")[:SHOWN] for which in whiches)
    return sorted(chain(*both), key=lambda line: -line.pk)[:SHOWN]


DONE = {
    "approve": lambda n: ngettext("%(count)s case approved.", "%(count)s cases approved.", n),
    "reject": lambda n: ngettext("%(count)s case rejected.", "%(count)s cases rejected.", n),
    "ban": lambda n: ngettext(
        "%(count)s case rejected, the author suspended.", "%(count)s cases rejected, the authors suspended.", n
    ),
}


def _already_decided_text(n: int) -> str:
    return ngettext("%(count)s case was already decided.", "%(count)s cases were already decided.", n)


def _edited_since_text(n: int) -> str:
    return ngettext(
        "%(count)s case not approved: edited since you opened the list. Check again.",
        "%(count)s cases not approved: edited since you opened the list. Check again.",
        n,
    )


def _staff_author_text(n: int) -> str:
    return ngettext(
        "%(count)s case not decided: the author is staff.", "%(count)s cases not decided: the author is staff.", n
    )


def _parse_moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo else None
