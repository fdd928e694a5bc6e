from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.callers import reader_of
from accounts.models import User
from clientapi.accounts.people import people_answer
from clientapi.entities import QUOTABLE_BY, SHOWN_AS, Attachment, Context, Status, StatusSource
from clientapi.errors import NOT_OFFERED, ClientView, InvalidError, OpenView, caller_of
from clientapi.html import rendered
from clientapi.paging import MOST_STATUSES, PEOPLE, page_params, paged_answer
from clientapi.params import Params
from clientapi.rest.media import described
from clientapi.rest.polls import edited_poll, new_poll
from clientapi.rest.scheduled import scheduled_at, scheduled_statuses
from clientapi.statuses import timelines
from clientapi.statuses.presenting import Reader, edits, statuses
from clientapi.statuses.threads import thread_of
from items import actions, scheduling
from items.attachments import attachments
from items.bodies import ItemBody
from items.conversations.recipients import reaches_exactly
from items.finding import item_row, own_item, quote_of_own
from items.hydrate import hydrate, visible_bodies
from items.likes.people import LIKERS, REPOSTERS
from items.models import Item, ItemType, Visibility
from items.profiles.pins import pin, unpin
from items.profiles.profile import visible_item
from items.text import ARTICLE_LENGTH, MEDIA_AN_ITEM, WARNING_LENGTH
from items.threads.muting import mute_thread, unmute_thread
from items.versions import Version, versions_of
from items.viewing import announce_view
from media.models import MediaFile, MediaKind
from media.objects import object_from_row
from relations.visibility import visible_names
from web.rest import FeedResponse, idempotency_key

WRITTEN_AS = {"public": Visibility.PUBLIC, "private": Visibility.FOLLOWERS, "direct": Visibility.MENTIONED}
"""Visibilities for new statuses. None is wider than its name says. The site has no `unlisted`."""


def one_status(item_id: int, reader: Reader) -> Status:
    """A status after an act on it. Raises NotFound."""
    found = statuses(hydrate([item_id], reader), reader)
    if not found:
        raise exceptions.NotFound
    return found[0]


def _require_user(request: Request) -> User:
    if not isinstance(request.user, User):
        raise exceptions.NotAuthenticated("The access token is invalid")
    return request.user


# --- Writing ---------------------------------------------------------------------------------------------
def _visibility(params: Params, sender: User) -> Visibility:
    asked = params.text("visibility", most=20)
    if not asked:
        return Visibility(sender.post_visibility)
    if asked not in WRITTEN_AS:
        raise InvalidError(f"Validation failed: Visibility {asked} {NOT_OFFERED}")
    return WRITTEN_AS[asked]


def _quotable_by(params: Params) -> str | None:
    """Who may quote, as the request says. None if not sent. Raises InvalidError."""
    return QUOTABLE_BY.get(params.choice("quote_approval_policy", QUOTABLE_BY))


def _replied_to(params: Params, text: str, sender: User) -> Item | None:
    """The item that a new status replies to, or None. Raises InvalidError and DoesNotExist.

    A reply to a private mention must mention exactly its people.
    """
    answered = params.id("in_reply_to_id")
    item = item_row(answered, sender) if answered else None
    if item and item.is_private and not reaches_exactly(rendered(text).names, sender=sender, answered=item):
        raise InvalidError("Validation failed: Mention all people of the conversation, and nobody else")
    return item


def _check_mentions(params: Params, text: str, sender: User) -> None:
    """Raise InvalidError if the text mentions anybody beyond `allowed_mentions`, if sent."""
    if "allowed_mentions" in params:
        allowed = User.objects.filter(pk__in=params.ids("allowed_mentions", most=PEOPLE))
        names = {name.lower() for name in allowed.values_list("username", flat=True)}
        if visible_names(set(rendered(text).names) - names, sender):
            raise InvalidError("Validation failed: The text mentions people who are not in allowed_mentions")


def _type_of_media(ids: list[int], user: User) -> ItemType:
    if not ids:
        return ItemType.TEXT
    kinds = MediaFile.objects.filter(pk__in=ids, owner_id=user.pk).values_list("kind", flat=True)
    return ItemType.VIDEO if MediaKind.VIDEO in kinds else ItemType.IMAGE


def _new_content(params: Params, media: list[int], sender: User) -> dict[str, Any]:
    content: dict[str, Any] = {"text": params.text("status", most=ARTICLE_LENGTH)}
    if warning := params.text("spoiler_text", most=WARNING_LENGTH):
        content["warning"] = warning
    if params.flag("sensitive", default=sender.post_sensitive):
        content["sensitive"] = True
    if language := params.language("language") or sender.post_language:
        content["language"] = language
    if media:
        content["media"] = [str(one) for one in media]
    return content


class StatusesView(OpenView):
    """Several statuses by id, and new statuses."""

    scopes = "statuses"
    rates: Mapping[str, str] = {"POST": "publish"}

    def get(self, request: Request) -> HttpResponse:
        """Return the statuses that the caller may see."""
        reader = reader_of(request)
        ids = Params(request).ids("id", most=MOST_STATUSES, some=True)
        return FeedResponse(statuses(visible_bodies(ids, reader), reader))

    def post(self, request: Request) -> HttpResponse:
        """Publish, or schedule. When this answers, every follower's home has the new status."""
        sender, params = _require_user(request), Params(request)
        params.refuse("quote_id")
        media = params.ids("media_ids", most=MEDIA_AN_ITEM)
        content = _new_content(params, media, sender)
        _check_mentions(params, content["text"], sender)
        if poll := new_poll(params):
            content["poll"] = poll
        quoted = params.id("quoted_status_id")
        answered = _replied_to(params, content["text"], sender)
        visibility = _visibility(params, sender)
        is_usual = answered is None and visibility != Visibility.MENTIONED
        fields: dict[str, Any] = {
            "content": content,
            "type": ItemType.POLL if poll else _type_of_media(media, sender),
            "visibility": visibility,
            "reply_to": answered,
            "quote_of": item_row(quoted, sender) if quoted else None,
            "quotable_by": _quotable_by(params),
            "repliable_by": sender.post_repliable_by if is_usual else None,
            "idempotency_key": idempotency_key(request),
        }
        publish_at = scheduled_at(params)
        params.refuse_unread()
        if publish_at:
            post = scheduling.schedule(sender=sender, publish_at=publish_at, **fields)
            return FeedResponse(scheduled_statuses([post], sender)[0])
        item = actions.publish(sender=sender, **fields)
        return FeedResponse(one_status(item.pk, sender))


class StatusView(OpenView):
    scopes = "statuses"
    takes_bodies = frozenset({"PUT", "DELETE"})

    def get(self, request: Request, status_id: int) -> HttpResponse:
        """Return the status, and remember the view."""
        reader = reader_of(request)
        item = visible_item(status_id, reader)
        response = FeedResponse(statuses([item], reader)[0])
        announce_view(request._request, response, item, reader)
        return response

    def put(self, request: Request, status_id: int) -> HttpResponse:
        """Change the text, the order and descriptions of pictures, and who may quote."""
        user = _require_user(request)
        item, params = own_item(status_id, user), Params(request)
        params.refuse("quote_id")
        content, descriptions = _edited(params, item), _descriptions(params, item)
        if (quoted := params.id("quoted_status_id")) and quoted != item.quote_of_id:
            raise InvalidError("Validation failed: You can't change what a post quotes")
        if params.text("visibility", most=20) not in ("", SHOWN_AS[item.visibility]):
            raise InvalidError("Validation failed: You can't change who sees a post")
        quotable_by = _quotable_by(params)
        params.refuse_unread()
        with transaction.atomic():
            attachments.describe(item, descriptions)
            if quotable_by:
                actions.change_quotable(item=item, quotable_by=quotable_by)
            actions.edit(item=item, content=content)
        return FeedResponse(one_status(item.pk, user))

    def delete(self, request: Request, status_id: int) -> HttpResponse:
        """Delete the status. The answer has its text, for rewriting, and its media, which can be used for a day."""
        user, params = _require_user(request), Params(request)
        item = own_item(status_id, user)
        status = one_status(item.pk, user)
        status.text = item.text
        if params.flag("delete_media"):
            actions.delete(item=item)
        else:
            media = actions.delete_to_rewrite(item=item)
            status.media_attachments = [Attachment.of(object_from_row(row)) for row in media]
        return FeedResponse(status)


def _edited(params: Params, item: Item) -> dict[str, Any]:
    """The item's new content. Parts that are not sent stay as they are."""
    content = {name: part for name, part in item.content.items() if name not in ("text", "warning", "sensitive")}
    content["text"] = params.text("status", most=ARTICLE_LENGTH, default=item.text)
    warning = params.text("spoiler_text", most=WARNING_LENGTH, default=str(item.content.get("warning", "")))
    if warning:
        content["warning"] = warning
    if params.flag("sensitive", default=item.content.get("sensitive") is True):
        content["sensitive"] = True
    if language := params.language("language"):
        content["language"] = language
    if item.type == ItemType.POLL:
        content["poll"] = edited_poll(params, item.content["poll"])
    if "media_ids" in params:
        content["media"] = [str(one) for one in params.ids("media_ids", most=MEDIA_AN_ITEM)]
    return content


def _descriptions(params: Params, item: Item) -> dict[str, tuple[str, tuple[float, float]]]:
    """Description and focus of each medium that the request names. Parts that are not sent stay as they are. Raises
    InvalidError for other media.
    """
    known = {str(entry["id"]): entry for entry in item.media}
    said = {}
    for part in params.parts("media_attributes"):
        entry = known.get(str(part.id("id")))
        if entry is None:
            raise InvalidError("Validation failed: media_attributes must name media of the post")
        fields = described(part)
        focus = entry.get("x", 0.0), entry.get("y", 0.0)
        said[str(entry["id"])] = fields.get("description", entry.get("description", "")), fields.get("focus", focus)
    return said


# --- Reading ---------------------------------------------------------------------------------------------
class ContextView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, status_id: int) -> HttpResponse:
        """Return the statuses above and below."""
        reader = reader_of(request)
        above, below = thread_of(visible_item(status_id, reader), reader)
        shown = statuses([*above, *below], reader)
        return FeedResponse(Context(shown[: len(above)], shown[len(above) :]))


class SourceView(ClientView):
    """A status as typed."""

    scopes = "statuses"

    def get(self, request: Request, status_id: int) -> HttpResponse:
        """Return the texts to edit."""
        item = item_row(status_id, caller_of(request))
        return FeedResponse(StatusSource(str(item.pk), item.text, str(item.content.get("warning", ""))))


class HistoryView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, status_id: int) -> HttpResponse:
        """List all versions, oldest first."""
        reader = reader_of(request)
        item = visible_item(status_id, reader).shown
        now = Version(item.title, item.content_fields, item.modified_at)
        return FeedResponse(edits(item, [*reversed(versions_of(int(item.id), reader)), now], reader))


class QuotesView(OpenView):
    scopes = "statuses"

    def get(self, request: Request, status_id: int) -> HttpResponse:
        """List visible quotes, newest first."""
        reader = reader_of(request)
        page = timelines.quotes(visible_item(status_id, reader), reader, page_params(Params(request)))
        return paged_answer(request, statuses(page.items, reader), next_id=page.next_id, prev_id=page.prev_id)


class FavouritedByView(OpenView):
    scopes = "accounts"
    listed = LIKERS

    def get(self, request: Request, status_id: int) -> HttpResponse:
        """List the users, newest relation first."""
        reader = reader_of(request)
        item = visible_item(status_id, reader).shown
        return people_answer(request, int(item.id), self.listed, reader)


class RebloggedByView(FavouritedByView):
    """Users who reposted a status."""

    listed = REPOSTERS


# --- Quotes ----------------------------------------------------------------------------------------------
class RevokeView(ClientView):
    """The removal of a quote of the caller's status."""

    scopes = "statuses"

    def post(self, request: Request, status_id: int, quote_id: int) -> HttpResponse:
        """Separate the quote from the quoted status, and return it."""
        user = caller_of(request)
        quote = quote_of_own(quote_id, user, quote_of=status_id)
        actions.revoke_quote(quote=quote)
        shown = visible_bodies([quote.pk], user)
        if not shown:
            raise exceptions.NotFound
        return FeedResponse(statuses(shown, user)[0])


class PolicyView(ClientView):
    """Who may quote the caller's status."""

    scopes = "statuses"
    takes_bodies = frozenset({"PUT"})

    def put(self, request: Request, status_id: int) -> HttpResponse:
        """Choose who may quote it from now on."""
        user, params = caller_of(request), Params(request)
        item, quotable_by = own_item(status_id, user), _quotable_by(params)
        if quotable_by is None:
            raise InvalidError("Validation failed: quote_approval_policy must be given")
        actions.change_quotable(item=item, quotable_by=quotable_by)
        return FeedResponse(one_status(item.pk, user))


# --- Acts ------------------------------------------------------------------------------------------------
class ActView(ClientView):
    """Base of views in which the caller acts on a visible status."""

    do: Callable[..., object]

    def act(self, user: User, item: Item, params: Params) -> int:
        """Act on the item. Returns the id of the item to show."""
        type(self).do(user=user, item=item)
        return item.pk

    def post(self, request: Request, status_id: int) -> HttpResponse:
        """Act, and return the status."""
        user = caller_of(request)
        shown = self.act(user, item_row(status_id, user), Params(request))
        return FeedResponse(one_status(shown, user))


class FavouriteView(ActView):
    scopes = "favourites"
    do = staticmethod(actions.like)


class BookmarkView(ActView):
    scopes = "bookmarks"
    do = staticmethod(actions.bookmark)


class ReblogView(ActView):
    scopes = "statuses"
    rates: Mapping[str, str] = {"POST": "publish"}

    def act(self, user: User, item: Item, params: Params) -> int:
        """Repost the item. Refuses a visibility: reposts have none of their own."""
        if params.text("visibility", most=20) not in ("", "public"):
            raise InvalidError(f"Validation failed: A visibility of a repost {NOT_OFFERED}")
        new, _is_new = actions.repost(sender=user, item=item)
        return new.pk


class PinView(ActView):
    """A pin on the caller's profile."""

    scopes = "accounts"

    def act(self, user: User, item: Item, params: Params) -> int:
        """Pin the caller's public post."""
        if item.sender_id != user.pk:
            raise InvalidError("Validation failed: You can't pin someone else's post")
        pin(item=item)
        return item.pk


class UnpinView(ActView):
    scopes = "accounts"

    def act(self, user: User, item: Item, params: Params) -> int:
        """Unpin the post."""
        if item.sender_id != user.pk:
            raise InvalidError("Validation failed: Someone else's post is not pinned")
        unpin(item_id=item.pk)
        return item.pk


class UndoView(ClientView):
    """Base of views that undo an act, also on a status that is no longer visible."""

    undo: Callable[..., bool]

    def post(self, request: Request, status_id: int) -> HttpResponse:
        """Undo the act. Returns the status if visible, else raises NotFound."""
        user = caller_of(request)
        item = actions.undo_act(user=user, item_id=status_id, undo=lambda item: type(self).undo(user=user, item=item))
        shown: list[ItemBody] = visible_bodies([item.repost_of_id or item.pk], user)
        if not shown:
            raise exceptions.NotFound
        return FeedResponse(statuses(shown, user)[0])


class UnfavouriteView(UndoView):
    scopes = "favourites"
    undo = staticmethod(actions.unlike)


class UnbookmarkView(UndoView):
    scopes = "bookmarks"
    undo = staticmethod(actions.remove_bookmark)


class UnreblogView(UndoView):
    scopes = "statuses"
    undo = staticmethod(lambda user, item: actions.undo_repost(sender=user, item=item))


class MuteView(ActView):
    """The muting of a status's thread."""

    scopes = "mutes"
    do = staticmethod(mute_thread)


class UnmuteView(UndoView):
    """The end of a thread's mute."""

    scopes = "mutes"
    undo = staticmethod(unmute_thread)
