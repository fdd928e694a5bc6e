import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import OperationalError, connection, transaction
from django.test import RequestFactory
from django.utils import timezone

from accounts.about import actions, site
from accounts.about.models import Rule, SignUp, SiteSettings
from storage.connections import count_trips
from web.pages import too_many

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _as_a_new_process() -> Iterator[None]:
    site.site_copy.forget()
    yield
    SiteSettings.objects.all().delete()
    Rule.objects.all().delete()


def test_a_site_without_a_row_has_the_defaults() -> None:
    assert site.current() == site.Site()
    assert site.current().sign_up == SignUp.OPEN


def test_a_change_is_seen_at_once_by_its_process_and_costs_two_statements_a_time() -> None:
    assert site.current().name == "feedsite"
    actions.change_settings(name="Reading room", sign_up=SignUp.APPROVAL, contact_email="post@example.org")
    with count_trips() as asked:
        assert site.current().name == "Reading room"
        assert site.current().sign_up == SignUp.APPROVAL
        assert site.current().contact_email == "post@example.org"
        assert asked.statements == 2
        for _ in range(100):
            site.current()
        assert asked.statements == 2


def test_another_process_sees_a_change_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    other = site.SiteCopy()
    monkeypatch.setattr(site, "SECONDS", 0.0)
    assert other.get().name == "feedsite"
    actions.change_settings(name="Reading room")
    assert other.get().name == "Reading room"


def test_a_change_that_is_rolled_back_is_seen_by_none() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():  # noqa: PT012
        actions.change_settings(name="Reading room")
        raise RuntimeError
    assert site.current().name == "feedsite"


def test_the_environment_overrides_the_choice(settings: Any) -> None:
    actions.change_settings(sign_up=SignUp.OPEN)
    settings.SIGN_UP = "closed"
    assert site.current().sign_up == SignUp.CLOSED


def test_while_postgresql_refuses_the_last_copy_holds_on(monkeypatch: pytest.MonkeyPatch) -> None:
    actions.change_settings(name="Reading room")
    assert site.current().name == "Reading room"

    def refuse() -> site.Site:
        raise OperationalError("gone")

    monkeypatch.setattr(site, "read", refuse)
    site.site_copy.forget()
    assert site.current().name == "Reading room"


def test_a_site_that_was_never_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may start while PostgreSQL is down."""

    def refuse() -> site.Site:
        raise OperationalError("gone")

    monkeypatch.setattr(site, "read", refuse)
    unread = site.SiteCopy().get()
    assert unread.is_for_members
    assert unread.sign_up == SignUp.CLOSED


def test_pages_of_errors_bear_the_name_and_ask_no_server(settings: Any, django_assert_num_queries: Any) -> None:
    site.site_copy.set(site.Site(name="Reading room", accent="#0a6b3d"))
    site.site_copy.forget()  # its copy has expired
    with django_assert_num_queries(0):
        page = too_many(RequestFactory().get("/login"), 3).content.decode()
    assert "<title>Too many tries · Reading room</title>" in page
    assert "/about/theme-" in page
    assert "feedsite</span>" not in page
    assert "Try again in 3 seconds." in page
    assert "Try again in 15 minutes." in too_many(RequestFactory().get("/login"), 849).content.decode()


def test_one_thread_reads_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    read, begun, go = site.read, threading.Event(), threading.Event()
    kept = site.SiteCopy()
    before = kept.get()
    kept.forget()

    def slowly() -> site.Site:
        begun.set()
        assert go.wait(30)
        try:
            return read()
        finally:
            connection.close()

    monkeypatch.setattr(site, "read", slowly)
    reader = threading.Thread(target=kept.get)
    reader.start()
    assert begun.wait(30)
    assert kept.get() is before, "no wait"
    go.set()
    reader.join()
    assert kept.get() is not before


def test_rules_have_the_numbers_that_readers_see() -> None:
    first = Rule.objects.create(number=3, text="Be kind.")
    second = Rule.objects.create(number=9, text="No spam.")
    gone = Rule.objects.create(number=1, text="Speak in verse.", withdrawn_at=timezone.now())
    assert [(rule.id, rule.number) for rule in site.read().rules] == [(first.pk, 1), (second.pk, 2)]
    first.text = "Be good."
    actions.save_rule(rule=first)
    actions.save_rule(rule=Rule(number=5, text="Cite."))
    actions.withdraw_rule(rule_id=second.pk)
    assert [rule.text for rule in site.current().rules] == ["Be good.", "Cite."]
    assert Rule.objects.filter(pk__in=[second.pk, gone.pk]).count() == 2, "reports name them"


def test_a_site_has_a_hundred_rules_at_most() -> None:
    Rule.objects.bulk_create([Rule(number=1, text="Again.") for _ in range(site.RULES)])
    with pytest.raises(ValidationError):
        actions.save_rule(rule=Rule(number=1, text="Once more."))
    assert Rule.objects.count() == site.RULES


def test_an_announcement_ends_at_its_time() -> None:
    soon, past = timezone.now() + timedelta(minutes=1), timezone.now() - timedelta(minutes=1)
    assert site.Site(announcement="Closed on Monday.").news
    assert site.Site(announcement="Closed on Monday.", announcement_until=soon).news
    assert not site.Site(announcement="Closed on Monday.", announcement_until=past).news


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "two\nlines"),
        ("name", "x" * 41),
        ("accent", "red"),
        ("accent", "#12345g"),
        ("contact_email", "post@example.org\nBcc: all@example.org"),
        ("contact_username", "two words"),
        ("sign_up", "maybe"),
        ("looking", "nobody"),
        ("description", "x" * 5_001),
    ],
)
def test_wrong_values_are_refused(field: str, value: str) -> None:
    with pytest.raises(ValidationError) as refused:
        actions.change_settings(**{field: value})
    assert list(refused.value.error_dict) == [field]
    assert not SiteSettings.objects.exists()


def test_counts_are_kept_in_the_row() -> None:
    actions.store_counts(users=3, active=2, items=4)
    assert (site.read().user_count, site.read().item_count) == (3, 4), "a row is made for them"
    actions.change_settings(name="Reading room")
    actions.store_counts(users=5, active=3, items=6)
    assert (site.read().name, site.read().user_count, site.read().item_count) == ("Reading room", 5, 6)
