import os
import runpy
import ssl
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.middleware.security import SecurityMiddleware
from django.test import RequestFactory
from kombu import Connection

from runtime.environment import OptionsError
from runtime.management.commands.check_all import clean_environ

FEEDS, BROKER = "redis://feeds/0", "redis://broker/1"


def settings_of(folder: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Raises OptionsError."""
    with patch.dict(os.environ, clean_environ(folder) | environ, clear=True):
        return runpy.run_path(str(settings.BASE_DIR / "feedsite" / "settings.py"))


def refusal(folder: Path, environ: dict[str, str]) -> str:
    try:
        settings_of(folder, environ)
    except OptionsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "plays.sock?db=1"),
        ({"FEEDSITE_REDIS_URL": FEEDS}, FEEDS),
        ({"FEEDSITE_REDIS_URL": FEEDS, "FEEDSITE_BROKER_URL": BROKER}, BROKER),
        ({"FEEDSITE_REDIS_URL": FEEDS, "FEEDSITE_BROKER_URL": "amqp://broker//"}, FEEDS),
        ({"FEEDSITE_BROKER_URL": BROKER}, BROKER),
        ({"FEEDSITE_BROKER_URL": "amqp://broker//"}, "plays.sock?db=1"),
        ({"FEEDSITE_BROKER_URL": BROKER, "FEEDSITE_PLAYED_URL": "redis://plays/2"}, "redis://plays/2"),
    ],
)
def test_plays_are_where_nothing_is_evicted(tmp_path: Path, environ: dict[str, str], expected: str) -> None:
    """The feeds server may evict."""
    assert settings_of(tmp_path, environ)["PLAYED_URL"].endswith(expected)


@pytest.mark.parametrize(
    ("url", "verifies"),
    [(BROKER, False), ("rediss://broker/1", True), ("rediss://broker/1?ssl_cert_reqs=CERT_NONE", False)],
)
def test_the_certificate_of_the_broker_is_verified(tmp_path: Path, url: str, verifies: bool) -> None:
    """kombu does not verify it by default."""
    found = settings_of(tmp_path, {"FEEDSITE_BROKER_URL": url})
    asked = Connection(found["CELERY_BROKER_URL"], ssl=found["CELERY_BROKER_USE_SSL"]).ssl
    assert (bool(asked) and asked["ssl_cert_reqs"] == ssl.CERT_REQUIRED) == verifies


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "broker.sock?db=2"),
        ({"FEEDSITE_REDIS_URL": FEEDS}, FEEDS),
        ({"FEEDSITE_REDIS_URL": FEEDS, "FEEDSITE_BROKER_URL": BROKER}, BROKER),
        ({"FEEDSITE_REDIS_URL": FEEDS, "FEEDSITE_BROKER_URL": "amqp://broker//"}, FEEDS),
        ({"FEEDSITE_CACHE_URL": "redis://cache/2"}, "redis://cache/2"),
    ],
)
def test_rates_are_counted_where_nothing_is_evicted(tmp_path: Path, environ: dict[str, str], expected: str) -> None:
    assert settings_of(tmp_path, environ)["CACHE_URL"].endswith(expected)


CLUSTER = {"FEEDSITE_REDIS_URL": "redis+cluster://feeds:7000"}


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        (CLUSTER, "Set FEEDSITE_BROKER_URL to a single server"),
        (CLUSTER | {"FEEDSITE_CACHE_URL": FEEDS}, "Set FEEDSITE_BROKER_URL to a single server"),
        (
            CLUSTER | {"FEEDSITE_CACHE_URL": FEEDS, "FEEDSITE_BROKER_URL": "amqp://broker//"},
            "Set FEEDSITE_PLAYED_URL to a single server",
        ),
        ({"FEEDSITE_REDIS_URL": "redis+cluster://feeds/1"}, "a cluster has only database 0"),
        (CLUSTER | {"FEEDSITE_CACHE_URL": FEEDS, "FEEDSITE_BROKER_URL": BROKER}, ""),
        (CLUSTER | {"FEEDSITE_BROKER_URL": BROKER}, ""),
    ],
)
def test_a_cluster_is_for_feeds_only(tmp_path: Path, environ: dict[str, str], says: str) -> None:
    refused = refusal(tmp_path, environ)
    assert (not refused, says in refused) == (not says, True), refused


@pytest.mark.parametrize(
    ("environ", "believed"),
    [
        ({}, (False, None)),
        ({"FEEDSITE_HTTPS": "1"}, (True, ("feedsite.scheme", "https"))),
        ({"FEEDSITE_PROXY": "1"}, (True, ("feedsite.scheme", "https"))),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_PROXY": "0"}, (False, None)),
    ],
)
def test_facts_believed_of_a_proxy(tmp_path: Path, environ: dict[str, str], believed: tuple[Any, Any]) -> None:
    made = settings_of(tmp_path, environ)
    assert (made["PROXY"], made["SECURE_PROXY_SSL_HEADER"]) == believed


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({}, None),
        ({"FEEDSITE_HSTS_SECONDS": "60"}, None),
        ({"FEEDSITE_HTTPS": "1"}, "max-age=31536000"),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SECONDS": "3600"}, "max-age=3600"),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SECONDS": "0"}, None),
    ],
)
def test_browsers_are_told_what_was_asked_for(
    tmp_path: Path, settings: Any, environ: dict[str, str], header: str | None
) -> None:
    """Browsers remember HSTS: it cannot be taken back."""
    for name, value in settings_of(tmp_path, {"FEEDSITE_PROXY": "1"} | environ).items():
        if name.startswith("SECURE_"):
            setattr(settings, name, value)
    answer = SecurityMiddleware(lambda request: HttpResponse())(RequestFactory().get("/", secure=True))
    assert answer.headers.get("Strict-Transport-Security") == header
