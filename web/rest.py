"""The base of the REST API: fields, positions, errors, rates, and fast answers."""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any, TypedDict
from urllib.parse import unquote_to_bytes

import msgspec
from django.core.exceptions import (
    BadRequest,
    ObjectDoesNotExist,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import (
    ValidationError as DjangoValidationError,
)
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.urls import register_converter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import BasePagination
from rest_framework.parsers import BaseParser, DataAndFiles, FormParser, MultiPartParser
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.serializer_helpers import BindingDict
from rest_framework.views import APIView
from rest_framework.views import exception_handler as default_exception_handler

from storage.breaker import UnavailableError
from storage.postgresql import is_lock_timeout
from web import rates, uploads
from web.credentials import BoundedCredential, ScopedView
from web.rates import CountedCall
from web.refusals import RefusalError
from web.strict_json import BODY_BYTES, JSON_TYPE, PayloadTooLargeError, StrictJSONParser

logger = logging.getLogger(__name__)

PAGE = 20
PAGE_LIMIT = 100
MAX_POSITION = 2**53
RETRY_SECONDS = 2
"""Retry-After of an outage."""


OUTAGES = (OperationalError, InterfaceError, UnavailableError)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
BODY_METHODS = frozenset({"POST", "PATCH"})
FILES_TYPE = "multipart/form-data"
KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
NUMBER = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
NO_UTF8 = "The request cannot be read: it is not UTF-8."


class OutageError(exceptions.APIException):
    """A server of ours does not answer."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The service is unavailable for a moment."
    default_code = "unavailable"
    wait = RETRY_SECONDS


class LockedError(OutageError):
    """A statement waited too long for a lock in PostgreSQL."""

    default_detail = "This waited too long for another change, and changed nothing. Try again in a moment."


def outage_of(error: Exception) -> OutageError:
    """Log one of `OUTAGES`. Returns the answer to it."""
    if is_lock_timeout(error):
        logger.error(
            "a request was answered 503, because it waited for a lock in PostgreSQL. `doctor` says who has it: %s",
            error,
        )
        return LockedError()
    logger.error("a request was answered 503, because a server failed: %s", error)
    return OutageError(getattr(error, "sentence", None))


# --- Bodies ----------------------------------------------------------------------------------------------
class StrictFormParser(FormParser):
    """Parses forms without files, always as UTF-8."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The fields. Raises ParseError if they are not UTF-8."""
        data = stream.read()
        check_encoding(data)
        return QueryDict(data, encoding="utf-8")


class FilesParser(MultiPartParser):
    """Parses forms with files, always as UTF-8, for the methods in `takes_files`."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The fields and files. Raises ParseError if a field is not UTF-8, OutageError if the disk is full."""
        # Django's parser would replace broken bytes. Latin-1 keeps them.
        try:
            read = super().parse(stream, media_type, {**(parser_context or {}), "encoding": "latin-1"})
        except OSError as error:
            if error.errno is None:  # the sender's connection
                raise
            raise OutageError("The file storage is full or does not answer. Try again later.") from error
        fields = QueryDict(mutable=True)
        try:
            for name, values in read.data.lists():
                fields.setlist(_as_utf8(name), [_as_utf8(value) for value in values])
        except exceptions.ParseError:
            for _name, files in read.files.lists():
                for file in files:
                    file.close()
            raise
        return DataAndFiles(fields, read.files)


def check_encoding(form: bytes) -> None:
    """Raise ParseError if a form is not UTF-8."""
    try:
        (unquote_to_bytes(form) if b"%" in form else form).decode()
    except UnicodeDecodeError:
        raise exceptions.ParseError(NO_UTF8) from None


def _as_utf8(text: str) -> str:
    try:
        return text.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise exceptions.ParseError(NO_UTF8) from None


class OnlyJSON(DefaultContentNegotiation):
    """Chooses JSON for every answer, whatever the Accept header says."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> tuple[Any, str]:
        """The first renderer."""
        return renderers[0], renderers[0].media_type


class TextField(serializers.CharField):
    """A text. Refuses numbers, which DRF's field accepts."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ObjectField(serializers.DictField):
    """A JSON object of any shape, bounded by StrictJSONParser."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=serializers.JSONField(), **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        """The object. Raises ValidationError."""
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        return data


class FlagField(serializers.BooleanField):
    """A boolean. Refuses "yes" and 1, which DRF's field accepts."""

    def to_internal_value(self, data: Any) -> bool:
        """The boolean. Raises ValidationError."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class NumberField(serializers.IntegerField):
    """A whole number. Refuses text, which DRF's field accepts."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ValidationError."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class IdField(serializers.CharField):
    """An id as a decimal string."""

    def to_internal_value(self, data: Any) -> int:  # type: ignore[override]
        """The id as a number. Raises ValidationError."""
        number = parse_id(data) if isinstance(data, str) else None
        if number is None:
            raise serializers.ValidationError("An id must be a decimal string.")
        return number


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """A time in ISO 8601 with its zone."""

    def to_internal_value(self, data: Any) -> datetime:
        """The time in UTC. Raises ValidationError, also without a zone."""
        try:
            moment = datetime.fromisoformat(data) if isinstance(data, str) and data.isascii() else None
            if moment and moment.tzinfo:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise serializers.ValidationError("Send a time in ISO 8601 with its zone, such as 2026-05-01T20:00:00Z.")

    def to_representation(self, value: datetime) -> str:
        """The time in ISO 8601."""
        return value.isoformat()


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses unknown fields: an ignored one is a mistake."""

    def to_internal_value(self, data: Any) -> Any:
        """The validated fields. Raises ValidationError for unknown fields too."""
        names = data if isinstance(data, Mapping) else ()  # what is no object is refused below
        unknown = [name for name in names if name not in self.fields or self.fields[name].read_only]
        if unknown:
            raise serializers.ValidationError({name[:64]: ["This field cannot be set."] for name in unknown[:10]})
        return super().to_internal_value(data)


class Nothing(StrictSerializer):
    """No body, or an empty one."""


def body(request: Request, serializer: type[StrictSerializer], **options: Any) -> dict[str, Any]:
    """The validated fields of a request's body. Raises ValidationError."""
    reader = serializer(data=request.data, **options)
    if not options:
        vars(reader)["fields"] = _fields_of(serializer)
    reader.is_valid(raise_exception=True)
    fields: dict[str, Any] = reader.validated_data
    return fields


@cache
def _fields_of(serializer: type[StrictSerializer]) -> BindingDict:
    """A serializer's fields, which all requests share: they keep nothing, and copying them takes long."""
    return serializer().fields


def to_validation_error(error: DjangoValidationError) -> serializers.ValidationError:
    """Turn a validation error of an action into an answer 400."""
    return serializers.ValidationError(serializers.as_serializer_error(error))


# --- Parameters ----------------------------------------------------------------------------------------
class ParameterError(BadRequest):
    """A repeated or invalid parameter: 400."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def parse_id(text: str) -> int | None:
    """An id as the API writes it. None if the text is none."""
    if not NUMBER.fullmatch(text) or int(text) > MAX_POSITION:
        return None
    return int(text)


class IdConverter:
    """An id in an address of the APIs. Text that is no id becomes 0, which no row has: the view answers 404 after it
    has counted the call and found the caller.
    """

    regex = "[^/]+"

    def to_python(self, text: str) -> int:
        return parse_id(text) or 0

    def to_url(self, number: object) -> str:
        return str(number)


class NumberConverter(IdConverter):
    """An id in an address of a page. Other text may be another page's."""

    regex = "[0-9]+"


register_converter(IdConverter, "id")
register_converter(NumberConverter, "number")


def single_parameter(query: QueryDict, name: str) -> str:
    """A query's parameter, or "". Raises ParameterError if it is repeated."""
    values = query.getlist(name)
    if len(values) > 1:
        raise ParameterError(name, "Give it once.")
    return values[0] if values else ""


def _number(request: HttpRequest, name: str, rule: str) -> int | None:
    text = single_parameter(request.GET, name)
    if not text:
        return None
    number = parse_id(text)
    if number is None:
        raise ParameterError(name, rule)
    return number


def position(request: HttpRequest, name: str = "last_id") -> int | None:
    """The id in a parameter, or None. Raises ParameterError."""
    return _number(request, name, "An id is a decimal number from 1 to 2^53.")


def limit(request: HttpRequest, name: str = "limit") -> int:
    """The number of entries asked for: 20 by default, at most 100. Raises ParameterError."""
    asked = _number(request, name, "Send a whole number from 1. More than 100 count as 100.")
    return PAGE if asked is None else min(asked, PAGE_LIMIT)


class Bounds(TypedDict):
    """Where a page of a list begins (None: at its top), and how many entries it has at most."""

    last_id: int | None
    limit: int


class LastIdPagination(BasePagination):
    """Pages of a list by `last_id`, the position to go on after. The list's statement reads the page
    (storage.paging).
    """

    size = "limit"
    """The parameter with the number of entries."""

    def bounds(self, request: HttpRequest) -> Bounds:
        """The page that a request asks for. Raises ParameterError."""
        return {"last_id": position(request), "limit": limit(request, self.size)}

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """The parameters in the API's description."""
        number = {"type": "integer", "minimum": 1, "maximum": MAX_POSITION}
        after = "Go on after this id (exclusive). It is a position: nothing need be there any more."
        most = f"How many to list; more than {PAGE_LIMIT} count as {PAGE_LIMIT}."
        return [
            {"name": "last_id", "in": "query", "schema": number, "description": after},
            {"name": self.size, "in": "query", "schema": number | {"default": PAGE}, "description": most},
        ]


def idempotency_key(request: Request) -> str:
    """The request's Idempotency-Key, or "". Raises ValidationError."""
    key: str = request.META.get("HTTP_IDEMPOTENCY_KEY", "")
    if key and not KEY.fullmatch(key):
        raise serializers.ValidationError({"Idempotency-Key": ["At most 255 visible ASCII characters, no spaces."]})
    return key


# --- Answers ---------------------------------------------------------------------------------------------
encode = msgspec.json.Encoder().encode


class FeedResponse(HttpResponse):
    """An answer as JSON, encoded twenty times as fast as by DRF's serializers and renderers."""

    def __init__(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(encode(content), content_type=JSON_TYPE, status=status, headers=headers)


class Problem(msgspec.Struct):
    """An error in words. Invalid fields are listed by name instead: {"title": ["..."]}, {"items": {"0": {...}}}."""

    detail: str


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an exception. Also for the site's refusals and Django's errors, which DRF does not answer."""
    return default_exception_handler(to_api_exception(exc), context)


def to_api_exception(exc: Exception) -> Exception:
    """An exception as DRF's, if it has an answer."""
    match exc:
        case RefusalError():
            return _refusal_exception(exc)
        case DjangoValidationError():
            return to_validation_error(exc)
        case ObjectDoesNotExist():
            return exceptions.NotFound()
        case ParameterError():
            return serializers.ValidationError({exc.name: [exc.reason]})
        case RequestDataTooBig():
            return PayloadTooLargeError()
        case SuspiciousOperation() | MultiPartParserError() | UnreadablePostError():
            return exceptions.ParseError("The request can't be read.")
        case _ if isinstance(exc, OUTAGES):
            return outage_of(exc)
    return exc


def _refusal_exception(error: RefusalError) -> exceptions.APIException:
    if error.wait is not None:
        throttled = exceptions.Throttled(error.wait)
        throttled.detail = error.body() if error.field else throttled.detail
        return throttled
    if error.status == HTTPStatus.NOT_FOUND:
        return exceptions.NotFound()
    answer = OutageError() if error.status == HTTPStatus.SERVICE_UNAVAILABLE else exceptions.APIException()
    answer.status_code, answer.detail = error.status, error.body()
    return answer


def count_call(scope: str, who: str, cost: int = 1) -> None:
    """Count a call whose cost depends on the body. Raises Throttled."""
    wait = rates.hit(scope, who, cost)
    if wait is not None:
        raise exceptions.Throttled(wait)


def scope_of(view_rates: Mapping[str, str], method: str) -> str:
    """The view's rate for this method, else read or write."""
    named = view_rates.get("GET" if method == "HEAD" else method)
    return named or ("read" if method in SAFE_METHODS else "write")


class ApiView(ScopedView, APIView):
    """Base of the API's views. Counts every request first (web.rates.CountedCall), and checks it before asking who
    the caller is.
    """

    rates: Mapping[str, str] = {}
    """Rates of methods, where not `read` or `write`."""
    pages_of: type[msgspec.Struct] | None = None
    """What GET answers with, if it is a page of a list."""
    pagination_class = LastIdPagination
    bounds: Bounds
    """The page that a GET asks for, where there is `pages_of`."""
    only_reads = False
    """Whether no POST writes what its caller may look for next (storage.replica)."""
    body_bytes = BODY_BYTES
    """The most bytes of JSON, which POST, PATCH and the methods of `takes_bodies` take."""
    takes_bodies: frozenset[str] = frozenset()
    takes_files: Mapping[str, uploads.Limit] = {}
    """Methods that take a form with files, and its most bytes (web.uploads)."""
    parser_classes: Sequence[type[BaseParser]] = [StrictJSONParser]
    content_negotiation_class = OnlyJSON
    throttle_classes: Sequence[Any] = []

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """DRF's request, with attributes that DRF finds only after a failed look-up."""
        made = super().initialize_request(request, *args, **kwargs)
        vars(made).update(method=request.method, META=request.META)
        return made

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count the call and check method, size and type. Raises Throttled and errors of the request."""
        method = request.method or ""
        self._call = self._counted(request, method)
        if self._call.wait is not None:
            raise exceptions.Throttled(self._call.wait)
        if method.lower() not in self.http_method_names or not hasattr(self, method.lower()):
            self.http_method_not_allowed(request, *args, **kwargs)
        try:
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            raise exceptions.ParseError("Content-Length is not a number.") from None
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        limit = self.takes_files.get(method) if media_type == FILES_TYPE else None
        most = limit() if limit else self.body_bytes
        if length > most:
            raise PayloadTooLargeError(most)
        has_body = length and (method in BODY_METHODS or method in self.takes_bodies or method in self.takes_files)
        if has_body and media_type not in self.body_types(method):
            raise exceptions.UnsupportedMediaType(media_type or "(none)")
        super().initial(request, *args, **kwargs)
        if self.pages_of is not None and method in ("GET", "HEAD"):
            self.bounds = self.pagination_class().bounds(request)

    @classmethod
    def problem(cls, detail: str) -> Any:
        """The body of an error outside the view."""
        return Problem(detail)

    def body_types(self, method: str) -> Collection[str]:
        """The media types that a method accepts."""
        return (FILES_TYPE if method in self.takes_files else JSON_TYPE,)

    def _counted(self, request: Request, method: str) -> CountedCall:
        scope, address = scope_of(self.rates, method), rates.address(request._request)
        for authenticator in request.authenticators or ():
            credential, user = "", None
            if isinstance(authenticator, SessionAuthentication):
                credential = rates.session_credential(request._request.COOKIES)
            elif isinstance(authenticator, rates.ClaimingAuthenticator):
                credential, user = authenticator.claim(request._request)
            if credential or user is not None:
                return CountedCall(scope, address, credential=credential, user=user)
        return CountedCall(scope, address)

    def perform_authentication(self, request: Request) -> None:
        """Find the caller, and count the call for them.

        Raises AuthenticationFailed, Throttled, and PermissionDenied if the credential does not open this address.
        """
        try:
            request._authenticate()  # type: ignore[attr-defined]  # `request.user` would first look in vain
        except exceptions.AuthenticationFailed:
            self._call.prove(None)
            raise
        wait = self._call.prove(request.user.pk if request.user else None)
        if wait is not None:
            raise exceptions.Throttled(wait)
        if isinstance(request.auth, BoundedCredential):
            try:
                request.auth.check(request, self)
            except exceptions.PermissionDenied:
                wait = self._call.count_as_attempt()
                if wait is not None:
                    raise exceptions.Throttled(wait) from None
                raise

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add `no-store`: an answer is for one caller and moment."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class PublicApiView(ApiView):
    """Base of views that everybody may read, unless the site is for members only."""

    permission_classes = [IsAuthenticatedOrReadOnly]

    def perform_authentication(self, request: Request) -> None:
        """Find the caller. A stranger's call counts for the address. Raises Throttled, and NotAuthenticated on a site
        for members.
        """
        super().perform_authentication(request)
        is_stranger = not request.user.is_authenticated
        if is_stranger and getattr(request._request, "is_for_members", False):
            raise exceptions.NotAuthenticated
        wait = self._call.count_as_stranger() if is_stranger else None
        if wait is not None:
            raise exceptions.Throttled(wait)


class NotFoundView(ApiView):
    """Answers 404 for addresses without a route."""

    authentication_classes: Sequence[Any] = []
    permission_classes: Sequence[Any] = []
    body_bytes = 0

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count the call, then raise NotFound or Throttled."""
        wait = self._counted(request, request.method or "").wait
        raise exceptions.NotFound if wait is None else exceptions.Throttled(wait)
