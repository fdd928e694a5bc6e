"""The settings by the environment, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.management.commands.check_all import clean_environ

FEEDS, BROKER = "redis://feeds/0", "redis://broker/1"


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
    """The feeds server forgets what it likes; it is taken only where no other Redis is named."""
    code = "from django.conf import settings; print(settings.PLAYED_URL)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path) | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip().endswith(expected)


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
    code = "from django.conf import settings; print(settings.CACHE_URL)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path) | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip().endswith(expected)


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
    run = subprocess.run(
        [sys.executable, "-c", "from django.conf import settings; settings.REDIS_URL"],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path) | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"} | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode == 0, says in run.stderr) == (not says, True), run.stderr


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({}, "(False, None)"),
        ({"FEEDSITE_HTTPS": "1"}, "(True, ('feedsite.scheme', 'https'))"),
        ({"FEEDSITE_PROXY": "1"}, "(True, ('feedsite.scheme', 'https'))"),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_PROXY": "0"}, "(False, None)"),
        ({"FEEDSITE_PROXIES": "0"}, "(False, None)"),
        ({"FEEDSITE_PROXIES": "1"}, "FEEDSITE_PROXIES is not read any more"),
    ],
)
def test_facts_believed_of_a_proxy(tmp_path: Path, environ: dict[str, str], says: str) -> None:
    code = "from django.conf import settings; print((settings.PROXY, settings.SECURE_PROXY_SSL_HEADER))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path) | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"} | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert says in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({}, None),
        ({"FEEDSITE_HSTS_SECONDS": "60"}, None),
        ({"FEEDSITE_HTTPS": "1"}, "max-age=31536000"),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SECONDS": "3600"}, "max-age=3600"),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SECONDS": "0"}, None),
        ({"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SUBDOMAINS": "1"}, "max-age=31536000; includeSubDomains"),
        (
            {"FEEDSITE_HTTPS": "1", "FEEDSITE_HSTS_SUBDOMAINS": "1", "FEEDSITE_HSTS_PRELOAD": "1"},
            "max-age=31536000; includeSubDomains; preload",
        ),
    ],
)
def test_browsers_are_told_what_was_asked_for(tmp_path: Path, environ: dict[str, str], header: str | None) -> None:
    """A browser that has heard of HTTPS keeps to it: the header cannot be taken back."""
    code = (
        "import django; django.setup(); from django.http import HttpResponse; from django.test import RequestFactory; "
        "from django.middleware.security import SecurityMiddleware; "
        "page = SecurityMiddleware(lambda request: HttpResponse()); "
        "print(page(RequestFactory().get('/', secure=True)).headers.get('Strict-Transport-Security'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path) | {"DJANGO_SETTINGS_MODULE": "feedsite.settings", "FEEDSITE_PROXY": "1"} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == str(header)
