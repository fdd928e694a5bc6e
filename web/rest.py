"""The REST ground: fields and positions, one shape of errors, rates, and feed pages rendered by msgspec. Bodies of
JSON are read by web/strict_json.py.

Whatever comes in, the answer is JSON and the caller's fault is a 4xx; a server of ours that does not answer is a 503.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from django.core.exceptions import (
    BadRequest,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import (
    ValidationError as DjangoValidationError,
)
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser, DataAndFiles, FormParser, MultiPartParser
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.views import exception_handler as default_exception_handler

from storage.breaker import UnavailableError
from web import rates, uploads
from web.credentials import Bounded
from web.rates import Call
from web.strict_json import BODY_BYTES, JSON_TYPE, PayloadTooLargeError, StrictJSONParser

logger = logging.getLogger(__name__)

PAGE = 20
PAGE_LIMIT = 100
MAX_POSITION = 2**53
RETRY_SECONDS = 2
"""Seconds that a client is asked to wait after an outage."""


OUTAGES = (OperationalError, InterfaceError, UnavailableError)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
BODY_METHODS = frozenset({"POST", "PATCH"})
FILES_TYPE = "multipart/form-data"
KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
NUMBER = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
NO_UTF8 = "The request cannot be read: it is not UTF-8."


class ConflictError(exceptions.APIException):
    """The request is sound, and what it meets does not allow it."""

    status_code = HTTPStatus.CONFLICT
    default_detail = "Conflict."
    default_code = "conflict"


class OutageError(exceptions.APIException):
    """A server of ours does not answer."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "The service is unavailable for a moment."
    default_code = "unavailable"
    wait = RETRY_SECONDS


# --- Bodies ----------------------------------------------------------------------------------------------
class StrictFormParser(FormParser):
    """Forms without files. They are UTF-8, whatever charset their Content-Type names."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The fields, a QueryDict. Raises ParseError if they are no UTF-8."""
        data = stream.read()
        check_encoding(data)
        return QueryDict(data, encoding="utf-8")


class FilesParser(MultiPartParser):
    """Forms with files, for the methods that a view names in `takes_files`. Their fields are UTF-8."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The fields and files, as DataAndFiles. Raises ParseError if a field is no UTF-8."""
        # Django's parser puts U+FFFD where bytes are broken; by Latin-1 it keeps each of them.
        read = super().parse(stream, media_type, {**(parser_context or {}), "encoding": "latin-1"})
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
    """Raise ParseError if a form without files says text that is no UTF-8."""
    try:
        (unquote_to_bytes(form) if b"%" in form else form).decode()
    except UnicodeDecodeError:
        raise exceptions.ParseError(NO_UTF8) from None


def _as_utf8(text: str) -> str:
    """The text whose bytes were read as Latin-1."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise exceptions.ParseError(NO_UTF8) from None


class OnlyJSON(DefaultContentNegotiation):
    """Every answer is what the view renders first, whatever the Accept header asks for."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> tuple[Any, str]:
        """The first renderer, whatever the client accepts."""
        return renderers[0], renderers[0].media_type


class TextField(serializers.CharField):
    """Text that was sent as text: DRF's field takes numbers too."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError if it is no string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class ObjectField(serializers.DictField):
    """A JSON object of any shape; StrictJSONParser has bounded its depth, size and strings."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=serializers.JSONField(), **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        """The object. Raises ValidationError if it is none."""
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        return data


class FlagField(serializers.BooleanField):
    """True or false; DRF's field takes "yes" and 1 too."""

    def to_internal_value(self, data: Any) -> bool:
        """The truth value. Raises ValidationError if it is none."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class NumberField(serializers.IntegerField):
    """A whole number that was sent as one; DRF's field takes text too."""

    def to_internal_value(self, data: Any) -> int:
        """The number. Raises ValidationError if it is none."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class IdField(serializers.CharField):
    """An id as the API shows it: a decimal string."""

    def to_internal_value(self, data: Any) -> int:  # type: ignore[override]
        """The id as a number. Raises ValidationError if it is no decimal string."""
        number = parse_id(data) if isinstance(data, str) else None
        if number is None:
            raise serializers.ValidationError("An id is a decimal string.")
        return number


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentField(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """A time in ISO 8601 that says of which zone it is."""

    def to_internal_value(self, data: Any) -> datetime:
        """The moment in UTC. Raises ValidationError without a zone, or if it is no time."""
        try:
            moment = datetime.fromisoformat(data) if isinstance(data, str) and data.isascii() else None
            if moment and moment.tzinfo:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise serializers.ValidationError("A time in ISO 8601 with its zone, as 2026-05-01T20:00:00Z.")

    def to_representation(self, value: datetime) -> str:
        """The moment in ISO 8601."""
        return value.isoformat()


class StrictSerializer(serializers.Serializer[Any]):
    """Reads a body, and refuses what it does not know: a field that would be ignored is a mistake of the caller."""

    def to_internal_value(self, data: Any) -> Any:
        """The fields. Raises ValidationError for unknown ones."""
        unknown = [name for name in data if name not in self.fields or self.fields[name].read_only]
        if unknown:
            raise serializers.ValidationError({name[:64]: ["This field cannot be set."] for name in unknown[:10]})
        return super().to_internal_value(data)


def body(request: Request, serializer: type[StrictSerializer], **options: Any) -> dict[str, Any]:
    """The validated fields of the request's body. Raises ValidationError."""
    reader = serializer(data=request.data, **options)
    reader.is_valid(raise_exception=True)
    fields: dict[str, Any] = reader.validated_data
    return fields


def invalid(error: DjangoValidationError) -> serializers.ValidationError:
    """The 400 for what a verb refused."""
    return serializers.ValidationError(serializers.as_serializer_error(error))


# --- Parameters ----------------------------------------------------------------------------------------
class ParameterError(BadRequest):
    """A parameter is repeated or has a wrong value. A page answers 400, the API names the parameter and the reason."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def parse_id(text: str) -> int | None:
    """The id that `text` spells in decimal as the API does, or None."""
    if not NUMBER.fullmatch(text) or int(text) > MAX_POSITION:
        return None
    return int(text)


def once(query: QueryDict, name: str) -> str:
    """A parameter of a query or form; "" where it is missing. Raises ParameterError if it is repeated."""
    values = query.getlist(name)
    if len(values) > 1:
        raise ParameterError(name, "Give it once.")
    return values[0] if values else ""


def _number(request: HttpRequest, name: str, rule: str) -> int | None:
    text = once(request.GET, name)
    if not text:
        return None
    number = parse_id(text)
    if number is None:
        raise ParameterError(name, rule)
    return number


def position(request: HttpRequest, name: str = "last_id") -> int | None:
    """The position in a list that the query names, or None. No item needs to be there. Raises ParameterError."""
    return _number(request, name, "An id is a decimal number from 1 to 2^53.")


def limit(request: HttpRequest, name: str = "limit") -> int:
    """How many to list: 20, or what the query asks for, at most 100. Raises ParameterError."""
    asked = _number(request, name, "A whole number from 1; more than 100 count as 100.")
    return PAGE if asked is None else min(asked, PAGE_LIMIT)


def idempotency_key(request: Request) -> str:
    """The client's name for this call, or nothing. Raises ValidationError."""
    key: str = request.META.get("HTTP_IDEMPOTENCY_KEY", "")
    if key and not KEY.fullmatch(key):
        raise serializers.ValidationError({"Idempotency-Key": ["At most 255 visible ASCII characters, no spaces."]})
    return key


# --- Answers ---------------------------------------------------------------------------------------------
encode = msgspec.json.Encoder().encode


class FeedResponse(HttpResponse):
    """A body of msgspec structs as JSON, without serializers and renderers: a twentieth of their time."""

    def __init__(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(encode(content), content_type=JSON_TYPE, status=status, headers=headers)


class Problem(msgspec.Struct):
    """An error in words for people. Wrong fields are listed by name instead: {"title": ["..."]}."""

    detail: str


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's, and what Django raises: outages, bodies that cannot be read, requests that cannot be meant well."""
    if isinstance(exc, OUTAGES):
        logger.error("A server failed a request: %s", exc)
        exc = OutageError()
    elif isinstance(exc, ParameterError):
        exc = serializers.ValidationError({exc.name: [exc.reason]})
    elif isinstance(exc, RequestDataTooBig):
        exc = PayloadTooLargeError()
    elif isinstance(exc, SuspiciousOperation | MultiPartParserError | UnreadablePostError):
        exc = exceptions.ParseError("The request cannot be read.")
    return default_exception_handler(exc, context)


def spend(scope: str, who: str, cost: int = 1) -> None:
    """Count a call that is known only when its body has been read. Raises Throttled."""
    wait = rates.hit(scope, who, cost)
    if wait is not None:
        raise exceptions.Throttled(wait)


def scope_of(view_rates: Mapping[str, str], method: str) -> str:
    """The rate that a request falls under: what the view names for its method, else read or write. HEAD is GET."""
    named = view_rates.get("GET" if method == "HEAD" else method)
    return named or ("read" if method in SAFE_METHODS else "write")


class ApiView(APIView):
    """A view of the API: every request is counted before anything else, refused ones too (web.rates.Call), and
    what is wrong with the envelope is said before callers are asked who they are.

    `rates` names the scopes of methods that are counted apart. Every POST and PATCH, and the methods of `takes_bodies`,
    take a JSON body of at most `body_bytes`, but for the methods of `takes_files`: a form with files (web.uploads).
    `only_reads`: no POST writes what its caller may look for where reads lag (storage.replica).
    """

    rates: Mapping[str, str] = {}
    only_reads = False
    body_bytes = BODY_BYTES
    takes_files: frozenset[str] = frozenset()
    takes_bodies: frozenset[str] = frozenset()
    parser_classes: Sequence[type[BaseParser]] = [StrictJSONParser]
    content_negotiation_class = OnlyJSON
    throttle_classes: Sequence[Any] = []

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """DRF's request. It finds attributes of Django's after a failed look-up, so it is given those of each call."""
        made = super().initialize_request(request, *args, **kwargs)
        vars(made).update(method=request.method, META=request.META)
        return made

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count the call before anything else. Raises Throttled."""
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
        has_files = method in self.takes_files
        most = uploads.most_bytes(request.path) if has_files else self.body_bytes
        if length > most:
            raise PayloadTooLargeError(most)
        if (method in BODY_METHODS or method in self.takes_bodies or has_files) and length:
            media_type = (request.content_type or "").partition(";")[0].strip().lower()
            if media_type not in self.body_types(method):
                raise exceptions.UnsupportedMediaType(media_type or "(none)")
        super().initial(request, *args, **kwargs)

    @classmethod
    def problem(cls, detail: str) -> Any:
        """The body of an error that arises outside the view."""
        return Problem(detail)

    def body_types(self, method: str) -> Collection[str]:
        """The media types of bodies that a method takes."""
        return (FILES_TYPE if method in self.takes_files else JSON_TYPE,)

    def _counted(self, request: Request, method: str) -> Call:
        """The call, by what the first of the view's authenticators finds that finds anything."""
        scope, address = scope_of(self.rates, method), rates.address(request._request)
        for authenticator in request.authenticators or ():
            credential, user = "", None
            if isinstance(authenticator, SessionAuthentication):
                credential = rates.session_credential(request._request.COOKIES)
            elif isinstance(authenticator, rates.Claimed):
                credential, user = authenticator.claim(request._request)
            if credential or user is not None:
                return Call(scope, address, credential=credential, user=user)
        return Call(scope, address)

    def perform_authentication(self, request: Request) -> None:
        """Find the caller; a failed attempt counts for the address. Raises AuthenticationFailed, and PermissionDenied
        where the credential does not open this address.
        """
        try:
            request._authenticate()  # type: ignore[attr-defined]  # `request.user` looks in vain first
        except exceptions.AuthenticationFailed:
            self._call.prove(None)
            raise
        wait = self._call.prove(request.user.pk if request.user else None)
        if wait is not None:
            raise exceptions.Throttled(wait)
        if isinstance(request.auth, Bounded):
            try:
                request.auth.check(request)
            except exceptions.PermissionDenied:
                wait = self._call.as_attempt()
                if wait is not None:
                    raise exceptions.Throttled(wait) from None
                raise

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """The answer, which no cache may keep."""
        response = super().finalize_response(request, response, *args, **kwargs)
        # An answer is for its caller alone, and for now alone.
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class PublicApiView(ApiView):
    """All callers may read, unless the site is for members alone (accounts.about.looking). Writing needs signing in."""

    permission_classes = [IsAuthenticatedOrReadOnly]

    def perform_authentication(self, request: Request) -> None:
        """Find the caller, if any; a stranger's call counts for the address. Raises Throttled."""
        super().perform_authentication(request)
        is_stranger = not request.user.is_authenticated
        if is_stranger and getattr(request._request, "is_for_members", False):
            raise exceptions.NotAuthenticated
        wait = self._call.as_stranger() if is_stranger else None
        if wait is not None:
            raise exceptions.Throttled(wait)


class NotFoundView(ApiView):
    """The view of all addresses without a route of their own; it answers 404 in the words of every other 404."""

    authentication_classes: Sequence[Any] = []
    permission_classes: Sequence[Any] = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count the call, then raise NotFound or Throttled."""
        wait = self._counted(request, request.method or "").wait
        raise exceptions.NotFound if wait is None else exceptions.Throttled(wait)
