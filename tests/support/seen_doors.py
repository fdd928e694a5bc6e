"""The two doors to what was played and issued: the API and gRPC."""

import json
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import redis
from django.contrib.auth.models import Permission
from django.db import connection
from google.protobuf.message_factory import GetMessageClass
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from seen import played, rpc, store
from seen.generated.seen_pb2 import FilterRequest, RecordBatchRequest, RecordIssuedRequest, RecordPlaysRequest
from seen.lmdb_store import LmdbStore
from seen.rpc import PROTO, SERVICE, RpcServer
from tests.support.factories import UserFactory
from tests.support.schemas import allowed
from web.openapi import document

SCHEMA = json.loads(document())
VERBS = ("plays", "issued", "filter")
Batch = list[tuple[int, list[int]]]
"""By user: the ids of the items that they played."""


@pytest.fixture
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """An empty server, with a store."""
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))
    played.client().flushdb()
    yield played.client()
    played.client().flushdb()


def kept(plays: redis.Redis) -> list[bytes]:
    return [*plays.keys("played:*"), *plays.keys("issued:*")]


@pytest.fixture
def service() -> User:
    """May act for others."""
    user = UserFactory.create(username="ranking")
    user.user_permissions.add(Permission.objects.get(codename="act_for_others"))
    return user


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RpcServer]]:
    """Their threads keep no connection to the test's database."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    monkeypatch.setattr(rpc, "LOOK_SECONDS", 0.1)
    servers = []

    def start(threads: int = 4) -> RpcServer:
        server = RpcServer("127.0.0.1:0", threads=threads)
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop(0)


@pytest.fixture
def connect() -> Iterator[Callable[[int], grpc.Channel]]:
    channels = []

    def connect(port: int) -> grpc.Channel:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
        channels.append(channel)
        return channel

    yield connect
    for channel in channels:
        channel.close()


class SeenStub:
    """A client, as any language makes one of the proto."""

    Filter: Any
    RecordPlays: Any
    RecordBatch: Any
    RecordIssued: Any

    def __init__(self, channel: grpc.Channel) -> None:
        for each in PROTO.methods:
            call = channel.unary_unary(
                f"/{SERVICE}/{each.name}",
                request_serializer=GetMessageClass(each.input_type).SerializeToString,
                response_deserializer=GetMessageClass(each.output_type).FromString,
            )
            setattr(self, each.name, call)


class Answer(NamedTuple):
    code: str
    """"OK", or the name of gRPC's code."""
    words: str = ""
    """Of a refusal."""
    wait: int = 0
    """Seconds until it may be repeated."""
    left: list[int] = []
    waits: dict[int, int] = {}
    """Seconds to wait by refused user of a batch."""
    unknown: list[int] = []


class Door:
    """A way to the service. `who` is a user, the value of the header, or None."""

    def send(self, who: User | str | None, verb: str, ids: Iterable[int], user_id: int = 0) -> Answer:
        raise NotImplementedError

    def send_batch(self, who: User | str | None, plays: Batch) -> Answer:
        raise NotImplementedError

    def left(self, who: User, *ids: int, user_id: int = 0) -> list[int]:
        answer = self.send(who, "filter", ids, user_id)
        assert answer.code == "OK", answer
        return answer.left

    def refuses(self, code: str, *sent: Any) -> Answer:
        answer = self.send(*sent)
        assert answer.code == code, (answer, sent[1:])
        return answer


def header(who: User | str | None) -> str | None:
    return f"Token {issue_token(user=who)}" if isinstance(who, User) else who


CODES = {
    HTTPStatus.OK: "OK",
    HTTPStatus.NO_CONTENT: "OK",
    HTTPStatus.BAD_REQUEST: "INVALID_ARGUMENT",
    HTTPStatus.UNAUTHORIZED: "UNAUTHENTICATED",
    HTTPStatus.FORBIDDEN: "PERMISSION_DENIED",
    HTTPStatus.NOT_FOUND: "NOT_FOUND",
    HTTPStatus.TOO_MANY_REQUESTS: "RESOURCE_EXHAUSTED",
    HTTPStatus.SERVICE_UNAVAILABLE: "UNAVAILABLE",
}


class HttpDoor(Door):
    """Each answer is as the schema describes it."""

    def post(self, who: User | str | None, path: str, body: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
        client = APIClient()
        if value := header(who):
            client.credentials(HTTP_AUTHORIZATION=value)
        response = client.post(f"/api/v1/seen/{path}", body)
        allowed(SCHEMA, f"/seen/{path}", "post", response)
        code = CODES[HTTPStatus(response.status_code)]
        found = response.json() if response.content else {}
        if code == "OK":
            return Answer(code), found
        assert list(found) in (["detail"], ["ids"], ["user_id"], ["plays"]), found
        return Answer(code, response.content.decode(), int(response.headers.get("Retry-After", 0))), {}

    def send(self, who: User | str | None, verb: str, ids: Iterable[int], user_id: int = 0) -> Answer:
        named = {"user_id": str(user_id)} if user_id else {}
        answer, found = self.post(who, verb, {"ids": list(map(str, ids)), **named})
        return answer._replace(left=list(map(int, found.get("unseen", []))))

    def send_batch(self, who: User | str | None, plays: Batch) -> Answer:
        body = [{"user_id": str(user), "ids": list(map(str, ids))} for user, ids in plays]
        answer, found = self.post(who, "plays/batch", {"plays": body})
        waits = {int(wait["user_id"]): wait["retry_after"] for wait in found.get("refused", [])}
        return answer._replace(waits=waits, unknown=list(map(int, found.get("unknown", []))))


class GrpcDoor(Door):
    def __init__(self, channel: grpc.Channel) -> None:
        stub = SeenStub(channel)
        self.calls: dict[str, tuple[Any, Any]] = {
            "plays": (stub.RecordPlays, RecordPlaysRequest),
            "issued": (stub.RecordIssued, RecordIssuedRequest),
            "filter": (stub.Filter, FilterRequest),
        }
        self.batch = stub.RecordBatch

    def call(self, who: User | str | None, call: Any, request: Any) -> tuple[Answer, Any]:
        value = header(who)
        metadata = [] if value is None else [("authorization", value)]
        try:
            return Answer("OK"), call(request, metadata=metadata, timeout=60)
        except grpc.RpcError as refusal:
            wait = int(dict(refusal.trailing_metadata()).get("retry-after", 0))
            return Answer(refusal.code().name, refusal.details(), wait), None

    def send(self, who: User | str | None, verb: str, ids: Iterable[int], user_id: int = 0) -> Answer:
        call, request = self.calls[verb]
        answer, found = self.call(who, call, request(user_id=user_id, ids=ids))
        return answer._replace(left=list(getattr(found, "unseen", [])))

    def send_batch(self, who: User | str | None, plays: Batch) -> Answer:
        request = RecordBatchRequest(plays=[RecordPlaysRequest(user_id=user, ids=ids) for user, ids in plays])
        answer, found = self.call(who, self.batch, request)
        if found is None:
            return answer
        waits = {wait.user_id: wait.retry_after for wait in found.refused}
        return answer._replace(waits=waits, unknown=list(found.unknown))


@pytest.fixture(params=["HTTP", "gRPC"])
def door(
    request: pytest.FixtureRequest,
    plays: redis.Redis,
    start: Callable[..., RpcServer],
    connect: Callable[[int], grpc.Channel],
) -> Door:
    return HttpDoor() if request.param == "HTTP" else GrpcDoor(connect(start().port))
