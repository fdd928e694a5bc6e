"""Filters over HTTP, in versions 1 and 2 of Mastodon's API.

A version 1 filter is the first keyword of a filter. Without keywords its title is one.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.models import User
from clientapi.entities import Filter, FilterKeyword, time_text
from clientapi.errors import ClientView, InvalidError, caller_of, empty_answer
from clientapi.params import Params
from clientapi.statuses.presenting import CONTEXTS, filter_of
from items.filters import filters
from items.filters.filters import TITLE_LENGTH, Keyword, OwnedFilter, own_filter
from items.models import PHRASE_LENGTH, FilterAction
from web.rest import FeedResponse

LONGEST_SECONDS = 10 * 366 * 86_400
"""Maximum duration of a filter with an end."""
CHOICES = frozenset(FilterAction.values)


class FirstFilter(msgspec.Struct):
    """A filter in version 1."""

    id: str
    phrase: str
    context: list[str]
    whole_word: bool
    expires_at: str | None
    irreversible: bool


def _filter_v1(listed: OwnedFilter) -> FirstFilter:
    expires_at = time_text(listed.expires_at) if listed.expires_at else None
    is_hiding = listed.action == FilterAction.HIDE
    contexts = list(listed.contexts or CONTEXTS)
    return FirstFilter(str(listed.id), listed.phrase, contexts, listed.whole_word, expires_at, is_hiding)


def _filter_v2(listed: OwnedFilter) -> Filter:
    found = filter_of(listed)
    found.keywords, found.statuses = list(map(_keyword, listed.keywords)), []
    return found


def _shown(listed: OwnedFilter, *, is_first: bool) -> FirstFilter | Filter:
    return _filter_v1(listed) if is_first else _filter_v2(listed)


def _keyword(keyword: Keyword) -> FilterKeyword:
    return FilterKeyword(str(keyword.id), keyword.phrase, keyword.whole_word)


def _phrase(params: Params, name: str) -> str:
    phrase = params.text(name, most=PHRASE_LENGTH).strip()
    if not phrase:
        raise InvalidError(f"Validation failed: {name} can't be blank")
    return phrase


def _end(params: Params) -> dict[str, datetime | None]:
    """The `expires_at` that a request sets. Empty if not sent. An empty text means never."""
    if "expires_in" not in params:
        return {}
    seconds = params.number("expires_in", least=0, most=LONGEST_SECONDS)
    return {"expires_at": timezone.now() + timedelta(seconds=seconds) if seconds else None}


def _contexts(params: Params) -> dict[str, list[str]]:
    words = params.words("context")
    if set(words) - set(CONTEXTS):
        raise InvalidError("Validation failed: Unknown context")
    return {"contexts": words} if words else {}


class FilterView(ClientView):
    scopes = "filters"
    takes_bodies = frozenset({"PUT"})
    is_first = False

    def get(self, request: Request, filter_id: int) -> HttpResponse:
        """Return the filter."""
        return FeedResponse(_shown(own_filter(caller_of(request), filter_id), is_first=self.is_first))

    def put(self, request: Request, filter_id: int) -> HttpResponse:
        """Change the parameters that are sent."""
        owner = caller_of(request)
        listed = own_filter(owner, filter_id)
        fields = changed_fields(Params(request), is_first=self.is_first, listed=listed)
        if fields:
            filters.change(owner=owner, filter_id=listed.id, read=listed.keywords, **fields)
        return FeedResponse(_shown(own_filter(owner, filter_id), is_first=self.is_first))

    def delete(self, request: Request, filter_id: int) -> HttpResponse:
        """Delete the filter."""
        filters.delete(owner=caller_of(request), filter_id=filter_id)
        return empty_answer()


def changed_fields(params: Params, *, is_first: bool, listed: OwnedFilter | None = None) -> dict[str, Any]:
    """The fields of a filter that a request sets. Raises InvalidError."""
    fields: dict[str, Any] = _end(params) | _contexts(params)
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
    if "title" in params:
        fields["title"] = params.text("title", most=TITLE_LENGTH)
    keywords = _keywords(params, listed)
    if listed is None and not keywords:
        keywords = [Keyword(_phrase(params, "title"), whole_word=False)]
    return fields | ({"keywords": keywords} if keywords is not None else {})


def _keywords(params: Params, listed: OwnedFilter | None) -> list[Keyword] | None:
    """All keywords of the filter as the request leaves them, or None if it names none. Raises InvalidError."""
    parts = params.parts("keywords_attributes")
    if not parts:
        return None
    kept = {one.id: one for one in listed.keywords} if listed else {}
    new = []
    for part in parts:
        known = kept.get(part.id("id") or 0)
        if known and part.flag("_destroy"):
            del kept[known.id]
        elif known:
            phrase = _phrase(part, "keyword") if "keyword" in part else known.phrase
            kept[known.id] = Keyword(phrase, part.flag("whole_word", default=known.whole_word), known.id)
        elif not part.flag("_destroy"):
            new.append(Keyword(_phrase(part, "keyword"), part.flag("whole_word")))
    if not kept and not new and listed:
        raise InvalidError("Validation failed: A filter has a keyword; delete the filter")
    return [*kept.values(), *new]


class FiltersView(ClientView):
    scopes = "filters"
    is_first = False

    def get(self, request: Request) -> HttpResponse:
        """List all filters, newest first."""
        return FeedResponse([_shown(one, is_first=self.is_first) for one in filters.filters_of(caller_of(request))])

    def post(self, request: Request) -> HttpResponse:
        """Create a filter."""
        owner = caller_of(request)
        fields = changed_fields(Params(request), is_first=self.is_first)
        made = filters.create(owner=owner, **({"whole_word": False} | fields))
        return FeedResponse(_shown(own_filter(owner, made.pk), is_first=self.is_first))


class FirstFiltersView(FiltersView):
    """The caller's filters, version 1."""

    is_first = True


class FirstFilterView(FilterView):
    """One filter, version 1."""

    is_first = True


class KeywordsView(ClientView):
    scopes = "filters"

    def get(self, request: Request, filter_id: int) -> HttpResponse:
        """List the keywords, oldest first."""
        return FeedResponse(list(map(_keyword, own_filter(caller_of(request), filter_id).keywords)))

    def post(self, request: Request, filter_id: int) -> HttpResponse:
        """Add a keyword."""
        owner, params = caller_of(request), Params(request)
        listed = own_filter(owner, filter_id)
        new = Keyword(_phrase(params, "keyword"), params.flag("whole_word"))
        filters.change(owner=owner, filter_id=listed.id, keywords=[*listed.keywords, new], read=listed.keywords)
        return FeedResponse(_keyword(own_filter(owner, filter_id).keywords[-1]))


class KeywordView(ClientView):
    """A keyword of the caller's filter."""

    scopes = "filters"
    takes_bodies = frozenset({"PUT"})

    def get(self, request: Request, filter_id: int) -> HttpResponse:
        """Return the keyword."""
        return FeedResponse(_keyword(_found(caller_of(request), filter_id)[1]))

    def put(self, request: Request, filter_id: int) -> HttpResponse:
        """Change the phrase."""
        owner, params = caller_of(request), Params(request)
        listed, known = _found(owner, filter_id)
        phrase, whole_word = _phrase(params, "keyword"), params.flag("whole_word", default=known.whole_word)
        changed = Keyword(phrase, whole_word, known.id)
        keywords = [changed if one.id == known.id else one for one in listed.keywords]
        filters.change(owner=owner, filter_id=listed.id, keywords=keywords, read=listed.keywords)
        return FeedResponse(_keyword(changed))

    def delete(self, request: Request, filter_id: int) -> HttpResponse:
        """Delete the keyword. The last one stays: 422."""
        owner = caller_of(request)
        listed, known = _found(owner, filter_id)
        if len(listed.keywords) == 1:
            raise InvalidError("Validation failed: A filter has a keyword; delete the filter")
        keywords = [one for one in listed.keywords if one.id != known.id]
        filters.change(owner=owner, filter_id=listed.id, keywords=keywords, read=listed.keywords)
        return empty_answer()


def _found(owner: User, keyword_id: int) -> tuple[OwnedFilter, Keyword]:
    """The owner's keyword and its filter. Raises NotFound."""
    for listed in filters.filters_of(owner):
        for keyword in listed.keywords:
            if keyword.id == keyword_id:
                return listed, keyword
    raise exceptions.NotFound


class FilteredStatusesView(ClientView):
    """Single statuses that a filter hides: there are none."""

    scopes = "filters"

    def get(self, request: Request, filter_id: int) -> HttpResponse:
        """Return an empty list."""
        own_filter(caller_of(request), filter_id)
        return FeedResponse([])
