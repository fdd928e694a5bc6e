import math
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from seen import played
from seen.access import active_user_ids, is_active_user, may_act_for
from seen.checker import unseen
from seen.reporting import report
from web.rest import MAX_POSITION, NUMBER, ApiView, FeedResponse, IdField, Problem, StrictSerializer, body

NO_USER = OpenApiResponse(Problem, "No such user.")
REPORTED = 500
ASKED = 10_000
USERS, BATCH = 100, 5_000
"""The most users of a batch, and ids in all."""
BATCH_BYTES = 128 * 1024
"""5,000 ids of 16 digits, quoted, and 100 users are 105 kB."""
FILTER_BYTES = 256 * 1024
"""10,000 ids of 16 digits, quoted, are 190 kB."""


class IdsField(serializers.Field[list[int], Any, list[str], Any]):
    """A list of ids, read at once: 10,000 serializer fields would cost more than the answer."""

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self.most = most

    def to_internal_value(self, data: Any) -> list[int]:
        """The ids as numbers. Raises ValidationError."""
        if not isinstance(data, list) or not 1 <= len(data) <= self.most:
            raise serializers.ValidationError(f"Send a list of 1 to {self.most} ids.")
        try:
            ids = [int(text) for text in data if NUMBER.fullmatch(text)]
        except TypeError:
            ids = []
        if len(ids) < len(data) or max(ids) > MAX_POSITION:
            raise serializers.ValidationError("Send each id as a decimal string from 1 to 2^53.")
        return ids


def _ids_schema(most: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": most}


@extend_schema_field(_ids_schema(REPORTED))
class ReportedField(IdsField):
    """Ids of played or issued items."""


@extend_schema_field(_ids_schema(ASKED))
class AskedField(IdsField):
    """Ids to ask about."""


@extend_schema_field(
    {
        "type": "array",
        "minItems": 1,
        "maxItems": USERS,
        "items": {
            "type": "object",
            "properties": {"user_id": {"type": "string"}, "ids": _ids_schema(REPORTED)},
            "required": ["user_id", "ids"],
            "additionalProperties": False,
        },
    }
)
class PlaysField(serializers.Field[dict[int, list[int]], Any, Any, Any]):
    """Played ids of several users. A user may appear again."""

    def to_internal_value(self, data: Any) -> dict[int, list[int]]:
        """The ids by user. Raises ValidationError."""
        if not isinstance(data, list) or not 1 <= len(data) <= USERS:
            raise serializers.ValidationError(f"Send a list of 1 to {USERS} users.")
        user, ids = IdsField(most=1), IdsField(most=REPORTED)
        plays: dict[int, list[int]] = {}
        for each in data:
            if not isinstance(each, dict) or each.keys() != {"user_id", "ids"}:
                raise serializers.ValidationError("Each needs a user_id and ids, and nothing else.")
            (user_id,) = user.to_internal_value([each["user_id"]])
            plays.setdefault(user_id, []).extend(ids.to_internal_value(each["ids"]))
        if sum(map(len, plays.values())) > BATCH:
            raise serializers.ValidationError(f"Send at most {BATCH} ids in all.")
        return plays


class ReportSerializer(StrictSerializer):
    """Items that a user played or was issued. `user_id`: another user, for services."""

    ids = ReportedField(most=REPORTED)
    user_id = IdField(required=False)


class BatchSerializer(StrictSerializer):
    """The plays of several users."""

    plays = PlaysField()


class AskSerializer(StrictSerializer):
    """Items to ask about. `user_id`: another user, for services."""

    ids = AskedField(most=ASKED)
    user_id = IdField(required=False)


class Unseen(msgspec.Struct):
    """The unseen items, in the order of the request."""

    unseen: list[str]


class Wait(msgspec.Struct):
    """A user whose plays were not taken, and the seconds to wait."""

    user_id: str
    retry_after: int


class Refused(msgspec.Struct):
    """The plays that were not taken. `unknown`: ids of users who do not exist or are not active."""

    refused: list[Wait]
    unknown: list[str]


def _target_user_id(request: Request, fields: dict[str, Any]) -> int:
    caller = authenticated_user(request)
    user_id: int = fields.get("user_id", caller.pk)
    if not may_act_for(caller, user_id):
        raise exceptions.PermissionDenied("You may not act for another user.")
    if user_id != caller.pk and not is_active_user(user_id):
        raise exceptions.NotFound
    return user_id


def _report_plays(plays: dict[int, list[int]]) -> dict[int, float]:
    """Take plays. Returns the seconds to wait for users whose plays were not taken. Raises OutageError."""
    return report(plays, now=timezone.now())


class PlaysView(ApiView):
    scopes = "statuses"
    only_reads = True
    rates = {"POST": "played"}

    @extend_schema(operation_id="record_plays", request=ReportSerializer, responses={204: None, 404: NO_USER})
    def post(self, request: Request) -> HttpResponse:
        """Record plays. When this returns, every later question knows them. Repeating it changes nothing.

        Nobody checks whether the items exist. Ids count against the rate of the user who played them. If too many plays
        wait to be merged, the call is refused (429) and nothing is recorded.
        """
        fields = body(request, ReportSerializer)
        user_id = _target_user_id(request, fields)
        waits = _report_plays({user_id: fields["ids"]})
        if waits:
            raise exceptions.Throttled(waits[user_id])
        return HttpResponse(status=204)


class PlaysBatchView(ApiView):
    """Plays of many users."""

    only_reads = True
    rates = {"POST": "played"}
    body_bytes = BATCH_BYTES

    @extend_schema(operation_id="record_plays_batch", request=BatchSerializer, responses={200: Refused})
    def post(self, request: Request) -> HttpResponse:
        """Record the plays of up to a hundred users in one call, for services.

        Like `POST /seen/plays` for each user. The answer names the users whose plays were not taken, with the seconds
        to wait, and those who do not exist.
        """
        caller = authenticated_user(request)
        plays: dict[int, list[int]] = body(request, BatchSerializer)["plays"]
        if not all(may_act_for(caller, user_id) for user_id in plays):
            raise exceptions.PermissionDenied("You may not act for another user.")
        there = active_user_ids(plays)
        waits = _report_plays({user_id: ids for user_id, ids in plays.items() if user_id in there})
        refused = [Wait(str(user_id), math.ceil(wait)) for user_id, wait in waits.items()]
        return FeedResponse(Refused(refused, [str(user_id) for user_id in plays if user_id not in there]))


class IssuedView(ApiView):
    scopes = "statuses"
    only_reads = True
    rates = {"POST": "played"}

    @extend_schema(operation_id="record_issued", request=ReportSerializer, responses={204: None, 404: NO_USER})
    def post(self, request: Request) -> HttpResponse:
        """Record issued items, the last one at the end. The last hundred count as seen."""
        fields = body(request, ReportSerializer)
        played.record_issued([(_target_user_id(request, fields), fields["ids"])])
        return HttpResponse(status=204)


class PlayedFilterView(ApiView):
    """Asks which items a user has not seen."""

    scopes = "read:statuses"
    only_reads = True
    rates = {"POST": "played"}
    body_bytes = FILTER_BYTES

    @extend_schema(operation_id="filter_seen", request=AskSerializer, responses={200: Unseen, 404: NO_USER})
    def post(self, request: Request) -> HttpResponse:
        """Which of these items the user has not seen: not played within three months, nor among the last 100 issued."""
        fields = body(request, AskSerializer)
        left = unseen(_target_user_id(request, fields), fields["ids"], now=timezone.now())
        return FeedResponse(Unseen(list(map(str, left))))
