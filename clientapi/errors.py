import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, ClassVar

from django.http import Http404, HttpResponse
from rest_framework import exceptions
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from clientapi.entities import time_text
from clientapi.oauth.bearer import AppAuthentication
from items.actions import PrivateRepostError, RepostError
from items.attachments.attachments import UnfinishedError
from items.filters.filters import FILTERS, FilterCapError, NothingToFindError
from items.idempotency import IdempotencyConflictError
from items.polls import ChoiceError, PollEndedError, PollFixedError, VotedError
from items.profiles.pins import NotPinnableError
from items.quotes import NotQuotableError
from items.scheduling import PublishTimeError
from items.text import ContentError
from items.threads.replying import NotRepliableError
from media.actions import MediaError, TooLargeError, UnknownKindError
from moderation.reports import OwnItemError
from notifications.push.actions import BadSubscriptionError, EndpointTakenError
from relations.actions import BellCapError, FollowCapError, RequestCapError
from web.refusals import NotOwnError, RefusalError
from web.rest import FILES_TYPE, ApiView, FilesParser, StrictFormParser, exception_handler, to_api_exception
from web.strict_json import JSON_TYPE, StrictJSONParser

FORM_TYPE = "application/x-www-form-urlencoded"
NEEDS_USER = "This method requires an authenticated user"
NOT_FOUND = "Record not found"
NOT_ALLOWED = "This action is not allowed"
NOT_OFFERED = "is not offered by this site"
"""End of a sentence about something that the site lacks."""
LENGTH = 500
"""Maximum characters of an error."""


class ClientError(exceptions.APIException):
    """An error with this status and message."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status_code = status


class InvalidError(ClientError):
    """A well-formed request that cannot be done: 422."""

    def __init__(self, words: str = "Validation failed") -> None:
        super().__init__(HTTPStatus.UNPROCESSABLE_ENTITY, words)


INVALID = "Validation failed: {}"
TO_APPS: dict[type[RefusalError], tuple[int, str]] = {
    ContentError: (422, INVALID),
    UnfinishedError: (422, "Cannot attach files that have not finished processing. Try again in a moment!"),
    RepostError: (422, INVALID),
    PublishTimeError: (422, INVALID),
    BadSubscriptionError: (422, "Validation failed: {0.field}: {0}"),
    MediaError: (422, "Validation failed: {0.field}: {0}"),
    TooLargeError: (413, "{0.field}: {0}"),
    UnknownKindError: (415, "{0.field}: {0}"),
    NotQuotableError: (403, "You can't quote this post for this audience"),
    NotRepliableError: (403, "The author doesn't allow you to reply to this post"),
    PrivateRepostError: (403, NOT_ALLOWED),
    NotOwnError: (403, NOT_ALLOWED),
    IdempotencyConflictError: (422, "The Idempotency-Key was used for something else"),
    NothingToFindError: (422, "Validation failed: Keyword can't be blank"),
    FilterCapError: (422, f"Validation failed: You can have up to {FILTERS} keywords"),
    ChoiceError: (422, "Validation failed: Choices must be answers of the poll"),
    VotedError: (422, "Validation failed: You have already voted on this poll"),
    PollEndedError: (422, "Validation failed: The poll has already ended"),
    PollFixedError: (422, "Validation failed: Someone has voted, so the poll can't be changed"),
    NotPinnableError: (422, "Validation failed: You can only pin public posts"),
    FollowCapError: (422, "Validation failed: You can't follow more people"),
    BellCapError: (422, "Validation failed: You can't be notified of more people's posts"),
    RequestCapError: (422, "Validation failed: You have too many open follow requests"),
    OwnItemError: (422, "Validation failed: You cannot report yourself"),
    EndpointTakenError: (422, "Validation failed: Endpoint belongs to another account"),
}
"""Refusals whose status or sentence differs from the usual one: 422, and the site's own sentence without its stop."""


def client_error(error: RefusalError) -> Exception:
    """A refusal in Mastodon's words."""
    if error.wait is not None or error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
        return to_api_exception(error)
    for kind in type(error).__mro__:
        if kind in TO_APPS:
            status, words = TO_APPS[kind]
            return ClientError(status, words.format(error))
    return InvalidError(INVALID.format(error.words.removesuffix(".")))


def answer_to(exc: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an exception, in Mastodon's shape. Validation errors become 422."""
    exc = client_error(exc) if isinstance(exc, RefusalError) else to_api_exception(exc)
    response = exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, exceptions.ValidationError):
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
    response.data = {"error": _words(exc, response)}
    return response


def _words(exc: Exception, response: Response) -> str:
    if isinstance(exc, exceptions.Throttled):
        return "Too many requests"
    if isinstance(exc, exceptions.NotFound | Http404):
        return NOT_FOUND
    if isinstance(exc, exceptions.ValidationError):
        return f"Validation failed: {'; '.join(_flat(response.data))}"[:LENGTH]
    return "; ".join(_flat(response.data))[:LENGTH] or HTTPStatus(response.status_code).phrase


def _flat(data: Any) -> list[str]:
    if isinstance(data, dict):
        return [
            text if name in ("detail", "non_field_errors") else f"{name}: {text}"
            for name, part in data.items()
            for text in _flat(part)
        ]
    if isinstance(data, list):
        return [text for part in data for text in _flat(part)]
    return [str(data)]


class ClientView(ApiView):
    """A view for an app's token, never for a cookie.

    Bodies are JSON or a form of at most `body_bytes`. Methods in `takes_files` also take files.
    """

    is_open: ClassVar[bool] = False
    """True to also answer callers without a token, or with a token without a user."""
    schema = None
    authentication_classes: Sequence[Any] = [AppAuthentication]
    permission_classes: Sequence[Any] = []
    parser_classes: Sequence[type[BaseParser]] = [StrictJSONParser, StrictFormParser, FilesParser]

    def get_exception_handler(self) -> Any:
        """The function that turns exceptions into answers in Mastodon's shape."""
        return answer_to

    @classmethod
    def problem(cls, detail: str) -> Any:
        """The body of an error in Mastodon's shape, also for errors outside the view."""
        return {"error": detail}

    def body_types(self, method: str) -> Collection[str]:
        """The media types that a method accepts: JSON or a form."""
        return (JSON_TYPE, FORM_TYPE, FILES_TYPE)

    def perform_authentication(self, request: Request) -> None:
        """Find the caller. Unless open, raises NotAuthenticated, or Problem for a token without a user.

        An open view counts the call of a stranger for the address, and raises Throttled.
        """
        super().perform_authentication(request)
        if isinstance(request.user, User):
            return
        if not self.is_open or getattr(request._request, "is_for_members", False):
            if request.auth is None:
                raise exceptions.NotAuthenticated("The access token is invalid")
            raise ClientError(HTTPStatus.UNPROCESSABLE_ENTITY, NEEDS_USER)
        wait = self._call.count_as_stranger()
        if wait is not None:
            raise exceptions.Throttled(wait)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add headers that describe the rate with the fewest calls left."""
        response = super().finalize_response(request, response, *args, **kwargs)
        slot = self._call.scarcest
        if slot is not None:
            response.headers["X-RateLimit-Limit"] = str(slot.limit)
            response.headers["X-RateLimit-Remaining"] = str(slot.remaining)
            response.headers["X-RateLimit-Reset"] = time_text(datetime.fromtimestamp(slot.ends, UTC))
        wait = response.headers.get("Retry-After")
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS and wait:
            response.headers["Retry-After"] = str(math.ceil(float(wait)))
        return response


class OpenView(ClientView):
    """A view that also answers callers without a token, unless the site is for members only."""

    is_open = True


class MissingView(OpenView):
    """Answers 404 for unknown addresses, and for Mastodon's that the site lacks."""

    is_of_unknown_addresses = True
    body_bytes = 0

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count the call, then raise NotFound or Throttled."""
        self._call = self._counted(request, request.method or "")
        raise exceptions.NotFound if self._call.wait is None else exceptions.Throttled(self._call.wait)


def caller_of(request: Request) -> User:
    """The user for whom the app calls."""
    assert isinstance(request.user, User)  # noqa: S101 (perform_authentication)
    return request.user


def empty_answer() -> HttpResponse:
    """The answer `{}`."""
    return HttpResponse(b"{}", content_type=JSON_TYPE)
