"""The pages of accounts: settings, languages, logging out, drawn pictures."""

from contextlib import ExitStack
from typing import Any

from django import forms
from django.conf import settings as django_settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.views import LogoutView as DjangoLogoutView
from django.core.exceptions import BadRequest, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import rotate_token
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import actions
from accounts.access import signed_in
from accounts.avatars import TINTS, banner, drawing, letter_of
from accounts.export import archive_response
from accounts.faces import FIELDS
from accounts.forms import DeleteForm, PasswordForm, PreferencesForm, ProfileForm
from accounts.locale import browser_language, set_language_cookie
from accounts.models import User
from accounts.presenting import FacesError, present
from accounts.signing_in import guard
from accounts.signing_in.step_up import ask, is_proven, proven_by_factor
from media.actions import MediaError
from media.files import CACHING
from web.pages import (
    FORM_METHODS,
    INVALID,
    PageRequest,
    go_on,
    go_to,
    has_keys,
    limited,
    next_page,
    set_keys_cookie,
    set_theme_cookie,
    show,
    theme,
    uncounted,
)


class LogoutView(DjangoLogoutView):
    """Django's; what the session has open elsewhere ends with it. Pages that the browser keeps show nothing more."""

    def post(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign out, and end the user's open streams. By the new token kept pages know of it (asking.js)."""
        user_id = request.user.pk
        response = super().post(request, *args, **kwargs)
        rotate_token(request)
        if user_id:
            actions.end_streams(user_id=user_id)
        return response

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """The page to go on with."""
        return next_page(request or self.request)


@csrf_exempt
@require_POST
@limited("write")
def language(request: PageRequest) -> HttpResponse:
    """The language switch: strangers keep their choice in the browser, users with their account too.

    The form of strangers has no token, so that all of them can be shown the same bytes (items/open_pages.py).
    """
    if isinstance(request.user, User):
        return _member_language(request)
    return _chosen_language(request)


@csrf_protect
def _member_language(request: PageRequest) -> HttpResponse:
    return _chosen_language(request)


def _chosen_language(request: PageRequest) -> HttpResponse:
    chosen = request.POST.get("language", "")
    if chosen not in dict(django_settings.LANGUAGES):
        raise BadRequest("language is none of this site's")
    if isinstance(request.user, User):
        actions.edit_preferences(user=request.user, language=chosen)
    response = go_on(request, "home")
    set_language_cookie(response, chosen)
    return response


@signed_in
@limited("write")
@require_http_methods(FORM_METHODS)
def settings(request: PageRequest, reader: User) -> HttpResponse:
    """How one presents oneself; the first page of the settings shows it beside the list of the others."""
    form = ProfileForm(request.POST or None, request.FILES or None, reader=reader)
    if form.is_valid():
        _present(form, reader)
        if not form.errors:
            messages.success(request, _("Saved."))
            return go_to(request, reverse("settings-profile"))
    status = INVALID if form.errors else 200
    return show(request, "accounts/settings.html", {"form": form}, part="accounts/_profile.html", status=status)


def _present(form: ProfileForm, reader: User) -> None:
    """Change what the form says, all or nothing; a refusal stands at its field."""
    fields = form.cleaned_data
    with ExitStack() as stack:
        files = {use: stack.enter_context(fields[name].open("rb")) for use, name in FIELDS.items() if fields[name]}
        removed = [use for use, name in FIELDS.items() if fields[f"remove_{name}"] and not fields[name]]
        try:
            present(
                user=reader,
                display_name=fields["display_name"],
                bio=fields["bio"],
                fields=form.chosen_fields,
                is_locked=fields["is_locked"],
                files=files,
                removed=removed,
            )
        except ValidationError as error:
            reasons = error.error_dict
            if "fields" in reasons:  # it names no input of the form
                form.add_error(None, reasons.pop("fields"))
            form.add_error(None, ValidationError(reasons))
        except FacesError as error:
            for use, reason in error.reasons.items():
                is_refusal = isinstance(reason, MediaError)
                said = str(reason) if is_refusal else _("The file could not be taken just now. Try again in a moment.")
                form.add_error(FIELDS[use], said)


@signed_in
@limited("write")
@require_http_methods(FORM_METHODS)
def preferences(request: PageRequest, reader: User) -> HttpResponse:
    """Theme, language, time zone and keys, whether search engines list what one says, who may quote it, and whether
    strangers may write to one.
    """
    names = ("language", "time_zone", "is_indexable", "quotable_by", "takes_requests")
    initial = {name: getattr(reader, name) for name in names} | theme(request) | {"keys": has_keys(request)}
    form = PreferencesForm(request.POST or None, initial=initial)
    if form.is_valid():
        chosen: str = form.cleaned_data["language"]
        fields = {name: form.cleaned_data[name] for name in names}
        fields["quotable_by"] = fields["quotable_by"] or None  # a page of before the upgrade sends none
        actions.edit_preferences(user=reader, **fields)
        with translation.override(chosen or browser_language(request)):
            messages.success(request, _("Saved."))
        response = redirect("settings-preferences")
        set_theme_cookie(response, form.cleaned_data["theme"])
        set_keys_cookie(response, has_keys=form.cleaned_data["keys"])
        set_language_cookie(response, chosen)
        return response
    return _settings(request, "accounts/preferences.html", form)


@sensitive_post_parameters("current", "new")
@never_cache
@signed_in
@proven_by_factor
@limited("password")
@require_http_methods(FORM_METHODS)
def password(request: PageRequest, reader: User) -> HttpResponse:
    """Change the password. This session goes on, all others and the API tokens end."""
    form = PasswordForm(request.POST or None)
    if form.is_valid():
        try:
            user = actions.change_password(user=reader, **form.cleaned_data)
        except ValidationError as error:
            tell(form, error, {"current_password": "current", "new_password": "new"})
        else:
            update_session_auth_hash(request, user)
            messages.success(request, _("Your password is changed. You are logged out everywhere else."))
            response = redirect("settings-password")
            guard.remember(response, user)
            return response
    return _settings(request, "accounts/password.html", form)


@require_POST
@signed_in
@limited("write")
def log_out_everywhere(request: PageRequest, reader: User) -> HttpResponse:
    """End all other sessions, and the API tokens."""
    user = actions.log_out_everywhere(user=reader)
    update_session_auth_hash(request, user)
    messages.success(request, _("You are logged out everywhere else."))
    response = redirect("settings-devices")
    guard.remember(response, user)
    return response


@signed_in
@limited("export")
@require_http_methods(FORM_METHODS)
def data(request: PageRequest, reader: User) -> HttpResponseBase:
    """Download everything that the site keeps of oneself, after a proof; a download leaves the page that it is asked on
    open, so the proof leads back to it.
    """
    if request.method != "POST":
        return show(request, "accounts/data.html")
    return archive_response(reader) if is_proven(request) else ask(request.path)


@sensitive_post_parameters("password")
@never_cache
@signed_in
@proven_by_factor
@limited("password")
@require_http_methods(FORM_METHODS)
def delete(request: PageRequest, reader: User) -> HttpResponse:
    """Leave for good."""
    form = DeleteForm(reader, request.POST or None)
    if form.is_valid():
        try:
            actions.check_own_password(user=reader, password=form.cleaned_data["password"], field="password")
            actions.delete_account(user=reader)
        except ValidationError as error:
            tell(form, error, {})
        except actions.LastSuperuserError:
            form.add_error(
                None, _("You are the last administrator of this site. Make another member administrator first.")
            )
        else:
            logout(request)
            rotate_token(request)
            messages.success(request, _("Your account is deleted."))
            return redirect("login")
    return _settings(request, "accounts/delete.html", form)


@uncounted
@require_safe
def drawn_avatar(request: HttpRequest, number: int, code: str) -> HttpResponse:
    """The avatar of users without a picture. The address says all, so that no statement is made, and what it says stays
    the same.
    """
    letter = letter_of(code)
    if letter is None or number >= len(TINTS):
        raise Http404
    return _drawn(drawing(number, letter))


@uncounted
@require_safe
def drawn_banner(request: HttpRequest, number: int) -> HttpResponse:
    """The banner of users without a picture."""
    if number >= len(TINTS):
        raise Http404
    return _drawn(banner(number))


def _drawn(picture: str) -> HttpResponse:
    """A picture that stays the same, and that apps in browsers show on pages of other sites, as pictures are."""
    response = HttpResponse(picture, content_type="image/svg+xml")
    response["Cache-Control"] = CACHING
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    response["Access-Control-Allow-Origin"] = "*"
    return response


def _settings(request: PageRequest, template: str, form: forms.Form) -> HttpResponse:
    return show(request, template, {"form": form}, status=INVALID if form.errors else 200)


def tell(form: forms.Form, error: ValidationError, fields: dict[str, str]) -> None:
    """Show at the form what a verb refused; `fields` names those that the form calls otherwise."""
    for field, problems in error.error_dict.items():
        form.add_error(fields.get(field, field), problems)
