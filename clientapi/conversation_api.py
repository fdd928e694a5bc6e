"""Conversations over HTTP. Requests from strangers are only on the site's own pages."""

import msgspec
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.models import User
from clientapi.entities import Account, Status
from clientapi.errors import ClientView, caller_of
from clientapi.paging import answer, wanted
from clientapi.params import Params
from clientapi.people import accounts_by_id
from clientapi.presenting import statuses
from items import conversations
from storage.paging import below
from web.rest import FeedResponse, parse_id


class ConversationBody(msgspec.Struct):
    """Mastodon's Conversation."""

    id: str
    unread: bool
    accounts: list[Account]
    last_status: Status


def _bodies(found: list[conversations.Conversation], reader: User) -> list[ConversationBody]:
    accounts = accounts_by_id({card.id for one in found for card in one.users})
    shown = statuses([one.last_item for one in found], reader)
    return [
        ConversationBody(
            one.id,
            one.unread,
            # Apps expect at least one account. If nobody is left, use the sender of the last message.
            [accounts[card.id] for card in one.users if card.id in accounts] or [status.account],
            status,
        )
        for one, status in zip(found, shown, strict=True)
    ]


def _number(text: str) -> int:
    number = parse_id(text)
    if not number:
        raise exceptions.NotFound
    return number


class ConversationsView(ClientView):
    """The caller's conversations."""

    def get(self, request: Request) -> HttpResponse:
        """List conversations, newest first. Page ids are ids of messages."""
        reader, asked = caller_of(request), wanted(Params(request))
        found, place, has_more = conversations.placed_page(
            reader, below=below(asked.max_id), above=asked.above, upward=asked.goes_up, limit=asked.limit
        )
        next_id, prev_id = asked.beside(place.newest_id, place.oldest_id, place.last_id, has_more)
        return answer(request, _bodies(found, reader), next_id=next_id, prev_id=prev_id)


class ConversationView(ClientView):
    """One conversation."""

    def delete(self, request: Request, conversation_id: str) -> HttpResponse:
        """Hide it until somebody writes in it."""
        if not conversations.put_away(reader=caller_of(request), conversation_id=_number(conversation_id)):
            raise exceptions.NotFound
        return FeedResponse({})


class ConversationReadView(ClientView):
    """The read mark of a conversation."""

    def post(self, request: Request, conversation_id: str) -> HttpResponse:
        """Mark it as read."""
        reader, number = caller_of(request), _number(conversation_id)
        conversations.mark_read(reader=reader, item_id=number)
        found = conversations.conversation_of(reader, number)
        if found is None:
            raise exceptions.NotFound
        return FeedResponse(_bodies([found], reader)[0])
