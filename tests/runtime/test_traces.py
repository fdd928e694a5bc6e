"""Traces, as a collector gets them by OTLP: who called whom, and nothing of what members write."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from oauth2_provider.models import AccessToken
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from rest_framework.test import APIClient

from accounts.actions import issue_token
from items.models import Item
from runtime import traces
from runtime.embedded import wait_for
from storage import connections
from tests.support.collectors import Collector, collecting
from tests.support.factories import UserFactory
from tests.support.sites import Worker

MARKER = "xyzzymarker"
STRANGER = "00-11111111111111111111111111111111-2222222222222222-01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, and this process tracing to it."""
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        traces.prepare(is_wanted=True)
        connections.trace_statements(connection)
        try:
            yield collector
        finally:
            connection.execute_wrappers.remove(connections._trace_statement)
            if traces._tracing is not None and traces._tracing.provider is not None:
                traces._tracing.provider.shutdown()
            traces._tracing = None


def flush() -> None:
    """Send what waits, which is sent by itself within seconds; before the first span there is nothing that could."""
    assert traces._tracing is not None
    if traces._tracing.provider is not None:
        traces._tracing.provider.force_flush()


def sent(collector: Collector) -> list[Span]:
    """All spans so far."""
    flush()
    return collector.spans


def said(span: Span) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@pytest.mark.django_db
def test_a_request_is_a_trace_of_what_it_asks(collector: Collector, client: Client) -> None:
    client.force_login(UserFactory())
    connections.fetch("SELECT 1")
    assert sent(collector) == [], "calls of no request are no traces"
    assert client.get("/", headers={"traceparent": STRANGER}).status_code == 200
    spans = sent(collector)
    (page,) = (span for span in spans if span.kind == Span.SPAN_KIND_SERVER)
    assert page.name == "GET /"
    assert page.parent_span_id == b""
    assert page.trace_id.hex() not in STRANGER
    assert said(page) == {
        "http.request.method": "GET",
        "http.route": "/",
        "http.response.status_code": 200,
        "feedsite.source": "sql",
    }
    inner = [span for span in spans if span is not page]
    assert {span.trace_id for span in inner} == {page.trace_id}
    names = {span.name for span in inner}
    assert {"postgresql SELECT accounts_user", "redis EVALSHA"} <= names, names
    resource = {
        each.key: each.value.string_value for each in collector.requests[0].resource_spans[0].resource.attributes
    }
    assert resource == {"service.name": "feedsite", "service.version": "0.2.0"}


@pytest.mark.slow
@pytest.mark.django_db
def test_nothing_of_a_member_is_in_a_trace(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    """Texts, names, tokens, addresses, headers and paths, also where a request fails."""
    user = UserFactory(username=f"user{MARKER}", display_name=MARKER, email=f"{MARKER}@example.org")
    token = issue_token(user=user, user_agent=MARKER, ip="203.0.113.77")
    api = APIClient(REMOTE_ADDR="203.0.113.77", HTTP_USER_AGENT=MARKER, HTTP_TRACESTATE=f"a={MARKER}")
    api.credentials(HTTP_AUTHORIZATION=f"Token {token}", HTTP_X_REQUEST_ID=MARKER, HTTP_BAGGAGE=f"a={MARKER}")
    made = api.post("/api/v1/items", {"content": {"text": f"{MARKER} #{MARKER}"}, "title": MARKER}, format="json")
    assert made.status_code == 201, made.content
    api.get(f"/api/v1/users/{user.username}")
    api.get(f"/search?q={MARKER}")
    api.get(f"/{MARKER}")
    api.generic(MARKER.upper(), "/")
    with pytest.raises(ValueError, match=MARKER), traces.request():
        raise ValueError(MARKER)
    spans = sent(collector)
    assert len(spans) > 10
    assert any(said(span).get("error.type") == "ValueError" for span in spans)
    digests = set(AccessToken.objects.values_list("token_checksum", flat=True))
    whole = b"".join(collector.bodies).lower()
    for secret in (MARKER, token, "203.0.113.77", "127.0.0.1", made.json()["id"], *digests):
        assert secret.lower().encode() not in whole, secret


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_task_is_in_the_trace_of_its_request(collector: Collector, tmp_path: Any) -> None:
    """By a real worker, in a process that it forked; a follower's window is filled in the post's trace."""
    user = UserFactory()
    api = APIClient()
    api.force_authenticate(user)
    quick = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    worker = Worker(tmp_path, FEEDSITE_TRACES="1", **quick)
    worker.start()
    try:
        assert api.post("/api/v1/items", {"content": {"text": "hello"}}, format="json").status_code == 201
        flush()

        def fan_outs() -> list[Span]:
            """But for those that the worker's sweep may send besides, on a busy machine."""
            every = [span for span in collector.spans if span.name == "task timeline.fan_out"]
            return [span for span in every if span.parent_span_id]

        assert wait_for(lambda: bool(fan_outs()), 60)
        spans = {span.span_id: span for span in collector.spans}
        task = fan_outs()[0]
        sender = spans[task.parent_span_id]
        assert (sender.trace_id, task.kind) == (task.trace_id, Span.SPAN_KIND_CONSUMER)
        assert sender.name == "POST api/v1/items"
        assert {span.name.split()[0] for span in spans.values() if span.parent_span_id == task.span_id} >= {
            "postgresql"
        }
        assert Item.objects.filter(delivery=None).count() == 1
    finally:
        worker.kill()


def test_what_tasks_are_sent_is_a_context_or_nothing(collector: Collector) -> None:
    for given in (None, 7, "", "nonsense", STRANGER.replace("1", "x"), [STRANGER]):
        with traces.task("some.task", given):
            pass
    assert [(span.name, span.parent_span_id) for span in sent(collector)] == [("task some.task", b"")] * 6


def test_a_wrong_variable_costs_no_request(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, client: Client
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    assert client.get("/healthz").status_code == 200
    assert "traces cannot be sent" in caplog.text
    assert not traces.is_on()


@pytest.mark.slow
def test_no_request_waits_for_a_collector_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
    collector.answers.clear()

    def ask() -> None:
        for _ in range(5_000):  # more than the queue holds
            with traces.request():
                pass

    requests = threading.Thread(target=ask)
    requests.start()
    try:
        assert wait_for(lambda: bool(collector.bodies), 30)
        requests.join(50)
        assert not requests.is_alive()
        assert len(collector.bodies) == 1, "it was not answered while the requests were made"
    finally:
        collector.answers.set()
        requests.join()


@pytest.mark.long
def test_without_the_extra_the_site_goes_on_and_says_what_to_install() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None; import django; django.setup(); from runtime import traces"
    code += "; assert not traces.is_on(); from storage.connections import fetch"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"FEEDSITE_TRACES": "1", "DJANGO_SETTINGS_MODULE": "feedsite.settings"},
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert [line for line in found.stderr.splitlines() if "requirements/traces.lock" in line]


def test_off_there_is_nothing(client: Client) -> None:
    """Spans are one object that does nothing, and messages have no header."""
    assert traces.span("x") is traces.request() is traces.task("x", STRANGER) is traces.OFF
    headers: dict[str, Any] = {}
    traces.hand_on(headers)
    assert headers == {}
    assert traces.bound(len) is len


def test_statements_are_named_without_their_values() -> None:
    assert traces.summary("SELECT 'secret' FROM secret") == "SELECT"
    assert traces.summary('\n UPDATE "items_item" SET title = %s') == "UPDATE items_item"
    assert traces.summary("WITH a AS (SELECT FROM b) INSERT INTO items_like VALUES (1)") == "WITH items_like"
    assert traces.summary("") == ""
