from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts.callers import authenticated_user, reader_of
from accounts.models import QuotableBy, RepliableBy, User
from accounts.rest.accounts import Refusal
from items import actions
from items.bodies import ItemBody
from items.finding import item_row, own_item, quote_of_own
from items.hydrate import hydrate, hydrate_new
from items.likes.people import LIKERS, REPOSTERS
from items.likes.saved import saved_page
from items.listing import ItemPage
from items.models import AUTHORED, Item, ItemType, ScheduledPost, Visibility
from items.profiles.pins import pin, unpin
from items.profiles.profile import replies_page, visible_item
from items.quotes import quotes_page
from items.rest.scheduled_bodies import ScheduledBody, scheduled_bodies
from items.scheduling import publish_or_wait
from items.text import TITLE_LENGTH
from items.threads.chains import LONGEST
from items.threads.hiding import hidden_page, hide_reply, show_reply
from items.threads.muting import mute_thread, unmute_thread
from items.viewing import announce_view
from relations.api import UserPage, user_page
from web.openapi import EMPTY_BODY, IDEMPOTENCY_KEY
from web.rest import (
    ApiView,
    FeedResponse,
    IdField,
    Nothing,
    ObjectField,
    Problem,
    PublicApiView,
    StrictSerializer,
    TextField,
    body,
    count_call,
    idempotency_key,
)
from web.strict_json import BODY_BYTES

REFUSED = "The quote is not allowed for this audience: `not_quotable`. Nor the reply: `not_repliable`."


class NewItem(StrictSerializer):
    """An item to publish. `content` holds a `text` or a `url` (https), and what else the type needs. A `poll` has
    `options` (2 to 6 texts), perhaps `multiple`, and `closes_at`. With `mentioned`, only mentioned people see the item
    and its replies.
    """

    type = serializers.ChoiceField(AUTHORED, default=ItemType.TEXT)
    title = TextField(max_length=TITLE_LENGTH, allow_blank=True, default="")
    content = ObjectField()
    extra_info = ObjectField(default=dict)
    visibility = serializers.ChoiceField(Visibility.choices, default=Visibility.PUBLIC)
    reply_to = IdField(allow_null=True, default=None)
    quote_of = IdField(allow_null=True, default=None)
    quotable_by = serializers.ChoiceField(QuotableBy.choices, required=False)
    repliable_by = serializers.ChoiceField(RepliableBy.choices, required=False)


class ThreadBody(msgspec.Struct):
    """The items of a new thread, in order."""

    items: list[ItemBody]


class PostOfThread(NewItem):
    """A post of a thread. Only the first may have `reply_to`. All have one audience, and one choice of who may
    reply, which is not named or the same.
    """

    visibility = serializers.ChoiceField(Visibility.choices, required=False)


class NewThread(StrictSerializer):
    """Posts of which each replies to the one before."""

    items = serializers.ListField(child=PostOfThread(), min_length=2, max_length=LONGEST)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    repliable_by = serializers.ChoiceField(RepliableBy.choices, required=False)


class ItemEdit(StrictSerializer):
    """Changes of an item. Omitted fields stay as they are."""

    title = TextField(max_length=TITLE_LENGTH, allow_blank=True, required=False)
    content = ObjectField(required=False)
    extra_info = ObjectField(required=False)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    quotable_by = serializers.ChoiceField(QuotableBy.choices, required=False)
    repliable_by = serializers.ChoiceField(RepliableBy.choices, required=False)


def resolve_ids(fields: dict[str, Any], sender: User) -> None:
    """Replace the ids in `reply_to` and `quote_of` by items. Raises Item.DoesNotExist, ValidationError."""
    if fields["reply_to"] is not None:
        answered = Item.objects.visible_to(sender).select_related("repost_of")
        fields["reply_to"] = answered.filter(pk=fields["reply_to"]).first()
        if fields["reply_to"] is None:
            raise serializers.ValidationError({"reply_to": ["This post doesn't exist."]})
    if fields["quote_of"] is not None:
        fields["quote_of"] = item_row(fields["quote_of"], sender)


class ItemsView(ApiView):
    scopes = "statuses"
    rates: Mapping[str, str] = {"POST": "publish"}

    @extend_schema(
        operation_id="publish",
        parameters=[IDEMPOTENCY_KEY],
        request=NewItem,
        responses={
            201: ItemBody,
            202: OpenApiResponse(ScheduledBody, "The item's video is still being converted. The item follows it."),
            403: OpenApiResponse(Refusal, REFUSED),
            404: OpenApiResponse(
                Problem, "The item that the key was used for is deleted, or the caller may not see the quoted item."
            ),
            409: OpenApiResponse(
                Problem, "The key was used for something else, or the caller has too many scheduled posts."
            ),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        """Publish an item into every follower's home. One whose video is still being converted comes out then."""
        sender = authenticated_user(request)
        fields = body(request, NewItem)
        key = idempotency_key(request)
        resolve_ids(fields, sender)
        new = publish_or_wait(sender=sender, idempotency_key=key, **fields)
        if isinstance(new, ScheduledPost):
            return FeedResponse(scheduled_bodies([new], sender)[0], status=202)
        return FeedResponse(hydrate_new(new, sender), status=201)


def _common(fields: dict[str, Any], name: str) -> Any:
    """What the posts of a thread, or the body for all, choose. None: nothing. Raises ValidationError."""
    chosen = fields.get(name)
    for place, post in enumerate(fields["items"]):
        own = post.pop(name, None)
        if own and chosen and own != chosen:
            raise serializers.ValidationError({"items": {str(place): {name: ["All posts of a thread have the same."]}}})
        chosen = chosen or own
    return chosen


def _resolve_posts(posts: Sequence[dict[str, Any]], sender: User) -> None:
    for place, post in enumerate(posts):
        try:
            if place and post["reply_to"] is not None:
                raise serializers.ValidationError({"reply_to": ["Each post replies to the one before."]})
            resolve_ids(post, sender)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({"items": {str(place): error.detail}}) from error


class ThreadsView(ApiView):
    scopes = "statuses"
    rates: Mapping[str, str] = {"POST": "publish"}
    body_bytes = 8 * BODY_BYTES

    @extend_schema(
        operation_id="publish_thread",
        parameters=[IDEMPOTENCY_KEY],
        request=NewThread,
        responses={
            201: ThreadBody,
            403: OpenApiResponse(Refusal, REFUSED),
            404: OpenApiResponse(
                Problem, "An item that the key was used for is deleted, or the caller may not see a quoted item."
            ),
            409: OpenApiResponse(Problem, "The key was used for something else."),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        """Publish a thread: all posts or none. It counts as its number of posts in the rate."""
        sender = authenticated_user(request)
        fields = body(request, NewThread)
        key, posts = idempotency_key(request), fields["items"]
        count_call(self.rates["POST"], str(sender.pk), len(posts) - 1)
        visibility, repliable_by = _common(fields, "visibility"), _common(fields, "repliable_by")
        _resolve_posts(posts, sender)
        published = actions.publish_thread(
            sender=sender,
            posts=posts,
            visibility=visibility or Visibility.PUBLIC,
            repliable_by=repliable_by,
            idempotency_key=key,
        )
        return FeedResponse(ThreadBody(hydrate([item.pk for item in published], sender)), status=201)


class ItemView(PublicApiView):
    scopes = "statuses"

    @extend_schema(operation_id="read_item", responses={200: ItemBody})
    def get(self, request: Request, item_id: int) -> HttpResponse:
        """One item. Opening it adds it to `GET /me/history`."""
        reader = reader_of(request)
        item = visible_item(item_id, reader)
        response = FeedResponse(item)
        announce_view(request._request, response, item, reader)
        return response

    @extend_schema(
        operation_id="edit_item",
        request=ItemEdit,
        responses={200: ItemBody, 409: OpenApiResponse(Problem, "Somebody has voted, so the poll stays as it is.")},
    )
    def patch(self, request: Request, item_id: int) -> HttpResponse:
        """Edit one's own item. Omitted fields stay. A narrower `visibility` gives the item's files new addresses."""
        item = own_item(item_id, authenticated_user(request))
        fields = body(request, ItemEdit)
        if fields:
            actions.revise(item=item, **fields)
        return FeedResponse(hydrate([item.pk], authenticated_user(request))[0])

    @extend_schema(operation_id="delete_item", responses={204: None})
    def delete(self, request: Request, item_id: int) -> HttpResponse:
        """Delete one's own item."""
        actions.delete_own(user=authenticated_user(request), item_id=item_id)
        return HttpResponse(status=204)


def _do_act(act: Callable[..., bool], request: Request, item_id: int) -> HttpResponse:
    user = authenticated_user(request)
    act(user=user, item=item_row(item_id, user))
    return HttpResponse(status=204)


def _undo_act(undo: Callable[..., bool], request: Request, item_id: int) -> HttpResponse:
    user = authenticated_user(request)
    actions.undo_act(user=user, item_id=item_id, undo=lambda item: undo(user=user, item=item))
    return HttpResponse(status=204)


class LikeView(ApiView):
    scopes = "favourites"

    @extend_schema(operation_id="like", request=None, responses={204: None})
    def put(self, request: Request, item_id: int) -> HttpResponse:
        """Like an item, or a repost's original."""
        return _do_act(actions.like, request, item_id)

    @extend_schema(operation_id="unlike", responses={204: None})
    def delete(self, request: Request, item_id: int) -> HttpResponse:
        """Remove a like, even if the item is hidden."""
        return _undo_act(actions.unlike, request, item_id)


class MuteThreadView(ApiView):
    scopes = "mutes"

    @extend_schema(operation_id="mute_thread", request=None, responses={204: None})
    def put(self, request: Request, item_id: int) -> HttpResponse:
        """Mute the thread of an item: no notifications of it. Nobody else learns of it."""
        return _do_act(mute_thread, request, item_id)

    @extend_schema(operation_id="unmute_thread", responses={204: None})
    def delete(self, request: Request, item_id: int) -> HttpResponse:
        """Unmute a thread, even if the item is now hidden."""
        return _undo_act(unmute_thread, request, item_id)


class BookmarkView(ApiView):
    scopes = "bookmarks"

    @extend_schema(operation_id="bookmark", request=None, responses={204: None})
    def put(self, request: Request, item_id: int) -> HttpResponse:
        """Bookmark an item, or a repost's original."""
        return _do_act(actions.bookmark, request, item_id)

    @extend_schema(operation_id="remove_bookmark", responses={204: None})
    def delete(self, request: Request, item_id: int) -> HttpResponse:
        """Remove a bookmark, even if the item is hidden."""
        return _undo_act(actions.remove_bookmark, request, item_id)


class BookmarksView(ApiView):
    scopes = "bookmarks"
    pages_of = ItemPage

    @extend_schema(operation_id="list_bookmarks")
    def get(self, request: Request) -> HttpResponse:
        """Bookmarks, newest first. `last_id` is a bookmark's id."""
        return FeedResponse(saved_page(authenticated_user(request), "bookmark", **self.bounds))


class LikesView(ApiView):
    scopes = "favourites"
    pages_of = ItemPage

    @extend_schema(operation_id="list_likes")
    def get(self, request: Request) -> HttpResponse:
        """Liked items, newest like first. `last_id` is a like's id."""
        return FeedResponse(saved_page(authenticated_user(request), "like", **self.bounds))


class RepostView(ApiView):
    scopes = "statuses"
    rates: Mapping[str, str] = {"POST": "publish"}

    @extend_schema(operation_id="repost", request=EMPTY_BODY, responses={200: ItemBody, 201: ItemBody})
    def post(self, request: Request, item_id: int) -> HttpResponse:
        """Repost an item, or return the existing repost. Delete the repost to undo it."""
        sender = authenticated_user(request)
        body(request, Nothing)
        item, new = actions.repost(sender=sender, item=item_row(item_id, sender))
        return FeedResponse(hydrate([item.pk], sender)[0], status=201 if new else 200)


class PinView(ApiView):
    scopes = "accounts"

    @extend_schema(
        operation_id="pin",
        request=None,
        responses={204: None, 409: OpenApiResponse(Problem, "The caller has pinned as many posts as one may.")},
    )
    def put(self, request: Request, item_id: int) -> HttpResponse:
        """Pin one's own public post to one's profile."""
        pin(item=own_item(item_id, authenticated_user(request)))
        return HttpResponse(status=204)

    @extend_schema(operation_id="unpin", responses={204: None})
    def delete(self, request: Request, item_id: int) -> HttpResponse:
        """Unpin a post."""
        unpin(item_id=own_item(item_id, authenticated_user(request)).pk)
        return HttpResponse(status=204)


class HiddenRepliesView(PublicApiView):
    """What the sender of a thread took out of it."""

    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="list_hidden_replies")
    def get(self, request: Request, item_id: int) -> HttpResponse:
        """The replies that a post's sender has hidden, newest first."""
        reader = reader_of(request)
        return FeedResponse(hidden_page(visible_item(item_id, reader), reader, **self.bounds))


class HiddenReplyView(ApiView):
    """A reply in the caller's own thread."""

    scopes = "statuses"

    @extend_schema(operation_id="hide_reply", request=EMPTY_BODY, responses={204: None})
    def post(self, request: Request, item_id: int, reply_id: int) -> HttpResponse:
        """Hide a reply from everybody's view of the thread but its sender's."""
        body(request, Nothing)
        hide_reply(user=authenticated_user(request), root_id=item_id, reply_id=reply_id)
        return HttpResponse(status=204)

    @extend_schema(operation_id="show_reply", responses={204: None})
    def delete(self, request: Request, item_id: int, reply_id: int) -> HttpResponse:
        """Show a hidden reply again."""
        show_reply(user=authenticated_user(request), root_id=item_id, reply_id=reply_id)
        return HttpResponse(status=204)


class RepliesView(PublicApiView):
    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="list_replies")
    def get(self, request: Request, item_id: int) -> HttpResponse:
        """The replies, oldest first: a post's thread, or a reply's own."""
        reader = reader_of(request)
        return FeedResponse(replies_page(visible_item(item_id, reader), reader, **self.bounds))


class LikersView(PublicApiView):
    scopes = "statuses"
    pages_of = UserPage

    @extend_schema(operation_id="list_likers")
    def get(self, request: Request, item_id: int) -> HttpResponse:
        """Who likes an item, newest like first."""
        reader = reader_of(request)
        item = visible_item(item_id, reader).shown
        return FeedResponse(user_page(int(item.id), LIKERS, reader, **self.bounds))


class RepostersView(PublicApiView):
    scopes = "statuses"
    pages_of = UserPage

    @extend_schema(operation_id="list_reposters")
    def get(self, request: Request, item_id: int) -> HttpResponse:
        """Who reposted an item, newest accounts first."""
        reader = reader_of(request)
        item = visible_item(item_id, reader).shown
        return FeedResponse(user_page(int(item.id), REPOSTERS, reader, **self.bounds))


class QuotesView(PublicApiView):
    scopes = "statuses"
    pages_of = ItemPage

    @extend_schema(operation_id="list_quotes")
    def get(self, request: Request, item_id: int) -> HttpResponse:
        """The quotes of an item, newest first."""
        reader = reader_of(request)
        return FeedResponse(quotes_page(visible_item(item_id, reader), reader, **self.bounds))


class QuoteView(ApiView):
    """A quote of the caller's item."""

    scopes = "statuses"

    @extend_schema(operation_id="revoke_quote", responses={204: None})
    def delete(self, request: Request, item_id: int, quote_id: int) -> HttpResponse:
        """Stop a quote from showing the caller's item."""
        actions.revoke_quote(quote=quote_of_own(quote_id, authenticated_user(request), quote_of=item_id))
        return HttpResponse(status=204)
