"""The verbs of moderation: cases, reports, bans, lists, and what two do at once."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from knox.models import AuthToken
from pytest_django import Settings

from accounts.actions import issue_token
from accounts.models import User
from items import actions as items
from items.models import Item, Status
from items.text import ContentError
from moderation import actions
from moderation.export import files
from moderation.models import (
    Case,
    Decision,
    Report,
    SenderKind,
    SenderRule,
    Source,
    State,
    Verb,
    WordRule,
)
from tests.support.at_once import at_once, until_one_waits
from tests.support.cases import Say
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def status(item: Item) -> str:
    return Item.objects.get(pk=item.pk).status


def report(item: Item, count: int = 1, **fields: Any) -> list[User]:
    reporters: list[User] = UserFactory.create_batch(count)
    for reporter in reporters:
        actions.report(item=item, reporter=reporter, reason="spam", **fields)
    return reporters


def log() -> list[tuple[str, str | None]]:
    return [(line.verb, line.by and line.by.username) for line in Decision.objects.order_by("pk").select_related("by")]


# --- Held items, and decisions ---------------------------------------------------------------------------
def test_a_hold_opens_a_case_and_is_logged(held: Case, spam: WordRule, caplog: pytest.LogCaptureFixture) -> None:
    assert (held.source, held.state, held.reasons) == (Source.RULE, State.OPEN, ["words: spam"])
    assert list(held.words.all()) == [spam]
    assert status(held.item) == Status.IN_REVIEW
    assert log() == [("hold", None)]


def test_an_edit_of_what_is_held_joins_its_case(held: Case, say: Say) -> None:
    WordRule.objects.create(text="eggs")
    items.edit(item=held.item, content={"text": "spam and eggs"})
    case = Case.objects.get()
    assert case.reasons == ["words: spam", "words: eggs, spam"]
    assert sorted(case.words.values_list("text", flat=True)) == ["eggs", "spam"]


def test_approval_publishes(held: Case, moderator: User) -> None:
    decided = actions.approve(case=held, by=moderator, note="harmless")
    assert (decided.state, decided.decided_by, decided.note) == (State.APPROVED, moderator, "harmless")
    item = Item.objects.get(pk=held.item_id)
    assert item.status == Status.PUBLISHED
    assert item.published_at is not None
    last = Decision.objects.latest("pk")
    assert (last.verb, last.by, last.item, last.user, last.note) == (
        "approve",
        moderator,
        item,
        item.sender,
        "harmless",
    )
    assert last.before == {"status": "in_review", "case": "open"}
    assert last.after == {"status": "published", "case": "approved"}


def test_rejection_and_its_undoing(held: Case, moderator: User) -> None:
    actions.reject(case=held, by=moderator)
    assert status(held.item) == Status.REJECTED
    with pytest.raises(actions.DecidedError):
        actions.approve(case=held, by=moderator)
    actions.approve(case=held, by=moderator, state=State.REJECTED)
    assert status(held.item) == Status.PUBLISHED
    actions.reject(case=held, by=moderator, state=State.APPROVED)
    assert status(held.item) == Status.REJECTED
    assert [verb for verb, _ in log()] == ["hold", "reject", "approve", "reject"]


def test_what_was_edited_meanwhile_is_not_approved_unseen(held: Case, moderator: User) -> None:
    seen = Item.objects.get(pk=held.item_id).modified_at
    items.edit(item=held.item, content={"text": "worse spam"})
    with pytest.raises(actions.ChangedError):
        actions.approve(case=held, by=moderator, modified_at=seen)
    assert status(held.item) == Status.IN_REVIEW
    actions.approve(case=held, by=moderator, modified_at=Item.objects.get(pk=held.item_id).modified_at)
    assert status(held.item) == Status.PUBLISHED


def test_a_deleted_item_stays_deleted(held: Case, moderator: User) -> None:
    items.delete(item=held.item)
    actions.approve(case=held, by=moderator)
    assert status(held.item) == Status.DELETED


def test_an_edited_rejected_item_comes_back_for_review(held: Case, moderator: User) -> None:
    actions.reject(case=held, by=moderator)
    items.edit(item=held.item, content={"text": "sorry"})
    assert status(held.item) == Status.IN_REVIEW
    assert Case.objects.get(state=State.OPEN).item == held.item


@pytest.mark.django_db(transaction=True)
def test_of_two_moderators_one_decides(spam: WordRule, say: Say) -> None:
    one, two = UserFactory.create(username="one"), UserFactory.create(username="two")
    for _ in range(5):
        item = say("spam")
        case = Case.objects.get(item=item)
        answers = at_once(
            lambda case=case: actions.approve(case=case, by=one), lambda case=case: actions.reject(case=case, by=two)
        )
        (late,) = [answer for answer in answers if isinstance(answer, actions.DecidedError)]
        assert Case.objects.get(pk=case.pk).state == late.case.state
        assert status(item) == (Status.PUBLISHED if late.case.state == State.APPROVED else Status.REJECTED)
        assert Decision.objects.filter(item=item).exclude(verb=Verb.HOLD).count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_edit_and_an_approval_at_once_do_not_deadlock(spam: WordRule, say: Say) -> None:
    moderator = UserFactory.create()
    for _ in range(5):
        item = say("spam")
        case = Case.objects.get(item=item)
        edit, approve = at_once(
            lambda item=item: items.edit(item=item, content={"text": "more spam"}),
            lambda case=case, item=item: actions.approve(case=case, by=moderator, modified_at=item.modified_at),
        )
        assert isinstance(edit, Item)
        assert isinstance(approve, Case | actions.ChangedError)
        assert status(item) == Status.IN_REVIEW  # approved and then edited, or edited and then not approved
        assert Case.objects.filter(item=item, state=State.OPEN).count() == 1


# --- Reports ---------------------------------------------------------------------------------------------
def test_a_report_opens_a_case_and_others_join(say: Say) -> None:
    item = say()
    reporters = report(item, 2, text="look")
    case = Case.objects.get()
    assert (case.item, case.source, case.state) == (item, Source.REPORT, State.OPEN)
    assert list(case.reports.order_by("pk").values_list("reporter", "text")) == [(one.pk, "look") for one in reporters]
    assert not actions.report(item=item, reporter=reporters[0], reason="abuse")
    assert Report.objects.count() == 2
    assert status(item) == Status.PUBLISHED


def test_users_cannot_report_themselves(say: Say, sender: User) -> None:
    with pytest.raises(actions.OwnItemError):
        actions.report(item=say(), reporter=sender, reason="spam")
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


def test_accounts_that_were_just_made_open_a_case_and_hide_nothing(say: Say, settings: Settings) -> None:
    """Three made in a minute would take anybody's words away."""
    settings.MODERATION_REPORTER_AGE = timedelta(days=3)
    item = say()
    report(item, 5)
    assert status(item) == Status.PUBLISHED
    assert Case.objects.get().state == State.OPEN
    User.objects.filter(pk__in=Report.objects.values("reporter")[:2]).update(
        date_joined=timezone.now() - timedelta(days=4)
    )
    known = UserFactory.create(date_joined=timezone.now() - timedelta(days=4))
    actions.report(item=item, reporter=known, reason="spam")
    assert status(item) == Status.IN_REVIEW


def test_links_that_a_young_account_adds_later_are_refused(say: Say, sender: User, settings: Settings) -> None:
    """What others see stays as it is; what nobody sees yet is held as ever."""
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
    assert Case.objects.get().state == State.OPEN


def test_what_a_moderator_left_published_stays_so_until_it_is_edited(say: Say, moderator: User) -> None:
    item = say()
    report(item, 2)
    actions.approve(case=Case.objects.get(), by=moderator)
    assert status(item) == Status.PUBLISHED
    report(item, 3)
    assert status(item) == Status.PUBLISHED
    assert Case.objects.filter(state=State.OPEN).count() == 1
    items.edit(item=item, content={"text": "what nobody approved"})
    report(item)
    assert status(item) == Status.IN_REVIEW


@pytest.mark.django_db(transaction=True)
def test_reports_at_once_are_counted_and_share_a_case(say: Say) -> None:
    item = say()
    reporters = UserFactory.create_batch(6)
    calls = [lambda who=who: actions.report(item=item, reporter=who, reason="spam") for who in reporters]
    assert at_once(*calls) == [True] * 6
    assert Case.objects.get().reports.count() == 6
    assert status(item) == Status.IN_REVIEW
    assert Decision.objects.count() == 1


def test_deleted_accounts_leave_no_reports(say: Say) -> None:
    item = say()
    one, other = report(item, 2)
    assert actions.forget_reporter(user=one, limit=10) == 1
    assert actions.forget_reporter(user=one, limit=10) == 0
    assert Report.objects.get().reporter == other
    assert Case.objects.get().state == State.OPEN


def test_people_can_take_along_what_they_reported(say: Say) -> None:
    item = say()
    one, _ = report(item, 2, text="rude 中文")
    (file,) = files(one)
    (row,) = file.rows
    assert (file.name, row.item_id, row.reason, row.text) == ("reports.jsonl", str(item.pk), "spam", "rude 中文")


# --- Senders ---------------------------------------------------------------------------------------------
def test_a_ban_and_its_end(held: Case, sender: User, moderator: User) -> None:
    issue_token(user=sender)
    actions.reject_and_ban(case=held, by=moderator, note="enough")
    sender.refresh_from_db()
    assert not sender.is_active
    assert not AuthToken.objects.filter(user=sender).exists()
    assert SenderRule.objects.get(user=sender).kind == SenderKind.BAN
    assert status(held.item) == Status.REJECTED
    assert [verb for verb, _ in log()] == ["hold", "reject", "ban"]

    assert actions.unban(user=sender, by=moderator)
    sender.refresh_from_db()
    assert sender.is_active
    assert not SenderRule.objects.exists()
    assert status(held.item) == Status.REJECTED
    assert not actions.unban(user=sender, by=moderator)
    assert [verb for verb, _ in log()][3:] == ["unban"]


def test_staff_is_not_banned(held: Case, sender: User, moderator: User) -> None:
    User.objects.filter(pk=sender.pk).update(is_staff=True)
    with pytest.raises(PermissionError):
        actions.reject_and_ban(case=held, by=moderator)
    assert status(held.item) == Status.IN_REVIEW
    with pytest.raises(PermissionError):
        actions.ban(user=moderator, by=moderator)


Second = Callable[[User, User], object]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "second",
    [
        lambda user, by: actions.list_sender(user=user, kind=SenderKind.BLACK, by=by),
        lambda user, by: actions.unban(user=user, by=by),
        lambda user, by: actions.unlist_sender(user=user, by=by),
        lambda user, by: actions.reactivate_unless_banned(user=user),
        lambda user, by: actions.ban(user=user, by=by),
    ],
)
@pytest.mark.parametrize("is_active", [True, False])
def test_what_comes_beside_a_ban_waits_for_it(second: Second, is_active: bool, moderator: User) -> None:
    """Banned users are hidden, and users without a ban can sign in again: no order of two verbs leaves one half."""
    user = UserFactory.create(is_active=is_active)
    by = UserFactory.create(is_staff=True)
    banned = threading.Event()

    def first() -> None:
        with transaction.atomic():
            assert actions.ban(user=user, by=moderator)
            banned.set()
            until_one_waits()

    def then() -> None:
        assert banned.wait(30)
        second(user, by)

    assert at_once(first, then) == [None, None]
    is_banned = SenderRule.objects.filter(user=user, kind=SenderKind.BAN).exists()
    assert User.objects.get(pk=user.pk).is_active is not is_banned
    assert Decision.objects.filter(verb=Verb.BAN).count() == 1


@pytest.mark.django_db(transaction=True)
def test_users_who_become_staff_beside_a_ban_are_not_banned(moderator: User) -> None:
    user = UserFactory.create()
    promoted = threading.Event()

    def promote() -> None:
        with transaction.atomic():
            User.objects.filter(pk=user.pk).update(is_staff=True)
            promoted.set()
            until_one_waits()

    def then() -> None:
        assert promoted.wait(30)
        actions.ban(user=user, by=moderator)

    done, refused = at_once(promote, then)
    assert done is None
    assert isinstance(refused, PermissionError)
    assert User.objects.get(pk=user.pk).is_active


def test_a_sender_is_on_one_list_at_most(sender: User, moderator: User) -> None:
    actions.list_sender(user=sender, kind=SenderKind.BLACK, by=moderator, reason="spammer")
    actions.list_sender(user=sender, kind=SenderKind.WHITE, by=moderator)
    assert SenderRule.objects.get().kind == SenderKind.WHITE
    assert [(line.before, line.after) for line in Decision.objects.order_by("pk")] == [
        ({"list": None}, {"list": "black"}),
        ({"list": "black"}, {"list": "white"}),
    ]
    assert actions.unlist_sender(user=sender, by=moderator)
    assert not actions.unlist_sender(user=sender, by=moderator)


# --- Words -----------------------------------------------------------------------------------------------
def test_words_are_changed_with_a_line_in_the_log(spam: WordRule, moderator: User) -> None:
    spam.whole = False
    actions.put_word(rule=spam, by=moderator)
    actions.drop_word(rule=spam, by=moderator)
    changed, dropped = Decision.objects.order_by("pk")
    assert (changed.before["whole"], changed.after["whole"]) == (True, False)
    assert (dropped.verb, dropped.before["text"], dropped.after) == ("unword", "spam", None)


def test_many_words_at_once(spam: WordRule, moderator: User) -> None:
    assert actions.add_words(texts=["eggs", "spam", "eggs", "彩票"], whole=False, note="n", by=moderator) == 2
    assert set(WordRule.objects.values_list("text", "whole")) == {("spam", True), ("eggs", False), ("彩票", False)}
    assert Decision.objects.get().after == {"texts": ["eggs", "彩票"], "whole": False}
    assert actions.add_words(texts=["eggs"], whole=False, note="", by=moderator) == 0


@pytest.mark.django_db(transaction=True)
def test_a_word_removed_while_it_holds_items(say: Say) -> None:
    by = UserFactory.create()
    for number in range(5):
        rule = WordRule.objects.create(text=f"word{number}")
        drop, *sent = at_once(
            lambda rule=rule: actions.drop_word(rule=rule, by=by),
            *[lambda number=number: say(f"word{number}") for _ in range(3)],
        )
        assert drop is None
        assert all(isinstance(item, Item) for item in sent), sent
        held = [item for item in sent if item.status == Status.IN_REVIEW]
        assert Case.objects.filter(item__in=held).count() == len(held)
    assert not WordRule.objects.exists()


def test_the_newest_reasons_are_kept(held: Case, spam: WordRule) -> None:
    for number in range(30):
        actions.open_case(item=held.item, source=Source.RULE, reasons=[f"words: {number}"], rules={spam.pk, 10**9})
    held.refresh_from_db()
    assert held.reasons == [f"words: {number}" for number in range(10, 30)]
    assert list(held.words.all()) == [spam]


# --- The log ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("statement", ["UPDATE moderation_decision SET note = 'x'", "DELETE FROM moderation_decision"])
def test_the_log_only_grows(held: Case, statement: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert Decision.objects.count() == 1


def test_holds_and_decisions_are_logged_for_operators(
    spam: WordRule, say: Say, moderator: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "moderation")
    item = say("spam")
    actions.approve(case=Case.objects.get(), by=moderator)
    lines = [record.getMessage() for record in caplog.records if f"item={item.pk}" in record.getMessage()]
    assert len(lines) == 2
    assert lines[0].startswith("hold by=None")
    assert lines[0].endswith("'words: spam'")
    assert lines[1].startswith(f"approve by={moderator.pk}")
