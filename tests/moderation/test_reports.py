from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from items import actions as items
from items.models import Item, Status
from items.text import ContentError
from moderation import actions, reports
from moderation.export import files
from moderation.models import Case, CaseSource, CaseState, Decision, Report, SenderKind, SenderRule
from tests.support.at_once import at_once
from tests.support.cases import Say, log, report, status
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_a_report_opens_a_case_and_others_join(say: Say) -> None:
    item = say()
    reporters = report(item, 2, text="look")
    case = Case.objects.get()
    assert (case.item, case.source, case.state) == (item, CaseSource.REPORT, CaseState.OPEN)
    assert list(case.reports.order_by("pk").values_list("reporter", "text")) == [(one.pk, "look") for one in reporters]
    assert not reports.report(item=item, reporter=reporters[0], reason="abuse")
    assert Report.objects.count() == 2
    assert status(item) == Status.PUBLISHED


def test_users_cannot_report_themselves(say: Say, sender: User) -> None:
    with pytest.raises(reports.OwnItemError):
        reports.report(item=say(), reporter=sender, reason="spam")
    assert not Case.objects.exists()


def test_a_report_of_a_repost_is_one_of_the_original(say: Say) -> None:
    original = say()
    repost, _ = items.repost(sender=UserFactory.create(), item=original)
    report(repost)
    assert Report.objects.get().item == original


def test_enough_reports_put_an_item_back_into_review(say: Say) -> None:
    item = say()
    report(item, 2)
    assert status(item) == Status.PUBLISHED
    report(item)
    assert status(item) == Status.IN_REVIEW
    assert Case.objects.get().reasons == ["reports: from 3 readers"]
    assert log() == [("hold", None)]


@pytest.mark.slow
def test_accounts_that_were_just_made_open_a_case_and_hide_nothing(say: Say, settings: Settings) -> None:
    """Otherwise three new accounts could hide anybody's post."""
    settings.MODERATION_REPORTER_AGE = timedelta(days=3)
    item = say()
    report(item, 5)
    assert status(item) == Status.PUBLISHED
    assert Case.objects.get().state == CaseState.OPEN
    User.objects.filter(pk__in=Report.objects.values("reporter")[:2]).update(
        date_joined=timezone.now() - timedelta(days=4)
    )
    known = UserFactory.create(date_joined=timezone.now() - timedelta(days=4))
    reports.report(item=item, reporter=known, reason="spam")
    assert status(item) == Status.IN_REVIEW


def test_links_that_a_young_account_adds_later_are_refused(say: Say, sender: User, settings: Settings) -> None:
    """The public text stays. A private item that becomes public is held as usual."""
    settings.MODERATION_LINK_AGE = timedelta(days=3)
    item = say()
    User.objects.filter(pk=sender.pk).update(date_joined=timezone.now())
    with pytest.raises(ContentError):
        items.edit(item=item, content={"text": "see https://example.org"})
    assert status(item) == Status.PUBLISHED
    assert Item.objects.get(pk=item.pk).text != "see https://example.org"
    private = say(visibility="self")
    items.edit(item=private, content={"text": "see https://example.org"})
    items.change_visibility(item=private, visibility="public")
    assert status(private) == Status.IN_REVIEW


def test_what_a_deleted_account_said_is_not_published_again(say: Say, sender: User, moderator: User) -> None:
    held, deleted = say(), say()
    items.hold(item=held, reasons=["x"])
    items.delete(item=deleted)
    User.objects.filter(pk=sender.pk).update(is_active=False, deleted_at=timezone.now())
    assert not items.restore(item=deleted)
    assert not items.approve(item=held)
    assert {status(held), status(deleted)} == {Status.IN_REVIEW, Status.DELETED}


@pytest.mark.parametrize("who", ["white", "staff", "off"])
def test_reports_alone_do_not_hide_everything(say: Say, sender: User, settings: Settings, who: str) -> None:
    if who == "white":
        SenderRule.objects.create(user=sender, kind=SenderKind.WHITE)
    elif who == "staff":
        User.objects.filter(pk=sender.pk).update(is_staff=True)
    else:
        settings.MODERATION_REPORTS = 0
    item = say()
    report(item, 4)
    assert status(item) == Status.PUBLISHED
    assert Case.objects.get().state == CaseState.OPEN


@pytest.mark.slow
def test_what_a_moderator_left_published_stays_so_until_it_is_edited(say: Say, moderator: User) -> None:
    item = say()
    report(item, 2)
    actions.approve(case=Case.objects.get(), by=moderator)
    assert status(item) == Status.PUBLISHED
    report(item, 3)
    assert status(item) == Status.PUBLISHED
    assert Case.objects.filter(state=CaseState.OPEN).count() == 1
    items.edit(item=item, content={"text": "what nobody approved"})
    report(item)
    assert status(item) == Status.IN_REVIEW


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_reports_at_once_are_counted_and_share_a_case(say: Say) -> None:
    item = say()
    reporters = UserFactory.create_batch(6)
    calls = [lambda who=who: reports.report(item=item, reporter=who, reason="spam") for who in reporters]
    assert at_once(*calls) == [True] * 6
    assert Case.objects.get().reports.count() == 6
    assert status(item) == Status.IN_REVIEW
    assert Decision.objects.count() == 1


def test_deleted_accounts_leave_no_reports(say: Say) -> None:
    item = say()
    one, other = report(item, 2)
    assert reports.forget_reporter(user=one, limit=10) == 1
    assert reports.forget_reporter(user=one, limit=10) == 0
    assert Report.objects.get().reporter == other
    assert Case.objects.get().state == CaseState.OPEN


def test_people_can_take_along_what_they_reported(say: Say) -> None:
    item = say()
    one, _ = report(item, 2, text="rude 中文")
    file, _decisions = files(one)
    (row,) = file.rows
    assert (file.name, row.item_id, row.reason, row.text) == ("reports.jsonl", str(item.pk), "spam", "rude 中文")
