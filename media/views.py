"""Media files for staff, by id."""

import threading
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from media import serving
from media.files import TYPES
from media.models import MediaFile
from media.signals import medium_opened
from media.store import store

MAY_SEE = ("media.view_mediafile", "items.view_item", "items.change_item", "moderation.decide_case")
"""One of these permissions is needed."""
PLACES = 2
WAIT_SECONDS = 1.0
"""How long a file waits for a place."""

_places = threading.BoundedSemaphore(PLACES)
"""Places for answers. A slow reader occupies a thread, and this limits such threads per process."""


@require_safe
def staff_file(request: HttpRequest, media_id: int, size: str) -> HttpResponseBase:
    """A medium's file, preview or captions in any state, never cached. 404 without a permission of `MAY_SEE`, for
    private mentions, and for staff who may not read the post (`medium_opened`).

    See docs/decisions.md: Hidden files lose their name.
    """
    user = request.user
    if not (user.is_staff and any(map(user.has_perm, MAY_SEE))):
        raise Http404
    row = MediaFile.objects.filter(pk=media_id, is_private=False).first()
    if row is None or not _may_open(row, user):
        raise Http404
    endings = {
        "whole": row.ext,
        "preview": f"small.{row.small_ext}" if row.small_ext else row.ext,
        "captions": row.captions,
    }
    if not endings[size]:
        raise Http404
    response = _answer(request, f"{row.name}.{endings[size]}")
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Content-Security-Policy"] = serving.POLICY
    return response


def _may_open(medium: MediaFile, user: Any) -> bool:
    answers = medium_opened.send(sender=MediaFile, medium=medium, user=user)
    return any(may for _receiver, may in answers)


def _answer(request: HttpRequest, name: str) -> HttpResponseBase:
    kind = TYPES[name.rpartition(".")[2]]
    if settings.MEDIA_ACCEL_PATH:
        return HttpResponse(headers={"Content-Type": kind, "X-Accel-Redirect": f"{settings.MEDIA_ACCEL_PATH}{name}"})
    try:
        file = store().open(name)
    except OSError as error:
        raise Http404 from error
    size = file.seek(0, 2)
    begin, end = serving.requested_range(_environ(request, name), "", size)
    if begin >= end and size:
        file.close()
        status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        return HttpResponse(status=status, headers={"Content-Range": f"bytes */{size}"})
    headers = {"Content-Type": kind, "Content-Length": str(end - begin), "Accept-Ranges": "bytes"}
    is_part = (begin, end) != (0, size)
    if is_part:
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
    status = HTTPStatus.PARTIAL_CONTENT if is_part else HTTPStatus.OK
    if request.method == "HEAD":
        file.close()
        return HttpResponse(status=status, headers=headers)
    if not _places.acquire(timeout=WAIT_SECONDS):
        file.close()
        return HttpResponse(status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "2"})
    return StreamingHttpResponse(serving.Parts(file, begin, end, _places), status=status, headers=headers)


def _environ(request: HttpRequest, name: str) -> dict[str, Any]:
    asked: dict[str, Any] = {key: request.META[key] for key in ("HTTP_RANGE", "HTTP_IF_RANGE") if key in request.META}
    return {**asked, "PATH_INFO": name}
