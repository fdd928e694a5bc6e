"""The pages of the settings on which one manages filters."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import signed_in
from accounts.models import User
from items import filters
from items.filters import Listed
from items.forms import FilterForm
from items.models import Filter
from web.pages import INVALID, PageRequest, limited, show
from web.rest import MAX_POSITION

FORM_METHODS = ["GET", "HEAD", "POST"]


def filter_or_404(filter_id: int, owner: User) -> Listed:
    """The owner's filter of this id; else the same page as for every other id."""
    found = filters.filter_of(owner, filter_id) if filter_id <= MAX_POSITION else None
    if found is None:
        raise Http404
    return found


@signed_in
@limited("write")
@require_http_methods(FORM_METHODS)
def own_filters(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's filters, newest first, and a form for a new one."""
    form = FilterForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            filters.create(owner=reader, **({"expires_at": None} | form.chosen))
        except filters.FilterCapError:
            form.add_error(None, _("You have reached the limit of filters."))
        else:
            messages.success(request, _("Saved."))
            return redirect("settings-filters")
    context = {"filters": filters.filters_of(reader), "form": form}
    return show(request, "items/filters.html", context, status=INVALID if form.errors else 200)


@signed_in
@limited("write")
@require_http_methods(FORM_METHODS)
def edit_filter(request: PageRequest, reader: User, filter_id: int) -> HttpResponse:
    """A filter's phrase and what it does."""
    listed = filter_or_404(filter_id, reader)
    form = FilterForm(request.POST if request.method == "POST" else None, known=listed)
    if form.is_valid():
        try:
            filters.change(owner=reader, filter_id=listed.id, **form.chosen)
        except Filter.DoesNotExist:
            raise Http404 from None
        messages.success(request, _("Saved."))
        return redirect("settings-filters")
    context = {"filter": listed, "form": form}
    return show(request, "items/filter_edit.html", context, status=INVALID if form.errors else 200)


@require_POST
@signed_in
@limited("write")
def delete_filter(request: PageRequest, reader: User, filter_id: int) -> HttpResponse:
    """Delete a filter."""
    listed = filter_or_404(filter_id, reader)
    try:
        filters.delete(owner=reader, filter_id=listed.id)
    except Filter.DoesNotExist:
        raise Http404 from None
    messages.success(request, _("Deleted."))
    return redirect("settings-filters")
