import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import User
from items import actions as items
from items.models import Item, Status
from moderation import actions
from moderation.models import Case, CaseSource, CaseState, Decision, Verb, WordRule
from tests.support.at_once import at_once
from tests.support.cases import Say, log, status
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_a_hold_opens_a_case_and_is_logged(held: Case, spam: WordRule, caplog: pytest.LogCaptureFixture) -> None:
    assert (held.source, held.state, held.reasons) == (CaseSource.RULE, CaseState.OPEN, ["words: spam"])
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
    assert (decided.state, decided.decided_by, decided.note) == (CaseState.APPROVED, moderator, "harmless")
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
    actions.approve(case=held, by=moderator, state=CaseState.REJECTED)
    assert status(held.item) == Status.PUBLISHED
    actions.reject(case=held, by=moderator, state=CaseState.APPROVED)
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
    assert Case.objects.get(state=CaseState.OPEN).item == held.item


@pytest.mark.slow
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
        assert status(item) == (Status.PUBLISHED if late.case.state == CaseState.APPROVED else Status.REJECTED)
        assert Decision.objects.filter(item=item).exclude(verb=Verb.HOLD).count() == 1


@pytest.mark.slow
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
        assert status(item) == Status.IN_REVIEW  # in either order
        assert Case.objects.filter(item=item, state=CaseState.OPEN).count() == 1


def test_words_are_changed_with_a_line_in_the_log(spam: WordRule, moderator: User) -> None:
    spam.whole = False
    actions.save_word_rule(rule=spam, by=moderator)
    actions.delete_word_rule(rule=spam, by=moderator)
    changed, dropped = Decision.objects.order_by("pk")
    assert (changed.before["whole"], changed.after["whole"]) == (True, False)
    assert (dropped.verb, dropped.before["text"], dropped.after) == ("unword", "spam", None)


def test_many_words_at_once(spam: WordRule, moderator: User) -> None:
    assert actions.add_words(texts=["eggs", "spam", "eggs", "彩票"], whole=False, note="n", by=moderator) == 2
    assert set(WordRule.objects.values_list("text", "whole")) == {("spam", True), ("eggs", False), ("彩票", False)}
    assert Decision.objects.get().after == {"texts": ["eggs", "彩票"], "whole": False}
    assert actions.add_words(texts=["eggs"], whole=False, note="", by=moderator) == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_word_removed_while_it_holds_items(say: Say) -> None:
    by = UserFactory.create()
    for number in range(5):
        rule = WordRule.objects.create(text=f"word{number}")
        drop, *sent = at_once(
            lambda rule=rule: actions.delete_word_rule(rule=rule, by=by),
            *[lambda number=number: say(f"word{number}") for _ in range(3)],
        )
        assert drop is None
        assert all(isinstance(item, Item) for item in sent), sent
        held = [item for item in sent if item.status == Status.IN_REVIEW]
        assert Case.objects.filter(item__in=held).count() == len(held)
    assert not WordRule.objects.exists()


def test_the_newest_reasons_are_kept(held: Case, spam: WordRule) -> None:
    for number in range(30):
        actions.open_case(item=held.item, source=CaseSource.RULE, reasons=[f"words: {number}"], rules={spam.pk, 10**9})
    held.refresh_from_db()
    assert held.reasons == [f"words: {number}" for number in range(10, 30)]
    assert list(held.words.all()) == [spam]


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
