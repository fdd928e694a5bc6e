from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from accounts import actions as accounts
from accounts import deactivation
from accounts.joining import actions as joining
from accounts.models import User
from live import actions as live
from live.feed import live_page
from live.hydrate import find_session, sessions_of
from live.models import Host, LiveSession, Review, State
from moderation import actions, export, reports
from moderation.models import Case, CaseSource, CaseState, Decision, Report, SenderKind, SenderRule, WordRule
from relations.actions import block
from storage import events
from tests.support.api import API, client_of
from tests.support.factories import UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db

Plan = Callable[..., LiveSession]


@pytest.fixture
def plan(sender: User) -> Plan:
    def plan(title: str = "A show", **fields: Any) -> LiveSession:
        now = timezone.now()
        return live.create(
            **{"host": sender, "title": title, "starts_at": now + timedelta(hours=2), "now": now} | fields
        )

    return plan


def edit(session: LiveSession, **changes: Any) -> LiveSession:
    return live.edit(session=session, now=timezone.now(), **changes)


def sees(reader: User | AnonymousUser, session: LiveSession) -> bool:
    return find_session(session.pk, reader) is not None


def held(session: LiveSession) -> bool:
    session.refresh_from_db()
    return session.review == Review.IN_REVIEW and session.hidden_at is not None


# --- Rules -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "words",
    [
        {"title": "Spam for all"},
        {"title": "\uff33\uff30\u200b\uff21\uff2d"},
        {"url": "https://watch.example/spam"},
        {"cover_url": "https://pictures.example/spam.png"},
    ],
)
def test_a_session_with_a_word_waits_for_a_moderator(
    sender: User, reader: User, plan: Plan, spam: WordRule, words: dict[str, str]
) -> None:
    session = plan(**words)
    assert held(session)
    assert sees(sender, session)
    assert not sees(reader, session)
    assert not sees(AnonymousUser(), session)
    assert sessions_of(sender, reader).items == []
    assert live_page(reader, now=timezone.now()).items == []
    assert Host.objects.get(user=sender).scheduled == 0
    case = Case.objects.get()
    assert (case.session_id, case.item, case.host, case.source) == (session.pk, None, sender, CaseSource.RULE)
    assert case.reasons == ["words: spam"]
    assert list(case.words.all()) == [spam]
    assert Decision.objects.get().session_id == session.pk


def test_only_the_host_hears_of_what_was_never_shown(
    plan: Plan, spam: WordRule, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(events, "announce", lambda *news: told.extend(news))
    with django_capture_on_commit_callbacks(execute=True):
        session = plan("spam")
    assert told == [events.SessionChanged(session.pk, True)]


def test_an_approved_session_is_in_the_feed(
    sender: User, reader: User, moderator: User, plan: Plan, spam: WordRule
) -> None:
    session = plan("spam")
    actions.approve(case=Case.objects.get(), by=moderator, modified_at=timezone.now())
    assert sees(reader, session)
    assert [one.id for one in live_page(reader, now=timezone.now()).items] == [str(session.pk)]
    assert Host.objects.get(user=sender).scheduled == 1
    assert edit(session, starts_at=timezone.now() + timedelta(hours=3)).review == ""


def test_a_rejected_session_stays_hidden_until_other_words_are_approved(
    sender: User, reader: User, moderator: User, plan: Plan, spam: WordRule
) -> None:
    session = plan("spam")
    actions.reject(case=Case.objects.get(), by=moderator)
    session.refresh_from_db()
    assert session.review == Review.REJECTED
    assert not sees(reader, session)
    edit(session, title="Better words")
    assert held(session)
    case = Case.objects.get(state=CaseState.OPEN)
    assert case.reasons == ["resubmitted"]
    actions.approve(case=case, by=moderator)
    assert sees(reader, session)


@pytest.mark.slow
def test_a_rejected_session_does_not_start(
    sender: User, moderator: User, plan: Plan, spam: WordRule, client: Client
) -> None:
    """It would be live for nobody, and the host would not know."""
    session = plan("spam")
    actions.reject(case=Case.objects.get(), by=moderator)
    with pytest.raises(live.RejectedError):
        live.start(session=session, now=timezone.now())
    client.force_login(sender)
    page = client.post(f"/live/{session.pk}/start", follow=True).content.decode()
    assert "Moderators removed this session" in page
    response = client_of(sender).post(f"{API}/live/sessions/{session.pk}/start")
    assert (response.status_code, response.json()["detail"]) == (409, "Moderators rejected the session.")


def test_a_young_host_adds_no_link_to_a_session_that_others_see(reader: User, plan: Plan) -> None:
    young = UserFactory.create()
    session = plan(host=young)
    live.start(session=session, now=timezone.now())
    with pytest.raises(ValidationError):
        edit(session, url="https://watch.example")
    assert sees(reader, session), "it stays on the air, as it was"
    session.refresh_from_db()
    assert session.url == ""
    edit(session, title="Another title")
    assert sees(reader, session)


def test_other_words_of_a_shown_session_are_looked_at_first(reader: User, plan: Plan, spam: WordRule) -> None:
    session = plan()
    live.start(session=session, now=timezone.now())
    edit(session, title="spam")
    assert held(session)
    assert not sees(reader, session)
    live.end(session=session, now=timezone.now())
    session.refresh_from_db()
    assert (session.state, session.review) == (State.REPLAY, Review.IN_REVIEW)
    assert live_page(reader, now=timezone.now()).items == []
    edit(session, title="words")
    assert held(session)


def test_a_replay_that_was_held_is_delivered_when_it_is_approved(
    reader: User, moderator: User, plan: Plan, spam: WordRule
) -> None:
    session = plan("spam")
    live.start(session=session, now=timezone.now())
    live.end(session=session, now=timezone.now())
    assert live_page(reader, now=timezone.now()).items == []
    actions.approve(case=Case.objects.get(), by=moderator)
    assert [one.id for one in live_page(reader, now=timezone.now()).items] == [str(session.pk)]


def test_what_its_host_took_away_no_moderator_brings_back(
    reader: User, moderator: User, plan: Plan, spam: WordRule
) -> None:
    session = plan("spam")
    live.start(session=session, now=timezone.now())
    live.end(session=session, now=timezone.now())
    assert live.hide(session=session, now=timezone.now())
    actions.approve(case=Case.objects.get(), by=moderator)
    assert not sees(reader, session)
    assert not live.hide(session=session, now=timezone.now())


def test_a_link_of_a_new_account(plan: Plan) -> None:
    young = UserFactory.create()
    assert held(plan(host=young, url="https://watch.example"))
    assert not held(plan(host=young))
    assert not held(plan(url="https://watch.example"))


def test_many_sessions_at_once(plan: Plan) -> None:
    sessions = [plan(f"Number {number}") for number in range(7)]
    assert [held(session) for session in sessions] == [False] * 5 + [True] * 2
    assert Case.objects.first().reasons[0].startswith("rate: ")  # type: ignore[union-attr]


def test_the_same_words_again_and_again(plan: Plan) -> None:
    sessions = [plan("Buy this now, all of you") for _ in range(4)]
    assert [held(session) for session in sessions] == [False] * 3 + [True]
    other = plan("Something else")
    edit(other, title="Buy this now, all of you")
    assert held(other)


@pytest.mark.parametrize(("kind", "is_held"), [(SenderKind.BLACK, True), (SenderKind.WHITE, False)])
def test_listed_hosts(sender: User, plan: Plan, spam: WordRule, kind: str, is_held: bool) -> None:
    SenderRule.objects.create(user=sender, kind=kind)
    assert held(plan("spam" if kind == SenderKind.WHITE else "words")) == is_held


@pytest.mark.slow
def test_the_host_is_told(sender: User, reader: User, spam: WordRule, client: Client) -> None:
    starts_at = (timezone.now() + timedelta(hours=2)).isoformat()
    body = client_of(sender).post(f"{API}/live/sessions", {"title": "spam", "starts_at": starts_at}).json()
    assert (body["hidden"], body["review"]) == (True, "in_review")
    client.force_login(sender)
    fields = {"title": "more spam", "starts_at": (timezone.now() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M")}
    page = client.post("/live/new", fields, follow=True).content.decode()
    assert "Your session is in review." in page
    assert "in review" in page
    shown = client_of(reader).get(f"{API}/live/sessions/{body['id']}")
    assert shown.status_code == 404


# --- Profiles --------------------------------------------------------------------------------------------
def test_names_and_profiles(sender: User, spam: WordRule, client: Client) -> None:
    for fields in ({"display_name": "S P A M? Spam!"}, {"bio": "buy spam"}):
        with pytest.raises(ValidationError) as refused:
            accounts.edit_profile(user=User.objects.get(pk=sender.pk), **fields)
        assert set(refused.value.message_dict) == set(fields)
    with pytest.raises(ValidationError) as refused:
        accounts.edit_profile(user=UserFactory.create(), bio="https://young.example")
    assert set(refused.value.message_dict) == {"bio"}
    accounts.edit_profile(user=sender, display_name="Sender", bio="https://old.example")
    WordRule.objects.create(text="sender")
    accounts.edit_profile(user=sender, display_name="Sender", bio="")  # older than the rule, so it may stay
    with pytest.raises(ValidationError) as refused:
        joining.sign_up(username="sp-spam", password="correct horse battery staple")
    assert set(refused.value.message_dict) == {"username"}
    answer = client_of(sender).patch(f"{API}/users/me", {"bio": "spam"})
    assert (answer.status_code, list(answer.json())) == (400, ["bio"])
    client.force_login(sender)
    page = client.post("/settings", {"display_name": "spam", "bio": ""})
    assert page.status_code == 422
    assert "This has words or links that this site" in page.content.decode()
    sender.refresh_from_db()
    assert (sender.display_name, sender.bio) == ("Sender", "")


# --- Reports ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("surface", ["api", "page"])
def test_a_session_is_reported(sender: User, reader: User, plan: Plan, surface: str, client: Client) -> None:
    session = plan()

    def report(by: User) -> int:
        fields = {"reason": "spam", "text": "look"}
        if surface == "api":
            return client_of(by).post(f"{API}/live/sessions/{session.pk}/report", fields).status_code
        client.force_login(by)
        return client.post(f"/live/{session.pk}/report", fields).status_code

    assert report(reader) == report(reader) == {"api": 204, "page": 200}[surface]
    told = Report.objects.get()
    assert (told.session_id, told.item, told.reporter, told.reason, told.text) == (
        session.pk,
        None,
        reader,
        "spam",
        "look",
    )
    assert (told.case.session_id, told.case.host, told.case.source) == (session.pk, sender, CaseSource.REPORT)
    file, _decisions = export.files(reader)
    (row,) = file.rows
    assert (row.item_id, row.session_id) == (None, str(session.pk))
    assert report(sender) in (400, 200)
    assert Report.objects.count() == 1
    block(blocker=sender, blocked=reader)
    assert report(reader) == 404
    assert not held(session)


@pytest.mark.slow
def test_a_session_that_many_report_is_hidden_until_a_moderator_has_looked(
    reader: User, moderator: User, plan: Plan
) -> None:
    session = plan()
    readers = UserFactory.create_batch(5)
    for one in readers[:3]:
        reports.report_session(session_id=session.pk, reporter=one, reason="spam")
    assert held(session)
    case = Case.objects.get()
    assert case.reasons == ["reports: from 3 readers"]
    actions.approve(case=case, by=moderator)
    assert sees(reader, session)
    for one in readers[3:]:
        reports.report_session(session_id=session.pk, reporter=one, reason="spam")
    assert sees(reader, session)  # a moderator approved these words


@pytest.mark.slow
def test_a_moderator_does_not_approve_unseen_words(moderator: User, plan: Plan, spam: WordRule) -> None:
    session, seen = plan("spam"), timezone.now()
    edit(session, title="worse spam")
    with pytest.raises(actions.ChangedError):
        actions.approve(case=Case.objects.get(), by=moderator, modified_at=seen)
    live.start(session=session, now=timezone.now())  # a change of state is not a change of words
    actions.approve(case=Case.objects.get(), by=moderator, modified_at=timezone.now())


@pytest.mark.slow
def test_the_host_of_a_rejected_session_is_banned(reader: User, sender: User, moderator: User, plan: Plan) -> None:
    session = plan()
    reports.report_session(session_id=session.pk, reporter=reader, reason="spam")
    actions.reject_and_ban(case=Case.objects.get(), by=moderator)
    sender.refresh_from_db()
    assert not sender.is_active
    assert not sees(reader, session)


# --- The queue -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_sessions_in_the_queue(sender: User, reader: User, moderator: User, plan: Plan, spam: WordRule) -> None:
    session = plan("A spam show", url="https://watch.example/x")
    admin = logged_in(moderator)
    queue = "/admin/moderation/case/"
    page = admin.get(queue).content.decode()
    assert "A spam show" in page
    for asked in ("sender", str(session.pk)):
        assert "A spam show" in admin.get(queue, {"q": asked}).content.decode()
    case = Case.objects.get()
    page = admin.get(f"{queue}{case.pk}/change/").content.decode()
    assert "A <mark>spam</mark> show" in page
    assert "https://watch.example/x" in page
    assert "in review" in page
    decided = {"verb": "reject", "state": "open", "modified_at": timezone.now().isoformat(), "note": "no"}
    assert admin.post(f"{queue}{case.pk}/change/", decided).status_code == 302
    session.refresh_from_db()
    assert session.review == Review.REJECTED
    for address in ("report", "decision"):
        assert admin.get(f"/admin/moderation/{address}/", {"q": str(session.pk)}).status_code == 200
    second = plan("Another spam show")
    action = {"action": "approve", "_selected_action": [Case.objects.get(session_id=second.pk).pk],
              "seen": timezone.now().isoformat()}  # fmt: skip
    assert admin.post(queue, action).status_code == 302
    assert sees(reader, second)
    deactivation.deactivate(user=sender)
    plan_of_gone = Case.objects.filter(session_id=session.pk).first()
    assert plan_of_gone is not None
    LiveSession.objects.filter(pk=session.pk).delete()
    assert "This live session was deleted." in admin.get(f"{queue}{plan_of_gone.pk}/change/").content.decode()


@pytest.mark.slow
def test_reports_of_before_an_approval_do_not_count_against_another_wording(plan: Plan, settings: Any) -> None:
    settings.MODERATION_REPORTS = 3
    session, moderator = plan(), UserFactory(is_staff=True)
    for reporter in UserFactory.create_batch(3):
        reports.report_session(session_id=session.pk, reporter=reporter, reason="spam")
    assert held(session)
    actions.approve(case=Case.objects.get(session_id=session.pk), by=moderator)
    Case.objects.update(decided_at=timezone.now() - timedelta(seconds=10))
    Report.objects.update(created_at=timezone.now() - timedelta(seconds=20))
    session.refresh_from_db()
    edit(session, title="A better show")
    for count, reporter in enumerate(UserFactory.create_batch(3), 1):
        reports.report_session(session_id=session.pk, reporter=reporter, reason="spam")
        assert held(session) == (count == 3)
