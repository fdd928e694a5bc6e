import threading

import pytest
from django.db import connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from moderation import actions, reports
from moderation.case_admin import in_queue
from moderation.export import files
from moderation.models import Case, CaseState, Decision, Report, SenderKind, SenderRule
from relations import actions as relations
from tests.support.at_once import at_once, until_one_waits
from tests.support.clients import Caller
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob() -> User:
    return UserFactory(username="bob", bio="buy zebras")


@pytest.fixture
def admin() -> User:
    return UserFactory(username="admin", is_staff=True, is_superuser=True)


def test_a_report_opens_a_case_and_others_join(ann: User, bob: User) -> None:
    assert reports.report_account(account=bob, reporter=ann, reason="spam", text="look")
    assert not reports.report_account(account=bob, reporter=ann, reason="spam")
    assert reports.report_account(account=bob, reporter=UserFactory.create(), reason="abuse")
    case = in_queue(Case.objects.all()).get()
    assert (case.item, case.session_id, case.host, case.reports.count()) == (None, None, bob, 2)
    with pytest.raises(reports.OwnItemError):
        reports.report_account(account=bob, reporter=bob, reason="spam")
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert not in_queue(Case.objects.all()).exists()


def test_moderators_dismiss_it_or_ban_the_account(ann: User, bob: User, admin: User) -> None:
    reports.report_account(account=bob, reporter=ann, reason="spam")
    case = Case.objects.get()
    actions.approve(case=case, by=admin, note="fine")
    assert Case.objects.get().state == CaseState.APPROVED
    assert Decision.objects.get().user == bob
    assert reports.report_account(account=bob, reporter=ann, reason="spam"), "decided: it may be reported again"
    actions.reject_and_ban(case=Case.objects.get(state=CaseState.OPEN), by=admin)
    assert SenderRule.objects.get(user=bob).kind == SenderKind.BAN


def test_the_admin_shows_the_account(ann: User, bob: User, admin: User, client: Client) -> None:
    reports.report_account(account=bob, reporter=ann, reason="spam", text="look at them")
    client.force_login(admin)
    assert "Account: bob" in client.get("/admin/moderation/case/").content.decode()
    page = client.get(f"/admin/moderation/case/{Case.objects.get().pk}/change/").content.decode()
    assert "buy zebras" in page
    assert "look at them" in page
    assert f"/admin/accounts/user/{bob.pk}/change/" in page
    assert f"/admin/moderation/case/act/?users={bob.pk}" in page
    assert client.get("/admin/moderation/report/").status_code == 200


def test_the_pages(ann: User, bob: User, client: Client) -> None:
    client.force_login(ann)
    assert "/@bob/report" in client.get("/@bob").content.decode()
    assert "buy zebras" in client.get("/@bob/report").content.decode()
    assert client.post("/@bob/report", {"reason": ""}).status_code == 422
    answer = client.post("/@bob/report", {"reason": "spam", "text": "look"})
    assert "A moderator will check this account." in answer.content.decode()
    assert Report.objects.get().account == bob
    client.post("/@ann/report", {"reason": "spam"})
    assert Report.objects.count() == 1
    relations.block(blocker=bob, blocked=ann)
    assert client.get("/@bob/report").status_code == client.get("/@nobody/report").status_code


def test_the_apis(ann: User, bob: User) -> None:
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=ann)}")
    for _time in range(2):
        assert api.post("/api/v1/users/bob/report", {"reason": "spam"}, format="json").status_code == 204
    assert api.post("/api/v1/users/ann/report", {"reason": "spam"}, format="json").status_code == 400
    assert api.post("/api/v1/users/nobody/report", {"reason": "spam"}, format="json").status_code == 404
    carol = UserFactory(username="carol")
    report = Caller(carol).post("v1/reports", {"account_id": str(bob.pk), "comment": "look", "category": "legal"})
    assert (report["status_ids"], report["target_account"]["acct"]) == ([], "bob")
    assert set(Report.objects.values_list("account", "reason")) == {(bob.pk, "spam"), (bob.pk, "illegal")}
    Caller(carol).post("v1/reports", {"account_id": str(carol.pk)}, status=422)
    assert [row.account for row in files(carol)[0].rows] == ["bob"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_reports_at_once_open_one_case(bob: User) -> None:
    reporters = UserFactory.create_batch(4)
    at_once(*[(lambda who=who: reports.report_account(account=bob, reporter=who, reason="spam")) for who in reporters])
    assert Case.objects.count() == 1
    assert Report.objects.count() == 4


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_report_and_a_ban_at_once_do_not_deadlock(ann: User, bob: User, admin: User) -> None:
    reports.report_account(account=bob, reporter=ann, reason="spam")
    case, problems = Case.objects.get(), []

    def ban() -> None:
        try:
            actions.reject_and_ban(case=case, by=admin)
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            problems.append(error)
        finally:
            connection.close()

    banning = threading.Thread(target=ban)
    with transaction.atomic():
        User.objects.locked().get(pk=bob.pk)  # the report's first lock
        banning.start()
        until_one_waits()
        assert reports.report_account(account=bob, reporter=UserFactory.create(), reason="spam")
    banning.join(30)
    assert problems == []
    assert SenderRule.objects.get(user=bob).kind == SenderKind.BAN
