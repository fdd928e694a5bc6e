import tempfile
from collections.abc import Callable
from typing import IO, cast
from urllib.parse import urlsplit

from django.http import FileResponse, Http404, HttpResponse, HttpResponseBase
from django.urls import reverse

from accounts.access import member_form, member_page
from accounts.models import User
from relations import csv_files, importing
from relations.csv_files import CsvError, CsvKind
from relations.forms import ImportForm
from relations.models import CsvImport
from web.pages import INVALID, PageRequest, redirect_to, show, wants_part
from web.rest import MAX_POSITION
from web.uploads import ROOM_BYTES, takes_files

LISTED = 5
"""Imports shown."""
REFUSED_SHOWN = 100
"""Rows not imported that the page shows. A file has all of them."""
SPOOLED_BYTES = 1 << 20
"""Larger files go to disk."""


def _host(request: PageRequest) -> str:
    return urlsplit(f"//{request.get_host()}").hostname or ""


@member_form
@takes_files(lambda: csv_files.BYTES + ROOM_BYTES)
def lists(request: PageRequest, reader: User) -> HttpResponse:
    """Import a file, and see the last imports."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if form.is_valid() and _start_import(request, reader, form):
        return redirect_to(request, reverse("settings-import-export"))
    imports = list(CsvImport.objects.filter(user=reader).defer("lines").order_by("-id")[:LISTED])
    context = {
        "form": form,
        "imports": imports,
        "is_running": any(one.finished_at is None for one in imports),
        "kinds": list(form.fields["kind"].choices),  # type: ignore[attr-defined]
        "shown": REFUSED_SHOWN,
    }
    if wants_part(request) and request.method == "GET":
        return show(request, "relations/_imports.html", context)
    return show(request, "relations/import_export.html", context, status=INVALID if form.errors else 200)


def _start_import(request: PageRequest, reader: User, form: ImportForm) -> bool:
    fields = form.cleaned_data
    kind = CsvKind(fields["kind"])
    try:
        with fields["file"].open("rb") as file:
            lines = csv_files.read(file, kind, _host(request))
        importing.begin(user=reader, kind=kind, lines=lines)
    except CsvError as error:
        form.add_error("file", str(error))
    except importing.ListImportRunningError:
        form.add_error(None, form.BUSY)
    return not form.errors


@member_page
def export(request: PageRequest, reader: User, kind: str) -> HttpResponseBase:
    """One of the reader's lists as a CSV file."""
    if kind not in set(CsvKind):
        raise Http404
    return _csv_download(f"{kind}.csv", lambda file: csv_files.write(reader, CsvKind(kind), _host(request), file))


@member_page
def refused_rows(request: PageRequest, reader: User, import_id: int) -> HttpResponseBase:
    """The rows that were not imported, for another import."""
    found = CsvImport.objects.filter(user=reader, pk=import_id).first() if import_id <= MAX_POSITION else None
    if found is None:
        raise Http404
    is_of_lists = found.kind == CsvKind.LISTS
    rows = ([*[one.title] * is_of_lists, one.name, one.why] for one in found.reasons)
    return _csv_download("not-done.csv", lambda file: csv_files.write_rows(rows, file))


def _csv_download(name: str, write: Callable[[IO[bytes]], None]) -> FileResponse:
    """A CSV file as a download. The whole file is written before it is sent."""
    file = tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115 (the response closes it)
    try:
        write(cast("IO[bytes]", file))
    except BaseException:
        file.close()
        raise
    size = file.tell()
    file.seek(0)
    response = FileResponse(file, as_attachment=True, filename=name, content_type="text/csv; charset=utf-8")
    response["Content-Length"] = str(size)
    response["Cache-Control"] = "no-store"
    return response
