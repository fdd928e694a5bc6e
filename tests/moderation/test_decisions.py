"""A decision is a row that its subject reads, appeals once, and that another moderator answers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.about.models import Rule
from accounts.mail.models import Letter
from accounts.models import EmailAddress, User
from accounts.review import JudgeError
from items.models import Item, Status
from moderation import actions, appeals, export, pictures, reports, senders
from moderation.decisions import Grounds, decisions_about
from moderation.models import Appeal, AppealState, Case, CaseState, Decision, SenderKind, SenderRule, Verb
from notifications.models import Notification
from tests.support.api import client_of
from tests.support.at_once import at_once
from tests.support.cases import Say, log, report, status
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg
from web.refusals import MissingError

pytestmark = pytest.mark.django_db

GROUNDS = Grounds("Please be kind.")


@pytest.fixture
def rule(db: None) -> Rule:
    return Rule.objects.create(number=1, text="No insults")


@pytest.fixture
def colleague(db: None, moderator: User) -> User:
    colleague = UserFactory.create(username="colleague", is_staff=True)
    colleague.groups.set(moderator.groups.all())
    return colleague


@pytest.fixture
def boss(db: None) -> User:
    return UserFactory.create(username="boss", is_staff=True, is_superuser=True)


def told(user: User) -> list[tuple[str, str, str]]:
    """What moderators told the user, newest first. A suspended one reads it later."""
    rows = Notification.objects.filter(recipient=user, kind__in=["warning", "report", "case"])
    return list(rows.order_by("-position").values_list("kind", "detail", "text"))


def page_of(user: User, decision: Decision) -> str:
    return logged_in(user).get(f"/decisions/{decision.pk}").content.decode()


def test_a_removal_is_read_by_its_author_alone(
    say: Say, sender: User, reader: User, moderator: User, rule: Rule
) -> None:
    item = say("rude words")
    actions.reject_by_hand(item_id=item.pk, by=moderator, note="third time", grounds=Grounds("Be kind.", rule.pk))
    assert told(sender) == [("warning", "reject", "Be kind.\n“rude words”")]
    decision = Decision.objects.get(verb=Verb.REJECT)
    (row,) = client_of(sender).get("/api/v1/me/decisions").json()["items"]
    assert (row["kind"], row["rule"], row["text"], row["item"], row["until"], row["appeal"]) == (
        *("removal", "No insults", "Be kind.", str(item.pk), None, None),
    )
    page = page_of(sender, decision)
    for words in ("Post removed", "Rule: <bdi>No insults</bdi>", "Be kind.", f'href="/items/{item.pk}"'):
        assert words in page
    shown = logged_in(sender).get("/notifications").content.decode()
    assert "Moderators removed your post" in shown
    assert f'href="/decisions/{decision.pk}"' in shown
    for answer in (page, str(row), shown):
        assert "moderator<" not in answer
        assert "@moderator" not in answer
        assert "third time" not in answer
    own = logged_in(sender).get(f"/items/{item.pk}").content.decode()
    assert "Removed by moderators. See why" in own
    assert f'href="/decisions?item={item.pk}"' in own
    assert 'name="reply_to"' not in own
    assert "Post removed" in logged_in(sender).get(f"/decisions?item={item.pk}").content.decode()
    assert "Post removed" not in logged_in(sender).get("/decisions?item=5").content.decode()
    other = logged_in(reader)
    assert other.get(f"/decisions/{decision.pk}").status_code == 404
    assert other.post(f"/decisions/{decision.pk}", {"text": "mine"}).status_code == 404
    assert client_of(reader).post(f"/api/v1/me/decisions/{decision.pk}/appeal", {"text": "x"}).status_code == 404
    assert client_of(reader).get("/api/v1/me/decisions").json()["items"] == []
    assert not Appeal.objects.exists()


Act = Callable[[Item, User], Any]
ACTS: dict[str, Act] = {
    "removal": lambda item, by: actions.reject_by_hand(item_id=item.pk, by=by, grounds=GROUNDS),
    "warning": lambda item, by: actions.warn(user=item.sender, by=by, grounds=GROUNDS),
    "limit": lambda item, by: senders.limit(user=item.sender, by=by, grounds=GROUNDS),
    "suspension": lambda item, by: senders.ban(user=item.sender, by=by, grounds=GROUNDS),
}


@pytest.mark.parametrize("kind", ACTS)
def test_every_act_is_told_with_its_words(say: Say, sender: User, moderator: User, kind: str) -> None:
    ACTS[kind](say("words"), moderator)
    (row,) = export.files(sender)[1].rows
    assert (row.kind, row.text) == (kind, "Please be kind.")
    assert [text.partition("\n")[0] for _kind, _detail, text in told(sender)] == ["Please be kind."]


@pytest.mark.parametrize("kind", ACTS)
def test_an_accepted_appeal_undoes_the_act(say: Say, sender: User, moderator: User, colleague: User, kind: str) -> None:
    item = say("words")
    ACTS[kind](item, moderator)
    decision = decisions_about(sender).get()
    row = appeals.appeal(user=sender, decision_id=decision.pk, text="It was a joke.")
    assert told(colleague) == [("case", "appeal", "")]
    assert told(moderator) == []
    appeals.answer(appeal_id=row.pk, by=colleague, accepts=True, text="Right, sorry.")
    assert status(item) == Status.PUBLISHED
    assert not SenderRule.objects.exists()
    sender.refresh_from_db()
    assert sender.is_active
    assert told(sender)[0] == ("warning", "grant", "Right, sorry.")
    page = page_of(sender, decision)
    assert "Accepted" in page
    assert "Right, sorry." in page
    assert log()[-1][0] in ("grant", "approve", "unban", "unlist")
    assert ("grant", "colleague") in log()


@pytest.mark.parametrize("kind", ACTS)
def test_a_rejected_appeal_changes_nothing(say: Say, sender: User, moderator: User, colleague: User, kind: str) -> None:
    item = say("words")
    ACTS[kind](item, moderator)
    before = (status(item), User.objects.get(pk=sender.pk).is_active, list(SenderRule.objects.values_list("kind")))
    row = appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="It was a joke.")
    appeals.answer(appeal_id=row.pk, by=colleague, accepts=False, text="No.")
    after = (status(item), User.objects.get(pk=sender.pk).is_active, list(SenderRule.objects.values_list("kind")))
    assert before == after
    assert told(sender)[0] == ("warning", "deny", "No.")


def test_a_later_decision_stands(say: Say, sender: User, moderator: User, colleague: User) -> None:
    senders.ban(user=sender, by=moderator)
    row = appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="Why?")
    senders.unban(user=sender, by=moderator)
    senders.ban(user=sender, by=moderator)
    appeals.answer(appeal_id=row.pk, by=colleague, accepts=True)
    assert not User.objects.get(pk=sender.pk).is_active


def test_one_appeal_within_thirty_days(say: Say, sender: User, moderator: User) -> None:
    old = Decision.objects.create(user=sender, verb=Verb.WARN, is_told=True, at=timezone.now() - timedelta(days=31))
    actions.reject_by_hand(item_id=say("words").pk, by=moderator)
    new = decisions_about(sender)[0]
    api = client_of(sender)

    def appeal(decision: Decision, **fields: Any) -> tuple[int, Any]:
        answer = api.post(f"/api/v1/me/decisions/{decision.pk}/appeal", fields, format="json")
        return answer.status_code, answer.json()

    assert [appeal(new, **wrong)[0] for wrong in ({}, {"text": ""}, {"text": "x" * 2001}, {"text": 5})] == [400] * 4
    made = appeal(new, text="It was a joke.")
    assert (made[0], made[1]["state"], made[1]["answer"]) == (201, "waiting", "")
    assert (appeal(new, text="again")[0], appeal(new, text="again")[1]["code"]) == (409, "appealed")
    assert (appeal(old, text="late")[0], appeal(old, text="late")[1]["code"]) == (409, "too_late")
    page = page_of(sender, old)
    assert "You can't appeal this anymore." in page
    assert "<textarea" not in page
    assert Appeal.objects.count() == 1


@pytest.mark.slow
def test_the_page_appeals(say: Say, sender: User, moderator: User) -> None:
    actions.reject_by_hand(item_id=say("words").pk, by=moderator)
    address = f"/decisions/{decisions_about(sender).get().pk}"
    page = logged_in(sender)
    assert page.post(address, {"text": " "}).status_code == 422
    answer = page.post(address, {"text": "It was a joke."}, follow=True).content.decode()
    assert "Your appeal is sent." in answer
    assert "It was a joke." in answer
    assert "<textarea" not in answer
    assert "You can&#39;t appeal this anymore." in page.post(address, {"text": "Again"}, follow=True).content.decode()
    assert Appeal.objects.get().text == "It was a joke."


def test_appeals_are_limited(say: Say, sender: User, moderator: User, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"appeal": "2/day"}
    for text in ("one", "two", "three"):
        actions.reject_by_hand(item_id=say(text).pk, by=moderator)
    api = client_of(sender)
    asked = [
        api.post(f"/api/v1/me/decisions/{each.pk}/appeal", {"text": "no"}, format="json").status_code
        for each in decisions_about(sender)
    ]
    assert asked == [201, 201, 429]


# --- Who answers -----------------------------------------------------------------------------------------
def test_who_decided_does_not_answer_if_another_can(say: Say, sender: User, moderator: User, colleague: User) -> None:
    actions.reject_by_hand(item_id=say("words").pk, by=moderator)
    row = appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="No")
    with pytest.raises(JudgeError):
        appeals.answer(appeal_id=row.pk, by=moderator, accepts=False)
    User.objects.filter(pk=colleague.pk).update(is_active=False)
    assert appeals.answer(appeal_id=row.pk, by=moderator, accepts=False).state == AppealState.REJECTED


def test_nobody_answers_their_own_appeal(say: Say, moderator: User, boss: User) -> None:
    actions.reject_by_hand(item_id=say("mine", by=moderator).pk, by=boss)
    row = appeals.appeal(user=moderator, decision_id=decisions_about(moderator).get().pk, text="No")
    with pytest.raises(JudgeError):
        appeals.answer(appeal_id=row.pk, by=moderator, accepts=True)
    desk = logged_in(moderator)
    assert desk.get(f"/admin/moderation/appeal/{row.pk}/change/").status_code == 302
    assert list(desk.get("/admin/moderation/appeal/?state=all").context["cl"].result_list) == []
    assert status(Item.objects.get()) == Status.REJECTED


def test_a_superuser_judges_themselves_only_as_the_last_one(say: Say, boss: User) -> None:
    report(say("mine", by=boss))
    case = Case.objects.get()
    other = UserFactory.create(is_staff=True, is_superuser=True)
    with pytest.raises(JudgeError):
        actions.approve(case=case, by=boss)
    assert logged_in(boss).get(f"/admin/moderation/case/{case.pk}/change/").status_code == 302
    User.objects.filter(pk=other.pk).update(is_active=False)
    assert actions.approve(case=case, by=boss).state == CaseState.APPROVED


@pytest.mark.django_db(transaction=True)
def test_two_moderators_at_once(say: Say, sender: User, moderator: User, colleague: User, boss: User) -> None:
    item = say("words")
    actions.reject_by_hand(item_id=item.pk, by=moderator)
    row = appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="No")
    answers = at_once(
        lambda: appeals.answer(appeal_id=row.pk, by=colleague, accepts=True),
        lambda: appeals.answer(appeal_id=row.pk, by=boss, accepts=False),
    )
    assert sum(isinstance(each, appeals.AnsweredError) for each in answers) == 1
    row.refresh_from_db()
    is_back = status(item) == Status.PUBLISHED
    assert is_back is (row.state == AppealState.ACCEPTED)
    assert sum(verb in ("grant", "deny") for verb, _by in log()) == 1


@pytest.mark.django_db(transaction=True)
def test_two_appeals_at_once(say: Say, sender: User, moderator: User) -> None:
    actions.reject_by_hand(item_id=say("words").pk, by=moderator)
    number = decisions_about(sender).get().pk
    both = at_once(*[lambda: appeals.appeal(user=sender, decision_id=number, text="No")] * 2)
    assert sorted(type(each).__name__ for each in both) == ["Appeal", "AppealedError"]


@pytest.mark.slow
def test_the_admin_answers(desk: Client, moderator: User, colleague: User, say: Say, sender: User) -> None:
    item = say("rude words")
    actions.reject_by_hand(item_id=item.pk, by=colleague, grounds=GROUNDS)
    row = appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="It was a joke.")
    assert [each.pk for each in desk.get("/admin/moderation/appeal/").context["cl"].result_list] == [row.pk]
    address = f"/admin/moderation/appeal/{row.pk}/change/"
    page = desk.get(address).content.decode()
    for words in ("It was a joke.", "rude words", "Please be kind.", "What still stands is undone"):
        assert words in page
    assert "You made this decision." in logged_in(colleague).get(address).content.decode()
    own = logged_in(colleague).post(address, {"verb": "accept", "text": ""}, follow=True).content.decode()
    assert "You made this decision." in own
    assert status(item) == Status.REJECTED
    assert "Appeal accepted." in desk.post(address, {"verb": "accept", "text": "Sorry."}, follow=True).content.decode()
    assert status(item) == Status.PUBLISHED
    again = desk.post(address, {"verb": "reject", "text": ""}, follow=True).content.decode()
    assert "Another moderator has answered this appeal." in again


@pytest.mark.slow
def test_an_appeal_shows_the_pictures_of_the_post(desk: Client, colleague: User, sender: User) -> None:
    picture = sent(sender, jpeg())
    item = posted(sender, picture, text="words")
    actions.reject_by_hand(item_id=item.pk, by=colleague, grounds=GROUNDS)
    row = appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="Look again.")
    page = desk.get(f"/admin/moderation/appeal/{row.pk}/change/").content.decode()
    assert f'src="/staff/media/{picture}/preview"' in page


# --- Reporters and moderators ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("decide", "outcome"),
    [
        (lambda case, by: actions.approve(case=case, by=by), ""),
        (lambda case, by: actions.approve_and_warn(case=case, by=by, grounds=GROUNDS), "done"),
        (lambda case, by: actions.reject(case=case, by=by), "done"),
        (lambda case, by: actions.reject_and_limit(case=case, by=by), "done"),
        (lambda case, by: actions.reject_and_ban(case=case, by=by), "done"),
    ],
)
def test_reporters_learn_the_outcome(say: Say, moderator: User, decide: Any, outcome: str) -> None:
    first, second = report(say("words"), 2)
    decide(Case.objects.get(), moderator)
    for reporter in (first, second):
        assert told(reporter) == [("report", outcome, "")]
    words = "took action" if outcome else "found no violation"
    page = logged_in(first).get("/notifications").content.decode()
    assert words in page
    assert "moderator<" not in page


@pytest.mark.parametrize(
    ("decide", "outcome", "words"),
    [
        (actions.approve, "", "found no violation"),
        (actions.reject, "reviewed", "Moderators reviewed what you reported. Thanks"),
        (actions.reject_and_limit, "done", "took action"),
        (actions.reject_and_ban, "done", "took action"),
    ],
)
def test_reporters_of_an_account_learn_whether_something_was_done(
    sender: User, moderator: User, decide: Any, outcome: str, words: str
) -> None:
    reporter = UserFactory.create()
    reports.report_account(account=sender, reporter=reporter, reason="spam")
    decide(case=Case.objects.get(), by=moderator)
    assert told(reporter) == [("report", outcome, "")]
    assert words in logged_in(reporter).get("/notifications").content.decode()


def test_moderators_are_notified_once_a_case(say: Say, sender: User, moderator: User, boss: User) -> None:
    item = say("words")
    reports.report(item=item, reporter=boss, reason="spam")
    report(item, 2)
    case = Case.objects.get()
    assert told(moderator) == [("case", "report", "")]
    assert told(boss) == told(sender) == []
    page = logged_in(moderator).get("/notifications").content.decode()
    assert f'href="/admin/moderation/case/{case.pk}/change/"' in page
    reports.report_account(account=moderator, reporter=UserFactory.create(), reason="abuse")
    assert len(told(moderator)) == 1, "not of their own"
    assert len(told(boss)) == 1


# --- Suspensions that end --------------------------------------------------------------------------------
def test_a_suspension_writes_a_letter_and_ends_by_itself(sender: User, moderator: User, rule: Rule) -> None:
    EmailAddress.objects.create(user=sender, email="sender@example.org", verified=True, primary=True)
    until = timezone.now() + timedelta(days=3)
    senders.ban(user=sender, by=moderator, grounds=Grounds("Enough.", rule.pk), until=until)
    letter = Letter.objects.get(kind="suspended")
    assert (letter.address, letter.context["rule"], letter.context["reason"]) == (
        *("sender@example.org", "No insults", "Enough."),
    )
    assert letter.context["until"]
    assert senders.end_suspensions() == 0
    SenderRule.objects.update(until=timezone.now())
    assert senders.end_suspensions() == 1
    sender.refresh_from_db()
    assert sender.is_active
    assert log()[-1] == ("unban", None)
    assert not SenderRule.objects.exists()


def test_limiting_leaves_a_suspension(sender: User, moderator: User) -> None:
    senders.ban(user=sender, by=moderator)
    assert not senders.limit(user=sender, by=moderator)
    assert SenderRule.objects.get().kind == SenderKind.BAN


def test_a_deleted_account_leaves_its_rows_without_words(say: Say, sender: User, moderator: User) -> None:
    actions.reject_by_hand(item_id=say("words").pk, by=moderator, grounds=GROUNDS)
    appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="It was a joke.")
    assert appeals.forget_texts(user=sender, limit=10) == 1
    assert appeals.forget_texts(user=sender, limit=10) == 0
    assert Appeal.objects.get().text == ""


def test_others_decisions_are_missing(sender: User, reader: User, moderator: User) -> None:
    actions.warn(user=sender, by=moderator, grounds=GROUNDS)
    with pytest.raises(MissingError):
        appeals.appeal(user=reader, decision_id=decisions_about(sender).get().pk, text="No")


def test_what_is_not_told_stays_in_the_log(say: Say, sender: User, moderator: User) -> None:
    item = say("words")
    actions.hold_by_hand(item_id=item.pk, by=moderator)
    senders.list_sender(user=sender, kind=SenderKind.WHITE, by=moderator)
    pictures.show(item=item, by=moderator)
    assert not decisions_about(sender).exists()
    assert told(sender) == []


@pytest.mark.slow
def test_the_account_rules_tell_their_reason_and_end(desk: Client, sender: User) -> None:
    address, until = "/admin/moderation/senderrule/add/", timezone.now() + timedelta(days=2)
    fields = {"user": sender.pk, "kind": "ban", "reason": "Enough.", "until": f"{until:%Y-%m-%dT%H:%M}"}
    for wrong in ({"kind": "black"}, {"until": "2001-01-01T00:00"}, {"until": "soon"}):
        assert 'class="errorlist"' in desk.post(address, fields | wrong).content.decode()
    assert not SenderRule.objects.exists()
    assert desk.post(address, fields).status_code == 302
    (decision,) = decisions_about(sender)
    assert (decision.text, decision.until) == ("Enough.", SenderRule.objects.get().until)
    assert decision.until == until.replace(second=0, microsecond=0)
