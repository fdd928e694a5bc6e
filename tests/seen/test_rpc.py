"""A real server and a real socket."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
import redis
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from accounts.about import site
from accounts.actions import issue_token
from accounts.models import User
from accounts.signing_in.tokens import TokenAuthentication
from runtime import metrics
from runtime.embedded import Valkey, die_with_parent, wait_for
from seen import rpc, store
from seen.checker import unseen
from seen.generated.seen_pb2 import (
    FilterRequest,
    FilterResponse,
    RecordIssuedRequest,
    RecordPlaysRequest,
)
from seen.redis_store import RedisStore
from seen.rpc import SERVICE, RpcServer
from tests.support.at_once import HERE
from tests.support.seen_doors import SeenStub, kept
from tests.support.servers import frozen
from tests.support.streams import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plays")]

ROOT = Path(settings.BASE_DIR)
CODE = grpc.StatusCode
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def channel(start: Callable[..., RpcServer], connect: Callable[[int], grpc.Channel]) -> grpc.Channel:
    return connect(start().port)


@pytest.fixture
def seen(channel: grpc.Channel) -> SeenStub:
    return SeenStub(channel)


Metadata = list[tuple[str, str]]


def token(user: User) -> Metadata:
    return [("authorization", f"Token {issue_token(user=user)}")]


def ids_left(seen: SeenStub, who: Metadata, *ids: int) -> list[int]:
    return list(seen.Filter(FilterRequest(ids=ids), metadata=who, timeout=60).unseen)


def refused(call: Any, request: Any, **options: Any) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as refusal:
        call(request, **{"timeout": 60} | options)
    return refusal.value


# --- Answers ---------------------------------------------------------------------------------------------
def test_the_read_only_mode_takes_nothing(seen: SeenStub, ann: User) -> None:
    who = token(ann)
    site.site_copy.set(site.Site(read_only_why="We move."))
    for refusal in (
        refused(seen.RecordPlays, RecordPlaysRequest(ids=[3]), metadata=who),
        refused(seen.RecordIssued, RecordIssuedRequest(ids=[3]), metadata=who),
    ):
        assert (refusal.code(), refusal.details()) == (CODE.UNAVAILABLE, "The site is read-only: We move.")
        assert dict(refusal.trailing_metadata())["retry-after"] == "60"
    assert ids_left(seen, who, 3) == [3]


def test_the_answer_is_the_message_that_protobuf_makes() -> None:
    """Lengths take one, two and three bytes."""
    for count in (0, 1, 15, 16, 17, 2047, 2048, 2049):
        ids = list(range(1, count + 1))
        answer = rpc._filter_unseen(7, rpc.np.array(ids, dtype=rpc.np.uint64))
        assert answer.SerializeToString(deterministic=True) == FilterResponse(unseen=ids).SerializeToString()


@pytest.mark.slow
def test_calls_are_counted(seen: SeenStub, ann: User) -> None:
    def counted(name: str, **labels: str) -> float:
        return metrics.registry.get_sample_value(name, labels) or 0

    calls = counted("feedsite_grpc_seconds_count", method="Filter")
    refusals = counted("feedsite_grpc_refused_total", method="Filter", code="INVALID_ARGUMENT")
    ids_left(seen, token(ann), 1)
    refused(seen.Filter, FilterRequest(), metadata=token(ann))
    assert counted("feedsite_grpc_seconds_count", method="Filter") == calls + 2
    assert counted("feedsite_grpc_refused_total", method="Filter", code="INVALID_ARGUMENT") == refusals + 1


@pytest.mark.long
def test_two_clients_at_once(
    start: Callable[..., RpcServer], connect: Callable[[int], grpc.Channel], ann: User, service: User
) -> None:
    port = start(threads=2).port
    clients = [(SeenStub(connect(port)), token(each)) for each in (ann, service)]

    def work(client: tuple[SeenStub, Metadata]) -> list[int]:
        stub, who = client
        for number in range(1, 41):
            stub.RecordPlays(RecordPlaysRequest(ids=[number]), metadata=who, timeout=60)
            assert ids_left(stub, who, number, number + 1) == [number + 1]
        return ids_left(stub, who, *range(1, 50))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, clients)) == [list(range(41, 50))] * 2


# --- Refusals --------------------------------------------------------------------------------------------
def test_a_token_that_ended_and_one_too_many(seen: SeenStub, ann: User) -> None:
    who = token(ann)
    assert refused(seen.Filter, FilterRequest(ids=[1]), metadata=who + who).code() == CODE.UNAUTHENTICATED
    ann.is_active = False
    ann.save()
    refusal = refused(seen.Filter, FilterRequest(ids=[1]), metadata=who)
    assert (refusal.code(), refusal.details()) == (CODE.UNAUTHENTICATED, "Invalid token.")


@pytest.mark.slow
def test_bad_tokens_are_counted_and_then_cost_no_query(
    seen: SeenStub, ann: User, service: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count by address. Known tokens go on."""
    monkeypatch.setattr(settings, "RATES", settings.RATES | {"attempt": "3/hour", "played": "3/hour"})
    known = token(ann)
    seen.Filter(FilterRequest(ids=[1]), metadata=known)
    for bad in ("Token {}", "Bearer {}"):
        sent = [[("authorization", bad.format(number))] for number in range(5)]
        codes = [refused(seen.Filter, FilterRequest(ids=[1]), metadata=metadata).code() for metadata in sent]
        assert codes == [CODE.UNAUTHENTICATED] * 3 + [CODE.RESOURCE_EXHAUSTED] * 2
    asked: list[Any] = []
    authenticate = TokenAuthentication.authenticate_credentials
    monkeypatch.setattr(TokenAuthentication, "authenticate_credentials", lambda *args: asked.append(args))
    refusal = refused(seen.Filter, FilterRequest(ids=[1]), metadata=[("authorization", "Token 9")])
    assert refusal.code() == CODE.RESOURCE_EXHAUSTED
    assert 0 < int(dict(refusal.trailing_metadata())["retry-after"]) <= 3600
    assert asked == []
    monkeypatch.setattr(TokenAuthentication, "authenticate_credentials", authenticate)
    seen.Filter(FilterRequest(ids=[1]), metadata=known)


def test_messages_that_are_too_large(seen: SeenStub, ann: User) -> None:
    """Those with some more ids than may be are told so by the service."""
    for count, code in ((100_000, CODE.INVALID_ARGUMENT), (200_000, CODE.RESOURCE_EXHAUSTED)):
        assert refused(seen.Filter, FilterRequest(ids=range(1, count + 1)), metadata=token(ann)).code() == code


def test_malformed_messages(channel: grpc.Channel, ann: User, plays: redis.Redis) -> None:
    """grpcio answers by itself."""
    who = token(ann)
    for name, code in (("RecordPlays", CODE.INTERNAL), ("Forget", CODE.UNIMPLEMENTED)):
        call = channel.unary_unary(f"/{SERVICE}/{name}")
        assert refused(call, b"\xff\xff\xff", metadata=who).code() == code
    assert not kept(plays)
    assert ids_left(SeenStub(channel), who, 1) == [1]


def test_what_nobody_expected_tells_nothing(
    seen: SeenStub, ann: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise LookupError("a secret")

    monkeypatch.setattr(rpc, "unseen_ids", fail)
    refusal = refused(seen.Filter, FilterRequest(ids=[1]), metadata=token(ann))
    assert (refusal.code(), refusal.details()) == (CODE.INTERNAL, "The server failed.")
    assert "a secret" in caplog.text


# --- Outages and deadlines -------------------------------------------------------------------------------
@pytest.mark.slow
def test_what_cannot_be_finished_is_not_begun(
    start: Callable[..., RpcServer],
    connect: Callable[[int], grpc.Channel],
    ann: User,
    plays: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow call holds the only thread. Calls behind it expire."""
    is_held, may_go_on = threading.Event(), threading.Event()
    caller_of = rpc._caller

    def slow(context: grpc.ServicerContext) -> User:
        is_held.set()
        assert may_go_on.wait(60)
        return caller_of(context)

    monkeypatch.setattr(rpc, "_caller", slow)
    seen = SeenStub(connect(start(threads=1).port))
    who = token(ann)
    held = seen.Filter.future(FilterRequest(ids=[1]), metadata=who, timeout=60)
    assert is_held.wait(60)
    late = refused(seen.RecordPlays, RecordPlaysRequest(ids=[7]), metadata=who, timeout=0.3)
    assert late.code() == CODE.DEADLINE_EXCEEDED
    may_go_on.set()
    assert held.result().unseen == [1]
    assert ids_left(seen, who, 7) == [7], "nobody was told that it was recorded"
    assert not kept(plays)


def test_too_little_time(seen: SeenStub, ann: User, plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "LEAST_SECONDS", 60)
    refusal = refused(seen.RecordPlays, RecordPlaysRequest(ids=[7]), metadata=token(ann), timeout=30)
    assert (refusal.code(), refusal.details()) == (CODE.DEADLINE_EXCEEDED, "Too little time is left to begin.")
    assert not kept(plays)
    seen.RecordPlays(RecordPlaysRequest(ids=[7]), metadata=token(ann), timeout=None)
    assert kept(plays)


def gone() -> float:
    return metrics.grpc_refused.labels("RecordPlays", "DEADLINE_EXCEEDED")._value.get()


def test_nothing_is_done_for_who_went_away(
    seen: SeenStub, ann: User, plays: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, went = threading.Event(), threading.Event()
    caller_of = rpc._caller
    before = gone()

    def slow(context: grpc.ServicerContext) -> User:
        began.set()
        assert wait_for(lambda: not context.is_active(), 60)
        went.set()
        return caller_of(context)

    who = token(ann)
    with monkeypatch.context() as patch:
        patch.setattr(rpc, "_caller", slow)
        call = seen.RecordPlays.future(RecordPlaysRequest(ids=[7]), metadata=who)
        assert began.wait(60)
        call.cancel()
        assert went.wait(60)
    assert ids_left(seen, who, 7) == [7]
    assert wait_for(lambda: gone() > before, 60)
    assert not kept(plays)


# --- Health and reflection -------------------------------------------------------------------------------
def health_of(channel: grpc.Channel, service: str = SERVICE) -> int:
    stub = health_pb2_grpc.HealthStub(channel)
    status: int = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60).status
    return status


def becomes(channel: grpc.Channel, status: int) -> bool:
    """A slow machine may make one check fail."""
    return wait_for(lambda: health_of(channel) == health_of(channel, "") == status, 60)


@pytest.mark.slow
def test_health_goes_down_and_up_with_redis(channel: grpc.Channel, plays_server: Valkey) -> None:
    watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=240)

    def is_told(status: int) -> bool:
        return any(each.status == status for each in watched)

    assert is_told(SERVING)
    assert becomes(channel, SERVING)
    with frozen(plays_server):
        assert is_told(NOT_SERVING)
        assert becomes(channel, NOT_SERVING)
    assert is_told(SERVING)
    assert becomes(channel, SERVING)
    watched.cancel()


@pytest.mark.slow
def test_health_goes_down_and_up_with_the_store(channel: grpc.Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(store, "_store", RedisStore("redis://127.0.0.1:1/0"))
        assert becomes(channel, NOT_SERVING)
    assert becomes(channel, SERVING)


@pytest.mark.slow
def test_health_outlives_a_look_that_fails(channel: grpc.Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(checks: Any) -> Any:
        raise LookupError("no look")

    assert becomes(channel, SERVING)
    with monkeypatch.context() as patch:
        patch.setattr(rpc.health, "run_checks", broken)
        assert becomes(channel, NOT_SERVING)
    assert becomes(channel, SERVING)


def test_health_knows_no_other_service(channel: grpc.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    assert refused(stub.Check, health_pb2.HealthCheckRequest(service="other")).code() == CODE.NOT_FOUND


def test_reflection_lists_and_describes_the_service(channel: grpc.Channel) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    questions = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
    ]
    services, file = stub.ServerReflectionInfo(iter(questions), timeout=60)
    assert {each.name for each in services.list_services_response.service} == {
        SERVICE,
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    described = descriptor_pb2.FileDescriptorProto.FromString(file.file_descriptor_response.file_descriptor_proto[0])
    assert described.package == "feedsite.seen.v1"
    assert [method.name for method in described.service[0].method] == [
        "Filter",
        "RecordPlays",
        "RecordBatch",
        "RecordIssued",
    ]


# --- The process -----------------------------------------------------------------------------------------
COMMAND = ("-m", "django", "played_grpc")
PATIENT = (
    "-c",
    """
import django
django.setup()
from django.core.management import call_command
from seen.management.commands import played_grpc
played_grpc.GRACE_SECONDS = 60
call_command("played_grpc")
""",
)
"""The same, but calls under way have enough time to finish."""


class Process:
    """The program as `up` starts it, on a port reserved the same way."""

    def __init__(self, folder: Path, command: tuple[str, str, str] | tuple[str, str] = COMMAND, port: int = 0) -> None:
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.reserved.bind(("127.0.0.1", port))
        self.port: int = self.reserved.getsockname()[1]
        self.log = folder / f"grpc{self.reserved.fileno()}.log"
        own = {
            "DJANGO_SETTINGS_MODULE": "feedsite.settings",
            "FEEDSITE_DATABASE_URL": database_url(),
            "FEEDSITE_SECRET_KEY": settings.SECRET_KEY,
            "FEEDSITE_PLAYED_URL": settings.PLAYED_URL,
            "FEEDSITE_DATA_DIR": str(folder),
            "FEEDSITE_GRPC_PORT": str(self.port),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=os.environ | own,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),  # also if the tests are killed
            )

    def said(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reserved.close()


@pytest.fixture
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path, getattr(request, "param", COMMAND))
    yield process
    process.kill()


def takes_calls(port: int) -> bool:
    with socket.socket() as other:
        return other.connect_ex(("127.0.0.1", port)) == 0


def is_waited_for(cursor: CursorWrapper) -> bool:
    cursor.execute(
        f"SELECT FROM pg_locks WHERE NOT granted AND relation = 'oauth2_provider_accesstoken'::regclass AND {HERE}"
    )
    return cursor.fetchone() is not None


@pytest.mark.long
@pytest.mark.parametrize("process", [PATIENT], indirect=True, ids=["patient"])
def test_a_process_of_its_own_ends_when_the_last_call_is_answered(
    process: Process, connect: Callable[[int], grpc.Channel], ann: User
) -> None:
    channel = connect(process.port)
    grpc.channel_ready_future(channel).result(120)
    assert becomes(channel, SERVING)
    seen, who = SeenStub(channel), token(ann)
    seen.RecordPlays(RecordPlaysRequest(ids=[1]), metadata=who)
    assert ids_left(seen, who, 1, 2) == [2]

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE oauth2_provider_accesstoken IN ACCESS EXCLUSIVE MODE")
        running = seen.RecordPlays.future(RecordPlaysRequest(ids=[2]), metadata=who, timeout=60)
        assert wait_for(lambda: is_waited_for(cursor), 60)
        process.process.terminate()
        assert wait_for(lambda: not takes_calls(process.port), 60)
        assert process.process.poll() is None, process.said()
    running.result()
    assert process.process.wait(60) == 0, process.said()
    assert unseen(ann.pk, [1, 2, 3], now=timezone.now()) == [3]
    assert "Traceback" not in process.said()


@pytest.mark.long
def test_two_processes_share_a_port_and_a_store(
    process: Process, connect: Callable[[int], grpc.Channel], tmp_path: Path, ann: User
) -> None:
    other = Process(tmp_path, port=process.port)
    try:
        assert wait_for(lambda: all("plays ok, store ok" in each.said() for each in (process, other)), 120)
        who = token(ann)
        for number in range(1, 9):
            stub = SeenStub(connect(process.port))
            stub.RecordPlays(RecordPlaysRequest(ids=[number]), metadata=who, timeout=30, wait_for_ready=True)
            assert ids_left(stub, who, *range(1, 10)) == list(range(number + 1, 10))
    finally:
        other.process.terminate()
        assert other.process.wait(60) == 0
        other.kill()


@pytest.mark.parametrize("port", [None, 0])
def test_no_port_no_server(monkeypatch: pytest.MonkeyPatch, port: int | None) -> None:
    monkeypatch.setattr(settings, "GRPC_PORT", port)
    with pytest.raises(CommandError, match="FEEDSITE_GRPC_PORT is not set"):
        call_command("played_grpc")


def test_the_committed_code_is_what_the_proto_says(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc")
    out = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi")]
    assert (
        protoc.main(["protoc", f"--proto_path=seen/generated={ROOT / 'seen'}", *out, "seen/generated/seen.proto"]) == 0
    )
    made = sorted((tmp_path / "seen/generated").iterdir())
    assert [path.name for path in made] == ["seen_pb2.py", "seen_pb2.pyi"]
    for path in made:
        assert path.read_text() == (ROOT / "seen/generated" / path.name).read_text(), (
            f"{path.name}: see CONTRIBUTING.md"
        )
