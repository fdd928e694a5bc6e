import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from runtime import metrics
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def counted(name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
        if sample.name == name
    }


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
