from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import member_act, member_page
from accounts.models import User
from items.conversations.conversations import accept, conversation_of, conversations_page, hide_conversation
from items.profiles.profile import find_item
from web.pages import PageRequest, redirect_next, show
from web.rest import position


@member_page
def conversations(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's conversations, newest first."""
    return _show(request, reader, requests=False)


@member_page
def requests(request: PageRequest, reader: User) -> HttpResponse:
    """Private mentions from strangers."""
    return _show(request, reader, requests=True)


def _show(request: PageRequest, reader: User, *, requests: bool) -> HttpResponse:
    last_id = position(request)
    page = conversations_page(reader, requests=requests, last_id=last_id)
    context = {"page": page, "is_first": last_id is None, "requests": requests}
    return show(request, "items/conversations.html", context, part="items/_more_conversations.html")


@member_page
def conversation(request: PageRequest, reader: User, conversation_id: int) -> HttpResponse:
    """Redirect to a conversation's first message, or to the newest."""
    found = conversation_of(reader, conversation_id)
    begins = find_item(conversation_id, reader)
    return redirect(reverse("item", args=[begins.id if begins else found.last_item.id]))


@member_act
def accept_request(request: PageRequest, reader: User, conversation_id: int) -> HttpResponse:
    """Make a request a conversation, and go to it."""
    conversation_of(reader, conversation_id)
    if accept(reader=reader, conversation_id=conversation_id):
        messages.success(request, _("Accepted. Find it under Conversations."))
    return redirect("conversation", conversation_id)


@member_act
def remove(request: PageRequest, reader: User, conversation_id: int) -> HttpResponse:
    """Remove a conversation or a request."""
    hide_conversation(reader=reader, conversation_id=conversation_id)
    messages.success(request, _("Removed. A new message brings it back."))
    return redirect_next(request, "conversations")
