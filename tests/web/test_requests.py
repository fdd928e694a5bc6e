import json
import tracemalloc

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client, RequestFactory
from prometheus_client.parser import text_string_to_metric_families

from runtime import metrics
from runtime.afterwards import unfinished
from storage.queue import QUEUES
from tests.support.api import API
from tests.support.factories import UserFactory
from tests.support.rabbits import IS_WANTED
from tests.support.web import tokens_of
from tests.support.workers import queue_server
from timeline.models import Delivery
from web.requests import match_of

pytestmark = pytest.mark.django_db


def counted(name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.skipif(IS_WANTED, reason="asks a Valkey for its queue")
@pytest.mark.django_db(transaction=True)
def test_a_task_leaves_once_the_request_is_answered() -> None:
    """A server closes a response when it has sent it. The post is in homes before."""
    body = json.dumps({"content": {"text": "words"}}).encode()
    environ = RequestFactory().generic("POST", f"{API}/items", body, "application/json").environ
    environ["HTTP_AUTHORIZATION"] = f"Token {tokens_of([UserFactory()])[0]}"
    statuses: list[str] = []
    response = WSGIHandler()(environ, lambda status, *more: statuses.append(status))
    assert b"".join(response).startswith(b'{"id":')
    assert statuses == ["201 Created"]
    assert Delivery.objects.count() == 1
    assert queue_server().llen(QUEUES[0]) == 0
    response.close()
    assert queue_server().llen(QUEUES[0]) == 1
    assert not unfinished


@pytest.mark.slow
def test_requests_are_counted_by_route_method_and_status(client: Client) -> None:
    before = counted("feedsite_http_seconds_count")
    user = UserFactory()
    client.get(f"/@{user.username}")
    client.get("/@nobody-1")
    client.get("/@nobody-2")
    client.get("/no/such/1")
    client.get("/no/such/2")
    client.get("/api/v1/no-such")
    client.get("/api/v1/timeline/home")
    client.get("/admin/login/")
    client.get("/static/no-such.css")
    client.generic("BREW", "/healthz")
    after = counted("feedsite_http_seconds_count")
    grown = {labels: value - before.get(labels, 0) for labels, value in after.items() if value != before.get(labels)}
    assert {tuple(sorted(labels)): value for labels, value in grown.items()} == {
        tuple(sorted(labels)): value
        for labels, value in {
            ("@<str:username>", "GET", "200"): 1,
            ("@<str:username>", "GET", "404"): 2,
            ("(none)", "GET", "404"): 3,
            ("api/v1/timeline/home", "GET", "401"): 1,
            ("admin/", "GET", "200"): 1,
            ("/static/", "GET", "404"): 1,
            ("healthz", "other", "405"): 1,
        }.items()
    }


def test_a_known_address_takes_little_memory() -> None:
    """Django keeps with each match the hundreds of patterns that it tried before."""
    match_of("/items/1", settings.ROOT_URLCONF)  # imports the views
    tracemalloc.start()
    try:
        kept = [match_of(f"/items/{number}", settings.ROOT_URLCONF) for number in range(2, 102)]
        assert tracemalloc.get_traced_memory()[0] < 3_000 * len(kept)
    finally:
        tracemalloc.stop()
