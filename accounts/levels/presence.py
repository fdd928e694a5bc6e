"""Every way of being here counts as being seen: any page and any call of the API, and an open stream (stream.hub)."""

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
    """Notes that the user of a request is here, after the answer has been sent and at most once in
    settings.LAST_SEEN_INTERVAL.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request; the user is noted as seen after the answer is sent."""
        response = self.get_response(request)
        if is_user_known(request) and request.user.is_authenticated:
            if is_due(request.user):
                response._resource_closers.append(partial(see, request.user.pk))  # type: ignore[attr-defined]
            if getattr(getattr(request, "session", None), "is_long_unseen", False):
                response._resource_closers.append(partial(see_place, request))  # type: ignore[attr-defined]
        return response


def see(user_id: int) -> None:
    """Note that a user is here. Where PostgreSQL does not answer, or only reads, the next request tries again."""
    try:
        touch([user_id])
    except (DatabaseError, *OUTAGES) as error:
        logger.warning("it could not be noted that user %s is here: %s", user_id, error)


def see_place(request: HttpRequest) -> None:
    """Note where the session of this request was seen, likewise: when its row was read, which has copies for an hour at
    most (accounts/signing_in/sessions.py), and the list has it as of long ago.
    """
    try:
        places.note(request)
    except (DatabaseError, *OUTAGES) as error:
        logger.warning("it could not be noted where user %s is: %s", request.user.pk, error)
