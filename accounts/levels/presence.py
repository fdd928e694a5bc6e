"""Records that users are here. Every page, API call and open stream counts."""

import logging
from collections.abc import Callable
from functools import partial

from django.db import DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts.levels.actions import is_due, touch
from accounts.signing_in import places
from web.requests import is_user_known
from web.rest import OUTAGES

logger = logging.getLogger(__name__)


class PresenceMiddleware:
    """Records presence after the answer, at most once per settings.LAST_SEEN_INTERVAL."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer, then record."""
        response = self.get_response(request)
        if is_user_known(request) and request.user.is_authenticated:
            if is_due(request.user):
                response._resource_closers.append(partial(record_presence, request.user.pk))  # type: ignore[attr-defined]
            if getattr(getattr(request, "session", None), "is_long_unseen", False):
                response._resource_closers.append(partial(record_device, request))  # type: ignore[attr-defined]
        return response


def record_presence(user_id: int) -> None:
    """Record a user's presence. If PostgreSQL fails, their next request records it."""
    try:
        touch([user_id])
    except (DatabaseError, *OUTAGES) as error:
        logger.warning("the visit of user %s was not recorded: %s", user_id, error)


def record_device(request: HttpRequest) -> None:
    """Record where the session was seen, about hourly."""
    try:
        places.record_visit(request)
    except (DatabaseError, *OUTAGES) as error:
        logger.warning("the device of user %s was not recorded: %s", request.user.pk, error)
