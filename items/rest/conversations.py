from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user
from items.conversations.conversations import (
    ConversationPage,
    accept,
    conversation_of,
    conversations_page,
    hide_conversation,
    mark_read,
)
from web.openapi import EMPTY_BODY
from web.rest import ApiView, FeedResponse, Nothing, body


class ConversationsView(ApiView):
    scopes = "statuses"
    pages_of = ConversationPage

    @extend_schema(operation_id="list_conversations")
    def get(self, request: Request) -> HttpResponse:
        """Conversations, newest first. Marks nothing as read."""
        return FeedResponse(conversations_page(authenticated_user(request), **self.bounds))


class RequestsView(ApiView):
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
