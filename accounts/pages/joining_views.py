from django.contrib import messages
from django.contrib.auth import login
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from accounts.about.models import SignUp
from accounts.about.site import current
from accounts.access import member_act, member_form
from accounts.joining import actions as joining
from accounts.joining import first_admin, invitations
from accounts.models import User
from accounts.pages.forms import InvitationForm, JoinForm, SignUpForm
from accounts.pages.views import add_errors
from accounts.signing_in import guard
from web import rates
from web.pages import FORM_METHODS, INVALID, PageRequest, next_page, redirect_next, show, too_many, with_next

FORBIDDEN = 403
GONE = 410


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(FORM_METHODS)
def sign_up(request: PageRequest, code: str = "") -> HttpResponse:
    """Create an account and sign in, or apply."""
    if request.user.is_authenticated:
        return redirect_next(request, "home")
    form = JoinForm(request.POST if request.method == "POST" else None, initial={"invite": code})
    if request.method == "POST":
        return _join(request, form)
    wait = joining.count_code_attempt(rates.address(request), code)
    return _show_sign_up(request, form, code) if wait is None else too_many(request, wait)


def _join(request: PageRequest, form: JoinForm) -> HttpResponse:
    """Create the account of a form, or apply for it. All errors show at once, so every attempt is counted."""
    is_valid = form.is_valid()
    fields = {name: form.cleaned_data.get(name, "") for name in form.fields}
    invite = fields.pop("invite")
    wait = joining.count_attempt(rates.address(request), code=invite)
    if wait is not None:
        return too_many(request, wait)
    candidate = joining.SignUpInput(**fields, language=translation.get_language() or "")
    try:
        if is_valid:
            user = joining.join(candidate, invite=invite)
            return _log_in_new_member(request, user, candidate) if user else redirect("signup-waiting")
        joining.check_sign_up(candidate, invite=invite)
    except ValidationError as error:
        told = {field: problems for field, problems in error.error_dict.items() if field not in form.errors}
        add_errors(form, ValidationError(told), {"invite": NON_FIELD_ERRORS})
    except joining.ClosedError:
        return _show_sign_up(request, form, "")
    return _show_sign_up(request, form, form["invite"].value() or "")


def _focus_first_error(form: SignUpForm) -> None:
    for name in [name for name in form.fields if name in form.errors][:1]:
        for field in form.fields.values():
            field.widget.attrs.pop("autofocus", None)
        form.fields[name].widget.attrs["autofocus"] = True


def _log_in_new_member(request: PageRequest, user: User, candidate: joining.SignUpInput) -> HttpResponse:
    login(request, user)
    if candidate.email:
        messages.success(request, _("We sent you an email. Open its link or enter its code to confirm your address."))
    response = redirect(with_next("welcome", next_page(request)))
    guard.set_device_cookie(response, user)
    return response


def _show_sign_up(request: PageRequest, form: JoinForm, code: str) -> HttpResponse:
    _focus_first_error(form)
    mode = current().sign_up
    invitation = invitations.find(code) if code and mode != SignUp.CLOSED else None
    context = {
        "form": form if invitation or mode in (SignUp.OPEN, SignUp.APPROVAL) else None,
        "mode": mode,
        "invitation": invitation,
        "is_bad_code": bool(code) and invitation is None,
        "next": next_page(request),
    }
    is_refused = request.method == "POST" and mode == SignUp.CLOSED
    status = FORBIDDEN if is_refused else INVALID if form.errors else 200
    return show(request, "accounts/signup.html", context, status=status)


@require_safe
def signup_waiting(request: PageRequest) -> HttpResponse:
    """The page after an application."""
    return show(request, "accounts/signup_waiting.html")


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(FORM_METHODS)
def make_first_admin(request: PageRequest, token: str) -> HttpResponse:
    """Create the first superuser by link."""
    if not (first_admin.is_valid(token) and first_admin.is_missing()):
        return show(request, "accounts/first_admin.html", {"form": None}, status=GONE)
    form = SignUpForm(request.POST or None)
    if form.is_valid():
        wait = rates.hit("signup", rates.address(request))
        if wait is not None:
            return too_many(request, wait)
        try:
            user = joining.make_first_admin(**form.cleaned_data)
        except ValidationError as error:
            form.add_error(None, error)
        except joining.AdminExistsError:
            return show(request, "accounts/first_admin.html", {"form": None}, status=GONE)
        else:
            login(request, user)
            messages.success(request, _("You're the admin now. Start by telling people about your site."))
            response = redirect("admin:about_sitesettings_changelist")
            guard.set_device_cookie(response, user)
            return response
    _focus_first_error(form)
    return show(request, "accounts/first_admin.html", {"form": form}, status=INVALID if form.errors else 200)


@never_cache
@member_form
def invite(request: PageRequest, reader: User) -> HttpResponse:
    """One's invitations, and a form for another."""
    if not invitations.may_invite(reader):
        raise Http404
    form = InvitationForm(request.POST or None, is_trusted=invitations.is_trusted(reader))
    if form.is_valid():
        address: str = form.cleaned_data.pop("email")
        wait = rates.hit("invite_mail", str(reader.pk)) if address else None
        if wait is not None:
            return too_many(request, wait)
        try:
            row = invitations.create(user=reader, address=address, **form.cleaned_data)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            link = request.build_absolute_uri(reverse("invite", args=[row.code]))
            messages.success(request, _("Invitation created. Share this link: %(link)s") % {"link": link})
            if address:
                messages.success(request, _("We're emailing the invitation, unless this address got too many today."))
            return redirect("settings-invitations")
    rows = [
        {"row": row, "address": request.build_absolute_uri(reverse("invite", args=[row.code]))}
        for row in invitations.made_by(reader)
    ]
    context = {"form": form, "invitations": rows}
    return show(request, "accounts/invitations.html", context, status=INVALID if form.errors else 200)


@member_act
def revoke_invitation(request: PageRequest, reader: User, invitation_id: int) -> HttpResponse:
    """Revoke one's own invitation."""
    if invitations.revoke(invitation_id=invitation_id, user=reader):
        messages.success(request, _("Invitation revoked."))
    return redirect("settings-invitations")
