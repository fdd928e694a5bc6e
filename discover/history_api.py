from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user
from discover import feedback, recent
from discover.history import viewed_page
from items import actions
from items.finding import item_row
from items.listing import ItemPage
from web.credentials import WHOLE
from web.rest import ApiView, FeedResponse, OutageError


class HistoryView(ApiView):
    scopes = WHOLE
    pages_of = ItemPage

    @extend_schema(operation_id="list_history")
    def get(self, request: Request) -> HttpResponse:
        """The posts that the caller opened within 7 days, last opened first. Only the newest few are kept.

        `last_id` is a time here, not an item's id.
        """
        reader = authenticated_user(request)
        viewed = viewed_page(reader, **self.bounds, now=timezone.now())
        if viewed is None:
            raise OutageError
        return FeedResponse(viewed.page)

    @extend_schema(operation_id="clear_history", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Clear the caller's history."""
        recent.clear(authenticated_user(request).pk)
        return HttpResponse(status=204)


class NotInterestedView(ApiView):
    """An item that the caller does not want."""

    scopes = "statuses"

    @extend_schema(operation_id="not_interested", request=None, responses={204: None})
    def put(self, request: Request, item_id: int) -> HttpResponse:
        """Do not recommend an item or a repost's original, and less like it."""
        user = authenticated_user(request)
        feedback.not_interested(user=user, item=item_row(item_id, user))
        return HttpResponse(status=204)

    @extend_schema(operation_id="interested_again", responses={204: None})
    def delete(self, request: Request, item_id: int) -> HttpResponse:
        """Undo `not interested`, even if the item is hidden now."""
        user = authenticated_user(request)
        actions.undo_act(user=user, item_id=item_id, undo=lambda item: feedback.interested_again(user=user, item=item))
        return HttpResponse(status=204)
