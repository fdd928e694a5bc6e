import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from rest_framework.test import APIClient

from accounts.about import actions, site
from accounts.about.models import Rule
from accounts.export import encode
from accounts.models import User
from items import actions as items
from items.models import Item, Visibility
from moderation import export
from moderation.models import Report
from relations.actions import block
from tests.support.cases import Say

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(reader: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(reader, token="x")
    return client


def report(client: APIClient, item: Any, body: Any = None) -> Any:
    number = item.pk if isinstance(item, Item) else item
    return client.post(f"/api/v1/items/{number}/report", {"reason": "spam"} if body is None else body)


def test_a_report_is_idempotent(api: APIClient, reader: User, say: Say) -> None:
    item = say()
    assert report(api, item, {"reason": "abuse", "text": "  rude 中文 "}).status_code == 204
    response = report(api, item)
    assert (response.status_code, response.content) == (204, b"")
    made = Report.objects.get()
    assert (made.reporter, made.item, made.reason, made.text) == (reader, item, "abuse", "rude 中文")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": "boring"},
        {"reason": None},
        {"reason": 1},
        {"reason": ["spam"]},
        {"reason": "spam", "text": 5},
        {"reason": "spam", "text": None},
        {"reason": "spam", "text": "x" * 501},
        {"reason": "spam", "text": "\x00"},
        {"reason": "spam", "reporter": 1},
        {"reason": "spam", "case": 1},
        [],
    ],
)
def test_bad_bodies(api: APIClient, say: Say, body: Any) -> None:
    assert report(api, say(), body).status_code == 400
    assert not Report.objects.exists()


@pytest.mark.parametrize("number", ["0", "-1", "abc", "1_0", "1.5", "٣", "9" * 17, "9" * 400, "1", "123456789"])
def test_ids_that_never_were(api: APIClient, number: str) -> None:
    response = report(api, number)
    assert response.status_code == 404
    assert response.content == APIClient().get("/api/v1/items/1").content


def test_what_one_may_not_see_one_cannot_report(api: APIClient, reader: User, sender: User, say: Say) -> None:
    never = report(api, "123456789")
    hidden = [say(visibility=Visibility.SELF), say(visibility=Visibility.MUTUALS), say("deleted"), say("held")]
    items.delete(item=hidden[2])
    items.hold(item=hidden[3], reasons=["test: held"])
    seen = say()
    block(blocker=sender, blocked=reader)
    for item in [*hidden, seen]:
        response = report(api, item)
        assert (response.status_code, response.content) == (404, never.content)
        # An invalid body gets the same 404, because the item is not visible.
        assert report(api, item, {"reason": "boring"}).content == never.content
    assert not Report.objects.exists()


def test_ones_own(reader: User, api: APIClient, say: Say) -> None:
    assert report(api, say(by=reader)).status_code == 400
    assert not Report.objects.exists()


def test_others(say: Say, api: APIClient, reader: User) -> None:
    item = say()
    anonymous = report(APIClient(), item)
    assert (anonymous.status_code, anonymous["WWW-Authenticate"]) == (401, "Token")
    with_session = APIClient(enforce_csrf_checks=True)
    with_session.force_login(reader)
    assert report(with_session, item).status_code == 403
    assert api.get(f"/api/v1/items/{item.pk}/report").status_code == 405
    assert api.post(f"/api/v1/items/{item.pk}/report", "reason=spam", content_type="text/plain").status_code == 415
    assert report(api, item, {"reason": "spam", "text": "x" * 70_000}).status_code == 413
    assert not Report.objects.exists()


def test_the_rate(api: APIClient, say: Say, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"report": "2/hour"}
    item = say()
    assert [report(api, item).status_code for _ in range(3)] == [204, 204, 429]
    assert int(report(api, item)["Retry-After"]) > 0


def encoded(reader: User) -> Iterator[bytes]:
    return (encode(row) for file in export.files(reader) for row in file.rows)


@pytest.fixture
def rule() -> Rule:
    rule = Rule.objects.create(number=4, text="Be <kind>.")
    site.site_copy.set(site.read())
    return rule


def test_a_report_names_a_rule(api: APIClient, reader: User, say: Say, rule: Rule) -> None:
    item = say()
    assert report(api, item, {"reason": "abuse", "rule": str(rule.pk)}).status_code == 204
    assert Report.objects.get().rule == rule
    (told,) = [json.loads(line) for line in encoded(reader)]
    assert (told["reason"], told["rule"]) == ("abuse", "Be <kind>.")


@pytest.mark.parametrize("wrong", ["999", "", "one", 1, [], True, "-1"])
def test_rules_that_are_none_are_refused(api: APIClient, say: Say, rule: Rule, wrong: Any) -> None:
    response = report(api, say(), {"reason": "abuse", "rule": wrong})
    assert (response.status_code, list(response.json())) == (400, ["rule"])
    assert not Report.objects.exists()


@pytest.mark.slow
def test_a_report_of_a_quote_shows_both(api: APIClient, say: Say, client: Client) -> None:
    said = say("the original")
    quote = items.publish(sender=said.sender, content={"text": "my words"}, quote_of=said)
    report(api, quote, {"reason": "abuse"})
    client.force_login(User.objects.create_superuser("keeper", "correct horse battery staple"))
    page = client.get(f"/admin/moderation/case/{Report.objects.get().case_id}/change/").content.decode()
    assert "my words" in page
    assert "the original" in page
    assert f"/admin/items/item/{said.pk}/change/" in page
    form = client.get(f"/items/{quote.pk}/report").content.decode()
    assert "my words" in form
    assert "the original" in form


@pytest.mark.slow
def test_a_withdrawn_rule_is_named_no_more_and_kept_where_it_was(
    api: APIClient, say: Say, rule: Rule, client: Client
) -> None:
    first, second = say(), say()
    report(api, first, {"reason": "abuse", "rule": str(rule.pk)})
    actions.withdraw_rule(rule_id=rule.pk)
    site.site_copy.set(site.read())
    assert report(api, second, {"reason": "abuse", "rule": str(rule.pk)}).status_code == 400
    client.force_login(User.objects.create_superuser("keeper", "correct horse battery staple"))
    case = Report.objects.get().case
    assert "Be &lt;kind&gt;." in client.get(f"/admin/moderation/case/{case.pk}/change/").content.decode()


@pytest.mark.slow
def test_the_queue_and_the_form_name_rules(reader: User, say: Say, rule: Rule, client: Client) -> None:
    item = say()
    client.force_login(reader)
    form = client.get(f"/items/{item.pk}/report").content.decode()
    assert "1. Be &lt;kind&gt;." in form
    wrong = client.post(f"/items/{item.pk}/report", {"reason": "abuse", "rule": "999"})
    assert wrong.status_code == 422
    assert client.post(f"/items/{item.pk}/report", {"reason": "abuse", "rule": str(rule.pk)}).status_code == 200
    assert Report.objects.get().rule == rule
    client.force_login(User.objects.create_superuser("keeper", "correct horse battery staple"))
    assert "rule 1" in client.get("/admin/moderation/case/").content.decode()


def test_a_site_without_rules_asks_for_none(reader: User, say: Say, client: Client) -> None:
    client.force_login(reader)
    assert 'name="rule"' not in client.get(f"/items/{say().pk}/report").content.decode()
