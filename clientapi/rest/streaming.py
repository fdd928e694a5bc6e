"""Who may listen to what. Other processes redirect to the stream process."""

from functools import partial
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpResponse
from django.http.request import split_domain_port
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.signing_in.grants import Grant, password_mark
from clientapi.errors import NOT_FOUND, ClientError, ClientView, caller_of
from clientapi.oauth.bearer import BearerToken, StreamAuthentication
from clientapi.streaming.streaming import CLIENTS
from clientapi.streaming.streams import ClientHearer, Stream, after_message, stream_of
from stream.api import OpenStreamResponse
from web.credentials import ANY_SCOPE
from web.rest import OutageError

_encode = msgspec.json.Encoder().encode


class StreamingView(ClientView):
    """Opens a stream of events. A socket may begin without a stream."""

    scopes = ANY_SCOPE
    authentication_classes = (StreamAuthentication,)

    def get(self, request: Request, path: str = "") -> HttpResponse:
        """Open the stream in the stream process. Other processes redirect to it."""
        reader = caller_of(request)
        assert isinstance(request.auth, BearerToken)  # noqa: S101 (caller_of)
        is_socket = getattr(request._request, "is_socket", False)
        name = path.strip("/").replace("/", ":") or _once(request, "stream")
        if not name and not is_socket:
            raise exceptions.NotFound
        held = request.auth.scopes
        streams: tuple[Stream, ...] = ()
        if name:
            only_media = ":media" if _once(request, "only_media").lower() in ("1", "true") else ""
            name += only_media if name.startswith("public") else ""
            tag, list_id = _once(request, "tag"), _once(request, "list")
            streams = (stream_of(name, held, reader, tag=tag, list_id=list_id),)
        if not getattr(request._request, "keeps_lines_open", False):
            return _redirect_to_stream(request)
        grant = Grant(reader.pk, password_mark(reader), token=request.auth.token_id)
        answer = partial(_apply_message, held) if is_socket else None
        return OpenStreamResponse(grant, ClientHearer(reader.pk, streams, is_socket), CLIENTS, answer=answer)


class HealthView(ClientView):
    """Whether streams are served."""

    scopes = ANY_SCOPE
    is_open = True

    def get(self, request: Request) -> HttpResponse:
        """Return `OK`."""
        return HttpResponse("OK", content_type="text/plain")


def _once(request: Request, name: str) -> str:
    values = request.query_params.getlist(name)
    return values[0] if values else ""


def _redirect_to_stream(request: Request) -> HttpResponse:
    """Redirect to the stream process's port. Raises OutageError if it has none."""
    if not settings.STREAM_PORT:
        raise OutageError
    host, _port = split_domain_port(request.get_host())
    place = f"{request.scheme}://{host}:{settings.STREAM_PORT}{request.get_full_path()}"
    return HttpResponse(status=307, headers={"Location": place})


def _apply_message(held: frozenset[str], hearer: ClientHearer, text: str) -> tuple[ClientHearer, bytes]:
    try:
        return after_message(hearer, msgspec.json.decode(text), held), b""
    except (msgspec.DecodeError, RecursionError):
        return hearer, _refusal("The message is no JSON", 400)
    except ClientError as error:
        return hearer, _refusal(str(error), error.status_code)
    except (exceptions.NotFound, ObjectDoesNotExist):
        return hearer, _refusal(NOT_FOUND, 404)


def _refusal(words: str, status: int) -> bytes:
    fields: dict[str, Any] = {"error": words, "status": status}
    return _encode(fields)
