"""The stream process: `GET /api/v1/stream`, streams and sockets of Mastodon's clients, and its own `/healthz`.

The site's view and middlewares decide in a thread who may listen.

See docs/decisions.md: uvicorn serves open connections.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402 (after setup)
from django.core.handlers.asgi import ASGIRequest  # noqa: E402
from django.core.handlers.base import BaseHandler  # noqa: E402
from django.http import HttpResponse, HttpResponseBase  # noqa: E402
from django.urls import include, path, re_path  # noqa: E402

from feedsite import loading  # noqa: E402
from runtime.logs import HEADER, request_id  # noqa: E402
from storage import postgresql  # noqa: E402
from stream.api import OpenStreamResponse, StreamView  # noqa: E402
from stream.connections import OpenConnection, TooManyConnectionsError  # noqa: E402
from stream.hub import WAIT_SECONDS, Hub, StoppingError  # noqa: E402
from stream.sockets import request_of, respond, serve_socket  # noqa: E402
from web import health  # noqa: E402
from web.headers import HEADERS, NO_PAGE  # noqa: E402
from web.outage import server_error, unavailable  # noqa: E402
from web.rest import OUTAGES, FeedResponse, NotFoundView, Problem  # noqa: E402

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

FULL_RETRY_SECONDS = 30
"""Retry-After if there are too many connections."""
END_SECONDS = 1.0
"""Maximum seconds for writing the end of a stream."""

# The addresses of this process. Requests use this module as their urlconf.
urlpatterns = [
    path("api/v1/stream", StreamView.as_view()),
    path("api/v1/", include("clientapi.stream_urls")),
    re_path("", NotFoundView.as_view()),
]
handler400 = "web.outage.bad_request"
handler404 = "web.outage.not_found"
handler500 = "web.outage.server_error"


class AsgiApplication:
    """The ASGI application: the lifespan, and one coroutine per connection."""

    def __init__(self) -> None:
        self.handler = BaseHandler()
        self.handler.load_middleware()
        self.hub: Hub | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection, or the lifespan."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # the connect message
            await serve_socket(self._hub(), await self._open(request_of(scope)), scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._hub().wait_until_begun()
        logging.getLogger("feedsite.starts").info("stream is at work, for %s connections", settings.STREAM_CAP)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._hub().stop()
        await send({"type": "lifespan.shutdown.complete"})

    def _hub(self) -> Hub:
        if self.hub is None:
            self.hub = Hub()
            self.hub.start()
        return self.hub

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["path"] == "/healthz":
            await respond(send, self._health(request_of(scope)))
            return
        request = request_of(scope)
        opened = await self._open(request)
        if isinstance(opened, HttpResponseBase):
            await respond(send, opened)
            return
        connection, admission = opened
        headers = _headers(admission, request)
        del opened, admission, request  # they would take a fifth of an open connection's memory
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            gone = asyncio.ensure_future(_wait_until_gone(receive))
            gone.add_done_callback(lambda _: connection.close())
            try:
                await connection.serve(
                    lambda parts: send({"type": "http.response.body", "body": b"".join(parts), "more_body": True})
                )
                if not gone.done():
                    # Browsers log an error if an answer just breaks off.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(END_SECONDS):
                            await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                gone.cancel()
        finally:
            self._hub().leave(connection)

    def _health(self, request: ASGIRequest) -> HttpResponse:
        """The answer to a health check. Made on the event loop, because all threads may wait for PostgreSQL."""
        response = health.healthz(request)
        if response.status_code == 200 and not self._hub().is_well:
            response = HttpResponse("a task of the stream fails\n", content_type="text/plain", status=503)
        for name, value in HEADERS.items():
            response[name] = value
        return response

    async def _open(self, request: ASGIRequest) -> HttpResponseBase | tuple[OpenConnection, OpenStreamResponse]:
        hub, asked_at = self._hub(), time.monotonic()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                response = await hub.in_thread(lambda: self._run_view(request))
                if not isinstance(response, OpenStreamResponse):
                    return response
                if request.method == "HEAD":
                    return HttpResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
                connection = await hub.open(
                    asked_at, response.grant, response.listener, response.dialect, response.since
                )
        except TooManyConnectionsError as error:
            return _too_many(error)
        except StoppingError:
            return unavailable(request)
        except (*OUTAGES, TimeoutError) as error:
            logger.warning("a connection was answered 503, because PostgreSQL failed: %s", error)
            return unavailable(request)
        except Exception:
            logger.exception("a connection failed and was answered 500")
            return server_error(request)
        return connection, response

    def _run_view(self, request: ASGIRequest) -> HttpResponseBase:
        request.urlconf = __name__
        request.keeps_lines_open = True  # type: ignore[attr-defined]
        try:
            response = self.handler.get_response(request)
        finally:
            request_id.set("")  # the thread is reused
        if hasattr(response, "render") and not getattr(response, "is_rendered", True):
            response.render()
        return response


async def _wait_until_gone(receive: Receive) -> None:
    """Wait until the client is gone. Bodies are ignored: no request here has one."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(admission: OpenStreamResponse, request: ASGIRequest) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),  # nginx passes data on at once
        (b"vary", b"Origin"),
        (b"x-request-id", admission.headers.get(HEADER, "").encode()),
        (b"content-security-policy", NO_PAGE.encode()),
        *((name.lower().encode(), value.encode()) for name, value in HEADERS.items()),
    ]
    # Under `up` the page has another port. Only the origin in its ticket may listen.
    if admission.origin and request.headers.get("Origin") == admission.origin:
        headers.append((b"access-control-allow-origin", admission.origin.encode()))
        headers.append((b"access-control-allow-credentials", b"true"))
    return headers


def _too_many(error: TooManyConnectionsError) -> HttpResponseBase:
    if error.of_user:
        response = FeedResponse(Problem("Too many open streams."), status=429)
    else:
        response = FeedResponse(Problem("Too many open streams on this site. Come back later."), status=503)
    response["Retry-After"] = str(FULL_RETRY_SECONDS)
    return response


application = AsgiApplication()
loading.load_stream()
postgresql.set_process_timeout(settings.DATABASE_TIMEOUT_SECONDS)
