from django.http import HttpResponse
from rest_framework.request import Request

from clientapi.errors import ClientView, caller_of
from clientapi.paging import page_params, paged_answer
from clientapi.params import Params
from clientapi.statuses.presenting import conversations as presented
from items.conversations import conversations
from storage.paging import below
from web.rest import FeedResponse


class ConversationsView(ClientView):
    scopes = "statuses"

    def get(self, request: Request) -> HttpResponse:
        """List the conversations, newest first. Page ids are ids of messages."""
        reader, asked = caller_of(request), page_params(Params(request))
        found, place, has_more = conversations.page_between(
            reader, below=below(asked.max_id), above=asked.above, upward=asked.goes_up, limit=asked.limit
        )
        next_id, prev_id = asked.link_ids(place.newest_id, place.oldest_id, place.last_id, has_more)
        return paged_answer(request, presented(found, reader), next_id=next_id, prev_id=prev_id)


class ConversationView(ClientView):
    scopes = "conversations"

    def delete(self, request: Request, conversation_id: int) -> HttpResponse:
        """Hide the conversation until somebody writes in it."""
        conversations.hide_conversation(reader=caller_of(request), conversation_id=conversation_id)
        return FeedResponse({})


class ConversationReadView(ClientView):
    """The read mark of a conversation."""

    scopes = "conversations"

    def post(self, request: Request, conversation_id: int) -> HttpResponse:
        """Mark the conversation as read."""
        reader, number = caller_of(request), conversation_id
        conversations.mark_read(reader=reader, item_id=number)
        return FeedResponse(presented([conversations.conversation_of(reader, number)], reader)[0])
