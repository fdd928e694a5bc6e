from operator import attrgetter

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.callers import authenticated_user
from accounts.cards import UserCard
from accounts.models import User
from relations import lists
from relations.api import UserPage, is_visible
from relations.lists import OwnedList
from relations.models import TITLE_LENGTH
from relations.visibility import visible_user
from storage.paging import as_text, part_of
from web.rest import (
    ApiView,
    FeedResponse,
    FlagField,
    Problem,
    StrictSerializer,
    TextField,
    body,
)
from web.times import Time


class ListBody(msgspec.Struct):
    """A list. The owner's home hides what members of an `exclusive` list post."""

    id: str
    title: str
    exclusive: bool
    members: int
    created_at: Time

    @classmethod
    def of(cls, listed: OwnedList) -> "ListBody":
        """Convert a list."""
        return cls(str(listed.id), listed.title, listed.is_exclusive, listed.members, listed.created_at)


class ListPage(msgspec.Struct):
    """Lists, newest first."""

    items: list[ListBody]
    last_id: str | None
    has_more: bool


class NewList(StrictSerializer):
    """A list to create."""

    title = TextField(max_length=TITLE_LENGTH)
    exclusive = FlagField(default=False)


class ListEdit(StrictSerializer):
    """Changes of a list. Omitted fields stay as they are."""

    title = TextField(max_length=TITLE_LENGTH, required=False)
    exclusive = FlagField(required=False)


class ListsView(ApiView):
    scopes = "lists"
    pages_of = ListPage

    @extend_schema(operation_id="list_lists")
    def get(self, request: Request) -> HttpResponse:
        """The caller's lists, newest first."""
        owner = authenticated_user(request)
        last_id, count = self.bounds["last_id"], self.bounds["limit"]
        page = part_of(lists.lists_of(owner, last_id=last_id, limit=count + 1), count, attrgetter("id"))
        return FeedResponse(ListPage([ListBody.of(one) for one in page.shown], as_text(page.last_id), page.has_more))

    @extend_schema(
        operation_id="create_list",
        request=NewList,
        responses={201: ListBody, 409: OpenApiResponse(Problem, "The caller has as many lists as one may.")},
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a list."""
        owner, fields = authenticated_user(request), body(request, NewList)
        made = lists.create(owner=owner, title=fields["title"], is_exclusive=fields["exclusive"])
        return FeedResponse(ListBody.of(lists.own_list(owner, made.pk)), status=201)


class ListView(ApiView):
    scopes = "lists"

    @extend_schema(operation_id="read_list", responses={200: ListBody})
    def get(self, request: Request, list_id: int) -> HttpResponse:
        """One of the caller's lists."""
        return FeedResponse(ListBody.of(lists.own_list(authenticated_user(request), list_id)))

    @extend_schema(operation_id="edit_list", request=ListEdit, responses={200: ListBody})
    def patch(self, request: Request, list_id: int) -> HttpResponse:
        """Rename a list, or change whether home hides its members."""
        owner = authenticated_user(request)
        listed = lists.own_list(owner, list_id)
        fields = body(request, ListEdit)
        if fields:
            lists.change(
                owner=owner,
                list_id=listed.id,
                title=fields.get("title"),
                is_exclusive=fields.get("exclusive"),
            )
        return FeedResponse(ListBody.of(lists.own_list(owner, list_id)))

    @extend_schema(operation_id="delete_list", responses={204: None})
    def delete(self, request: Request, list_id: int) -> HttpResponse:
        """Delete a list. Its members stay followed."""
        owner = authenticated_user(request)
        lists.delete(owner=owner, list_id=list_id)
        return HttpResponse(status=204)


class MembersView(ApiView):
    scopes = "lists"
    pages_of = UserPage

    @extend_schema(operation_id="list_members")
    def get(self, request: Request, list_id: int) -> HttpResponse:
        """The members of a list, last added first."""
        owner = authenticated_user(request)
        page = lists.members_page(owner, lists.own_list(owner, list_id).id, **self.bounds)
        people = [UserCard.of(one) for one in page.people]
        return FeedResponse(UserPage(people, as_text(page.last_id), page.has_more))


class MemberView(ApiView):
    scopes = "lists"

    @extend_schema(
        operation_id="add_member",
        request=None,
        responses={204: None, 409: OpenApiResponse(Problem, "The caller does not follow them, or the list is full.")},
    )
    def put(self, request: Request, list_id: int, username: str) -> HttpResponse:
        """Add a followee to a list."""
        owner = authenticated_user(request)
        lists.add(owner=owner, list_id=list_id, member=visible_user(username, owner))
        return HttpResponse(status=204)

    @extend_schema(operation_id="remove_member", responses={204: None})
    def delete(self, request: Request, list_id: int, username: str) -> HttpResponse:
        """Remove a member, even if no longer visible."""
        owner = authenticated_user(request)
        member = User.objects.named(username).get()
        is_gone = lists.remove(owner=owner, list_id=list_id, member=member)
        if not is_gone and not is_visible(member, owner):
            raise exceptions.NotFound
        return HttpResponse(status=204)
