import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from clientapi.entities import Attachment
from clientapi.errors import ClientView, InvalidError, caller_of
from clientapi.params import Params
from media import actions
from media.actions import check_file
from media.api import FocusField
from media.attaching import usable
from media.models import DESCRIPTION_LENGTH, MediaFile, MediaKind, MediaState
from media.objects import object_from_row
from media.posters import set_poster
from media.processing import wait_for
from media.reasons import failure_of
from web import uploads
from web.rest import FeedResponse, idempotency_key

ONLY_VIDEOS = "Validation failed: Thumbnail is only for videos"
WAIT_SECONDS = 10.0
"""How long version 1 waits for a video."""
_waiting = threading.BoundedSemaphore(2)
"""Places for calls that wait, because each occupies a thread of the process."""


def described(params: Params) -> dict[str, Any]:
    """The description and focus that a request sends. Raises InvalidError and ValidationError."""
    fields: dict[str, Any] = {}
    if "description" in params:
        fields["description"] = params.text("description", most=DESCRIPTION_LENGTH)
    if "focus" in params:
        fields["focus"] = FocusField(allow_blank=True).run_validation(params.text("focus", most=50))
    return fields


class MediaView(ClientView):
    """The upload of pictures and videos."""

    scopes = "media"
    rates: Mapping[str, str] = {"POST": "upload"}
    takes_files = {"POST": uploads.medium_and_poster_bytes}

    def post(self, request: Request) -> HttpResponse:
        """Upload a file, deleted after 24 hours if unused. A video is answered with 202: it is converted afterwards."""
        user, params = caller_of(request), Params(request)
        if "file" not in params.files:
            raise InvalidError("Validation failed: File must be sent")
        fields, key = described(params), idempotency_key(request)
        poster = _thumbnail(params)
        with params.files["file"].open("rb") as file:
            if poster and check_file(file) != MediaKind.VIDEO:
                raise InvalidError(ONLY_VIDEOS)
            row = self.uploaded(owner_id=user.pk, file=file, key=key, **fields)
        if poster and not row.small_ext:
            row = _with_poster(row, poster)
        return _answer(row, unfinished=HTTPStatus.ACCEPTED)

    def uploaded(self, **fields: Any) -> MediaFile:
        """The new medium."""
        return actions.upload(**fields)


class WaitingMediaView(MediaView):
    """The upload of version 1, which waits for a video."""

    def uploaded(self, **fields: Any) -> MediaFile:
        """The new medium, converted if that is done in time and few others wait."""
        row = actions.upload(**fields)
        if row.state == MediaState.PROCESSING and _waiting.acquire(blocking=False):
            try:
                return wait_for(row, WAIT_SECONDS)
            finally:
                _waiting.release()
        return row


class MediumView(ClientView):
    scopes = "write:media"
    rates: Mapping[str, str] = {"PUT": "upload"}
    takes_bodies = frozenset({"PUT"})
    takes_files = {"PUT": uploads.one_medium_bytes}

    def get(self, request: Request, media_id: int) -> HttpResponse:
        """Return the picture or video. 206 until a video is converted."""
        return _answer(_own(request, media_id))

    def put(self, request: Request, media_id: int) -> HttpResponse:
        """Change the description, the focus, and the picture of a video, if sent, in statuses too."""
        row, params = _own(request, media_id), Params(request)
        fields, poster = described(params), _thumbnail(params)
        if poster and row.kind != MediaKind.VIDEO:
            raise InvalidError(ONLY_VIDEOS)
        if fields:
            row = actions.describe(medium=row, **fields)
        if poster:
            row = _with_poster(row, poster)
        return _answer(row)

    def delete(self, request: Request, media_id: int) -> HttpResponse:
        """Delete the file if no status uses it."""
        if not actions.remove_unused(owner_id=caller_of(request).pk, media_id=media_id):
            raise exceptions.NotFound
        return FeedResponse({})


def _thumbnail(params: Params) -> "UploadedFile[Any] | None":
    """The picture of a video, if sent. Raises InvalidError."""
    if "thumbnail" not in params.files and not params.is_blank("thumbnail"):
        raise InvalidError("Validation failed: Thumbnail must be a file")
    return params.files.get("thumbnail")


def _with_poster(row: MediaFile, poster: "UploadedFile[Any]") -> MediaFile:
    with poster.open("rb") as file:
        return set_poster(owner_id=row.owner_id, media_id=row.pk, file=file)


def _answer(row: MediaFile, *, unfinished: HTTPStatus = HTTPStatus.PARTIAL_CONTENT) -> HttpResponse:
    """The medium, with this status until it is ready. Raises InvalidError if its conversion failed."""
    if row.state == MediaState.FAILED:
        raise InvalidError(f"Error processing the video: {failure_of(row)}".removesuffix("."))
    status = unfinished if row.state == MediaState.PROCESSING else HTTPStatus.OK
    return FeedResponse(Attachment.of(object_from_row(row)), status=status)


def _own(request: Request, media_id: int) -> MediaFile:
    owner_id = caller_of(request).pk
    shown = MediaFile.objects.filter(owner_id=owner_id, withdrawn_at=None, hidden_at=None)
    return (shown | usable(owner_id)).get(pk=media_id)
