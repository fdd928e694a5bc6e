"""Fixtures that every test may use; the servers behind them come from tests/servers.py."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
from django.conf import settings

from feedsite import connections, rates
from seen import played
from tests import servers


def pytest_configure() -> None:
    # gRPC's handlers around a fork can crash the servers and programs that tests start while a channel is open.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # Tests need no collected and hashed static files.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # slow by design otherwise
    # Their people have just signed up, and say much in little time; tests of moderation set rules of their own.
    settings.MODERATION_LINK_AGE = timedelta(0)
    settings.MODERATION_BURST = settings.MODERATION_SAME_TEXT = 0
    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}


@pytest.fixture
def feeds() -> redis.Redis:
    """A client of the feeds server, which is empty."""
    return connections.feeds_for_tasks()


@pytest.fixture
def feeds_server() -> servers.Valkey:
    """The feeds server itself, for tests that freeze, kill or restart it."""
    return servers.servers.feeds


@pytest.fixture
def broker_server() -> servers.Valkey:
    return servers.servers.broker


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Every test begins with empty feeds and cache, and with no server held to be down."""
    yield
    connections.feeds_breaker.reset()
    connections.broker_breaker.reset()
    rates.breaker.reset()
    connections.feeds_for_tasks().flushall()
    played.client().flushdb()
