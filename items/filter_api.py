"""The caller's filters over HTTP. Every item shows what they match (`filtered`, `filter_action`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.api import signed_in
from accounts.models import User
from accounts.owned import missing_as_404, own_or_404
from items import filters
from items.filters import Listed
from items.models import PHRASE_LENGTH, FilterAction
from storage.paging import as_text, part_of
from web.openapi import PAGED
from web.rest import (
    ApiView,
    ConflictError,
    FeedResponse,
    FlagField,
    MomentField,
    Problem,
    StrictSerializer,
    TextField,
    body,
    limit,
    parse_id,
    position,
)
from web.times import Time


class FilterBody(msgspec.Struct):
    """A filter, as its owner gets it."""

    id: str
    phrase: str
    whole_word: bool
    action: str
    expires_at: Time | None
    created_at: Time

    @classmethod
    def of(cls, listed: Listed) -> "FilterBody":
        """Convert a filter."""
        return cls(str(listed.id), *listed[1:])


class FilterPage(msgspec.Struct):
    """Filters, newest first."""

    items: list[FilterBody]
    last_id: str | None
    has_more: bool


class FilterEdit(StrictSerializer):
    """Omitted fields stay as they are."""

    phrase = TextField(max_length=PHRASE_LENGTH, required=False)
    whole_word = FlagField(required=False)
    action = serializers.ChoiceField(FilterAction.choices, required=False)
    expires_at = MomentField(allow_null=True, required=False)

    def validate_expires_at(self, moment: Any) -> Any:
        """Raise ValidationError for a past time."""
        if moment is not None and moment <= timezone.now():
            raise serializers.ValidationError("This time is over.")
        return moment


class NewFilter(FilterEdit):
    """A phrase to filter. `expires_at` null: never.

    `whole_word` has no effect next to scripts without spaces, such as Chinese.
    """

    phrase = TextField(max_length=PHRASE_LENGTH)
    whole_word = FlagField(default=True)
    action = serializers.ChoiceField(FilterAction.choices, default=FilterAction.WARN)
    expires_at = MomentField(allow_null=True, default=None)


@contextmanager
def _answers() -> Iterator[None]:
    try:
        with missing_as_404():
            yield
    except filters.NothingToFindError as error:
        raise serializers.ValidationError({"phrase": ["It holds nothing to find."]}) from error
    except filters.FilterCapError as error:
        raise ConflictError(f"You have {filters.FILTERS} filters, which is the limit.") from error


def filter_or_404(filter_id: str | int, owner: User) -> Listed:
    """The owner's filter. Raises the same Http404 for every other id."""
    return own_or_404(filters.filter_of, owner, filter_id)


class FiltersView(ApiView):
    """Filters."""

    @extend_schema(operation_id="list_filters", parameters=PAGED, responses={200: FilterPage})
    def get(self, request: Request) -> HttpResponse:
        """The caller's filters, newest first. Expired ones stay until they are deleted."""
        owner, last_id, count = signed_in(request), position(request), limit(request)
        page = part_of(filters.filters_of(owner, last_id=last_id, limit=count + 1), count, attrgetter("id"))
        return FeedResponse(
            FilterPage([FilterBody.of(one) for one in page.shown], as_text(page.last_id), page.has_more)
        )

    @extend_schema(
        operation_id="create_filter",
        request=NewFilter,
        responses={201: FilterBody, 409: OpenApiResponse(Problem, "The caller has as many filters as one may.")},
    )
    def post(self, request: Request) -> HttpResponse:
        """Add a filter."""
        owner, fields = signed_in(request), body(request, NewFilter)
        with _answers():
            made = filters.create(owner=owner, **fields)
        return FeedResponse(FilterBody.of(filter_or_404(made.pk, owner)), status=201)


class FilterView(ApiView):
    """One filter."""

    @extend_schema(operation_id="edit_filter", request=FilterEdit, responses={200: FilterBody})
    def patch(self, request: Request, filter_id: str) -> HttpResponse:
        """Change a filter. Omitted fields stay."""
        owner = signed_in(request)
        listed = filter_or_404(filter_id, owner)
        fields = body(request, FilterEdit)
        if fields:
            with _answers():
                filters.change(owner=owner, filter_id=listed.id, **fields)
        return FeedResponse(FilterBody.of(filter_or_404(filter_id, owner)))

    @extend_schema(operation_id="delete_filter", responses={204: None})
    def delete(self, request: Request, filter_id: str) -> HttpResponse:
        """Delete a filter."""
        owner = signed_in(request)
        with _answers():
            filters.delete(owner=owner, filter_id=parse_id(filter_id) or 0)
        return HttpResponse(status=204)
