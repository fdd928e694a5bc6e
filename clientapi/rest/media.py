from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from clientapi.entities import Attachment
from clientapi.errors import NOT_OFFERED, ClientView, InvalidError, caller_of
from clientapi.params import Params
from media import actions
from media.api import FocusField
from media.attaching import usable
from media.models import DESCRIPTION_LENGTH, MediaFile
from media.objects import object_from_row
from web import uploads
from web.rest import FeedResponse, idempotency_key


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
    takes_files = {"POST": uploads.one_medium_bytes}

    def post(self, request: Request) -> HttpResponse:
        """Upload a file: ready at once, deleted after 24 hours if unused."""
        user, params = caller_of(request), Params(request)
        _refuse_thumbnail(params)
        if "file" not in params.files:
            raise InvalidError("Validation failed: File must be sent")
        fields, key = described(params), idempotency_key(request)
        with params.files["file"].open("rb") as file:
            row = actions.upload(owner_id=user.pk, file=file, key=key, **fields)
        return FeedResponse(Attachment.of(object_from_row(row)))


class MediumView(ClientView):
    scopes = "write:media"
    takes_bodies = frozenset({"PUT"})
    takes_files = {"PUT": uploads.one_medium_bytes}

    def get(self, request: Request, media_id: int) -> HttpResponse:
        """Return the picture or video."""
        return FeedResponse(Attachment.of(object_from_row(_own(request, media_id))))

    def put(self, request: Request, media_id: int) -> HttpResponse:
        """Change the description and focus if sent, in statuses too."""
        row, params = _own(request, media_id), Params(request)
        _refuse_thumbnail(params)
        fields = described(params)
        if fields:
            row = actions.describe(medium=row, **fields)
        return FeedResponse(Attachment.of(object_from_row(row)))

    def delete(self, request: Request, media_id: int) -> HttpResponse:
        """Delete the file if no status uses it."""
        if not actions.remove_unused(owner_id=caller_of(request).pk, media_id=media_id):
            raise exceptions.NotFound
        return FeedResponse({})


def _refuse_thumbnail(params: Params) -> None:
    if "thumbnail" in params.files or not params.is_blank("thumbnail"):
        raise InvalidError(f"Validation failed: thumbnail {NOT_OFFERED}")


def _own(request: Request, media_id: int) -> MediaFile:
    owner_id = caller_of(request).pk
    shown = MediaFile.objects.filter(owner_id=owner_id, withdrawn_at=None, hidden_at=None)
    return (shown | usable(owner_id)).get(pk=media_id)
