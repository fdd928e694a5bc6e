"""Uploads and a user's own media over HTTP."""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from media import actions
from media.captioning import remove_captions, set_captions
from media.models import DESCRIPTION_LENGTH, MediaFile, MediaKind, MediaState, Use
from media.objects import OwnMedium, own_medium, parse_focus
from web import uploads
from web.openapi import IDEMPOTENCY_KEY
from web.rest import (
    FILES_TYPE,
    ApiView,
    FeedResponse,
    FilesParser,
    Problem,
    StrictSerializer,
    TextField,
    body,
    idempotency_key,
)

T = TypeVar("T")


class FocusField(serializers.CharField):
    """A point "x,y", each from -1 to 1. Empty: the centre."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Accept an empty string."""
        return (0.0, 0.0) if isinstance(data, str) and not data.strip() else super().run_validation(data)

    def to_internal_value(self, data: Any) -> tuple[float, float]:  # type: ignore[override]
        """Parse the two numbers."""
        focus = parse_focus(data) if isinstance(data, str) else None
        if focus is None:
            raise serializers.ValidationError('Two numbers from -1 to 1, as "0.5,-0.25".')
        return focus


class Upload(StrictSerializer):
    """A file, its description and its focus."""

    file = serializers.FileField(allow_empty_file=True)
    description = TextField(max_length=DESCRIPTION_LENGTH, allow_blank=True, default="")
    focus = FocusField(required=False, allow_blank=True)


class Face(StrictSerializer):
    """A picture."""

    file = serializers.FileField(allow_empty_file=True)


class Captions(StrictSerializer):
    """A WebVTT file."""

    file = serializers.FileField(allow_empty_file=True)


class MediaEdit(StrictSerializer):
    """New description and focus of a medium."""

    description = TextField(max_length=DESCRIPTION_LENGTH, allow_blank=True, required=False)
    focus = FocusField(required=False, allow_blank=True)


def caller(request: Request) -> int:
    """The calling user's id."""
    return int(request.user.pk or 0)


def validated_form(request: Request, serializer: type[StrictSerializer]) -> dict[str, Any]:
    """Validated fields of a form with one file. Raises ValidationError."""
    data = request.data
    repeated = [name for name in data if len(data.getlist(name)) > 1] if hasattr(data, "getlist") else []
    if repeated:
        raise serializers.ValidationError({name[:64]: ["Give it once."] for name in repeated[:10]})
    return body(request, serializer)


class MediaView(ApiView):
    scopes = "media"
    rates: Mapping[str, str] = {"POST": "upload"}
    takes_files = {"POST": uploads.one_medium_bytes}
    parser_classes = [FilesParser]

    @extend_schema(
        operation_id="upload_media",
        parameters=[IDEMPOTENCY_KEY],
        request={"multipart/form-data": Upload},
        responses={
            201: OwnMedium,
            202: OpenApiResponse(OwnMedium, "A video, which is converted now. Read it again for its `state`."),
            409: OpenApiResponse(Problem, "The key was used for something else."),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        """Send a picture or video. The site rewrites it and removes it after 24 hours unless an item uses it. A video
        is converted afterwards. An item with it can be published meanwhile, and comes out when it is ready.

        Videos: MP4 and MOV with H.264, H.265, AV1, VP8, VP9 or MPEG-4 pictures, and AAC, MP3, Opus, FLAC, ALAC, AC-3 or
        PCM sound. WebM with VP8, VP9 or AV1, and Opus or Vorbis. Other tracks, such as subtitles, are removed.
        """
        fields, key = validated_form(request, Upload), idempotency_key(request)
        with fields.pop("file").open("rb") as file:
            row = actions.upload(owner_id=caller(request), file=file, key=key, **fields)
        return FeedResponse(own_medium(row), status=202 if row.state == MediaState.PROCESSING else 201)


class MediumView(ApiView):
    """One of the caller's own media."""

    scopes = "write:media"

    @extend_schema(operation_id="read_media", responses={200: OwnMedium})
    def get(self, request: Request, media_id: int) -> HttpResponse:
        """One of your media that no item uses yet, or that a scheduled one will. A client that waits for a video asks
        every few seconds.
        """
        return FeedResponse(own_medium(_own(request, media_id).get(use__in=(Use.NONE, Use.LATER))))

    @extend_schema(operation_id="edit_media", request=MediaEdit, responses={200: OwnMedium})
    def patch(self, request: Request, media_id: int) -> HttpResponse:
        """Change description or focus. Fields not sent stay. An item that uses the medium shows the change."""
        row = _own(request, media_id).get()
        fields = body(request, MediaEdit)
        return FeedResponse(own_medium(actions.describe(medium=row, **fields)))

    @extend_schema(operation_id="remove_media", responses={204: None})
    def delete(self, request: Request, media_id: int) -> HttpResponse:
        """Remove a medium that no item uses."""
        if not actions.remove_unused(owner_id=caller(request), media_id=media_id):
            raise exceptions.NotFound
        return HttpResponse(status=204)


class CaptionsView(ApiView):
    """The captions of the caller's videos."""

    scopes = "media"
    rates: Mapping[str, str] = {"PUT": "upload"}
    takes_files = {"PUT": lambda: 2 * uploads.ROOM_BYTES}
    parser_classes = [FilesParser]

    @extend_schema(operation_id="set_captions", request={FILES_TYPE: Captions}, responses={200: OwnMedium})
    def put(self, request: Request, media_id: int) -> HttpResponse:
        """Set or replace a video's captions: a WebVTT file in UTF-8, of which only the words are kept."""
        row, fields = _own(request, media_id).get(), validated_form(request, Captions)
        if row.kind != MediaKind.VIDEO:
            raise serializers.ValidationError({"file": ["Only videos have captions."]})
        with fields["file"].open("rb") as file:
            done = set_captions(owner_id=caller(request), media_id=row.pk, file=file)
        return FeedResponse(own_medium(done))

    @extend_schema(operation_id="remove_captions", responses={204: None})
    def delete(self, request: Request, media_id: int) -> HttpResponse:
        """Remove a video's captions."""
        row = _own(request, media_id).get()
        if row.kind == MediaKind.VIDEO:
            remove_captions(owner_id=caller(request), media_id=row.pk)
        return HttpResponse(status=204)


def _own(request: Request, media_id: int) -> "QuerySet[MediaFile]":
    return MediaFile.objects.filter(owner_id=caller(request), withdrawn_at=None, pk=media_id)
