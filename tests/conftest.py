import gc
import math
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.contrib import auth
from django.db import connection
from django.db.backends.postgresql.creation import DatabaseCreation
from django.http import HttpRequest
from django.template.backends.jinja2 import Template
from django.test import Client, TransactionTestCase
from django.test.client import ClientMixin
from django.test.signals import template_rendered
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from accounts.about import site
from accounts.levels import policy
from accounts.models import User
from accounts.signing_in.sessions import SessionStore
from items.pages import open_pages
from seen import played, redis_store
from seen.migration import old
from seen.usage import usage
from storage import connections, events, postgresql
from tests.support import migrated, pooler, servers
from tests.support.clusters import ValkeyCluster, feeds_on
from tests.support.emptying import empty_tables
from tests.support.far_servers import far, names  # noqa: F401
from tests.support.members import ann, api, author, bob, other, owner, reader  # noqa: F401
from tests.support.push_services import prompt, service  # noqa: F401
from tests.support.workers import empty_queue
from timeline import truth
from web import rates

# The machine's speed decides how long an example takes.
hypothesis_settings.register_profile("feedsite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("feedsite")


def pytest_configure(config: pytest.Config) -> None:
    # gRPC's fork handlers can crash programs that tests start while a channel is open.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # slow by design otherwise
    # Never read again, whatever the clock says.
    site.SECONDS = math.inf
    # Test users are new and post fast.
    settings.MODERATION_LINK_AGE = settings.MODERATION_REPORTER_AGE = timedelta(0)
    settings.MODERATION_BURST = settings.MODERATION_SAME_TEXT = 0
    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.LINK_CARDS = False  # tests of link cards start their own servers
    settings.STRICT_TEMPLATES = True
    Template.render = told(Template.render)  # type: ignore[method-assign]
    site.site_copy.set(site.Site())
    TransactionTestCase._fixture_teardown = lambda case: empty_tables()  # type: ignore[attr-defined]
    migrated.install(config)
    gc.disable()  # until all modules are imported
    DatabaseCreation._destroy_test_db = drop_database
    ClientMixin._login = log_in


def told(render: Callable[..., str]) -> Callable[..., str]:

    def rendered(template: Template, context: dict[str, Any] | None = None, request: Any = None) -> str:
        shown = {} if context is None else context
        html = render(template, shown, request)
        template_rendered.send(sender=template, template=template, context=shown)
        return html

    return rendered


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if pooler.IS_WANTED:
        for item in items:
            if item.get_closest_marker("sessions"):
                item.add_marker(pytest.mark.skip(reason="a pooler lends the sessions"))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def drop_database(creation: DatabaseCreation, name: str, verbosity: int) -> None:
    """A thread or a dying process of a test may still have a session."""
    with creation._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE {creation.connection.ops.quote_name(name)} WITH (FORCE)")


def log_in(client: Client, user: User, backend: str | None = None) -> None:
    """As Django does, but without writing an empty session first, which the login replaces."""
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    request = HttpRequest()
    request.session = SessionStore(cookie.value if cookie else None)
    auth.login(request, user, backend)
    request.session.save()
    client._set_login_cookies(request)


@pytest.fixture(scope="session", autouse=True)
def _patient() -> None:
    postgresql.set_process_timeout(math.inf)


@pytest.fixture
def feeds() -> redis.Redis:
    return connections.feeds_for_tasks()


@pytest.fixture
def feeds_server() -> servers.Valkey:
    return servers.servers.feeds


@pytest.fixture
def broker_server() -> servers.Valkey | servers.Rabbit:
    return servers.servers.broker


@pytest.fixture
def plays_server() -> servers.Valkey:
    return servers.servers.plays


@pytest.fixture
def push_level(db: None) -> Iterator[Callable[[int], None]]:

    def change(level: int) -> None:
        assert policy.change(push_level=level), "it is another than before"

    yield change
    policy.change(**policy.initial_policy()._asdict())
    truth.expected.forget()


@pytest.fixture
def inbox_from(db: None) -> Iterator[Callable[[int], None]]:

    def change(followees: int) -> None:
        assert policy.change(inbox_from=followees), "it is another than before"

    yield change
    policy.change(**policy.initial_policy()._asdict())
    truth.expected.forget()


@pytest.fixture(autouse=True)
def _ids_in_order(request: pytest.FixtureRequest, django_db_blocker: Any) -> None:
    """Restart the sequence of ids before it wraps at 4,095. Enough for tests of up to 2,000 rows."""
    if request.node.get_closest_marker("django_db") or {"db", "transactional_db"}.intersection(request.fixturenames):
        request.getfixturevalue("django_db_setup")
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT setval('feedsite_item_sequence', 0, false) FROM feedsite_item_sequence WHERE last_value > 2048"
            )


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    events.gaps.forget()
    connections.feeds_breaker.reset()
    connections.broker_breaker.reset()
    for breaker in (connections.cache_breaker, played.breaker, old.breaker, redis_store.breaker):
        breaker.reset()
    rates.own.clear()
    truth.expected.forget()
    site.site_copy.set(site.Site())
    open_pages.near.clear()
    usage.forget()
    connections.feeds_for_tasks().flushall()
    played.client().flushdb()
    empty_queue()


@pytest.fixture
def media_folder(tmp_path: Path, settings: Any) -> Path:
    settings.MEDIA_DIR = tmp_path / "media"
    settings.MEDIA_INCOMING = settings.MEDIA_DIR / "incoming"
    settings.MEDIA_WAIT_SECONDS = settings.MEDIA_SECONDS = 60.0
    return tmp_path / "media"


@pytest.fixture(scope="session")
def valkey_cluster() -> Iterator[ValkeyCluster]:
    """tests.support.scheduling runs its tests in one process."""
    cluster = ValkeyCluster(3, 1)
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(valkey_cluster: ValkeyCluster) -> Iterator[ValkeyCluster]:
    """Whole and empty, as this process's feeds server."""
    valkey_cluster.mend()
    with feeds_on(valkey_cluster):
        connections.feeds_for_tasks().flushall()
        yield valkey_cluster
