"""The pages of accounts: sign up, log in and out, settings."""

from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.views import LoginView as DjangoLoginView
from django.core.exceptions import BadRequest, ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts import actions
from accounts.access import signed_in
from accounts.forms import LoginForm, ProfileForm, SignUpForm
from accounts.locale import set_language_cookie
from accounts.models import User
from feedsite import rates
from feedsite.pages import INVALID, PageRequest, limited, next_page, show, too_many


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_up(request: PageRequest) -> HttpResponse:
    """Create an account and begin its first session."""
    target = next_page(request)
    if request.user.is_authenticated:
        return redirect(target or "home")
    form = SignUpForm(request.POST or None)
    if form.is_valid():
        wait = rates.hit("signup", rates.address(request))
        if wait is not None:
            return too_many(request, wait)
        try:
            user = actions.sign_up(**form.cleaned_data)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            login(request, user)
            return redirect(target or "home")
    status = INVALID if form.errors else 200
    return show(request, "accounts/signup.html", {"form": form, "next": target}, status=status)


class LoginView(DjangoLoginView):
    """Django's, which goes on to pages of this site only; attempts are counted by address and name."""

    form_class = LoginForm
    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def post(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        wait = rates.hit("login", rates.login_key(request, request.POST.get("username", "")))
        if wait is not None:
            return too_many(request, wait)
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = INVALID
        return response


@require_POST
@limited("write")
def language(request: PageRequest) -> HttpResponse:
    """The language switch: strangers keep their choice in the browser, users with their account too."""
    chosen = request.POST.get("language", "")
    if chosen not in dict(django_settings.LANGUAGES):
        raise BadRequest("language is none of this site's")
    if isinstance(request.user, User):
        actions.edit_preferences(user=request.user, language=chosen)
    response = redirect(next_page(request) or "home")
    set_language_cookie(response, chosen)
    return response


@signed_in
@limited("write")
@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: PageRequest, reader: User) -> HttpResponse:
    """How one presents oneself."""
    form = ProfileForm(request.POST or None, initial={"display_name": reader.display_name, "bio": reader.bio})
    if form.is_valid():
        actions.edit_profile(user=reader, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("settings")
    return show(request, "accounts/settings.html", {"form": form}, status=INVALID if form.errors else 200)
