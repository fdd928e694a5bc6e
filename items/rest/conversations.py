from collections.abc import Mapping

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user
from accounts.models import USERNAME_LENGTH
from items import actions
from items.bodies import ItemBody
from items.conversations.conversations import (
    ConversationPage,
    accept,
    conversation_of,
    conversations_page,
    hide_conversation,
    mark_read,
)
from items.conversations.messages import messages_page
from items.conversations.recipients import ADDRESSED_MOST
from items.hydrate import hydrate
from items.listing import ItemPage
from items.models import AUTHORED, ItemType
from web.openapi import EMPTY_BODY, IDEMPOTENCY_KEY
from web.rest import (
    ApiView,
    FeedResponse,
    Nothing,
    ObjectField,
    Problem,
    StrictSerializer,
    TextField,
    body,
    idempotency_key,
)


class NewConversation(StrictSerializer):
    """A first message to some people. `content` and `type` are as of `POST /items`. Names in the text add nobody."""

    usernames = serializers.ListField(
        child=TextField(max_length=USERNAME_LENGTH), min_length=1, max_length=ADDRESSED_MOST
    )
    type = serializers.ChoiceField(AUTHORED, default=ItemType.TEXT)
    content = ObjectField()


class ConversationsView(ApiView):
    scopes = "statuses"
    rates: Mapping[str, str] = {"POST": "publish"}
    pages_of = ConversationPage

    @extend_schema(operation_id="list_conversations")
    def get(self, request: Request) -> HttpResponse:
        """Conversations, newest first. Marks nothing as read."""
        return FeedResponse(conversations_page(authenticated_user(request), **self.bounds))

    @extend_schema(
        operation_id="begin_conversation",
        parameters=[IDEMPOTENCY_KEY],
        request=NewConversation,
        responses={
            201: ItemBody,
            404: OpenApiResponse(Problem, "The item that the key was used for is deleted."),
            409: OpenApiResponse(Problem, "The key was used for something else."),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        """Send a first private message. The item begins a conversation, which has its id. Strangers get it as a
        request.
        """
        sender = authenticated_user(request)
        fields = body(request, NewConversation)
        item = actions.publish(
            sender=sender,
            type=fields["type"],
            content=fields["content"],
            addressed=fields["usernames"],
            idempotency_key=idempotency_key(request),
        )
        return FeedResponse(hydrate([item.pk], sender)[0], status=201)


class MessageRequestsView(ApiView):
    """Private mentions from strangers."""

    scopes = "statuses"
    pages_of = ConversationPage

    @extend_schema(operation_id="list_conversation_requests")
    def get(self, request: Request) -> HttpResponse:
        """Private mentions from strangers, newest first. A reply or accepting it makes one a conversation."""
        return FeedResponse(conversations_page(authenticated_user(request), requests=True, **self.bounds))


class ConversationView(ApiView):
    scopes = "conversations"

    @extend_schema(operation_id="remove_conversation", responses={204: None})
    def delete(self, request: Request, conversation_id: int) -> HttpResponse:
        """Remove a conversation or request until somebody writes in it."""
        hide_conversation(reader=authenticated_user(request), conversation_id=conversation_id)
        return HttpResponse(status=204)


class ConversationItemsView(ApiView):
    """The messages of a conversation."""

    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="list_conversation_items")
    def get(self, request: Request, conversation_id: int) -> HttpResponse:
        """The messages of a conversation or request, newest first. Marks nothing as read."""
        reader = authenticated_user(request)
        conversation_of(reader, conversation_id)
        return FeedResponse(messages_page(reader, conversation_id, **self.bounds))


class ConversationAcceptView(ApiView):
    scopes = "conversations"

    @extend_schema(operation_id="accept_conversation", request=EMPTY_BODY, responses={204: None})
    def post(self, request: Request, conversation_id: int) -> HttpResponse:
        """Make a request a conversation."""
        reader = authenticated_user(request)
        body(request, Nothing)
        accept(reader=reader, conversation_id=int(conversation_of(reader, conversation_id).id))
        return HttpResponse(status=204)


class ConversationReadView(ApiView):
    scopes = "conversations"

    @extend_schema(operation_id="read_conversation", request=EMPTY_BODY, responses={204: None})
    def post(self, request: Request, conversation_id: int) -> HttpResponse:
        """Mark the whole conversation as read."""
        reader = authenticated_user(request)
        body(request, Nothing)
        mark_read(reader=reader, item_id=int(conversation_of(reader, conversation_id).id))
        return HttpResponse(status=204)
