"""Why items are held: each rule at its edge, exempt senders. Changes apply at once."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from items import actions as items
from items.models import Item, ItemType, Status, Visibility
from moderation import rules
from moderation.models import Case, SenderKind, SenderRule, WordListVersion, WordRule
from tests.support.cases import Say
from tests.support.factories import ItemFactory, UserFactory
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def codes(item: Item) -> list[str]:
    return [reason.code for reason in rules.item_reasons(item)]


def draft(sender: User, text: str = "words", **fields: Any) -> Item:
    return Item(sender=sender, content={"text": text}, **fields)


def test_words_are_found_in_all_that_people_read(sender: User, spam: WordRule) -> None:
    assert codes(draft(sender, "harmless")) == []
    assert codes(draft(sender, "\uff33pam")) == ["words"]
    assert codes(draft(sender, "x", title="SPAM")) == ["words"]
    link = Item(sender=sender, type=ItemType.LINK, content={"url": "https://example.org/spam"})
    assert codes(link) == ["words"]
    assert codes(Item(sender=sender, content={"text": "x", "warning": "Spam inside"})) == ["words"]
    assert codes(draft(sender, "x", media=[{"id": "1", "description": "a spam tin"}, {"id": "2"}])) == ["words"]
    assert [str(reason) for reason in rules.item_reasons(draft(sender, "spam"))] == ["words: spam"]


def test_the_reason_names_the_words_as_far_as_people_read(sender: User) -> None:
    for number in range(12):
        WordRule.objects.create(text=f"w{number:02}")
    (reason,) = rules.item_reasons(draft(sender, " ".join(f"w{number:02}" for number in range(12))))
    assert reason.words == ", ".join(f"w{number:02}" for number in range(10)) + ", …"


def test_a_change_of_the_words_is_in_force_at_once(sender: User, spam: WordRule) -> None:
    assert codes(draft(sender, "spam")) == ["words"]
    with connection.cursor() as cursor:  # as another process would
        cursor.execute("UPDATE moderation_wordrule SET is_enabled = false")
    assert codes(draft(sender, "spam")) == []
    WordRule.objects.create(text="eggs", whole=False)
    assert codes(draft(sender, "eggsalad")) == ["words"]
    WordRule.objects.all().delete()
    assert codes(draft(sender, "eggsalad")) == []


def test_what_was_rolled_back_was_never_in_force(sender: User, spam: WordRule) -> None:
    with transaction.atomic():
        WordRule.objects.create(text="eggs")
        assert codes(draft(sender, "eggs")) == ["words"]
        transaction.set_rollback(True)
    assert codes(draft(sender, "eggs")) == []
    WordRule.objects.create(text="ham")
    assert codes(draft(sender, "eggs")) == []
    assert codes(draft(sender, "ham")) == ["words"]


def test_the_words_are_compiled_once_a_version(sender: User, spam: WordRule) -> None:
    rules.item_reasons(draft(sender))
    compiled = rules._list
    with statements() as asked:
        rules.item_reasons(draft(sender, "spam"))
    assert rules._list is compiled
    assert len(asked) == 1
    version = WordListVersion.objects.get().version
    WordRule.objects.create(text="eggs")
    assert WordListVersion.objects.get().version != version


def test_black_and_white_lists(sender: User, spam: WordRule) -> None:
    listed = SenderRule.objects.create(user=sender, kind=SenderKind.BLACK)
    assert codes(draft(sender)) == ["sender"]
    assert codes(draft(sender, "spam")) == ["sender", "words"]
    listed.kind = SenderKind.WHITE
    listed.save()
    assert codes(draft(sender, "spam")) == []
    listed.delete()
    assert codes(draft(sender, "spam")) == ["words"]


def test_staff_is_not_held(sender: User, spam: WordRule) -> None:
    User.objects.filter(pk=sender.pk).update(is_staff=True)
    assert codes(draft(sender, "spam")) == []


def test_what_only_its_sender_sees_is_nobodys_business(sender: User, spam: WordRule) -> None:
    assert codes(draft(sender, "spam", visibility=Visibility.SELF)) == []
    assert codes(draft(sender, "spam", visibility=Visibility.MUTUALS)) == ["words"]


@pytest.mark.parametrize(("days", "expected"), [(2.99, ["link"]), (3.01, [])])
def test_links_of_new_accounts(days: float, expected: list[str]) -> None:
    young = UserFactory.create(date_joined=timezone.now() - timedelta(days=days))
    assert codes(draft(young, "see https://example.org/")) == expected
    assert codes(draft(young, "看www.example.com吧")) == expected
    assert codes(Item(sender=young, type=ItemType.IMAGE, content={"url": "https://example.org/a.png"})) == expected
    assert codes(draft(young, "no link, though https is mentioned")) == []


def test_links_are_free_where_the_rule_is_off(settings: Settings) -> None:
    settings.MODERATION_LINK_AGE = timedelta(0)
    assert codes(draft(UserFactory.create(), "https://example.org/")) == []


def test_the_rate(sender: User, say: Say, settings: Settings) -> None:
    sent = [say(f"words {number}") for number in range(6)]
    assert [item.status for item in sent] == [Status.PUBLISHED] * 5 + [Status.IN_REVIEW]
    assert Case.objects.get().reasons == ["rate: more than 5 items in 10 minutes"]
    assert say("another's", by=UserFactory.create()).status == Status.PUBLISHED
    settings.RATE_SCALE = 2.0
    assert say("words").status == Status.PUBLISHED
    settings.RATE_SCALE = 0.01
    assert say("words").status == Status.IN_REVIEW
    settings.MODERATION_BURST = 0
    assert say("words").status == Status.PUBLISHED


def test_the_rate_forgets(sender: User, say: Say, settings: Settings) -> None:
    for number in range(5):
        say(f"words {number}")
    settings.MODERATION_BURST_SPAN = timedelta(0)
    assert say("words").status == Status.PUBLISHED


def test_repetition(sender: User, say: Say) -> None:
    sent = [say("the very same words") for _ in range(4)]
    assert [item.status for item in sent] == [Status.PUBLISHED] * 3 + [Status.IN_REVIEW]
    assert Case.objects.get().reasons == ["same: the same text more than 3 times in an hour"]
    assert say("other words altogether").status == Status.PUBLISHED


def test_people_may_thank_many(sender: User, say: Say, settings: Settings) -> None:
    settings.MODERATION_BURST = 0
    assert {say("谢谢!").status for _ in range(6)} == {Status.PUBLISHED}


def test_an_edit_is_looked_at_where_it_says_something_else(sender: User, say: Say, spam: WordRule) -> None:
    item = say("harmless")
    items.edit(item=item, content={"text": "still harmless"})
    item.refresh_from_db()
    assert item.status == Status.PUBLISHED
    items.edit(item=item, content={"text": "spam"})
    item.refresh_from_db()
    assert (item.status, item.text) == (Status.IN_REVIEW, "spam")
    items.approve(item=item)
    items.edit(item=item, extra_info={"colour": "red"})
    item.refresh_from_db()
    assert item.status == Status.PUBLISHED
    items.edit(item=item, content={"text": "more spam"})
    item.refresh_from_db()
    assert item.status == Status.IN_REVIEW


def test_an_edit_is_not_one_more_item(sender: User, say: Say) -> None:
    sent = [say(f"words {number}") for number in range(5)]
    items.edit(item=sent[0], content={"text": "edited words"})
    assert set(Item.objects.values_list("status", flat=True)) == {Status.PUBLISHED}


def test_what_was_for_oneself_is_looked_at_when_others_are_to_see_it(say: Say, spam: WordRule) -> None:
    note, secret = say("note", visibility=Visibility.SELF), say("spam", visibility=Visibility.SELF)
    for item in (note, secret):
        items.change_visibility(item=item, visibility=Visibility.PUBLIC)
        item.refresh_from_db()
    assert (note.status, secret.status) == (Status.PUBLISHED, Status.IN_REVIEW)
    assert Case.objects.get().item == secret


@pytest.mark.slow
def test_publishing_asks_one_thing_more(sender: User, say: Say, spam: WordRule, settings: Settings) -> None:
    say("warm")
    with statements() as asked:
        say("words")
    assert sum("moderation_" in statement for statement in asked) == 1
    for number in range(300):
        ItemFactory.create(sender=sender, content={"text": f"more {number}"})
    settings.MODERATION_BURST = 0
    assert say("and more").status == Status.PUBLISHED
