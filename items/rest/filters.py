from operator import attrgetter
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from items.filters import filters
from items.filters.filters import TITLE_LENGTH, Keyword, OwnedFilter, own_filter
from items.models import PHRASE_LENGTH, Context, FilterAction
from storage.paging import as_text, below, part_of
from web.rest import (
    ApiView,
    FeedResponse,
    FlagField,
    MomentField,
    Problem,
    StrictSerializer,
    TextField,
    body,
)
from web.times import Time


class KeywordBody(msgspec.Struct):
    """A phrase of a filter."""

    phrase: str
    whole_word: bool


class FilterBody(msgspec.Struct):
    """A filter. `phrase` and `whole_word` are those of the first keyword."""

    id: str
    title: str
    phrase: str
    whole_word: bool
    keywords: list[KeywordBody]
    contexts: list[str]
    action: str
    expires_at: Time | None
    created_at: Time

    @classmethod
    def of(cls, listed: OwnedFilter) -> "FilterBody":
        """Convert a filter."""
        return cls(
            id=str(listed.id),
            title=listed.title,
            phrase=listed.phrase,
            whole_word=listed.whole_word,
            keywords=[KeywordBody(one.phrase, one.whole_word) for one in listed.keywords],
            contexts=listed.contexts,
            action=listed.action,
            expires_at=listed.expires_at,
            created_at=listed.created_at,
        )


class FilterPage(msgspec.Struct):
    """Filters, newest first."""

    items: list[FilterBody]
    last_id: str | None
    has_more: bool


class KeywordField(StrictSerializer):
    """A phrase of a filter."""

    phrase = TextField(max_length=PHRASE_LENGTH)
    whole_word = FlagField(default=True)


class FilterEdit(StrictSerializer):
    """Omitted fields stay. `keywords` replaces all phrases; `phrase` changes the first."""

    keywords = serializers.ListField(child=KeywordField(), min_length=1, max_length=filters.FILTERS, required=False)
    contexts = serializers.ListField(
        child=serializers.ChoiceField(Context.choices), required=False, help_text="Empty: everywhere."
    )
    title = TextField(max_length=TITLE_LENGTH, allow_blank=True, required=False)
    phrase = TextField(max_length=PHRASE_LENGTH, required=False)
    whole_word = FlagField(required=False)
    action = serializers.ChoiceField(FilterAction.choices, required=False)
    expires_at = MomentField(allow_null=True, required=False)

    def validate_keywords(self, keywords: list[dict[str, Any]]) -> list[Keyword]:
        """Convert the phrases to keywords."""
        return [Keyword(one["phrase"], one["whole_word"]) for one in keywords]

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Raise ValidationError for a phrase beside keywords."""
        if "keywords" in fields and "phrase" in self.initial_data:
            raise serializers.ValidationError({"phrase": ["Give phrase or keywords."]})
        return fields

    def validate_expires_at(self, moment: Any) -> Any:
        """Raise ValidationError for a past time."""
        if moment is not None and moment <= timezone.now():
            raise serializers.ValidationError("This time is in the past.")
        return moment


class NewFilter(FilterEdit):
    """A phrase to filter, or several `keywords`. `whole_word` has no effect next to scripts without spaces, such as
    Chinese.
    """

    whole_word = FlagField(default=True)
    action = serializers.ChoiceField(FilterAction.choices, default=FilterAction.WARN)
    expires_at = MomentField(allow_null=True, default=None)

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Raise ValidationError without a phrase."""
        if "phrase" not in fields and "keywords" not in fields:
            raise serializers.ValidationError({"phrase": ["This field is required."]})
        return super().validate(fields)


class FiltersView(ApiView):
    scopes = "filters"
    pages_of = FilterPage

    @extend_schema(operation_id="list_filters")
    def get(self, request: Request) -> HttpResponse:
        """The caller's filters, newest first."""
        owner = authenticated_user(request)
        found = [one for one in filters.filters_of(owner) if one.id < below(self.bounds["last_id"])]
        page = part_of(found, self.bounds["limit"], attrgetter("id"))
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
        owner, fields = authenticated_user(request), body(request, NewFilter)
        made = filters.create(owner=owner, **fields)
        return FeedResponse(FilterBody.of(own_filter(owner, made.pk)), status=201)


class FilterView(ApiView):
    scopes = "filters"

    @extend_schema(operation_id="edit_filter", request=FilterEdit, responses={200: FilterBody})
    def patch(self, request: Request, filter_id: int) -> HttpResponse:
        """Change a filter. Omitted fields stay."""
        owner = authenticated_user(request)
        listed = own_filter(owner, filter_id)
        fields = body(request, FilterEdit)
        if fields:
            filters.change(owner=owner, filter_id=listed.id, **fields)
        return FeedResponse(FilterBody.of(own_filter(owner, filter_id)))

    @extend_schema(operation_id="delete_filter", responses={204: None})
    def delete(self, request: Request, filter_id: int) -> HttpResponse:
        """Delete a filter."""
        owner = authenticated_user(request)
        filters.delete(owner=owner, filter_id=filter_id)
        return HttpResponse(status=204)
