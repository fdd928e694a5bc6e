"""The admin's sign-in, guarded like the site's."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, re_path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from accounts import proofs
from accounts.about.site import current
from accounts.about.words import favicon_of, logo_of, theme_of
from accounts.actions import end_streams
from accounts.models import User
from accounts.signing_in import guard, sign_in, step_up
from web.admin import Area
from web.pages import too_many

SAID_BY_DJANGO = (
    gettext_noop("Model name"),
    gettext_noop("Add link"),
    gettext_noop("Change or view list link"),
    gettext_noop("After you’ve created a user, you’ll be able to edit more user options."),  # noqa: RUF001 (as Django has it)
)
"""Texts that Django's Chinese catalogue lacks. Here they get into the site's."""
COUNTED = 100
"""More rows that wait are shown as `100+`."""


class AdminLoginForm(AdminAuthenticationForm):
    """Signs in by `sign_in.verify_login`. With a second factor only the site's page does."""

    @sensitive_variables("password")
    def clean(self) -> dict[str, Any]:
        """Check name and password by `sign_in.verify_login`. Raises ValidationError and WaitError."""
        assert self.request is not None  # noqa: S101 (given by the view)
        password = "" if self.errors else self.cleaned_data["password"]
        try:
            user = sign_in.verify_login(self.request, name=self.data.get("username", ""), password=password)
        except sign_in.CodeNeededError as error:
            self.confirm_login_allowed(error.user)
            said = _("Your account uses two-step login. Log in on the site first, then come back here.")
            raise ValidationError(said, code="second_factor") from error
        except sign_in.LoginRefusedError as error:
            if self.errors:
                return self.cleaned_data
            raise self.get_invalid_login_error() from error
        self.confirm_login_allowed(user)
        # Ending another's session writes that user's row.
        both = User.objects.locked().filter(pk__in=[self.request.user.pk, user.pk]).order_by("pk")
        list(both.values_list("pk"))
        try:
            proofs.lock_if_valid(user)
        except proofs.LoginEndedError as error:
            raise self.get_invalid_login_error() from error
        self.user_cache = user
        return self.cleaned_data


class AdminSite(admin.AdminSite):
    """Django's admin. It limits sign-in attempts, ends streams at log-out, and asks for proof before dangerous pages.

    A form opens with a proof of 15 minutes and is accepted for an hour, so that no long text is lost.
    """

    login_form = AdminLoginForm

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the site's name, logo and colour."""
        site = current()
        looks = {"site_logo": logo_of(site), "site_icon": favicon_of(site), "site_theme": theme_of(site)}
        context = super().each_context(request) | {"site_header": site.name, "site_title": site.name} | looks
        return context | {"here": _place_of(request.path, context["available_apps"])}

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """An area has a page, where Django has one for each app.

        Without the page `r/`, which no link uses: for a model with a date as its key it answers 500.
        """
        areas = "|".join(Area.values)
        page = re_path(f"^(?P<app_label>{areas})/$", self.admin_view(self.app_index), name="app_list")
        return [page, *(each for each in super().get_urls() if getattr(each, "name", None) != "view_on_site")]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """The lists that the user may see, by area. `app_label` is one of them."""
        lists: dict[str, list[Any]] = {area: [] for area in Area if app_label in (None, area.value)}
        for app in super().get_app_list(request):
            for each in app["models"]:
                one: Any = self.get_model_admin(each["model"])
                if one.area in lists:
                    lists[one.area].append((one.rank, each["name"], each | {"waiting": partial(_count, one, request)}))
                    lists[one.area] += [
                        (one.rank, each["name"], {"name": name, "admin_url": f"{each['admin_url']}?{query}"})
                        for name, query in one.shortcuts
                        if each["admin_url"]
                    ]
        return [
            {
                "name": Area(area).label,
                "app_label": area,
                "app_url": reverse("admin:app_list", args=[area]),
                "models": [each for _rank, _name, each in sorted(models, key=lambda one: one[:2])],
            }
            for area, models in lists.items()
            if models
        ]

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """For staff. Asks for proof if `QuickListAdmin.wants_proof`."""
        guarded: Any = super().admin_view(view, cacheable)
        wants_proof = getattr(getattr(view, "__self__", None), "wants_proof", None)
        if wants_proof is None:
            return guarded

        @wraps(guarded)
        def proven(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            seconds = step_up.OPEN_SECONDS if request.method == "POST" else step_up.SECONDS
            if not self.has_permission(request) or not wants_proof(request) or step_up.is_proven(request, seconds):
                return guarded(request, *args, **kwargs)
            if request.method == "POST":
                messages.error(request, _("Nothing has changed yet. Confirm it's you, then send it again."))
            return step_up.redirect_to_proof(request.get_full_path())

        return proven

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in, within the rate limit, while the form holds the user's row."""
        try:
            with transaction.atomic():
                response = super().login(request, extra_context)
        except sign_in.TooManyAttemptsError as error:
            return too_many(request, error.seconds)
        if request.method == "POST" and isinstance(request.user, User):
            guard.set_device_cookie(response, request.user)
        return response

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Redirect to the site's page, which asks for a second factor and limits guesses."""
        return redirect("settings-password")

    @method_decorator(never_cache)
    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Sign out and end open streams."""
        user_id = request.user.pk
        response = super().logout(request, extra_context)
        if user_id and request.method == "POST":
            end_streams(user_id=user_id)
        return response


def _count(one: Any, request: HttpRequest) -> str:
    """The number of rows that wait in a list, or "" for none."""
    rows = one.waiting(request)
    count = 0 if rows is None else rows.order_by("pk")[: COUNTED + 1].count()
    return f"{COUNTED}+" if count > COUNTED else str(count or "")


def _place_of(path: str, areas: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The area and list that an address belongs to."""
    for area in areas:
        for each in area["models"]:
            if each["admin_url"] and path.startswith(each["admin_url"]):
                return {"area": area, "list": each}
    return None
