"""Sender rules and word rules in the admin."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from accounts import review
from accounts.levels_admin import handle_column
from accounts.models import User
from moderation import actions, senders
from moderation.decisions import Grounds
from moderation.models import Case, SenderKind, SenderRule, WordRule
from web.admin import ActingAdmin, Area, DecidingMixin, count_referring, sentence_with_count


# --- Senders ---------------------------------------------------------------------------------------------
class SenderRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A sender's rule."""

    by: User
    """The moderator."""

    def clean(self) -> dict[str, Any]:
        """Raise ValidationError for a ban of staff, and for a rule of oneself or a superuser."""
        fields: dict[str, Any] = self.cleaned_data
        user = fields.get("user") or (self.instance.user if self.instance.pk else None)
        if fields.get("kind") == SenderKind.BAN and user and not senders.may_be_banned(user, self.by):
            raise ValidationError({"kind": _("You can't suspend staff or yourself.")})
        until = fields.get("until")
        if until is not None and (fields.get("kind") != SenderKind.BAN or until <= timezone.now()):
            raise ValidationError({"until": _("Only a suspension has an end, and it lies ahead.")})
        try:
            review.check_judge(user, self.by)
        except review.JudgeError as error:
            raise ValidationError(str(error)) from error
        return fields


@admin.register(SenderRule)
class SenderRuleAdmin(DecidingMixin, ActingAdmin):
    """Black list, white list and bans."""

    area = Area.MODERATION
    rank = 9
    list_display = (
        handle_column("user", _("user")),
        "kind",
        "reason",
        "until",
        handle_column("by", _("by")),
        "created_at",
        "is_active",
    )
    list_filter = ("kind",)
    # Django's two fields have no labels, and their calendar styles itself inline.
    formfield_overrides: ClassVar[dict[Any, Any]] = {
        models.DateTimeField: {
            "form_class": forms.DateTimeField,
            "widget": forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M"),
        }
    }
    list_select_related = ("user", "by")
    search_fields = ("=user__username",)
    search_help_text = _("Full username.")
    autocomplete_fields = ("user",)
    ordering = ("-id",)
    delete_confirmation_template = "admin/moderation/senderrule/delete.html"
    delete_selected_confirmation_template = "admin/moderation/senderrule/delete_many.html"

    @admin.display(description=_("active"), boolean=True)
    def is_active(self, rule: SenderRule) -> bool:
        """Whether the user is active."""
        return rule.user.is_active

    def get_readonly_fields(self, request: HttpRequest, obj: SenderRule | None = None) -> tuple[str, ...]:
        """An existing rule keeps its user and its end."""
        return ("user", "until") if obj else ()

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer bans only to staff who may lift them."""
        if db_field.name == "kind" and not self.has_decide_permission(request):
            kwargs["choices"] = [choice for choice in db_field.get_choices() if choice[0] != SenderKind.BAN]
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    # --- Permissions
    def has_change_permission(self, request: HttpRequest, obj: SenderRule | None = None) -> bool:
        """Bans need the permission to decide."""
        return super().has_change_permission(request, obj) and self._may_change(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: SenderRule | None = None) -> bool:
        """Bans need the permission to decide."""
        return super().has_delete_permission(request, obj) and self._may_change(request, obj)

    def _may_change(self, request: HttpRequest, rule: SenderRule | None) -> bool:
        may_lift = rule is None or rule.kind != SenderKind.BAN or self.has_decide_permission(request)
        return may_lift and (rule is None or review.may_judge(rule.user, request.user))  # type: ignore[arg-type]

    # --- Writing
    form = SenderRuleForm

    def get_form(self, request: HttpRequest, obj: SenderRule | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Tell the form who the moderator is."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.by = request.user
        return form

    def save_model(self, request: HttpRequest, obj: SenderRule, form: Any, change: bool) -> None:
        """Save by the action, which logs it."""
        by: User = request.user  # type: ignore[assignment]
        grounds = Grounds(obj.reason)
        fields = {"kind": obj.kind, "by": by, "reason": obj.reason, "until": obj.until, "grounds": grounds}
        obj.pk = senders.list_sender(user=obj.user, **fields).pk  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: SenderRule) -> None:
        """Remove by the action, which logs it."""
        senders.unlist_sender(user=obj.user, by=request.user)  # type: ignore[arg-type]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SenderRule]) -> None:
        """Remove each."""
        for rule in queryset.select_related("user"):
            self.delete_model(request, rule)


# --- Words -----------------------------------------------------------------------------------------------
class ManyWordsForm(forms.Form):
    """Adds many words."""

    words = forms.CharField(
        label=_("Words"), widget=forms.Textarea(attrs={"rows": 15, "cols": 60}), help_text=_("One per line.")
    )
    whole = forms.BooleanField(label=_("Whole words only"), required=False, initial=True)
    note = forms.CharField(label=_("Note"), max_length=200, required=False)

    def clean_words(self) -> list[str]:
        """The words, one a line."""
        lines = self.cleaned_data["words"].splitlines()
        return [line.strip() for line in lines if line.strip()]


class HoldingRuleAdmin(ActingAdmin):
    """Rules that hold items."""

    area = Area.MODERATION

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Remove each."""
        for rule in queryset:
            self.delete_model(request, rule)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name only the rules."""
        names = [str(rule) for rule in objs]
        lacking = set() if self.has_delete_permission(request) else {self.opts.verbose_name}
        return names, {self.opts.verbose_name_plural: len(names)}, lacking, []


@admin.register(WordRule)
class WordRuleAdmin(HoldingRuleAdmin):
    """The word list."""

    rank = 10
    list_display = ("text", "whole", "is_enabled", "note", "hits")
    list_filter = ("is_enabled", "whole")
    search_fields = ("text", "note")
    list_editable = ("is_enabled",)
    ordering = ("text",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[WordRule]:
        """Add the number of cases."""
        words: QuerySet[WordRule] = super().get_queryset(request)
        return words.annotate(hits=count_referring(Case.words.through._default_manager.all(), "wordrule"))

    @admin.display(description=_("held"))
    def hits(self, rule: Any) -> int:
        """Cases that it opened or joined."""
        return int(rule.hits)

    def get_urls(self) -> list[URLPattern]:
        """Add the page for many words."""
        many = path("many/", self.admin_site.admin_view(self.many_view), name="moderation_wordrule_many")
        return [many, *super().get_urls()]

    def many_view(self, request: HttpRequest) -> HttpResponse:
        """Add many words, all or none."""
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
                    self.message_user(request, sentence_with_count(_words_added_text, new), messages.SUCCESS)
                if known := len(set(fields["words"])) - new:
                    self.message_user(request, sentence_with_count(_words_known_text, known), messages.WARNING)
                return redirect("admin:moderation_wordrule_changelist")
        context = self.admin_site.each_context(request) | {
            "title": gettext("Add words"),
            "opts": self.opts,
            "form": form,
        }
        return TemplateResponse(request, "admin/moderation/wordrule/many.html", context)

    def save_model(self, request: HttpRequest, obj: WordRule, form: Any, change: bool) -> None:
        """Save by the action, which logs it."""
        actions.save_word_rule(rule=obj, by=request.user)  # type: ignore[arg-type]

    def delete_model(self, request: HttpRequest, obj: WordRule) -> None:
        """Remove by the action, which logs it."""
        actions.delete_word_rule(rule=obj, by=request.user)  # type: ignore[arg-type]


def _words_added_text(n: int) -> str:
    return ngettext("%(count)s word added.", "%(count)s words added.", n)


def _words_known_text(n: int) -> str:
    return ngettext("%(count)s word was already listed.", "%(count)s words were already listed.", n)
