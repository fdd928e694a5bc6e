from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.callers import authenticated_user
from notifications import actions
from notifications.feed import NotificationPage, Unread, notifications_page, unread_count
from web.rest import ApiView, FeedResponse, IdField, StrictSerializer, body


class Seen(StrictSerializer):
    """What the caller has seen. `up_to`: the newest notification seen. Omitted: all until now."""

    up_to = IdField(required=False, allow_null=True, default=None)


class NotificationsView(ApiView):
    scopes = "notifications"
    pages_of = NotificationPage

    @extend_schema(operation_id="list_notifications")
    def get(self, request: Request) -> HttpResponse:
        """Acts of others, grouped, newest first. Reading marks nothing as read."""
        return FeedResponse(notifications_page(authenticated_user(request), **self.bounds))


class UnreadView(ApiView):
    scopes = "notifications"

    @extend_schema(operation_id="count_unread_notifications", responses={200: Unread})
    def get(self, request: Request) -> HttpResponse:
        """The number of unread notifications."""
        return FeedResponse(unread_count(authenticated_user(request)))


class ReadView(ApiView):
    scopes = "notifications"

    @extend_schema(operation_id="read_notifications", request=Seen, responses={204: None})
    def post(self, request: Request) -> HttpResponse:
        """Mark everything up to `up_to` as read, or everything."""
        reader = authenticated_user(request)
        actions.mark_read(user=reader, up_to=body(request, Seen)["up_to"])
        return HttpResponse(status=204)
