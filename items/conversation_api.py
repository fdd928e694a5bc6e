"""The caller's conversations over HTTP."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.api import signed_in
from items.api import Nothing
from items.conversations import ConversationPage, conversation_of, conversations_page, mark_read
from web.openapi import EMPTY_BODY, PAGED
from web.rest import ApiView, FeedResponse, body, limit, parse_id, position


class ConversationsView(ApiView):
    """Conversations."""

    @extend_schema(operation_id="list_conversations", parameters=PAGED, responses={200: ConversationPage})
    def get(self, request: Request) -> HttpResponse:
        """Conversations, newest first. Reading the list marks nothing as read."""
        reader, last_id, count = signed_in(request), position(request), limit(request)
        return FeedResponse(conversations_page(reader, last_id=last_id, limit=count))


class RequestsView(ApiView):
    """Private mentions from strangers."""

    @extend_schema(operation_id="list_conversation_requests", parameters=PAGED, responses={200: ConversationPage})
    def get(self, request: Request) -> HttpResponse:
        """Private mentions from people whom the caller neither follows nor wrote to, newest first.

        A reply makes one a conversation.
        """
        reader, last_id, count = signed_in(request), position(request), limit(request)
        return FeedResponse(conversations_page(reader, requests=True, last_id=last_id, limit=count))


class ConversationReadView(ApiView):
    """Marking a conversation as read."""

    @extend_schema(operation_id="read_conversation", request=EMPTY_BODY, responses={204: None})
    def post(self, request: Request, conversation_id: str) -> HttpResponse:
        """Mark the whole conversation as read."""
        reader, number = signed_in(request), parse_id(conversation_id)
        body(request, Nothing)
        if not number or conversation_of(reader, number) is None:
            raise exceptions.NotFound
        mark_read(reader=reader, item_id=number)
        return HttpResponse(status=204)
