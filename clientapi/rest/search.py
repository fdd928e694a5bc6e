from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

import msgspec
from django.http import HttpResponse
from rest_framework.request import Request

from accounts.callers import reader_of
from accounts.models import User
from clientapi.accounts.people import accounts_of
from clientapi.accounts.relationships import relationships
from clientapi.entities import Account, Status
from clientapi.errors import ClientView, OpenView, caller_of
from clientapi.params import Params
from clientapi.rest.accounts import local_name_of
from clientapi.rest.tags import TagEntity, tags_of
from clientapi.statuses.presenting import Reader, statuses
from items.hydrate import visible_bodies
from items.pages.addresses import item_id_at, own_path
from items.search.query import QUERY_LENGTH, Query, parse
from items.search.search import search_items
from items.search.user_search import search_users
from items.tags.popular import popular_with_prefix
from relations.visibility import find_user, users_visible_to
from web.hashtags import canonical_tag
from web.rest import FeedResponse

MOST, FAR = 40, 200
"""Maximum results per kind, and maximum `offset`."""
KINDS = frozenset({"accounts", "statuses", "hashtags"})


class SearchResults(msgspec.Struct):
    """The results of a search."""

    accounts: list[Account]
    statuses: list[Status]
    hashtags: list[TagEntity]


class SearchView(OpenView):
    """A search for accounts, statuses and hashtags."""

    scopes = "search"
    rates: Mapping[str, str] = {"GET": "search"}

    def get(self, request: Request) -> HttpResponse:
        """Find accounts, statuses and hashtags. If the text is an address of this site, return what it shows."""
        reader, params = reader_of(request), Params(request)
        text = params.text("q", most=QUERY_LENGTH * 2).strip()[:QUERY_LENGTH]
        kind = params.choice("type", KINDS)
        limit = min(params.number("limit", least=1, most=10**9, default=20) or 20, MOST)
        offset = params.number("offset", least=0, most=10**9, default=0) or 0
        params.refuse("min_id")
        found = SearchResults([], [], [])
        if not text or offset > FAR:
            return FeedResponse(found)
        is_address = text.startswith(("http://", "https://"))
        if is_address and own_path(text):
            return FeedResponse(_only(result_at_address(text, reader), kind))
        span = slice(offset, offset + limit)
        if is_address:  # of another site: the posts that have it
            kind = "statuses" if kind in ("", "statuses") else "none"
        if kind in ("", "accounts"):
            people = people_found(text, reader, offset + limit)
            found.accounts = accounts_of(followed(people, reader, params)[span])
        if kind in ("", "statuses"):
            query, sender = parse(text), params.id("account_id")
            if sender:
                names = users_visible_to(reader).filter(pk=sender).values_list("username", flat=True)
                query = replace(query, senders=tuple(names) or ("",))
            page = search_items(query, reader, last_id=params.id("max_id"), limit=offset + limit)
            found.statuses = statuses(page.items[span], reader)
        if kind in ("", "hashtags"):
            found.hashtags = tags_of(tags_found(text, reader, offset + limit)[span], reader)
        return FeedResponse(found)


def _only(found: SearchResults, kind: str) -> SearchResults:
    return (
        found if not kind else SearchResults(**{name: getattr(found, name) if name == kind else [] for name in KINDS})
    )


def people_found(text: str, reader: Reader, count: int) -> list[User]:
    """Users whose name fits the text. Finds nobody of another site."""
    if "@" in text:
        name = local_name_of(text)
        if not name:
            return []
        exact = find_user(name, reader)
        others = search_users(parse(name), reader, limit=count)
        return [exact, *(one for one in others if one.pk != exact.pk)][:count] if exact else others
    return search_users(parse(text), reader, limit=count)


def followed(users: list[User], reader: Reader, params: Params) -> list[User]:
    """The users, with `following` only those that the reader follows."""
    if not params.flag("following") or not isinstance(reader, User):
        return users
    ids = {one.id for one in relationships(reader, [user.pk for user in users]) if one.following}
    return [user for user in users if str(user.pk) in ids]


def tags_found(text: str, reader: Reader, count: int) -> list[str]:
    """The text as a hashtag if it has visible posts, and popular hashtags that begin with it."""
    tag = canonical_tag(text.removeprefix("#"))
    if tag is None:
        return []
    query = Query(phrases=(), is_open=False, senders=(), tags=(tag,), names=())
    exact = [tag] if search_items(query, reader, limit=1).items else []
    more = popular_with_prefix(tag, reader, count) if isinstance(reader, User) else []
    return list(dict.fromkeys([*exact, *more]))[:count]


def result_at_address(address: str, reader: Reader) -> SearchResults:
    """The account, status or hashtag at an address of this site. Other sites are never asked."""
    found, path = SearchResults([], [], []), own_path(address)
    if path.startswith("/@"):
        user = find_user(path.removeprefix("/@").partition("/")[0], reader)
        found.accounts = accounts_of([user]) if user else []
    elif number := item_id_at(address):
        found.statuses = statuses(visible_bodies([number], reader), reader)
    elif path.startswith("/tags/"):
        tag = canonical_tag(unquote(path.removeprefix("/tags/")))
        found.hashtags = tags_of([tag] if tag else [], reader)
    return found


class AccountSearchView(ClientView):
    """A search that completes a typed name."""

    scopes = "accounts"
    rates: Mapping[str, str] = {"GET": "search"}

    def get(self, request: Request) -> HttpResponse:
        """Find accounts by a typed name. `following`: only those that the caller follows."""
        reader, params = caller_of(request), Params(request)
        text = params.text("q", most=QUERY_LENGTH * 2).strip()[:QUERY_LENGTH]
        limit = min(params.number("limit", least=1, most=10**9, default=40) or 40, 80)
        offset = params.number("offset", least=0, most=FAR, default=0) or 0
        users = people_found(text, reader, offset + limit)[offset:] if text else []
        return FeedResponse(accounts_of(followed(users, reader, params)))
