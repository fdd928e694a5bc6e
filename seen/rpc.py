"""The played history over gRPC (seen/seen.proto): the same as `POST /api/v1/seen/*`, for ranking services.

A process of its own with threads, because PostgreSQL, Redis and LMDB block. Ids are fixed64: numpy reads 10,000 of them
in 3 µs.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import unquote

import grpc
import numpy as np
from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health import OVERALL_HEALTH, HealthServicer
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_reflection.v1alpha import reflection
from rest_framework.exceptions import AuthenticationFailed

from accounts.about.site import current
from accounts.models import User
from accounts.signing_in.tokens import TokenAuthentication
from runtime import metrics
from seen import played
from seen.access import active_user_ids, is_active_user, may_act_for
from seen.api import ASKED, BATCH, REPORTED, USERS
from seen.checker import unseen_ids
from seen.filter_store import FilterKey
from seen.filters import Ids
from seen.generated.seen_pb2 import (
    DESCRIPTOR,
    FilterRequest,
    FilterResponse,
    RecordBatchRequest,
    RecordBatchResponse,
    RecordIssuedRequest,
    RecordIssuedResponse,
    RecordPlaysRequest,
    RecordPlaysResponse,
)
from seen.reporting import report
from seen.store import store
from storage.connections import drop_ended_sessions
from web import health, rates
from web.rest import MAX_POSITION, OUTAGES, RETRY_SECONDS

logger = logging.getLogger(__name__)

PROTO = DESCRIPTOR.services_by_name["Seen"]
SERVICE = PROTO.full_name
MESSAGE_BYTES = 1024 * 1024
"""10,000 ids are 80 kB. With room above that, a caller with too many gets our own error."""
WAITING = 1000
"""The most calls at a time. Those beyond the threads wait."""
LEAST_SECONDS = 0.002
"""A call with less time to its deadline is refused."""
LOOK_SECONDS = 2.0
"""Time between two checks of the servers."""

OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.so_reuseport", 1),  # several processes may share the port, and `up` holds it for this one
    # Dead clients are noticed within 80 seconds. Clients may ping every 10.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)

OfOne = FilterRequest | RecordPlaysRequest | RecordIssuedRequest
Request = TypeVar("Request", bound=OfOne | RecordBatchRequest)
Response = TypeVar("Response")


class CallRefusedError(Exception):
    """A call is refused. `retry_after` in seconds, or 0."""

    def __init__(self, code: grpc.StatusCode, detail: str, retry_after: float = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


# --- The service -----------------------------------------------------------------------------------------
def _single_user_handler(most: int, work: Callable[[int, Ids], Response]) -> Callable[[OfOne, User], Response]:
    def answer(request: OfOne, caller: User) -> Response:
        user_id, ids = _checked_request(request, caller, most)
        if user_id != caller.pk and not is_active_user(user_id):
            raise CallRefusedError(grpc.StatusCode.NOT_FOUND, "There is no such user.")
        return work(user_id, ids)

    return answer


def _filter_unseen(user_id: int, ids: Ids) -> FilterResponse:
    left = unseen_ids(user_id, ids, now=timezone.now())
    # Built from bytes (field 1, packed): 10,000 single numbers would take a millisecond.
    packed = left.astype("<u8").tobytes()
    answer: FilterResponse = FilterResponse.FromString(b"\x0a" + _varint(len(packed)) + packed)
    return answer


def _record_plays(user_id: int, ids: Ids) -> RecordPlaysResponse:
    waits = report({user_id: ids.tolist()}, now=timezone.now())
    if waits:
        raise CallRefusedError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "Too many plays of this user came today, or wait.",
            retry_after=waits[user_id],
        )
    return RecordPlaysResponse()


def _record_batch(request: RecordBatchRequest, caller: User) -> RecordBatchResponse:
    """Record the plays of many users. Checks everything before taking anything."""
    plays: dict[int, list[int]] = {}
    if not 1 <= len(request.plays) <= USERS:
        raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, f"From 1 to {USERS} users, not {len(request.plays)}.")
    for each in request.plays:
        user_id, ids = _checked_request(each, caller, REPORTED)
        plays.setdefault(user_id, []).extend(ids.tolist())
    if sum(map(len, plays.values())) > BATCH:
        raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, f"Send at most {BATCH} ids in all.")
    there = active_user_ids(plays)
    waits = report({user_id: ids for user_id, ids in plays.items() if user_id in there}, now=timezone.now())
    return RecordBatchResponse(
        refused=[
            RecordBatchResponse.Wait(user_id=user_id, retry_after=math.ceil(wait)) for user_id, wait in waits.items()
        ],
        unknown=[user_id for user_id in plays if user_id not in there],
    )


def _record_issued(user_id: int, ids: Ids) -> RecordIssuedResponse:
    played.record_issued([(user_id, ids.tolist())])
    return RecordIssuedResponse()


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _handler(method: MethodDescriptor, work: Callable[[Any, User], Any]) -> "grpc.RpcMethodHandler[Any, Any]":
    return grpc.unary_unary_rpc_method_handler(
        lambda request, context: _answer(request, context, work),
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )


def handlers() -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
    """The service's calls, named as in the proto."""
    works: dict[str, Callable[[Any, User], Any]] = {
        "Filter": _single_user_handler(ASKED, _filter_unseen),
        "RecordPlays": _single_user_handler(REPORTED, _record_plays),
        "RecordBatch": _record_batch,
        "RecordIssued": _single_user_handler(REPORTED, _record_issued),
    }
    return {method.name: _handler(method, works[method.name]) for method in PROTO.methods}


# --- Around every call -----------------------------------------------------------------------------------
def _answer(request: Request, context: grpc.ServicerContext, work: Callable[[Request, User], Response]) -> Response:
    began = time.perf_counter()
    method = request.DESCRIPTOR.name.removesuffix("Request")
    code = grpc.StatusCode.OK
    close_old_connections()
    drop_ended_sessions()
    try:
        caller = _caller(context)
        check_time(context)
        if (why := current().read_only_why) and not isinstance(request, FilterRequest):
            raise CallRefusedError(grpc.StatusCode.UNAVAILABLE, f"The site is read-only: {why}", retry_after=60)
        return work(request, caller)
    except CallRefusedError as error:
        refusal = error
    except OUTAGES as error:
        logger.error("%s failed: %s", method, error)
        refusal = CallRefusedError(
            grpc.StatusCode.UNAVAILABLE, "The service is unavailable for a moment.", retry_after=RETRY_SECONDS
        )
    except Exception:
        logger.exception("%s failed", method)
        refusal = CallRefusedError(grpc.StatusCode.INTERNAL, "The server failed.")
    finally:
        close_old_connections()
        metrics.grpc_seconds.labels(method).observe(time.perf_counter() - began)
    code = refusal.code
    metrics.grpc_refused.labels(method, code.name).inc()
    if refusal.retry_after:
        context.set_trailing_metadata((("retry-after", str(math.ceil(refusal.retry_after))),))
    context.abort(code, refusal.detail)
    raise AssertionError("abort raises")


def check_time(context: grpc.ServicerContext) -> None:
    """Raise CallRefusedError if the caller does not wait long enough."""
    left = context.time_remaining()
    if not context.is_active() or (left is not None and left < LEAST_SECONDS):
        raise CallRefusedError(grpc.StatusCode.DEADLINE_EXCEEDED, "Too little time is left to begin.")


def _caller(context: grpc.ServicerContext) -> User:
    """The user whose token the call has. Counts the call first. Raises CallRefusedError."""
    given = [value for name, value in context.invocation_metadata() if name == "authorization"]
    words = given[0].split() if len(given) == 1 else []
    is_token = len(words) == 2 and words[0].lower() == "token"
    call = rates.CountedCall(
        "played", _address(context), credential=rates.token_credential(words[1]) if is_token else ""
    )
    _refuse_if_limited(call.wait)
    if not is_token:
        raise CallRefusedError(grpc.StatusCode.UNAUTHENTICATED, "Send the metadata `authorization: Token ...`, once.")
    try:
        user, _ = TokenAuthentication().authenticate_credentials(words[1])
    except AuthenticationFailed as error:
        _refuse_if_limited(call.prove(None))
        raise CallRefusedError(grpc.StatusCode.UNAUTHENTICATED, str(error.detail)) from None
    _refuse_if_limited(call.prove(user.pk))
    return user


def _refuse_if_limited(seconds: float | None) -> None:
    if seconds is not None:
        raise CallRefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "Too many calls.", retry_after=seconds)


def _address(context: grpc.ServicerContext) -> str:
    """The caller's address for rates. gRPC writes it as `ipv4:192.0.2.1:50000` or `ipv6:[::1]:50000`."""
    kind, _, place = unquote(context.peer()).partition(":")
    return rates.client_network(place.rpartition(":")[0].strip("[]")) if kind in ("ipv4", "ipv6") else kind


def _checked_request(request: OfOne, caller: User, most: int) -> tuple[int, Ids]:
    user_id = request.user_id or caller.pk
    ids: Ids = np.array(request.ids, dtype=np.uint64)
    if not 1 <= len(ids) <= most:
        raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, f"From 1 to {most} ids, not {len(ids)}.")
    if not (ids.min() >= 1 and ids.max() <= MAX_POSITION and user_id <= MAX_POSITION):
        raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, "An id is a number from 1 to 2^53.")
    if not may_act_for(caller, user_id):
        raise CallRefusedError(grpc.StatusCode.PERMISSION_DENIED, "You may not act for another user.")
    return user_id, ids


# --- The server ------------------------------------------------------------------------------------------
class RpcServer:
    """The gRPC server on one port, with health and reflection."""

    def __init__(self, address: str, *, threads: int) -> None:
        """Prepare the server. Raises RuntimeError if it cannot listen on `address`."""
        # Watchers of health do not hold a thread.
        self._health = HealthServicer(experimental_non_blocking=True)
        self._state: dict[str, str] = {}
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._check_repeatedly, name="health", daemon=True)
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="grpc"),
            options=OPTIONS,
            maximum_concurrent_rpcs=WAITING,
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers()),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((SERVICE, HEALTH, reflection.SERVICE_NAME), self._server)
        self.port: int = self._server.add_insecure_port(address)

    def start(self) -> None:
        """Start serving, and checking the servers behind it."""
        self._check()
        self._server.start()
        self._watch.start()

    def stop(self, grace: float) -> None:
        """Stop, and wait for running calls for at most `grace` seconds.

        Tells watchers of health first, because their calls do not end by themselves.
        """
        self._stopping.set()
        self._health.enter_graceful_shutdown()
        self._server.stop(grace).wait()
        self._watch.join()

    def _check_repeatedly(self) -> None:
        """Check the servers again and again until `stop`, whatever a check raises."""
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self._check()
            except Exception:
                logger.exception("the servers could not be checked, so gRPC reports NOT_SERVING")
                self._set_serving(is_serving=False)

    def _check(self) -> None:
        states = health.run_checks(
            {
                "postgresql": health.postgresql_check(),
                "plays": lambda: health.ping(settings.PLAYED_URL),
                "store": lambda: store().read([FilterKey(0, 0)]),
            }
        )
        if states != self._state:
            logger.info("servers: %s", ", ".join(f"{name} {state}" for name, state in states.items()))
            self._state = states
        self._set_serving(is_serving=all(state == "ok" for state in states.values()))

    def _set_serving(self, *, is_serving: bool) -> None:
        status = HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        for service in (OVERALL_HEALTH, SERVICE):
            self._health.set(service, status)
