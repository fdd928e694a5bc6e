from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.access import member_act, member_form
from accounts.models import User
from relations import actions, lists
from relations.forms import ListForm, MembershipForm
from relations.models import List
from relations.tags import followed_tags_page
from relations.visibility import find_user, is_following, visible_user
from web.pages import INVALID, PageRequest, redirect_next, show
from web.rest import PAGE, position, single_parameter


@member_form
def own_lists(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's lists and followed hashtags."""
    form = ListForm(request.POST or None)
    if form.is_valid():
        try:
            made = lists.create(
                owner=reader, title=form.cleaned_data["title"], is_exclusive=form.cleaned_data["exclusive"]
            )
        except lists.ListCapError:
            form.add_error(None, _("You've reached the limit of lists. Delete one first."))
        else:
            messages.success(request, _("Saved."))
            return redirect("list", made.pk)
    context = {
        "lists": lists.sorted_by_title(lists.lists_of(reader)),
        "tags": sorted(tag.name for tag in followed_tags_page(reader).tags),
        "form": form,
    }
    return show(request, "relations/lists.html", context, status=INVALID if form.errors else 200)


@member_form
def edit_list(request: PageRequest, reader: User, list_id: int) -> HttpResponse:
    """A list's title, option and members."""
    listed = lists.own_list(reader, list_id)
    form = ListForm(request.POST or None, initial={"title": listed.title, "exclusive": listed.is_exclusive})
    if form.is_valid():
        lists.change(
            owner=reader,
            list_id=listed.id,
            title=form.cleaned_data["title"],
            is_exclusive=form.cleaned_data["exclusive"],
        )
        messages.success(request, _("Saved."))
        return redirect("list", listed.id)
    page = lists.members_page(reader, listed.id, last_id=position(request), limit=PAGE)
    q = single_parameter(request.GET, "q").replace("\0", "")[: lists.NAME_LENGTH]
    found = lists.followees_called(reader, listed.id, q)
    context = {"list": listed, "form": form, "page": page, "q": q, "found": found}
    return show(request, "relations/list_edit.html", context, status=INVALID if form.errors else 200)


@member_form
def delete_list(request: PageRequest, reader: User, list_id: int) -> HttpResponse:
    """Delete a list. Members stay followed."""
    listed = lists.own_list(reader, list_id)
    if request.method != "POST":
        return show(request, "relations/list_delete.html", {"list": listed})
    lists.delete(owner=reader, list_id=listed.id)
    messages.success(request, _("Deleted."))
    return redirect("lists")


@member_act
def add_member(request: PageRequest, reader: User, list_id: int) -> HttpResponse:
    """Add a followee to a list."""
    listed, username = lists.own_list(reader, list_id), request.POST.get("username", "").strip().removeprefix("@")
    member = find_user(username, reader)
    if member is None:
        error = _("Nobody here has this username.")
    else:
        error = _refusal(lambda: lists.add(owner=reader, list_id=listed.id, member=member))
    if error:
        messages.error(request, error)
    else:
        messages.success(request, _("Saved."))
    return redirect_next(request, "list-edit", listed.id)


@member_act
def remove_member(request: PageRequest, reader: User, list_id: int) -> HttpResponse:
    """Remove a member, who stays followed."""
    lists.remove(owner=reader, list_id=list_id, member=User.objects.named(request.POST.get("username", "")).get())
    messages.success(request, _("Saved."))
    return redirect("list-edit", list_id)


@member_form
def lists_of_person(request: PageRequest, reader: User, username: str) -> HttpResponse:
    """Choose the reader's lists that contain a followee."""
    person = visible_user(username, reader)
    there = lists.sorted_by_title(lists.lists_of(reader, person_id=person.pk))
    form = MembershipForm(there, request.POST if request.method == "POST" else None)
    if form.is_valid():
        chosen = form.cleaned_data["lists"]
        into = [one.id for one in there if str(one.id) in chosen]
        out_of = [one.id for one in there if str(one.id) not in chosen]
        if error := _refusal(lambda: lists.change_memberships(owner=reader, member=person, into=into, out_of=out_of)):
            form.add_error(None, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("profile", person.username)
    context = {"person": person, "form": form, "lists": there, "is_followed": is_following(reader.pk, person.pk)}
    return show(request, "relations/person_lists.html", context, status=INVALID if form.errors else 200)


def _refusal(act: Callable[[], object]) -> str:
    try:
        act()
    except actions.SelfRelationError:
        return _("You can't do this to yourself.")
    except actions.NotFollowedError:
        return _("Follow them first. Lists can only have people you follow.")
    except lists.MemberCapError:
        return _("A list is full.")
    except List.DoesNotExist:
        return _("A list is gone. Reload the page.")
    return ""
