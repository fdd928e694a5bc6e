r"""The dozen statements that a person reads stand whole in tests/statements/, as PostgreSQL gets them.

`TEST_GOLDEN=write pytest tests/architecture/test_statements.py` rewrites the files. To see a plan, type `EXPLAIN
(GENERIC_PLAN)` in psql, then `\i tests/statements/home.sql` and `;`. No parameter needs a value.
"""

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from discover.postgres import PostgresRecall
from items.search import search
from items.search.query import parse
from live import actions as live
from live.feed import live_page
from notifications import bells
from notifications.feed import notifications_page, unread_counts
from relations import actions as relations
from storage.events import Listener, Position, Published
from storage.ids import NO_BOUND
from stream import news
from tests.support.factories import UserFactory, say
from tests.support.statements import as_sent, statements
from timeline import fanout, oracle, outbox, pull, truth
from timeline.senders import Scope

FOLDER = settings.BASE_DIR / "tests" / "statements"


class Site:
    def __init__(self) -> None:
        self.reader, self.sender = UserFactory(username="reader"), UserFactory(username="sender")
        for follower, followee in ((self.reader, self.sender), (self.sender, self.reader)):
            relations.follow(follower=follower, followee=followee, bell=follower == self.reader)
        self.scope, self.post = Scope(self.reader.pk), say(self.sender, "some words @reader").pk
        now = timezone.now()
        live.create(host=self.sender, title="soon", starts_at=now + timedelta(hours=1), now=now)


CALLS: dict[str, Callable[[Site], object]] = {
    "home": lambda site: truth.verify(site.scope, [], [], before=NO_BOUND, count=20, pushes=0),
    "home-verified": lambda site: truth.fetch_items(site.scope, [site.post]),
    "home-pulled": lambda site: pull.pull_bodies(site.scope, below=NO_BOUND, count=9, bodies=9),
    "inbox": lambda site: pull.pull_entries(site.reader.pk, 100),
    "outbox": lambda site: outbox.pull(site.sender.pk, 100),
    "fan-out": lambda site: fanout.fan_out(site.post),
    "oracle": lambda site: oracle.entry_ids(site.reader.pk),
    "stream": lambda site: news.news_for(
        [Listener(reader=site.reader.pk, item=None, session=None)], [(Position(1, 1), Published(site.post))]
    ),
    "search": lambda site: search.search_items(parse("words"), site.reader),
    "notifications": lambda site: notifications_page(site.reader),
    "bells": lambda site: bells.ring(site.post),
    "counts": lambda site: unread_counts([site.reader.pk]),
    "discover": lambda site: PostgresRecall().candidates(site.reader, count=9, now=timezone.now()),
    "live": lambda site: live_page(site.reader, now=timezone.now()),
}
"""File name, and the call. The longest statement that it sends is in the file."""


def sent(site: Site) -> dict[str, str]:
    found = {}
    for name, call in CALLS.items():
        with statements() as seen:
            call(site)
        found[name] = max(map(as_sent, seen), key=lambda text: text.count("\n"))
    return found


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_statements_stand_in_files() -> None:
    found = sent(Site())
    if os.environ.get("TEST_GOLDEN") == "write":
        for path in FOLDER.glob("*.sql"):
            path.unlink()
        for name, text in found.items():
            (FOLDER / f"{name}.sql").write_text(text)
    kept = {path.stem: path.read_text() for path in FOLDER.glob("*.sql")}
    changed = sorted(name for name in found | kept if found.get(name) != kept.get(name))
    assert changed == [], "write the files anew (see the docstring of this module) and read what git diff says"
    connection.ensure_connection()
    for text in found.values():
        connection.connection.execute(f"EXPLAIN (GENERIC_PLAN) {text}".encode())
