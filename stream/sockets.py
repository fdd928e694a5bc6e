"""Open WebSockets: writes events, and answers the client's messages.

See docs/decisions.md: Own code in place of a library.
"""

import asyncio
import io
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponseBase

from stream.api import Answer, OpenStreamResponse
from stream.connections import AGAIN, FAILED, GONE, REFUSED, OpenConnection
from stream.hub import Hub, StoppingError
from web.content_type import without_bad_charset
from web.rest import OUTAGES

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MESSAGES, SECONDS = 30, 60.0
"""A client with more messages in this time is cut off."""
LETTERS = 2_000
"""The longest message."""
END_SECONDS = 1.0
"""How long closing may take."""


def request_of(scope: Message) -> ASGIRequest:
    """The request that opens a connection, as Django's request without a body."""
    headers = [
        (name, without_bad_charset(value.decode("latin-1")).encode("latin-1") if name == b"content-type" else value)
        for name, value in scope["headers"]
    ]
    is_socket = scope["type"] == "websocket"
    method = "GET" if is_socket else scope["method"]
    request = ASGIRequest({**scope, "type": "http", "method": method, "headers": headers}, io.BytesIO())
    request.is_socket = is_socket  # type: ignore[attr-defined]
    return request


def protocol_of(scope: Message) -> str | None:
    """The first protocol that the client names."""
    return next(iter(scope.get("subprotocols", ())), None)


async def respond(send: Send, response: HttpResponseBase, kind: str = "http.response") -> None:
    """Send a response. `kind`: `websocket.http.response` refuses a socket."""
    headers = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
    await send({"type": f"{kind}.start", "status": response.status_code, "headers": headers})
    await send({"type": f"{kind}.body", "body": response.content})  # type: ignore[attr-defined]


async def serve_socket(
    hub: Hub,
    opened: HttpResponseBase | tuple[OpenConnection, OpenStreamResponse],
    scope: Message,
    receive: Receive,
    send: Send,
) -> None:
    """Keep a socket open until either side closes it, or refuse it over HTTP."""
    if isinstance(opened, HttpResponseBase):
        await respond(send, opened, "websocket.http.response")
        return
    connection, answer = opened[0], opened[1].answer
    del opened  # the request is a fifth of an open connection's memory
    try:
        await send({"type": "websocket.accept", "subprotocol": protocol_of(scope)})
        hearing = asyncio.ensure_future(_receive(hub, connection, answer, receive))
        hearing.add_done_callback(partial(_close_connection, connection))
        try:
            await connection.serve(partial(_write, send))
        finally:
            hearing.cancel()
        with suppress(TimeoutError, Exception):  # the client may be gone
            async with asyncio.timeout(END_SECONDS):
                await send({"type": "websocket.close", "code": connection.code})
    finally:
        hub.leave(connection)


async def _write(send: Send, parts: Sequence[bytes]) -> None:
    for part in parts:
        await send({"type": "websocket.send", "text": part.decode()})


def _close_connection(connection: OpenConnection, hearing: asyncio.Future[int]) -> None:
    connection.close(GONE if hearing.cancelled() or hearing.exception() else hearing.result())


async def _receive(hub: Hub, connection: OpenConnection, answer: Answer | None, receive: Receive) -> int:
    began, said = time.monotonic(), 0
    while (message := await receive())["type"] == "websocket.receive":
        if time.monotonic() > began + SECONDS:
            began, said = time.monotonic(), 0
        said += 1
        text = message.get("text") or ""
        if said > MESSAGES or len(text) > LETTERS or answer is None:
            return REFUSED
        try:
            hearer, written = await hub.in_thread(partial(answer, connection.listener, text))
        except StoppingError:
            return GONE
        except OUTAGES as error:
            logger.warning("a message of a socket failed, because PostgreSQL failed: %s", error)
            return AGAIN
        except Exception:
            logger.exception("a message of a socket failed")
            return FAILED
        connection.listener = hearer
        connection.put(written)
    return GONE
