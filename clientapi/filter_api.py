"""Filters over HTTP, in versions 1 and 2 of Mastodon's API.

The site's filter is one phrase and applies everywhere. So in version 2 it has one keyword with the filter's id, the
phrase as title, and all contexts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.request import Request

from clientapi.entities import Filter, FilterKeyword, moment
from clientapi.errors import ClientView, InvalidError, caller_of, nothing
from clientapi.params import Params
from clientapi.presenting import CONTEXTS, filter_of
from items import filters
from items.filter_api import filter_or_404
from items.filters import Listed
from items.models import PHRASE_LENGTH, FilterAction
from items.models import Filter as FilterRow
from web.rest import FeedResponse, parse_id

LONGEST_SECONDS = 10 * 366 * 86_400
"""Maximum duration of a filter with an end."""
TITLE_LENGTH = 1_000
"""Maximum characters of a title beside a keyword. The title is ignored."""
CHOICES = frozenset(FilterAction.values)


class FirstFilter(msgspec.Struct):
    """A filter in version 1."""

    id: str
    phrase: str
    context: list[str]
    whole_word: bool
    expires_at: str | None
    irreversible: bool


def _first(listed: Listed) -> FirstFilter:
    expires_at = moment(listed.expires_at) if listed.expires_at else None
    is_hiding = listed.action == FilterAction.HIDE
    return FirstFilter(str(listed.id), listed.phrase, list(CONTEXTS), listed.whole_word, expires_at, is_hiding)


def _second(listed: Listed) -> Filter:
    found = filter_of(listed)
    found.keywords, found.statuses = [_keyword(listed)], []
    return found


def _shown(listed: Listed, *, is_first: bool) -> FirstFilter | Filter:
    return _first(listed) if is_first else _second(listed)


def _keyword(listed: Listed) -> FilterKeyword:
    return FilterKeyword(str(listed.id), listed.phrase, listed.whole_word)


@contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    except FilterRow.DoesNotExist as error:
        raise exceptions.NotFound from error
    except filters.NothingToFindError as error:
        raise InvalidError("Validation failed: The phrase holds nothing to find") from error
    except filters.FilterCapError as error:
        raise InvalidError(f"Validation failed: You have {filters.FILTERS} filters, which is the limit") from error


def _phrase(params: Params, name: str) -> str:
    phrase = params.text(name, most=PHRASE_LENGTH).strip()
    if not phrase:
        raise InvalidError(f"Validation failed: {name} can't be blank")
    return phrase


def _end(params: Params) -> dict[str, datetime | None]:
    """Empty if not sent. An empty text means never."""
    if "expires_in" not in params:
        return {}
    seconds = params.number("expires_in", least=0, most=LONGEST_SECONDS)
    return {"expires_at": timezone.now() + timedelta(seconds=seconds) if seconds else None}


def _check_contexts(params: Params) -> None:
    unknown = set(params.words("context")) - set(CONTEXTS)
    if unknown:
        raise InvalidError("Validation failed: Context is not a known one")


class FilterView(ClientView):
    """One of the caller's filters."""

    takes_bodies = frozenset({"PUT"})
    is_first = False

    def get(self, request: Request, filter_id: str) -> HttpResponse:
        """Return it."""
        return FeedResponse(_shown(filter_or_404(filter_id, caller_of(request)), is_first=self.is_first))

    def put(self, request: Request, filter_id: str) -> HttpResponse:
        """Change the parameters that are sent."""
        owner = caller_of(request)
        listed = filter_or_404(filter_id, owner)
        fields = changed_fields(Params(request), is_first=self.is_first, listed=listed)
        with _answers():
            if fields:
                filters.change(owner=owner, filter_id=listed.id, **fields)
        return FeedResponse(_shown(filter_or_404(filter_id, owner), is_first=self.is_first))

    def delete(self, request: Request, filter_id: str) -> HttpResponse:
        """Delete the filter."""
        with _answers():
            filters.delete(owner=caller_of(request), filter_id=parse_id(filter_id) or 0)
        return nothing()


def changed_fields(params: Params, *, is_first: bool, listed: Listed | None = None) -> dict[str, Any]:
    """The sent fields of a filter. A new one needs a phrase. Raises InvalidError."""
    _check_contexts(params)
    fields: dict[str, Any] = dict(_end(params))
    if is_first:
        if listed is None or "phrase" in params:
            fields["phrase"] = _phrase(params, "phrase")
        if not params.is_blank("whole_word"):
            fields["whole_word"] = params.flag("whole_word")
        if not params.is_blank("irreversible"):
            fields["action"] = FilterAction.HIDE if params.flag("irreversible") else FilterAction.WARN
        return fields
    if "filter_action" in params:
        fields["action"] = params.choice("filter_action", CHOICES, default=FilterAction.WARN.value)
    return fields | _of_keyword(params, listed)


def _of_keyword(params: Params, listed: Listed | None) -> dict[str, Any]:
    """The only keyword, or else the title."""
    params.text("title", most=TITLE_LENGTH)
    keywords = params.parts("keywords_attributes")
    if len(keywords) > 1:
        raise InvalidError("Validation failed: A filter of this site has one keyword")
    if keywords:
        keyword = keywords[0]
        if keyword.flag("_destroy"):
            raise InvalidError("Validation failed: A filter has a keyword; delete the filter")
        fields: dict[str, Any] = {}
        if listed is None or "keyword" in keyword:
            fields["phrase"] = _phrase(keyword, "keyword")
        if "whole_word" in keyword:
            fields["whole_word"] = keyword.flag("whole_word")
        return fields
    return {"phrase": _phrase(params, "title")} if listed is None else {}


class FiltersView(ClientView):
    """The caller's filters."""

    is_first = False

    def get(self, request: Request) -> HttpResponse:
        """List all filters, newest first."""
        return FeedResponse([_shown(one, is_first=self.is_first) for one in filters.filters_of(caller_of(request))])

    def post(self, request: Request) -> HttpResponse:
        """Create a filter."""
        owner = caller_of(request)
        fields = changed_fields(Params(request), is_first=self.is_first)
        with _answers():
            made = filters.create(owner=owner, **{"whole_word": False} | fields)
        return FeedResponse(_shown(filter_or_404(made.pk, owner), is_first=self.is_first))


class FirstFiltersView(FiltersView):
    """The caller's filters, version 1."""

    is_first = True


class FirstFilterView(FilterView):
    """One filter, version 1."""

    is_first = True


class KeywordsView(ClientView):
    """The keywords of a filter."""

    def get(self, request: Request, filter_id: str) -> HttpResponse:
        """Return the only keyword."""
        return FeedResponse([_keyword(filter_or_404(filter_id, caller_of(request)))])

    def post(self, request: Request, filter_id: str) -> HttpResponse:
        """Answer 422: a filter has only one keyword."""
        filter_or_404(filter_id, caller_of(request))
        raise InvalidError("Validation failed: A filter of this site has one keyword")


class KeywordView(ClientView):
    """A keyword by its id, which is the filter's."""

    takes_bodies = frozenset({"PUT"})

    def get(self, request: Request, filter_id: str) -> HttpResponse:
        """Return the keyword."""
        return FeedResponse(_keyword(filter_or_404(filter_id, caller_of(request))))

    def put(self, request: Request, filter_id: str) -> HttpResponse:
        """Change the phrase."""
        owner, params = caller_of(request), Params(request)
        listed = filter_or_404(filter_id, owner)
        fields: dict[str, Any] = {"phrase": _phrase(params, "keyword")}
        if not params.is_blank("whole_word"):
            fields["whole_word"] = params.flag("whole_word")
        with _answers():
            filters.change(owner=owner, filter_id=listed.id, **fields)
        return FeedResponse(_keyword(filter_or_404(filter_id, owner)))

    def delete(self, request: Request, filter_id: str) -> HttpResponse:
        """Answer 422: a filter always has a keyword."""
        filter_or_404(filter_id, caller_of(request))
        raise InvalidError("Validation failed: A filter has a keyword; delete the filter")


class FilteredStatusesView(ClientView):
    """Filtered single statuses: the site has none."""

    def get(self, request: Request, filter_id: str) -> HttpResponse:
        """Return an empty list."""
        filter_or_404(filter_id, caller_of(request))
        return FeedResponse([])
