"""What all pages share. Everything works without JavaScript. For htmx an address answers with the part that changes."""

import contextlib
import math
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.template import loader
from django.urls import Resolver404, reverse
from django.utils import translation
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event
from django_htmx.middleware import HtmxDetails

from web import rates
from web.headers import nonce
from web.requests import find_view, is_user_known, known_user
from web.rest import ApiView, ParameterError, parse_id, scope_of, single_parameter

P = ParamSpec("P")

API = "/api/v1/"
ENTRANCES = frozenset({"login", "signup"})
"""Names of the pages that begin a session."""
LOCAL_ADDRESS = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f]*\Z")
NEXT_LENGTH = 2_000
THEME_COOKIE = "theme"
THEMES = frozenset({"light", "dark"})
KEYS_COOKIE = "keys"
KEYS_OFF = "off"
"""Spelled in keys.js too."""
CSRF_FIELD = '<input type="hidden" name="csrfmiddlewaretoken" value="{}">'
INVALID = 422
"""The status of a form with errors. base.html tells htmx to swap it in."""
FORM_METHODS = ["GET", "HEAD", "POST"]
"""The methods of a page with a form."""


class PageRequest(HttpRequest):
    """A request with what the middleware adds to it."""

    htmx: HtmxDetails


def wants_part(request: PageRequest) -> bool:
    """Whether htmx asks for a part of the page, not a browser for the page."""
    return bool(request.htmx) and not request.htmx.boosted and not request.htmx.history_restore_request


def is_prefetch(request: HttpRequest) -> bool:
    """Whether a browser prefetches the page."""
    return request.headers.get("Sec-Purpose", "").startswith("prefetch")


def ids_parameter(request: HttpRequest, name: str, most: int) -> list[int]:
    """The ids in a parameter, separated by commas, at most `most`. Raises ParameterError."""
    text = single_parameter(request.GET, name)
    named = text.split(",", most) if text else []
    ids = [number for number in map(parse_id, named) if number is not None]
    if len(ids) < len(named) or len(ids) > most:
        raise ParameterError(name, f"Give at most {most} ids, separated by commas.")
    return ids


def next_page(request: HttpRequest) -> str:
    """The address in `next` if it is another page of this site, else empty."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    return target if is_local(target) and target != request.path else ""


def with_next(name: str, address: str, *more: tuple[str, str]) -> str:
    """The address of a page, which then leads to `address`, if that is not empty."""
    query = urlencode([*more, *[("next", address)] * bool(address)])
    return f"{reverse(name)}?{query}" if query else reverse(name)


def is_local(address: str) -> bool:
    """Whether an address is of this site: exactly one slash first, at most `NEXT_LENGTH` characters."""
    if not LOCAL_ADDRESS.match(address) or len(address) > NEXT_LENGTH:
        return False
    return url_has_allowed_host_and_scheme(address, allowed_hosts=None)


def came_from(request: HttpRequest) -> str:
    """The page to which a stranger goes after signing in. Empty for home."""
    match = request.resolver_match
    if match is None or match.url_name == "first-admin":
        return ""
    address = next_page(request) if match.url_name in ENTRANCES else request.get_full_path()
    return "" if address == "/" else address


def redirect_next(request: HttpRequest, otherwise: str, *args: Any) -> HttpResponseRedirect:
    """Redirect to the page in `next`, else to `otherwise`. Nothing else follows `next`."""
    return HttpResponseRedirect(next_page(request) or reverse(otherwise, args=args))


def redirect_to(request: PageRequest, address: str) -> HttpResponse:
    """Redirect to an address of this site. htmx then loads the whole page."""
    if wants_part(request):
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)


def show(
    request: PageRequest,
    template: str,
    context: dict[str, Any] | None = None,
    *,
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    """Answer with the page, or with its `part` if htmx asks for it.

    In templates `address` is the reader's page, where forms return to. The browser revalidates the page.
    """
    page = request.htmx.current_url_abs_path if wants_part(request) else None
    context = {"address": page or request.get_full_path()} | (context or {})
    response = render(request, part if part and wants_part(request) else template, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, private=True, no_cache=True)
    return response


def show_toast(response: HttpResponse, words: str, *, is_problem: bool = False) -> HttpResponse:
    """Add a toast to an answer for htmx (site.js)."""
    return trigger_client_event(response, "said", {"words": words} | ({"problem": True} if is_problem else {}))


def with_view(words: str, address: str) -> SafeString:
    """A message with a link to what it is about."""
    return format_html('{} <a href="{}">{}</a>', words, address, pgettext("post", "View"))


def with_undo(words: str, address: str) -> SafeString:
    """A message with a button that undoes the act. Its form stands on every page (base.html)."""
    return format_html('{} <button class="plain" form="acts" formaction="{}">{}</button>', words, address, _("Undo"))


LONGEST_IN_SECONDS = 120
"""Longer waits are shown in minutes."""


def too_many(request: HttpRequest, seconds: float, *, is_member: bool = False) -> HttpResponse:
    """Answer 429 without a query: no context processors, and no reader unless a view has read them.

    `is_member`: the reader is a member, but unknown which.
    """
    wait = {"seconds": math.ceil(seconds), "minutes": math.ceil(seconds / 60) if seconds > LONGEST_IN_SECONDS else 0}
    frame = {"user": request.user if is_user_known(request) else None, "is_member": is_member}
    page = loader.get_template("429.html").render(nonce(request) | theme(request) | frame | wait)
    return HttpResponse(page, status=429, headers={"Retry-After": str(math.ceil(seconds))})


def stream(request: HttpRequest) -> dict[str, Any]:
    """The address of the event stream, for templates."""
    return {"stream": "/api/v1/stream" if settings.STREAM else ""}


def page_name(request: HttpRequest) -> dict[str, Any]:
    """The page's URL name, for templates."""
    match = request.resolver_match
    return {"page_name": (match and match.url_name) or ""}


def csrf(request: HttpRequest) -> dict[str, Any]:
    """The page's CSRF token, masked once. Django masks it at each use, which is 64 random letters more to send."""
    token = SimpleLazyObject(lambda: get_token(request))
    field = SimpleLazyObject(lambda: format_html(CSRF_FIELD, token))
    return {"csrf_token": token, "csrf_input": field}


def theme(request: HttpRequest) -> dict[str, Any]:
    """The theme that this browser has chosen, for templates."""
    kept = request.COOKIES.get(THEME_COOKIE, "")
    return {"theme": kept if kept in THEMES else ""}


def set_theme_cookie(response: HttpResponse, chosen: str) -> None:
    """Save this browser's theme. An empty choice deletes the cookie."""
    _set_cookie(response, THEME_COOKIE, chosen if chosen in THEMES else "", is_for_scripts=False)


def uses_shortcuts(request: HttpRequest) -> bool:
    """Whether this browser's reader uses shortcuts of a single key."""
    return request.COOKIES.get(KEYS_COOKIE) != KEYS_OFF


def set_shortcuts_cookie(response: HttpResponse, *, has_keys: bool) -> None:
    """Save whether this browser's reader uses shortcuts of a single key."""
    _set_cookie(response, KEYS_COOKIE, "" if has_keys else KEYS_OFF, is_for_scripts=True)


def _set_cookie(response: HttpResponse, name: str, value: str, *, is_for_scripts: bool) -> None:
    if not value:
        response.delete_cookie(name, samesite="Lax")
        return
    age, is_hidden = settings.LANGUAGE_COOKIE_AGE, not is_for_scripts
    response.set_cookie(name, value, max_age=age, secure=settings.HTTPS, httponly=is_hidden, samesite="Lax")


class RateMiddleware:
    """Counts each request for a page before all other work, unknown paths too.

    The rate is the one named by `limited`, else `read` or `write`; by reader, or by address for strangers. If an
    address has used up its attempts, the pages of `ENTRANCES` ignore the browser's session, so that an ended session
    locks nobody out.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Refuse a caller who calls too often."""
        scope = self._scope(request)
        if scope:
            call = rates.CountedCall(
                scope, rates.address(request), credential=rates.session_credential(request.COOKIES)
            )
            if call.wait is not None and self._name(request) in ENTRANCES:
                # Others' guesses have used up this address.
                request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
                call = rates.CountedCall(scope, rates.address(request))
            if call.wait is not None:
                with translation.override(translation.get_language_from_request(request)):
                    return too_many(request, call.wait, is_member=call.is_marked)
            request.unproven = call  # type: ignore[attr-defined]
        response = self.get_response(request)
        if is_user_known(request):
            user = known_user(request)
            self._prove(request, user)  # if no view was called
            given = {name: morsel.value for name, morsel in response.cookies.items()}
            credential = rates.session_credential(given)
            if user is not None and credential and credential != rates.session_credential(request.COOKIES):
                rates.mark_credential(credential, user)
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, options: Any) -> HttpResponse | None:
        """Count the call for the user that its session proves. Answers 429 if they call too often."""
        wait = self._prove(request, request.user.pk) if hasattr(request, "unproven") else None
        return too_many(request, wait) if wait is not None else None

    @staticmethod
    def _prove(request: HttpRequest, user: int | None) -> float | None:
        call: rates.CountedCall | None = request.__dict__.pop("unproven", None)
        return call.prove(user) if call is not None else None

    @staticmethod
    def _name(request: HttpRequest) -> str | None:
        with contextlib.suppress(Resolver404):
            return find_view(request).url_name
        return None

    @staticmethod
    def _scope(request: HttpRequest) -> str:
        if request.path_info.startswith(API):
            return ""
        named: Mapping[str, str] = {}
        with contextlib.suppress(Resolver404):
            view = find_view(request).func
            if issubclass(getattr(view, "cls", object), ApiView):
                return ""
            if getattr(view, "is_uncounted", False):
                return ""
            named = getattr(view, "rates", {})
        return scope_of(named, request.method or "")


View = Callable[Concatenate[PageRequest, P], HttpResponseBase]


def limited(scope: str) -> Callable[[View[P]], View[P]]:
    """Decorate a page: count its POSTs in the rate `scope`."""

    def decorate(view: View[P]) -> View[P]:
        view.rates = {"POST": scope}  # type: ignore[attr-defined]
        return view

    return decorate


def keeps_opener(view: View[P]) -> View[P]:
    """Decorate a page: let the opening window keep its reference. Apps in browsers get their code by it.

    Every page on the way to the code needs it. The opener can close or navigate the window, but read nothing.
    """

    @wraps(view)
    def kept(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
        return response

    return kept


def uncounted(view: View[P]) -> View[P]:
    """Decorate a page that is as cheap as a static file: no rate counts its calls."""
    view.is_uncounted = True  # type: ignore[attr-defined]
    return view
