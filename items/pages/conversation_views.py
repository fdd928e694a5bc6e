import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import member_act, member_form, member_page
from accounts.models import User
from items import actions, idempotency
from items.bodies import ItemBody
from items.conversations.conversations import (
    Conversation,
    accept,
    conversation_of,
    conversations_page,
    hide_conversation,
    mark_read,
    open_conversation,
)
from items.conversations.messages import conversation_with, messages_page
from items.conversations.recipients import addressees, may_message, requests_sentence
from items.finding import item_row
from items.listing import ItemPage
from items.models import Item
from items.pages.bubbles import bubbles
from items.pages.forms import ItemForm, MessageForm
from items.profiles.profile import find_item
from items.text import ContentError
from items.threads.muting import muted_among
from relations.visibility import visible_user
from web.pages import (
    INVALID,
    PageRequest,
    is_prefetch,
    limited,
    redirect_next,
    redirect_to,
    show,
    wants_part,
)
from web.rest import position, single_parameter
from web.uploads import some_media_bytes, takes_files


# --- Lists -----------------------------------------------------------------------------------------------
@member_page
def conversations(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's conversations, newest first."""
    return _show(request, reader, requests=False)


@member_page
def requests(request: PageRequest, reader: User) -> HttpResponse:
    """Messages from strangers."""
    return _show(request, reader, requests=True)


def _show(request: PageRequest, reader: User, *, requests: bool) -> HttpResponse:
    last_id = position(request)
    page = conversations_page(reader, requests=requests, last_id=last_id)
    context = {"page": page, "is_first": last_id is None, "requests": requests}
    return show(request, "items/conversations.html", context, part="items/_more_conversations.html")


# --- A conversation --------------------------------------------------------------------------------------
@member_page
def conversation(request: PageRequest, reader: User, conversation_id: int) -> HttpResponse:
    """A conversation or request, its newest messages at the end. Marks it as read.

    Scripts ask for messages below `last_id`, or for those directly `after` one.
    """
    opened = open_conversation(reader, conversation_id)
    last_id, after, since = (position(request, name) for name in ("last_id", "after", "since"))
    page = messages_page(reader, conversation_id, last_id=last_id, min_id=after)
    if request.method == "GET" and not is_prefetch(request) and last_id is None:
        mark_read(reader=reader, item_id=conversation_id)  # before the page's head counts what is unread
    if last_id is None and after is None:
        since = opened.read if opened.conversation.unread else None
    shown = page.items[::-1]
    unread = _first_unread(page, reader, since) if since else ""
    context: dict[str, Any] = {
        "page": page,
        "bubbles": bubbles(shown, reader, unread=unread),
        "conversation": opened.conversation,
        "since": since if since and not unread else None,
    }
    if wants_part(request):
        return show(request, "items/_messages.html" if after is not None else "items/_older_messages.html", context)
    answered = _answered(reader, conversation_id, opened.conversation)
    context |= {
        "is_first": last_id is None,
        "is_request": opened.is_request,
        "reported": next((one.id for one in page.items if one.sender.id != str(reader.pk)), None),
        "newest": opened.conversation.last_item.id,
        "is_muted": bool(muted_among([opened.conversation.last_item.id], reader)),
        "form": ItemForm.for_message(answered, reader),
    }
    return show(request, "items/conversation.html", context)


def _first_unread(page: ItemPage, reader: User, since: int) -> str:
    """The first message after `since`. Empty if that may be on an older page."""
    unseen = [one.id for one in page.items if int(one.id) > since]
    if not unseen or (len(unseen) == len(page.items) and page.has_more):
        return ""
    return unseen[-1]


def _answered(reader: User, conversation_id: int, found: Conversation) -> ItemBody:
    """What a new message answers: the first one, so that the thread stays flat, if the reader sees it."""
    return find_item(conversation_id, reader) or found.last_item


@member_form
@limited("publish")
@takes_files(some_media_bytes)
def begin(request: PageRequest, reader: User) -> HttpResponse:
    """Write a message to some people. It goes on in a conversation that has exactly them."""
    if request.method != "POST":
        return _begin_form(request, reader)
    form = MessageForm(request.POST, request.FILES)
    form.store_media(reader)
    new = _begun(reader, form) if form.is_valid() and not form.media_errors else None
    if new is None:
        context = {"form": form, "spot": "message"}
        return show(request, "items/new_message.html", context, part="items/_new_message.html", status=INVALID)
    if words := requests_sentence(new.pk):
        messages.info(request, words)
    return redirect_to(request, reverse("conversation", args=[new.conversation_id or new.pk]))


def _begin_form(request: PageRequest, reader: User) -> HttpResponse:
    name = single_parameter(request.GET, "to")
    form = MessageForm.for_message(None, reader)
    context: dict[str, Any] = {"form": form, "spot": "message", "refusing": None}
    if name:
        person = visible_user(name, reader)
        known = conversation_with(reader, [person.pk])
        if known is not None:
            return redirect("conversation", known)
        form.initial["people"] = f"@{person.username}"
        if not may_message(reader, person):
            context["refusing"] = person
    return show(request, "items/new_message.html", context)


def _begun(reader: User, form: MessageForm) -> Item | None:
    """Send a valid form's message. None if the form now has an error."""
    names = form.cleaned_data["people"]
    people = addressees(names, sender=reader)
    known = conversation_with(reader, people) if people else None
    post: dict[str, Any] = form.post | {"sender": reader}
    if known is None:
        post["addressed"] = names
    else:
        post["reply_to"] = item_row(int(_answered(reader, known, conversation_of(reader, known)).id), reader)
    try:
        return actions.publish(**post, idempotency_key=form.cleaned_data["key"])
    except idempotency.IdempotencyConflictError:
        # The sender changed a sent form: that is another message.
        return actions.publish(**post, idempotency_key=uuid.uuid4().hex)
    except ContentError as error:
        form.refuse(error)
    return None


# --- Deciding --------------------------------------------------------------------------------------------
@member_act
def accept_request(request: PageRequest, reader: User, conversation_id: int) -> HttpResponse:
    """Make a request a conversation, and go to it."""
    conversation_of(reader, conversation_id)
    if accept(reader=reader, conversation_id=conversation_id):
        messages.success(request, _("Accepted. You'll be notified of new messages."))
    return redirect("conversation", conversation_id)


@member_act
def remove(request: PageRequest, reader: User, conversation_id: int) -> HttpResponse:
    """Remove a conversation or a request."""
    hide_conversation(reader=reader, conversation_id=conversation_id)
    messages.success(request, _("Removed. A new message brings it back."))
    return redirect_next(request, "conversations")
