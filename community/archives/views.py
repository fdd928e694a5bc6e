from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts.access import member_act, member_form
from accounts.models import User
from community.archives import actions
from community.archives.forms import SELF, ArchiveForm
from community.archives.models import ArchiveImport
from web.pages import INVALID, PageRequest, redirect_to, show, wants_part
from web.rest import MAX_POSITION
from web.uploads import ROOM_BYTES, takes_files

LISTED = 5
"""Imports shown on the page."""
NOTES_SHOWN = 100
"""Left-out items shown per import."""


@member_form
@takes_files(lambda: int(settings.ARCHIVE_BYTES) + ROOM_BYTES)
def archive(request: PageRequest, reader: User) -> HttpResponse:
    """Upload an archive, and see the last imports."""
    form = ArchiveForm(request.POST or None, request.FILES or None)
    if form.is_valid() and _begin_import(reader, form):
        return redirect_to(request, reverse("settings-archive"))
    imports = list(ArchiveImport.objects.filter(user=reader).order_by("-id")[:LISTED])
    context = {
        "form": form,
        "imports": imports,
        "is_running": any(one.finished_at is None for one in imports),
        "megabytes": settings.ARCHIVE_BYTES >> 20,
        "shown": NOTES_SHOWN,
    }
    if wants_part(request) and request.method == "GET":
        return show(request, "moving/_imports.html", context)
    return show(request, "moving/archive.html", context, status=INVALID if form.errors else 200)


def _begin_import(reader: User, form: ArchiveForm) -> bool:
    fields = form.cleaned_data
    try:
        with fields["file"].open("rb") as file:
            actions.begin(
                user=reader,
                file=file,
                is_for_self=fields["audience"] == SELF,
                takes_profile=fields["profile"],
            )
    except actions.ImportRunningError:
        form.add_error(None, form.BUSY)
    except actions.CapError:
        form.add_error(None, form.CAP)
    except OSError:
        form.add_error(None, form.FULL)
    return not form.errors


@member_act
def stop(request: PageRequest, reader: User, import_id: int) -> HttpResponse:
    """Stop a running import. Imported posts stay."""
    if import_id > MAX_POSITION or not ArchiveImport.objects.filter(user=reader, pk=import_id).exists():
        raise Http404
    actions.cancel(user=reader, import_id=import_id)
    return redirect("settings-archive")
