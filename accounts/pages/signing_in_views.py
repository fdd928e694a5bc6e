"""Pages before a session."""

import json
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import BadRequest, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts import addresses
from accounts.models import User
from accounts.pages.forms import ANSWER_LENGTH, WAITING, WRONG_LOGIN, CodeForm, LoginForm, NewPasswordForm, ResetForm
from accounts.proofs import LoginEndedError
from accounts.signing_in import guard, recovery, second_factors, sign_in, suspension
from web import rates
from web.pages import (
    FORM_METHODS,
    INVALID,
    PageRequest,
    keeps_opener,
    limited,
    next_page,
    redirect_next,
    show,
    too_many,
)

GONE = 410


@keeps_opener
@sensitive_post_parameters("password")
@never_cache
@require_http_methods(FORM_METHODS)
def log_in(request: PageRequest) -> HttpResponse:
    """Sign in by name or address."""
    if request.user.is_authenticated:
        return redirect_next(request, "home")
    form = LoginForm(request.POST or None)
    if request.method == "POST":
        password = form.cleaned_data["password"] if form.is_valid() else ""
        try:
            user = sign_in.verify_login(request, name=request.POST.get("username", ""), password=password)
        except sign_in.TooManyAttemptsError as error:
            return too_many(request, error.seconds)
        except sign_in.SuspendedError as error:
            return _start_session(request, error.user)
        except sign_in.LoginRefusedError as error:
            if form.is_valid():
                form.add_error(None, WAITING if isinstance(error, sign_in.ApplicationPendingError) else WRONG_LOGIN)
        except sign_in.CodeNeededError as error:
            sign_in.remember_first_step(request, error.user)
            return redirect(_with_next(request, "login-code"))
        else:
            return _start_session(request, user)
    status = INVALID if form.errors else 200
    return show(request, "accounts/login.html", {"form": form, "next": next_page(request)}, status=status)


@keeps_opener
@never_cache
@require_http_methods(FORM_METHODS)
def log_in_code(request: PageRequest) -> HttpResponse:
    """The second factor, after the password."""
    user = sign_in.remembered_user(request)
    if user is None:
        return redirect(_with_next(request, "login"))
    form = CodeForm(request.POST or None)
    if form.is_valid():
        try:
            sign_in.check_code(request, user=user, code=form.cleaned_data["code"])
        except sign_in.TooManyAttemptsError as error:
            return too_many(request, error.seconds)
        except sign_in.WrongCodeError:
            form.add_error(
                "code", _("Wrong or expired code. Each code works once, for a short time. Try the next one.")
            )
        else:
            return _start_session(request, user)
    context = {"form": form, "next": next_page(request), "has_passkey": second_factors.has_passkey(user)}
    return show(request, "accounts/login_code.html", context, status=INVALID if form.errors else 200)


@never_cache
@require_POST
def passkey_options(request: PageRequest) -> HttpResponse:
    """A challenge for a passkey."""
    wait = guard.count_passkey_attempt(request)
    if wait is not None:
        return too_many(request, wait)
    return JsonResponse(second_factors.passkey_options(user=sign_in.remembered_user(request), session=request.session))


@keeps_opener
@never_cache
@require_POST
def log_in_passkey(request: PageRequest) -> HttpResponse:
    """Sign in by passkey, which is both factors."""
    wait = guard.count_passkey_attempt(request)
    if wait is not None:
        return too_many(request, wait)
    refusal = _("This passkey isn't registered here. Try another way to log in.")
    try:
        user = second_factors.use_passkey(
            user=sign_in.remembered_user(request),
            session=request.session,
            answer=parse_passkey_answer(request.POST.get("answer", "")),
        )
    except second_factors.SecondFactorRefusedError:
        return _refuse(request, refusal)
    return _start_session(request, user, refusal)


def parse_passkey_answer(text: str) -> Any:
    """A passkey's answer. Raises BadRequest."""
    try:
        answer = json.loads(text) if len(text) <= ANSWER_LENGTH else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise BadRequest("the answer is no JSON object")
    return answer


def _start_session(request: PageRequest, user: User, refusal: str = "") -> HttpResponseRedirect:
    """Start a session, or lead a suspended user to the page that says so."""
    try:
        if sign_in.check_active(user):
            return redirect("suspended", suspension.make_right(user))
        sign_in.start_session(request, user)
    except (LoginEndedError, sign_in.LoginRefusedError):
        return _refuse(request, refusal or str(WRONG_LOGIN))
    response = redirect_next(request, "home")
    guard.set_device_cookie(response, user)
    return response


def _refuse(request: HttpRequest, words: str) -> HttpResponseRedirect:
    messages.error(request, words)
    return redirect(_with_next(request, "login"))


def _with_next(request: HttpRequest, name: str) -> str:
    target = next_page(request)
    return f"{reverse(name)}?{urlencode({'next': target})}" if target else reverse(name)


# --- Forgotten passwords ---------------------------------------------------------------------------------
@never_cache
@require_http_methods(FORM_METHODS)
def request_reset(request: PageRequest) -> HttpResponse:
    """Request a reset letter. Unknown accounts get the same answer."""
    form = ResetForm(request.POST or None)
    if form.is_valid():
        wait = rates.hit("reset", rates.address(request))
        if wait is not None:
            return too_many(request, wait)
        recovery.request_reset(asked=form.cleaned_data["username_or_email"], language=translation.get_language() or "")
        return redirect("password-reset-asked")
    return show(request, "accounts/reset.html", {"form": form}, status=INVALID if form.errors else 200)


@require_http_methods(["GET", "HEAD"])
def reset_asked(request: PageRequest) -> HttpResponse:
    """Say that a letter comes if there is an account."""
    return show(request, "accounts/reset_asked.html")


@sensitive_post_parameters("new")
@never_cache
@require_http_methods(FORM_METHODS)
def reset(request: PageRequest, number: str, token: str) -> HttpResponse:
    """Set a password by link, once, in any browser."""
    wait = rates.hit("reset", rates.address(request))
    if wait is not None:
        return too_many(request, wait)
    user = recovery.user_of_link(number, token)
    form = NewPasswordForm(request.POST or None)
    if user is not None and form.is_valid():
        try:
            recovery.set_password(number=number, token=token, new=form.cleaned_data["new"])
        except recovery.SpentResetError:
            user = None
        except ValidationError as error:
            form.add_error("new", error.error_dict["new_password"])
        else:
            messages.success(request, _("Your new password is set. You can log in now."))
            return redirect("login")
    if user is None:
        return show(request, "accounts/reset_link.html", {"form": None}, status=GONE)
    context = {"form": form, "person": user}
    return show(request, "accounts/reset_link.html", context, status=INVALID if form.errors else 200)


@never_cache
@limited("email")
@require_http_methods(FORM_METHODS)
def verify_email(request: PageRequest, key: str) -> HttpResponse:
    """Confirm an address by link. It takes a click, because programs open links in advance."""
    row = addresses.address_of_link(key)
    if request.method == "POST" and row is not None:
        try:
            addresses.prove_by_link(key=key)
        except addresses.SpentLinkError:
            row = None
        else:
            messages.success(request, _("Your email address is confirmed."))
            return redirect("settings-email")
    return show(request, "accounts/verify_email.html", {"row": row}, status=200 if row is not None else GONE)
