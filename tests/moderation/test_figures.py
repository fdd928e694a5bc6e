"""The public page of yearly figures: off by default, for strangers too, and unchanged by purges."""

from collections.abc import Iterator
from datetime import UTC, date, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.about.site import Site, site_copy
from accounts.models import User
from moderation import actions, appeals, figures, reports, senders
from moderation.decisions import Grounds, decisions_about
from moderation.models import Case, DailyFigures, Report
from tests.support.cases import Say, report
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

ADDRESS = "/about/moderation"


@pytest.fixture
def published() -> Iterator[None]:
    site_copy.set(Site(shows_figures=True))
    yield
    site_copy.set(Site())


def counts() -> list[int]:
    return [count for _label, count in figures.yearly()[0][1]]


def test_the_page_is_off_until_an_admin_turns_it_on(client: Client) -> None:
    assert client.get(ADDRESS).status_code == 404
    assert ADDRESS not in client.get("/about").content.decode()


def test_strangers_read_it_even_on_a_site_for_members(client: Client, published: None) -> None:
    site_copy.set(Site(shows_figures=True, looking="members"))
    DailyFigures.objects.create(day=date(2019, 5, 1), reports=7)
    year = timezone.now().astimezone(UTC).year
    DailyFigures.objects.create(day=date(year - 1, 12, 31), reports=1_200, appeals=3)
    DailyFigures.objects.create(day=date(year - 1, 1, 1), reports=34)
    assert f'href="{ADDRESS}"' in client.get("/about").content.decode()
    answers = [client.get(ADDRESS) for _time in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["Cache-Control"] for answer in answers} == {"public, max-age=0, s-maxage=10"}
    page = answers[-1].content.decode()
    assert "1,234" in page
    assert page.index(f">{year}<") < page.index(f">{year - 1}<")
    assert client.post(ADDRESS).status_code == 405
    site_copy.set(Site(looking="members"))
    assert client.get(ADDRESS).status_code == 404, "not from the cache either"


def test_it_counts_what_was_received_and_decided(say: Say, sender: User, moderator: User) -> None:
    kept, removed = say("words"), say("other words")
    report(kept, 2)
    reports.report_account(account=sender, reporter=UserFactory.create(), reason="spam")
    actions.approve_and_warn(case=Case.objects.get(item=kept), by=moderator, grounds=Grounds("Be kind."))
    actions.reject(case=Case.objects.get(item=None), by=moderator)
    actions.reject_by_hand(item_id=removed.pk, by=moderator)
    senders.limit(user=sender, by=moderator)
    senders.list_sender(user=UserFactory.create(), kind="white", by=moderator)
    for decision, accepts in zip(decisions_about(sender)[:2], (True, False), strict=True):
        row = appeals.appeal(user=sender, decision_id=decision.pk, text="No.")
        appeals.answer(appeal_id=row.pk, by=moderator, accepts=accepts)
    senders.ban(user=sender, by=moderator)
    assert figures.count_days() == 1
    assert counts() == [3, 1, 1, 1, 1, 2, 1]
    assert len(counts()) == len(figures.FIGURES)


def test_past_figures_stay_when_rows_go(say: Say) -> None:
    (reporter, _other) = report(say("words"), 2)
    yesterday = timezone.now() - timedelta(days=1)
    Report.objects.filter(reporter=reporter).update(created_at=yesterday)
    assert figures.count_days() == 2
    assert reports.forget_reporter(user=reporter, limit=10) == 1
    report(say("more"), 1)
    figures.count_days()
    assert dict(DailyFigures.objects.values_list("day", "reports")) == {
        yesterday.astimezone(UTC).date(): 1,
        timezone.now().astimezone(UTC).date(): 2,
    }
