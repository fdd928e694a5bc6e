from typing import Any

import msgspec
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy, normalize_newlines
from django.utils.translation import gettext_lazy as _

from accounts.about import actions, colours, legal
from accounts.about.logo import icon_url, set_logo
from accounts.about.models import ANNOUNCEMENT_LENGTH, Rule, SiteSettings
from accounts.about.site import Site, current
from media.actions import MediaError
from media.decoder import DecoderBusyError
from media.files import StoreError
from web.admin import Area, QuickListAdmin, confirmation_page, is_writing
from web.uploads import one_medium_bytes

ANNOUNCEMENTS = {f"announcement_{code.replace('-', '_')}": code for code, _name in settings.LANGUAGES}
"""Fields of the announcement in languages."""
PREVIEW = "_preview"
"""Name of the preview button. A POST with it shows a preview and saves nothing."""


LONG = forms.Textarea(attrs={"rows": 16, "cols": 80})


class SiteForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The site's row, and a file for the logo."""

    new_logo = forms.FileField(
        label=_("New logo"),
        required=False,
        help_text=_("Choose a picture, or drop it on the field. We crop it to a square."),
        widget=forms.FileInput(attrs={"accept": "image/*", "data-preview": _("Preview")}),
    )
    remove_logo = forms.BooleanField(label=_("Remove logo"), required=False)

    class Meta:
        widgets = {
            "accent": forms.TextInput(attrs={"type": "color"}),
            "announcement": forms.Textarea(attrs={"rows": 3}),
            "terms": LONG,
            "privacy": LONG,
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        instance: SiteSettings = options["instance"]
        shown = {name: instance.announcements.get(code, "") for name, code in ANNOUNCEMENTS.items()}
        shown |= {"terms": instance.terms or legal.draft_of_terms()}
        shown |= {"accent": instance.accent or colours.OWN}
        shown |= {"privacy": instance.privacy or legal.draft_of_privacy()}
        super().__init__(*args, **options | {"initial": shown | options.get("initial", {})})

    def clean(self) -> dict[str, Any]:
        """Put the announcements of languages into one column."""
        cleaned: dict[str, Any] = super().clean() or {}
        said = {code: cleaned.get(name, "").strip() for name, code in ANNOUNCEMENTS.items()}
        return cleaned | {"announcements": {code: text for code, text in said.items() if text}}

    def clean_accent(self) -> str:
        """The color, or "" for the default, which a field of colors cannot leave empty."""
        accent: str = self.cleaned_data["accent"]
        return "" if accent.lower() == colours.OWN else accent

    def clean_terms(self) -> str:
        """The admin's text, or "" for the draft, so that it follows the software."""
        return _own_text(self.cleaned_data["terms"], legal.draft_of_terms())

    def clean_privacy(self) -> str:
        """As `clean_terms`."""
        return _own_text(self.cleaned_data["privacy"], legal.draft_of_privacy())

    def clean_contact_username(self) -> str:
        """The username as its owner spells it, or "". Raises ValidationError if nobody has it."""
        name: str = self.cleaned_data["contact_username"]
        user = get_user_model().objects.active().named(name).first() if name else None
        if name and user is None:
            raise forms.ValidationError(_("Nobody here has this username."))
        return user.username if user else ""


def _own_text(text: str, draft: str) -> str:
    text = normalize_newlines(text).strip()
    return "" if text == draft else text


class OwnersAdmin(QuickListAdmin):
    """Rows for superusers only."""

    area = Area.SITE
    rank = 50

    def wants_proof(self, request: HttpRequest) -> bool:
        """Whether the request changes something, or opens a form that does."""
        return is_writing(request)

    def _may(self, request: HttpRequest) -> bool:
        return bool(getattr(request.user, "is_superuser", False))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return self._may(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return self._may(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return self._may(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return self._may(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return self._may(request)


SiteForm.declared_fields.update(
    {
        name: forms.CharField(
            label=format_lazy(_("announcement in {language}"), language=dict(settings.LANGUAGES)[code]),
            required=False,
            max_length=ANNOUNCEMENT_LENGTH,
            widget=forms.Textarea(attrs={"rows": 3}),
        )
        for name, code in ANNOUNCEMENTS.items()
    }
)


@admin.register(SiteSettings)
class SiteAdmin(OwnersAdmin):
    """The one row. The first save creates it."""

    rank = 1
    form = SiteForm
    takes_files = {"POST": one_medium_bytes}
    # Django's two fields have no labels, and their calendar styles itself inline.
    formfield_overrides = {
        models.DateTimeField: {
            "form_class": forms.DateTimeField,
            "widget": forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M"),
        }
    }
    change_form_template = "admin/about/site.html"
    readonly_fields = ("logo_now",)
    fieldsets = (
        (_("Name and description"), {"fields": ("name", "short_description", "description")}),
        (_("Contact"), {"fields": ("contact_email", "contact_username")}),
        (_("Appearance"), {"fields": ("logo_now", "new_logo", "remove_logo", "accent")}),
        (_("Access and language"), {"fields": ("looking", "sign_up", "members_invite", "language", "time_zone")}),
        (_("Announcement"), {"fields": ("announcement", *ANNOUNCEMENTS, "announcement_until")}),
        (_("Terms and privacy"), {"fields": ("terms", "privacy", "shows_figures")}),
    )

    class Media:
        js = ("about/logo.js",)

    @admin.display(description=_("logo"))
    def logo_now(self, row: SiteSettings) -> SafeString:
        """The current logo."""
        return format_html('<img class="logo" src="{}" alt="">', icon_url(row.logo, "icon-192"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """False: there is one site."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: there is one site."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Skip the list of one row."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return redirect("admin:about_sitesettings_change", 1)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> SiteSettings:
        """The row, or an unsaved one."""
        return SiteSettings.objects.filter(pk=1).first() or SiteSettings()

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The form or its preview."""
        if request.method == "POST" and PREVIEW in request.POST and self.has_change_permission(request):
            row = self.get_object(request, object_id or "1")
            form = self.get_form(request, row, change=True)(request.POST, request.FILES, instance=row)
            if form.is_valid():
                return self._preview(request, form.cleaned_data)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _preview(self, request: HttpRequest, fields: dict[str, Any]) -> HttpResponse:
        said = {name: value for name, value in fields.items() if name in Site.__struct_fields__}
        site = msgspec.structs.replace(current(), **said, chosen_sign_up=fields["sign_up"])
        return TemplateResponse(request, "about/preview.html", {"previewed": site})

    def save_model(self, request: HttpRequest, obj: SiteSettings, form: Any, change: bool) -> None:
        """Write only edited columns: counts change meanwhile."""
        columns = {field.name for field in SiteSettings._meta.concrete_fields}
        changed = {name: form.cleaned_data[name] for name in form.changed_data if name in columns}
        if ANNOUNCEMENTS.keys() & set(form.changed_data):
            changed["announcements"] = form.cleaned_data["announcements"]
        actions.change_settings(**changed)
        file = form.cleaned_data["new_logo"]
        if file is None and not form.cleaned_data["remove_logo"]:
            return
        try:
            if file is None:
                set_logo(file=None)
            else:
                with file.open("rb") as opened:
                    set_logo(file=opened)
        except MediaError as error:
            self.message_user(request, str(error), messages.ERROR)
        except (DecoderBusyError, StoreError):
            self.message_user(request, _("We couldn't upload this file. Try again in a moment."), messages.ERROR)

    def response_change(self, request: HttpRequest, obj: SiteSettings) -> HttpResponse:
        """Show the form again."""
        self.message_user(request, _("Saved. All pages show it within five seconds."), messages.SUCCESS)
        return redirect("admin:about_sitesettings_change", 1)


@admin.register(Rule)
class RuleAdmin(OwnersAdmin):
    """Rules in order."""

    list_display = ("number", "text")
    list_display_links = ("text",)
    fields = ("number", "text")
    ordering = ("number", "id")
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rule]:
        """The rules in force."""
        return super().get_queryset(request).filter(withdrawn_at=None)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Suggest the next number."""
        return {"number": len(current().rules) + 1}

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        """Save through `actions.save_rule`."""
        actions.save_rule(rule=obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask first, then withdraw the rule."""
        rule = self.get_object(request, object_id)
        if rule is None or not self.has_delete_permission(request, rule):
            raise PermissionDenied
        if request.method != "POST":
            return confirmation_page(
                self.admin_site,
                request,
                self.opts,
                title=str(_("Remove rule")),
                meaning=str(_("Members won't see this rule anymore. Reports that name it keep it.")),
                button=str(_("Remove this rule")),
                lines=[str(rule)],
                fields=[],
            )
        if actions.withdraw_rule(rule_id=rule.pk):
            self.log_change(request, rule, "Withdrawn.")
        return redirect(reverse("admin:about_rule_changelist"))
