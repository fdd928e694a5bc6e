"""Pages of decisions: for members, and for suspended ones who proved who they are."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import member_form, member_page
from accounts.export import archive_response
from accounts.models import User
from accounts.signing_in.suspension import user_of_right
from moderation import appeals
from moderation.decisions import decisions_about, decisions_page, shown
from moderation.forms import AppealForm
from web import rates
from web.pages import FORM_METHODS, INVALID, PageRequest, limited, show, too_many
from web.refusals import ConflictError, MissingError
from web.rest import PAGE, position

GONE = 410


@member_page
def decisions(request: PageRequest, reader: User) -> HttpResponse:
    """What moderators decided about the reader, perhaps about one `item` alone."""
    item_id = position(request, "item")
    page = decisions_page(reader, last_id=position(request), limit=PAGE, item_id=item_id)
    context = {
        "decisions": [shown(row) for row in page.shown],
        "last_id": page.last_id if page.has_more else None,
        "item_id": item_id,
    }
    return show(request, "moderation/decisions.html", context)


@member_form
@limited("appeal")
def decision(request: PageRequest, reader: User, decision_id: int) -> HttpResponse:
    """One decision, with the form to appeal it."""
    form = AppealForm(request.POST or None)
    if form.is_valid():
        try:
            appeals.appeal(user=reader, decision_id=decision_id, text=form.cleaned_data["text"])
        except ConflictError:
            messages.error(request, _("You can't appeal this anymore."))
        else:
            messages.success(request, _("Your appeal is sent. A moderator will look at it."))
        return redirect("decision", decision_id)
    row = decisions_about(reader).filter(pk=decision_id).first()
    if row is None:
        raise MissingError
    context = {"decision": shown(row), "form": form}
    return show(request, "moderation/decision.html", context, status=INVALID if form.errors else 200)


# --- Of suspended members --------------------------------------------------------------------------------
@never_cache
@require_http_methods(FORM_METHODS)
def suspended(request: PageRequest, right: str) -> HttpResponse:
    """Why the account is suspended, and the form to appeal. The right stands in the address."""
    found = user_of_right(right)
    if found is None:
        return show(request, "moderation/suspended.html", {"suspension": None}, status=GONE)
    user, suspension = found
    row = decisions_about(user).filter(pk=suspension.decision_id).first() if suspension.decision_id else None
    form = AppealForm(request.POST or None)
    if row is not None and form.is_valid():
        if (wait := rates.hit("appeal", str(user.pk))) is not None:
            return too_many(request, wait)
        try:
            appeals.appeal(user=user, decision_id=row.pk, text=form.cleaned_data["text"])
        except ConflictError:
            messages.error(request, _("You can't appeal this anymore."))
        else:
            messages.success(request, _("Your appeal is sent. A moderator will look at it."))
        return redirect("suspended", right)
    context = {"suspension": suspension, "person": user, "decision": row and shown(row), "form": form, "right": right}
    return show(request, "moderation/suspended.html", context, status=INVALID if form.errors else 200)


@never_cache
@require_POST
def suspended_data(request: PageRequest, right: str) -> HttpResponseBase:
    """The data of a suspended member."""
    found = user_of_right(right)
    if found is None:
        return show(request, "moderation/suspended.html", {"suspension": None}, status=GONE)
    user, _suspension = found
    wait = rates.hit("export", str(user.pk))
    return archive_response(user) if wait is None else too_many(request, wait)
