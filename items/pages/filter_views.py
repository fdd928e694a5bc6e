from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.access import member_act, member_form
from accounts.models import User
from items.filters import filters
from items.filters.filters import own_filter
from items.models import Context
from items.pages.forms import FilterForm
from web.pages import INVALID, PageRequest, show


@member_form
def own_filters(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's filters."""
    form = FilterForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            filters.create(owner=reader, **({"expires_at": None} | form.chosen))
        except filters.FilterCapError:
            form.add_error(None, _("You've reached the limit of muted words. Delete one first."))
        else:
            messages.success(request, _("Saved."))
            return redirect("settings-filters")
    context = {"filters": filters.filters_of(reader), "form": form, "contexts": dict(Context.choices)}
    return show(request, "items/filters.html", context, status=INVALID if form.errors else 200)


@member_form
def edit_filter(request: PageRequest, reader: User, filter_id: int) -> HttpResponse:
    listed = own_filter(reader, filter_id)
    form = FilterForm(request.POST if request.method == "POST" else None, known=listed)
    if form.is_valid():
        try:
            filters.change(owner=reader, filter_id=listed.id, **form.chosen)
        except filters.FilterCapError:
            form.add_error(None, _("You've reached the limit of muted words. Delete one first."))
        else:
            messages.success(request, _("Saved."))
            return redirect("settings-filters")
    context = {"filter": listed, "form": form}
    return show(request, "items/filter_edit.html", context, status=INVALID if form.errors else 200)


@member_act
def delete_filter(request: PageRequest, reader: User, filter_id: int) -> HttpResponse:
    filters.delete(owner=reader, filter_id=filter_id)
    messages.success(request, _("Deleted."))
    return redirect("settings-filters")
