from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.people import badged_username
from media.actions import MediaError, fingerprint
from media.admin import thumbnails
from media.decoder import DecoderBusyError
from media.files import StoreError
from media.models import MediaFile
from moderation import hashes, reading
from moderation.models import PictureAttempt, PictureRule
from moderation.rule_admin import HoldingRuleAdmin
from web.rest import parse_id
from web.uploads import one_medium_bytes

SHOWN = 50
"""Newest attempts on a rule's page."""


class PictureRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A rule, from a file or the id of a picture of the site."""

    file = forms.FileField(
        label=_("Picture or video"), required=False, help_text=_("We only compare it. We don't keep it.")
    )
    medium = forms.CharField(label=_("picture"), required=False, widget=forms.HiddenInput)
    reader: User
    """The moderator."""

    class Meta:
        model = PictureRule
        fields = ("action", "distance", "note", "is_enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.instance.reader = self.reader  # for the page's pictures
        if not self.instance.pk:  # the page shows the picture
            self.instance.medium_id = parse_id(str(self.initial.get("medium") or ""))

    def clean(self) -> dict[str, Any]:
        """Compute the hashes. Raises ValidationError."""
        fields: dict[str, Any] = self.cleaned_data
        if self.instance.pk or self.errors:
            return fields
        if medium := parse_id(fields.get("medium") or ""):
            row = _medium(medium, self.reader)
            if row is None:
                raise forms.ValidationError(_("This picture is gone."))
            self.instance.sha256, self.instance.phash, self.instance.medium_id = row.sha256, row.phash, row.pk
        elif file := fields.get("file"):
            self.instance.medium_id = None
            self._hash_file(file)
        else:
            raise forms.ValidationError({"file": _("Choose a picture or a video.")})
        known = PictureRule.objects.filter(sha256=self.instance.sha256).first()
        if known:
            raise forms.ValidationError(_already_blocked_text(known))
        if PictureRule.objects.count() >= hashes.RULES:
            raise forms.ValidationError(_too_many_rules_text())
        return fields

    def _hash_file(self, file: Any) -> None:
        try:
            with file.open("rb") as opened:
                self.instance.sha256, self.instance.phash = fingerprint(opened)
        except MediaError as error:
            raise forms.ValidationError({"file": str(error)}) from error
        except (DecoderBusyError, StoreError) as error:
            words = _("We couldn't upload this file. Try again in a moment.")
            raise forms.ValidationError({"file": words}) from error


@admin.register(PictureRule)
class PictureRuleAdmin(HoldingRuleAdmin):
    """Blocked pictures. Changes apply to later uploads."""

    rank = 11
    form = PictureRuleForm
    takes_files = {"POST": one_medium_bytes}
    list_display = ("note", "action", "compared", "is_enabled", "attempts", "last_attempt_at", "created_at")
    list_filter = ("action", "is_enabled")
    search_fields = ("note", "=sha256")
    ordering = ("-id",)
    readonly_fields = ("shot", "compared", "sha256", "tries", "on_site")

    def get_fieldsets(self, request: HttpRequest, obj: PictureRule | None = None) -> Any:
        """Fields of a new or existing rule."""
        rule = ("action", "distance", "note", "is_enabled")
        if obj is None:
            return [(None, {"fields": ("shot" if request.GET.get("medium") else "file", *rule, "medium")})]
        return [
            (None, {"fields": ("shot", *rule, "compared", "sha256")}),
            (_("Attempts"), {"fields": ("tries",)}),
            (_("Already on the site"), {"fields": ("on_site",)}),
        ]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The id of a picture from the address. A case's page links so."""
        return {"medium": request.GET.get("medium", "")}

    def get_form(
        self, request: HttpRequest, obj: PictureRule | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Tell the form who reads."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.reader = request.user
        return form

    # --- Columns
    @admin.display(description=_("matches"))
    def compared(self, rule: PictureRule) -> Any:
        """Whether it finds similar pictures too."""
        return _("this file only") if rule.phash is None else _("similar pictures too")

    @admin.display(description=_("picture"))
    def shot(self, rule: Any) -> str:
        """The original picture, veiled, if it still exists and the caller may see it."""
        row = _medium(rule.medium_id, rule.reader) if rule.medium_id else None
        return thumbnails([row], is_veiled=True, is_unmarked=True) if row else "-"

    @admin.display(description=_("latest"))
    def tries(self, rule: PictureRule) -> str:
        """The newest attempts: user, time, held item."""
        newest = PictureAttempt.objects.filter(rule=rule).select_related("user").order_by("-pk")[:SHOWN]
        lines = [
            (
                date_format(one.at, "Y-m-d H:i"),
                reverse("admin:accounts_user_change", args=[one.user_id]),
                badged_username(one.user),
                _item_link(one.item_id),
            )
            for one in newest
        ]
        return format_html_join("", '<div>{} <a href="{}">@{}</a>{}</div>', lines) or "-"

    @admin.display(description=_("pictures"))
    def on_site(self, rule: Any) -> str:
        """The newest matches that the caller may see, with their items."""
        found = [one for one in hashes.matching_media(rule) if reading.may_open(one, rule.reader)]
        items = format_html_join("", "<div>{}</div>", [(_item_link(one.item_id),) for one in found if one.item_id])
        return format_html("{}{}", thumbnails(found, is_veiled=True, is_unmarked=True), items) if found else "-"

    # --- Writing
    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        """If another admin just added the same rule, show theirs."""
        try:
            return super().changeform_view(request, *args, **options)
        except hashes.DuplicateHashError as error:
            self.message_user(request, _already_blocked_text(error.rule), messages.ERROR)
            return redirect("admin:moderation_picturerule_change", error.rule.pk)
        except hashes.TooManyRulesError:
            self.message_user(request, _too_many_rules_text(), messages.ERROR)
            return redirect("admin:moderation_picturerule_changelist")

    def save_model(self, request: HttpRequest, obj: PictureRule, form: Any, change: bool) -> None:
        """Save by the action, which logs it."""
        by: User = request.user  # type: ignore[assignment]
        if change:
            hashes.change_rule(rule=obj, by=by)
            return
        hashes.block(rule=obj, by=by)
        if obj.phash is None and not obj.medium_id:
            self.message_user(request, gettext("Only this exact file will be found."), messages.INFO)

    def delete_model(self, request: HttpRequest, obj: PictureRule) -> None:
        """Remove by the action, which logs it."""
        hashes.unblock(rule=obj, by=request.user)  # type: ignore[arg-type]


def _medium(medium_id: int, reader: User) -> MediaFile | None:
    row = MediaFile.objects.filter(pk=medium_id, is_private=False).first()
    return row if row and reading.may_open(row, reader) else None


def _already_blocked_text(rule: PictureRule) -> str:
    return gettext("Already blocked: “%(rule)s”.") % {"rule": rule}


def _too_many_rules_text() -> str:
    return gettext("You've reached the limit of %(count)d rules. Delete one first.") % {"count": hashes.RULES}


def _item_link(item_id: int | None) -> SafeString:
    if item_id is None:
        return SafeString()
    address = reverse("admin:items_item_change", args=[item_id])
    return format_html(' <a href="{}">{}</a>', address, _("post %(id)s") % {"id": item_id})
