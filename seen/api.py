"""What users played and were issued, and which of many items they have not seen, over HTTP."""

from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from accounts.api import signed_in
from feedsite import rates
from feedsite.rest import (
    MAX_POSITION,
    NUMBER,
    ApiView,
    FeedResponse,
    IdField,
    OutageError,
    Problem,
    StrictSerializer,
    body,
    spend,
)
from seen import played
from seen.access import is_there, may_act_for
from seen.checker import unseen
from seen.played import EARLY_SECONDS, Play, PlayedUnavailableError, PlaysFullError
from seen.store import StoreUnavailableError

NO_USER = OpenApiResponse(Problem, "No such user.")
REPORTED = 500
ASKED = 10_000
FILTER_BYTES = 256 * 1024
"""Ten thousand ids of 16 digits, quoted, are 190 kB."""


class IdsField(serializers.Field[list[int], Any, list[str], Any]):
    """A list of ids, read at once: ten thousand fields of a serializer would cost more than the answer."""

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self.most = most

    def to_internal_value(self, data: Any) -> list[int]:
        if not isinstance(data, list) or not 1 <= len(data) <= self.most:
            raise serializers.ValidationError(f"A list of 1 to {self.most} ids.")
        try:
            ids = [int(text) for text in data if NUMBER.fullmatch(text)]
        except TypeError:
            ids = []
        if len(ids) < len(data) or max(ids) > MAX_POSITION:
            raise serializers.ValidationError("An id is a decimal string from 1 to 2^53.")
        return ids


def _ids(most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": most}


@extend_schema_field(_ids(REPORTED))
class ReportedField(IdsField):
    pass


@extend_schema_field(_ids(ASKED))
class AskedField(IdsField):
    pass


class ReportSerializer(StrictSerializer):
    """`user_id`: of another user, for services."""

    ids = ReportedField(most=REPORTED)
    user_id = IdField(required=False)


class AskSerializer(StrictSerializer):
    """`user_id`: of another user, for services."""

    ids = AskedField(most=ASKED)
    user_id = IdField(required=False)


class Unseen(msgspec.Struct):
    """What the user has not seen, in the order of the question."""

    unseen: list[str]


def _whose(request: Request, fields: dict[str, Any]) -> int:
    """The user whom a call is about. Raises PermissionDenied and NotFound."""
    caller = signed_in(request)
    user_id: int = fields.get("user_id", caller.pk)
    if not may_act_for(caller, user_id):
        raise exceptions.PermissionDenied("You may not act for another user.")
    if user_id != caller.pk and not is_there(user_id):
        raise exceptions.NotFound
    return user_id


class PlaysView(ApiView):
    only_reads = True
    rates = {"POST": "played"}

    @extend_schema(operation_id="record_plays", request=ReportSerializer, responses={204: None, 404: NO_USER})
    def post(self, request: Request) -> HttpResponse:
        """Remember what was played: when this is answered, every later question knows it. Again changes nothing.

        It is not asked whether there are such items. Ids are counted for the user who played them; where too many of
        theirs wait to be merged the whole call is refused (429), and none of it is remembered.
        """
        fields = body(request, ReportSerializer)
        user_id, now = _whose(request, fields), timezone.now()
        spend("played_ids", str(user_id), len(fields["ids"]))
        try:
            played.record([Play(user_id, item_id, now) for item_id in fields["ids"]], now=now)
        except (PlaysFullError, PlayedUnavailableError) as error:
            rates.give_back("played_ids", str(user_id), len(fields["ids"]))
            if isinstance(error, PlaysFullError):
                raise exceptions.Throttled(EARLY_SECONDS) from error
            raise OutageError from error
        return HttpResponse(status=204)


class IssuedView(ApiView):
    only_reads = True
    rates = {"POST": "played"}

    @extend_schema(operation_id="record_issued", request=ReportSerializer, responses={204: None, 404: NO_USER})
    def post(self, request: Request) -> HttpResponse:
        """Remember what was issued, the last of it at the end; the last hundred count as seen."""
        fields = body(request, ReportSerializer)
        try:
            played.issue([(_whose(request, fields), fields["ids"])])
        except PlayedUnavailableError as error:
            raise OutageError from error
        return HttpResponse(status=204)


class FilterView(ApiView):
    only_reads = True
    rates = {"POST": "played"}
    body_bytes = FILTER_BYTES

    @extend_schema(operation_id="filter_seen", request=AskSerializer, responses={200: Unseen, 404: NO_USER})
    def post(self, request: Request) -> HttpResponse:
        """Which of these the user has not seen: not played within three months, nor among the last hundred issued."""
        fields = body(request, AskSerializer)
        try:
            left = unseen(_whose(request, fields), fields["ids"], now=timezone.now())
        except (PlayedUnavailableError, StoreUnavailableError) as error:
            raise OutageError from error
        return FeedResponse(Unseen(list(map(str, left))))
