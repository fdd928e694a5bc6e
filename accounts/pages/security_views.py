"""Pages of account security."""

from typing import Any

import pyotp
import qrcode
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from qrcode.image.svg import SvgPathImage

from accounts import actions, addresses
from accounts.access import READER_FIELD, member_act, member_form, member_page
from accounts.models import User
from accounts.pages.forms import AddressCodeForm, AddressForm, AppForm, PasskeyForm, ProofForm
from accounts.pages.signing_in_views import parse_passkey_answer
from accounts.signing_in import places, second_factors, sign_in, step_up
from accounts.signing_in.second_factors import Type
from web.pages import INVALID, PageRequest, is_local, limited, next_page, redirect_next, show, too_many

APP_SECRET = "app_secret"  # noqa: S105 (a session key)


# --- Proving who one is ----------------------------------------------------------------------------------
@sensitive_post_parameters("password", "code")
@never_cache
@member_form
@limited("password")
def confirm(request: PageRequest, reader: User) -> HttpResponse:
    """Ask for password and second factor, then send a waiting POST."""
    has_factor = second_factors.has_factor(reader)
    is_answer = request.method == "POST" and "act" not in request.GET
    form = ProofForm(request.POST if is_answer else None, asks_code=has_factor)
    if form.is_valid():
        try:
            actions.check_own_password(user=reader, password=form.cleaned_data["password"], field="password")
            if has_factor:
                sign_in.check_code(request, user=reader, code=form.cleaned_data["code"])
        except ValidationError as error:
            form.add_error("password", error.error_dict["password"])
        except sign_in.TooManyAttemptsError as error:
            return too_many(request, error.seconds)
        except sign_in.WrongCodeError:
            form.add_error(
                "code", _("Wrong or expired code. Each code works once, for a short time. Try the next one.")
            )
        else:
            return _redirect_proven(request)
    context = {"form": form, "next": next_page(request), "has_passkey": second_factors.has_passkey(reader)}
    context |= _original_post(request)
    return show(request, "accounts/confirm.html", context, status=INVALID if form.errors else 200)


@never_cache
@member_act
@limited("password")
def confirm_options(request: PageRequest, reader: User) -> HttpResponse:
    """Challenge for the reader's passkeys."""
    return JsonResponse(second_factors.passkey_options(user=reader, session=request.session))


@never_cache
@member_act
@limited("password")
def confirm_passkey(request: PageRequest, reader: User) -> HttpResponse:
    """Prove one's identity by passkey."""
    try:
        second_factors.use_passkey(
            user=reader, session=request.session, answer=parse_passkey_answer(request.POST.get("answer", ""))
        )
    except second_factors.SecondFactorRefusedError:
        messages.error(request, _("This passkey isn't registered here. Try another way to log in."))
        return redirect("confirm-identity")
    return _redirect_proven(request)


OWN_FIELDS = frozenset({"csrfmiddlewaretoken", READER_FIELD, "act", "next", "password", "code", "answer"})
"""Fields of the proof page. It carries all others."""


def _original_post(request: HttpRequest) -> dict[str, Any]:
    """The action and fields that the proof page carries. Read only from a POST, so that no link can name the target."""
    if request.method != "POST":
        return {"act": "", "carried": []}
    act = request.GET.get("act") or request.POST.get("act", "")
    fields = [(name, value) for name, values in request.POST.lists() if name not in OWN_FIELDS for value in values]
    return {"act": act, "carried": fields}


def _redirect_proven(request: HttpRequest) -> HttpResponseRedirect:
    step_up.record_proof(request)
    act = request.POST.get("act", "")
    if is_local(act):
        return HttpResponseRedirect(act, preserve_request=True)
    return redirect_next(request, "settings")


# --- The account, and its e-mail address -----------------------------------------------------------------
@never_cache
@member_page
def account(request: PageRequest, reader: User) -> HttpResponse:
    """Show log-in data and the account's deletion."""
    context = {"proven": addresses.confirmed_address(reader), "waiting": addresses.unconfirmed_address(reader)}
    return show(request, "accounts/account.html", context)


@never_cache
@member_form
@step_up.proof_required_to_post
@limited("email")
def email(request: PageRequest, reader: User) -> HttpResponse:
    """Add or change the e-mail address."""
    form = AddressForm(request.POST or None)
    if form.is_valid():
        try:
            addresses.add(user=reader, address=form.cleaned_data["email"])
        except ValidationError as error:
            form.add_error("email", error.error_dict["email"])
        else:
            messages.success(
                request, _("We sent you an email. Open its link or enter its code to confirm your address.")
            )
            return redirect("settings-email")
    return _show_email(request, reader, form, AddressCodeForm())


@never_cache
@member_act
@limited("email")
def email_code(request: PageRequest, reader: User) -> HttpResponse:
    """Confirm the address by code."""
    form = AddressCodeForm(request.POST)
    if form.is_valid():
        try:
            addresses.prove_by_code(user=reader, code=form.cleaned_data["code"])
        except addresses.SpentLinkError:
            form.add_error("code", _("Wrong or expired code. After five wrong tries, send a new email."))
        else:
            messages.success(request, _("Your email address is confirmed."))
            return redirect("settings-email")
    return _show_email(request, reader, AddressForm(), form)


@member_act
@step_up.proof_required_to_post
@limited("email")
def email_again(request: PageRequest, reader: User) -> HttpResponse:
    """Send the confirmation letter again."""
    if addresses.send_again(user=reader):
        messages.success(request, _("We sent you an email. Open its link or enter its code to confirm your address."))
    return redirect("settings-email")


@member_act
@step_up.proof_required_to_post
@limited("email")
def email_remove(request: PageRequest, reader: User) -> HttpResponse:
    """Remove the address."""
    try:
        if addresses.remove(user=reader):
            messages.success(request, _("Your email address is removed."))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return redirect("settings-email")


def _show_email(request: PageRequest, reader: User, form: AddressForm, code: AddressCodeForm) -> HttpResponse:
    context = {
        "form": form,
        "code": code,
        "proven": addresses.confirmed_address(reader),
        "waiting": addresses.unconfirmed_address(reader),
    }
    is_wrong = form.errors or code.errors
    return show(request, "accounts/email.html", context, status=INVALID if is_wrong else 200)


# --- Where one is signed in ------------------------------------------------------------------------------
@never_cache
@member_page
def devices(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's sessions, API tokens and apps."""
    places.record_visit(request)
    context = {
        "sessions": places.sessions(reader, request.session.session_key),
        "tokens": places.tokens(reader),
        "apps": places.apps(reader),
    }
    return show(request, "accounts/devices.html", context)


@member_act
@step_up.proof_required_to_post
def end_device(request: PageRequest, reader: User) -> HttpResponse:
    """End a session or token."""
    key = request.POST.get("key", "")
    if any(end(user=reader, key=key) for end in (places.end_session, places.end_token)):
        messages.success(request, _("Logged out."))
    return redirect("settings-devices")


# --- Second factors --------------------------------------------------------------------------------------
@never_cache
@member_page
def factors(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's second factors."""
    rows = second_factors.authenticators_of(reader)
    context = {
        "app": next((row for row in rows if row.type == Type.TOTP), None),
        "passkeys": [row for row in rows if row.type == Type.WEBAUTHN],
        "codes_left": len(second_factors.recovery_codes(reader)),
    }
    return show(request, "accounts/factors.html", context)


@sensitive_post_parameters("code")
@never_cache
@member_form
@step_up.proof_required
@limited("password")
def factor_app(request: PageRequest, reader: User) -> HttpResponse:
    """Set up an authenticator app by its first code."""
    secret: str = request.session.get(APP_SECRET) or pyotp.random_base32()
    request.session[APP_SECRET] = secret
    form = AppForm(request.POST or None)
    if form.is_valid():
        try:
            second_factors.set_up_app(user=reader, secret=secret, code=form.cleaned_data["code"])
        except second_factors.SecondFactorRefusedError:
            form.add_error("code", _("Wrong code. Try the next one, and check that the clock on your phone is right."))
        else:
            del request.session[APP_SECRET]
            messages.success(request, _("Your app is set up. Save your recovery codes, too."))
            return redirect("settings-recovery-codes")
    address = second_factors.app_address(reader, secret)
    svg = qrcode.make(address, image_factory=SvgPathImage).to_string(encoding="unicode")
    picture = mark_safe(svg)  # noqa: S308 (drawn by us)
    context = {"form": form, "secret": secret, "picture": picture, "address": address}
    return show(request, "accounts/factor_app.html", context, status=INVALID if form.errors else 200)


@never_cache
@member_form
@step_up.proof_required
def factor_passkey(request: PageRequest, reader: User) -> HttpResponse:
    """Add a passkey. A script asks the browser for it."""
    form = PasskeyForm(request.POST or None)
    if form.is_valid():
        credential = parse_passkey_answer(form.cleaned_data["credential"])
        try:
            second_factors.add_passkey(
                user=reader, session=request.session, name=form.cleaned_data["name"], credential=credential
            )
        except second_factors.SecondFactorRefusedError:
            form.add_error(None, _("That passkey didn't work. Try again."))
        except second_factors.PasskeyCapError:
            words = ngettext(
                "You can have up to %(count)d passkey. Remove one first.",
                "You can have up to %(count)d passkeys. Remove one first.",
                second_factors.PASSKEYS,
            )
            form.add_error(None, words % {"count": second_factors.PASSKEYS})
        else:
            messages.success(request, _("Passkey added. Save your recovery codes, too."))
            return redirect("settings-factors")
    return show(request, "accounts/factor_passkey.html", {"form": form}, status=INVALID if form.errors else 200)


@never_cache
@member_act
@step_up.proof_required
def factor_passkey_options(request: PageRequest, reader: User) -> HttpResponse:
    """Options to create a passkey."""
    return JsonResponse(second_factors.new_passkey_options(user=reader, session=request.session))


@member_act
@step_up.proof_required_to_post
def factor_remove(request: PageRequest, reader: User) -> HttpResponse:
    """Remove an app or passkey."""
    row = request.POST.get("id", "")
    if row.isascii() and row.isdigit() and len(row) < 19 and second_factors.remove(user=reader, row_id=int(row)):
        messages.success(request, _("Removed."))
    return redirect("settings-factors")


@never_cache
@member_form
@step_up.proof_required
def recovery_codes(request: PageRequest, reader: User) -> HttpResponse:
    """Show unused recovery codes, or make new ones."""
    if request.method == "POST":
        try:
            second_factors.renew_recovery_codes(user=reader)
        except second_factors.SecondFactorRefusedError:
            return redirect("settings-factors")
        messages.success(request, _("Here are your new codes. The old ones no longer work."))
        return redirect("settings-recovery-codes")
    codes = second_factors.recovery_codes(reader)
    return show(request, "accounts/recovery_codes.html", {"codes": codes}) if codes else redirect("settings-factors")
