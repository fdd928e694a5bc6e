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
from django.views.decorators.http import require_POST, require_safe

from accounts import actions
from accounts.access import member_act, member_form
from accounts.avatars import TINTS, letter_of
from accounts.drawing import avatar_png, banner_png
from accounts.export import archive_response
from accounts.faces import FIELDS
from accounts.locale import browser_language, set_language_cookie
from accounts.models import User
from accounts.pages.forms import DeleteForm, PasswordForm, PreferencesForm, ProfileForm
from accounts.presenting import FacesError, update_profile
from accounts.signing_in import guard
from accounts.signing_in.step_up import is_proven, proof_required_with_factor, redirect_to_proof
from media.actions import MediaError
from media.files import CACHING
from web.pages import (
    INVALID,
    PageRequest,
    limited,
    next_page,
    redirect_next,
    redirect_to,
    set_shortcuts_cookie,
    set_theme_cookie,
    show,
    theme,
    uncounted,
    uses_shortcuts,
)
from web.uploads import some_media_bytes, takes_files


class LogoutView(DjangoLogoutView):
    """Ends the user's open streams too."""

    def post(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign out. The new CSRF token tells kept pages about it (asking.js)."""
        user_id = request.user.pk
        response = super().post(request, *args, **kwargs)
        rotate_token(request)
        if user_id:
            actions.end_streams(user_id=user_id)
        return response

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """The page to go to."""
        return next_page(request or self.request)


@csrf_exempt
@require_POST
def language(request: PageRequest) -> HttpResponse:
    """Switch the language. Without a CSRF token, so that all strangers get the same page."""
    if isinstance(request.user, User):
        return _member_language(request)
    return _set_language(request)


@csrf_protect
def _member_language(request: PageRequest) -> HttpResponse:
    return _set_language(request)


def _set_language(request: PageRequest) -> HttpResponse:
    chosen = request.POST.get("language", "")
    if chosen not in dict(django_settings.LANGUAGES):
        raise BadRequest("language is none of this site's")
    if isinstance(request.user, User):
        actions.edit_preferences(user=request.user, language=chosen)
    response = redirect_next(request, "home")
    set_language_cookie(response, chosen)
    return response


@member_form
@takes_files(some_media_bytes)
def settings(request: PageRequest, reader: User) -> HttpResponse:
    """The profile, the first page of the settings."""
    form = ProfileForm(request.POST or None, request.FILES or None, reader=reader)
    if form.is_valid():
        _save_profile(form, reader)
        if not form.errors:
            messages.success(request, _("Saved."))
            return redirect_to(request, reverse("settings-profile"))
    status = INVALID if form.errors else 200
    return show(request, "accounts/settings.html", {"form": form}, part="accounts/_profile.html", status=status)


def _save_profile(form: ProfileForm, reader: User) -> None:
    """Save the profile form, all or nothing. Errors are added to their fields."""
    fields = form.cleaned_data
    with ExitStack() as stack:
        files = {use: stack.enter_context(fields[name].open("rb")) for use, name in FIELDS.items() if fields[name]}
        removed = [use for use, name in FIELDS.items() if fields[f"remove_{name}"] and not fields[name]]
        try:
            update_profile(
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
            if "fields" in reasons:  # no input has this name
                form.add_error(None, reasons.pop("fields"))
            form.add_error(None, ValidationError(reasons))
        except FacesError as error:
            for use, reason in error.reasons.items():
                is_refusal = isinstance(reason, MediaError)
                said = str(reason) if is_refusal else _("We couldn't upload this file. Try again in a moment.")
                form.add_error(FIELDS[use], said)


@member_form
def preferences(request: PageRequest, reader: User) -> HttpResponse:
    names = (
        *("language", "time_zone", "is_indexable", "quotable_by", "takes_requests", "enter_sends"),
        *("post_visibility", "post_repliable_by", "post_sensitive", "post_language", "plays_videos", "text_size"),
    )
    initial = {name: getattr(reader, name) for name in names} | theme(request) | {"keys": uses_shortcuts(request)}
    form = PreferencesForm(request.POST or None, initial=initial)
    if form.is_valid():
        chosen: str = form.cleaned_data["language"]
        fields = {name: form.cleaned_data[name] for name in names}
        for name in ("quotable_by", "post_visibility", "post_repliable_by"):
            fields[name] = fields[name] or None  # pages from before the upgrade send none
        actions.edit_preferences(user=reader, **fields)
        with translation.override(chosen or browser_language(request)):
            messages.success(request, _("Saved."))
        response = redirect("settings-preferences")
        set_theme_cookie(response, form.cleaned_data["theme"])
        set_shortcuts_cookie(response, has_keys=form.cleaned_data["keys"])
        set_language_cookie(response, chosen)
        return response
    return _show_settings(request, "accounts/preferences.html", form)


@sensitive_post_parameters("current", "new")
@never_cache
@member_form
@proof_required_with_factor
@limited("password")
def password(request: PageRequest, reader: User) -> HttpResponse:
    """Change the password."""
    form = PasswordForm(request.POST or None)
    if form.is_valid():
        try:
            user = actions.change_password(user=reader, **form.cleaned_data)
        except ValidationError as error:
            add_errors(form, error, {"current_password": "current", "new_password": "new"})
        else:
            update_session_auth_hash(request, user)
            messages.success(request, _("Password changed. You're logged out on all other devices."))
            response = redirect("settings-password")
            guard.set_device_cookie(response, user)
            return response
    return _show_settings(request, "accounts/password.html", form)


@member_act
def log_out_everywhere(request: PageRequest, reader: User) -> HttpResponse:
    """End all other sessions and tokens."""
    user = actions.log_out_everywhere(user=reader)
    update_session_auth_hash(request, user)
    messages.success(request, _("You're logged out on all other devices."))
    response = redirect("settings-devices")
    guard.set_device_cookie(response, user)
    return response


@member_form
@limited("export")
def data(request: PageRequest, reader: User) -> HttpResponseBase:
    """Download one's data, after a proof that leads back: a download leaves the page open."""
    if request.method != "POST":
        return show(request, "accounts/data.html")
    return archive_response(reader) if is_proven(request) else redirect_to_proof(request.path)


@sensitive_post_parameters("password")
@never_cache
@member_form
@proof_required_with_factor
@limited("password")
def delete(request: PageRequest, reader: User) -> HttpResponse:
    """Delete one's account."""
    form = DeleteForm(reader, request.POST or None)
    if form.is_valid():
        try:
            actions.check_own_password(user=reader, password=form.cleaned_data["password"], field="password")
            actions.delete_account(user=reader, by_owner=True)
        except ValidationError as error:
            add_errors(form, error, {})
        except actions.LastSuperuserError:
            form.add_error(None, _("You're this site's last admin. Make another member an admin first."))
        else:
            logout(request)
            rotate_token(request)
            messages.success(request, _("Your account is deleted."))
            return redirect("login")
    return _show_settings(request, "accounts/delete.html", form)


@uncounted
@require_safe
def drawn_avatar(request: HttpRequest, number: int, code: str) -> HttpResponse:
    """A drawn avatar, without a query, cached."""
    letter = letter_of(code)
    if letter is None or number >= len(TINTS):
        raise Http404
    return _png_response(avatar_png(number, letter))


@uncounted
@require_safe
def drawn_banner(request: HttpRequest, number: int) -> HttpResponse:
    if number >= len(TINTS):
        raise Http404
    return _png_response(banner_png(number))


def _png_response(picture: bytes) -> HttpResponse:
    """A PNG that is cached, and usable by apps on other sites."""
    response = HttpResponse(picture, content_type="image/png")
    response["Cache-Control"] = CACHING
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    response["Access-Control-Allow-Origin"] = "*"
    return response


def _show_settings(request: PageRequest, template: str, form: forms.Form) -> HttpResponse:
    return show(request, template, {"form": form}, status=INVALID if form.errors else 200)


def add_errors(form: forms.Form, error: ValidationError, fields: dict[str, str]) -> None:
    """Show an action's errors in the form."""
    for field, problems in error.error_dict.items():
        form.add_error(fields.get(field, field), problems)
