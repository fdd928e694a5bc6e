"""The OpenAPI document of Mastodon's API: whole, valid, and what the site answers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from clientapi.errors import MissingView
from clientapi.operations import TABLE
from items import actions as items
from relations import actions as relations
from tests.support.addresses import client_patterns
from tests.support.clients import token_of
from tests.support.effort import EVERYTHING, tries
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

METHODS = ("get", "post", "put", "patch", "delete")
STREAMS = {"api/v1/streaming", "api/v1/streaming/", "api/v1/streaming/<path:path>"}
"""Addresses that answer with event streams and sockets, which the document says are not in it."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    response = Client().get("/api/schema/mastodon")
    assert (response.status_code, response["Content-Type"]) == (200, "application/vnd.oai.openapi+json")
    found: dict[str, Any] = json.loads(response.content)
    return found


def served() -> Iterator[tuple[str, str]]:
    """Every method of every address of the API."""
    for prefix, pattern in client_patterns:
        route, view = prefix + str(pattern.pattern), getattr(pattern.callback, "cls", None)
        if route.startswith("api/v") and view is not MissingView and route not in STREAMS:
            yield from ((route, method) for method in METHODS if hasattr(view, method))


def test_every_method_of_every_address_is_in_it(document: dict[str, Any]) -> None:
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert described == {("/" + re.sub(r"<str:(\w+)>", r"{\1}", route), method) for route, method in served()}
    assert set(TABLE) == {f"{method} {route.removeprefix('api/')}" for route, method in served()}
    names = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))


# Rules that no schema can say: a text must hold something, no user follows themself, another's medium, and the like.
RULES = """
[generation]
allow-x00 = false

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 422]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 413, 415, 422, 429]
"""

FILES = "/(media(/[^/]+)?|update_credentials)$"
"""Addresses of forms with files, for which tests/schema/test_schemathesis.py sends pictures to the same functions."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.django_db(transaction=True)
def test_the_site_keeps_to_it(live_server: Any, settings: Any, tmp_path: Path) -> None:
    settings.RATE_SCALE = 1e6
    user, writer = UserFactory.create(username="user"), UserFactory.create(username="writer")
    relations.follow(follower=user, followee=writer)
    items.publish(sender=writer, content={"text": "words"})
    config = tmp_path / "schemathesis.toml"
    config.write_text(RULES)
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run"]
    command += [f"{live_server.url}/api/schema/mastodon", "--url", live_server.url, "--checks", "all"]
    command += ["--header", f"Authorization: Bearer {token_of(user)}", "--max-examples", str(tries(1, 10))]
    # Every edge of every parameter is 4,000 calls.
    command += ["--phases", "examples,coverage,fuzzing,stateful" if EVERYTHING else "fuzzing"]
    command += ["--generation-deterministic", "--max-redirects", "0", "--request-timeout", "30"]
    command += ["--exclude-path-regex", FILES, "--workers", "1" if EVERYTHING else "2"]
    command += ["--suppress-health-check", "all", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "Selected: 0/" not in done.stdout
