import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from clientapi.accounts.people import accounts_of
from clientapi.errors import ClientView, InvalidError, caller_of, empty_answer
from clientapi.paging import MOST_PEOPLE, PEOPLE, page_params, paged_answer
from clientapi.params import Params
from relations import lists
from relations.lists import OwnedList
from relations.models import TITLE_LENGTH
from relations.visibility import users_visible_to
from web.rest import FeedResponse


class ListEntity(msgspec.Struct):
    """Mastodon's List. Its replies policy is always `none`: the site's timelines show no replies."""

    id: str
    title: str
    replies_policy: str
    exclusive: bool


def list_of(listed: OwnedList) -> ListEntity:
    return ListEntity(str(listed.id), listed.title, "none", listed.is_exclusive)


def _title(params: Params) -> str:
    title = params.text("title", most=TITLE_LENGTH).strip()
    if not title:
        raise InvalidError("Validation failed: Title can't be blank")
    return title


REPLIES = ("none", "list")
"""Policies that are taken. Apps send `list` by themselves."""


class ListsView(ClientView):
    scopes = "lists"

    def get(self, request: Request) -> HttpResponse:
        """List all lists by title."""
        return FeedResponse([list_of(one) for one in lists.sorted_by_title(lists.lists_of(caller_of(request)))])

    def post(self, request: Request) -> HttpResponse:
        """Create a list."""
        owner, params = caller_of(request), Params(request)
        params.choice("replies_policy", REPLIES)
        made = lists.create(owner=owner, title=_title(params), is_exclusive=params.flag("exclusive"))
        return FeedResponse(list_of(lists.own_list(owner, made.pk)))


class ListView(ClientView):
    scopes = "lists"
    takes_bodies = frozenset({"PUT"})

    def get(self, request: Request, list_id: int) -> HttpResponse:
        """Return the list."""
        return FeedResponse(list_of(lists.own_list(caller_of(request), list_id)))

    def put(self, request: Request, list_id: int) -> HttpResponse:
        """Change the title, or whether home shows members."""
        owner, params = caller_of(request), Params(request)
        listed = lists.own_list(owner, list_id)
        params.choice("replies_policy", REPLIES)
        title = _title(params) if "title" in params else None
        is_exclusive = None if params.is_blank("exclusive") else params.flag("exclusive")
        lists.change(owner=owner, list_id=listed.id, title=title, is_exclusive=is_exclusive)
        return FeedResponse(list_of(lists.own_list(owner, list_id)))

    def delete(self, request: Request, list_id: int) -> HttpResponse:
        """Delete the list. Members stay followed."""
        lists.delete(owner=caller_of(request), list_id=list_id)
        return empty_answer()


class MembersView(ClientView):
    scopes = "lists"
    takes_bodies = frozenset({"DELETE"})

    def get(self, request: Request, list_id: int) -> HttpResponse:
        """List the members. All of them if `limit` is 0."""
        owner, params = caller_of(request), Params(request)
        listed = lists.own_list(owner, list_id)
        if params.text("limit", most=20) == "0":
            return FeedResponse(accounts_of(lists.members_page(owner, listed.id).people))
        asked = page_params(params, default=PEOPLE, most=MOST_PEOPLE)
        page = lists.members_page(
            owner,
            listed.id,
            last_id=asked.max_id,
            since_id=asked.since_id or 0,
            min_id=asked.min_id,
            limit=asked.limit,
        )
        next_id, prev_id = asked.link_ids(page.newest_id, page.oldest_id, page.last_id, page.has_more)
        return paged_answer(request, accounts_of(page.people), next_id=next_id, prev_id=prev_id)

    def post(self, request: Request, list_id: int) -> HttpResponse:
        """Add followed accounts."""
        return self._change(request, list_id, is_joining=True)

    def delete(self, request: Request, list_id: int) -> HttpResponse:
        """Remove accounts."""
        return self._change(request, list_id, is_joining=False)

    def _change(self, request: Request, list_id: int, *, is_joining: bool) -> HttpResponse:
        owner = caller_of(request)
        listed = lists.own_list(owner, list_id)
        params = Params(request)
        ids = params.ids("account_ids", most=lists.MEMBERS)
        if "account_ids" not in params:
            raise InvalidError("Validation failed: account_ids must be sent")
        # Unseen members can be removed too. The answer does not reveal whether an account with an id exists.
        if is_joining and users_visible_to(owner).filter(pk__in=ids).count() < len(ids):
            raise exceptions.NotFound
        change = lists.add_each if is_joining else lists.remove_each
        change(owner=owner, list_id=listed.id, members=ids)
        return empty_answer()
