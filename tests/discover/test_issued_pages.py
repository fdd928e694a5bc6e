from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from discover import issued_pages
from discover.issued_pages import forget_issued_pages, record_issued_pages
from discover.models import IssuedPage
from tests.support.index_reads import entries_read, old_snapshot

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = 4_000


def issue(reader: User, count: int) -> None:
    now = timezone.now()
    IssuedPage.objects.bulk_create(
        IssuedPage(user=reader, item_ids=[], reasons=[], has_more=False, issued_at=now - timedelta(seconds=number))
        for number in range(count)
    )


@pytest.mark.long
@pytest.mark.slow
def test_a_sweep_passes_what_it_has_taken_once_though_nothing_is_cleared(
    reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issued_pages, "BATCH", 50)
    issue(reader, PAGES)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE discover_issuedpage")
    before = entries_read("issued_unrecorded")
    with old_snapshot():
        assert record_issued_pages() == PAGES
        assert entries_read("issued_unrecorded") - before < 3 * PAGES
        before = entries_read("issued_at")
        assert forget_issued_pages(now=timezone.now() + timedelta(days=2)) == PAGES
        assert entries_read("issued_at") - before < 3 * PAGES


def test_pages_of_one_moment_go_though_they_fill_more_than_a_batch(
    reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issued_pages, "BATCH", 10)
    issue(reader, 35)
    IssuedPage.objects.update(issued_at=timezone.now(), is_recorded=True)
    assert forget_issued_pages(now=timezone.now() + timedelta(days=2)) == 35
