"""Appeals and reply templates in the admin."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts import review
from accounts.models import User
from accounts.people import badged_username
from items.pages.reading import excerpt
from media import attaching
from media.models import MediaFile
from moderation import appeals, sentences
from moderation.models import GROUNDS_LENGTH, Appeal, AppealState, Case, ReplyTemplate
from moderation.reading import log_reading
from web.admin import Area, DecidingMixin, LogAdmin, QuickListAdmin
from web.rest import parse_id


class AppealStateFilter(admin.SimpleListFilter):
    """Filters appeals by state. Those that wait are the default."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, and all."""
        return [*AppealState.choices[1:], ("all", _("all"))]

    def choices(self, changelist: Any) -> Any:
        """The first choice is what waits."""
        first, *rest = super().choices(changelist)
        return [{**first, "display": _("waiting")}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Appeal]) -> QuerySet[Appeal]:
        """The chosen state, else what waits."""
        if self.value() == "all":
            return queryset
        if self.value() in AppealState.values:
            return queryset.filter(state=self.value())
        return queryset.filter(pk__in=appeals.waiting_appeals(request.user).values("pk"))  # type: ignore[arg-type]


class AnswerForm(forms.Form):
    """The answer to an appeal."""

    text = forms.CharField(
        label=_("Answer for the user"),
        max_length=GROUNDS_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text=_("The user reads it, without your name."),
    )


@admin.register(Appeal)
class AppealAdmin(DecidingMixin, LogAdmin):
    """Appeals, oldest first."""

    area = Area.MODERATION
    rank = 2
    list_display = ("created_at", "of_user", "of_decision", "words", "state")
    list_filter = (AppealStateFilter,)
    list_select_related = ("decision__user", "decision__rule", "decision__by")
    ordering = ("id",)
    sortable_by = ("created_at",)

    class Media:
        js = ("moderation/case.js",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Appeal]:
        """Without the caller's own."""
        rows: QuerySet[Appeal] = super().get_queryset(request)
        return rows.exclude(decision__user=request.user.pk)

    def waiting(self, request: HttpRequest) -> QuerySet[Appeal]:
        """Those without an answer."""
        return appeals.waiting_appeals(request.user)  # type: ignore[arg-type]

    def has_view_permission(self, request: HttpRequest, obj: Appeal | None = None) -> bool:
        """Whether the caller may see appeals. The permission to decide is enough."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    @admin.display(description=_("user"))
    def of_user(self, row: Appeal) -> SafeString | str:
        """Who appeals."""
        return badged_username(row.decision.user) if row.decision.user else "-"

    @admin.display(description=_("decision"))
    def of_decision(self, row: Appeal) -> SafeString:
        """What was decided."""
        return sentences.sentence(row.decision)

    @admin.display(description=_("appeal"))
    def words(self, row: Appeal) -> str:
        """The beginning of the appeal."""
        return excerpt(row.text, 80)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """An appeal's page. A POST answers it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.get_queryset(request).select_related(*self.list_select_related, "decision__item__sender")
        row = rows.filter(pk=parse_id(object_id) or 0).first()
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        form = AnswerForm(request.POST or None)
        if request.method == "POST":
            if not self.has_decide_permission(request):
                raise PermissionDenied
            if form.is_valid() and request.POST.get("verb") in ("accept", "reject"):
                return self._answer(request, row, form.cleaned_data["text"])
        return TemplateResponse(request, "admin/moderation/appeal/change_form.html", self._context(request, row, form))

    def _answer(self, request: HttpRequest, row: Appeal, text: str) -> HttpResponse:
        by: User = request.user  # type: ignore[assignment]
        accepts = request.POST["verb"] == "accept"
        try:
            appeals.answer(appeal_id=row.pk, by=by, accepts=accepts, text=text)
        except review.JudgeError as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect("admin:moderation_appeal_change", row.pk)
        except appeals.AnsweredError:
            self.message_user(request, gettext("Another moderator has answered this appeal."), messages.ERROR)
            return redirect("admin:moderation_appeal_change", row.pk)
        done = gettext("Appeal accepted.") if accepts else gettext("Appeal rejected.")
        self.message_user(request, done, messages.SUCCESS)
        return redirect("admin:moderation_appeal_changelist")

    def _context(self, request: HttpRequest, row: Appeal, form: AnswerForm) -> dict[str, Any]:
        by: User = request.user  # type: ignore[assignment]
        decision, barred = row.decision, ""
        try:
            appeals.check_may_answer(row, by)
        except review.JudgeError as error:
            barred = str(error)
        case = None
        if decision.item_id or decision.session_id:
            case = Case.objects.filter(item=decision.item_id, session_id=decision.session_id).order_by("-pk").first()
        media: Sequence[MediaFile] = ()
        if decision.item:
            log_reading(decision.item, by)
            media = attaching.media_by_item([decision.item.pk]).get(decision.item.pk, [])
        elif decision.session_id and (session := review.sessions.find([decision.session_id]).get(decision.session_id)):
            media = session.media
        return self.admin_site.each_context(request) | {
            "title": str(row).capitalize(),
            "opts": self.opts,
            "appeal": row,
            "form": form,
            "sentence": sentences.sentence(decision),
            "why": sentences.why(decision),
            "case": case,
            "media": media,
            "is_veiled": decision.item is not None and decision.item.is_sensitive,
            "barred": barred,
            "may_answer": row.state == AppealState.WAITING and not barred and self.has_decide_permission(request),
        }


@admin.register(ReplyTemplate)
class ReplyTemplateAdmin(QuickListAdmin):
    """Texts to choose from."""

    area = Area.MODERATION
    rank = 13
    list_display = ("title", "text")
    search_fields = ("title", "text")
