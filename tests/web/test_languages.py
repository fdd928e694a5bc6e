"""Any plural rules, date formats and direction."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.conf.locale import LANG_INFO
from django.test import Client
from django.utils import translation
from django.utils.translation import ngettext

from accounts.mail.letters import compose
from accounts.mail.models import Letter
from notifications.sentences import act_sentence, words_of
from tests.support.factories import UserFactory
from tests.support.languages import FORMS, in_arabic, offer_arabic
from web import languages
from web.times import LETTERS, format_moment

MOMENT = datetime(2026, 3, 9, 7, 5, tzinfo=UTC)
FORMATS = ("DATE_FORMAT", "DATETIME_FORMAT", "SHORT_DATE_FORMAT", "SHORT_DATETIME_FORMAT", "MONTH_DAY_FORMAT")


@pytest.fixture
def arabic(settings: LazySettings, tmp_path: Path) -> None:
    offer_arabic(settings, tmp_path)


@pytest.mark.django_db
def test_a_language_from_right_to_left_is_offered_and_turns_the_page(arabic: None, client: Client) -> None:
    assert [language.code for language in languages.other_languages()] == ["es", "ja", "zh-hans", "ar"]
    page = client.get("/login", headers={"Accept-Language": "ar"}).content.decode()
    assert '<html lang="ar" dir="rtl"' in page
    assert f"<h1>{in_arabic('Log in')}</h1>" in page
    assert 'name="language" value="ar" lang="ar">العربية</button>' in client.get("/login").content.decode()


def test_a_plural_is_chosen_by_the_rules_of_the_language(arabic: None) -> None:
    with translation.override("ar"):
        said = [ngettext("%(count)s reply", "%(count)s replies", count)[-1] for count in (0, 1, 2, 3, 11, 100)]
    assert said == [str(form) for form in range(FORMS)]


@pytest.mark.parametrize("code", sorted(code for code, facts in LANG_INFO.items() if "name" in facts))
def test_dates_are_written_in_every_language_of_django(code: str) -> None:
    with translation.override(code):
        assert all(format_moment(MOMENT, form) for form in FORMATS)
        assert "\\" not in "".join(format_moment(MOMENT, form) for form in FORMATS)


def test_the_sites_own_formats_take_the_short_way() -> None:
    with translation.override("en"):
        assert format_moment(MOMENT, "DATETIME_FORMAT") == "9 March 2026, 07:05"
    assert set("jFY") < LETTERS.keys()


def test_a_site_chooses_its_default_among_all(arabic: None) -> None:
    offered = [("", "English"), ("es", "español"), ("ja", "日本語"), ("zh-hans", "简体中文"), ("ar", "العربية")]
    assert languages.default_choices() == offered


@pytest.mark.parametrize(
    ("language", "name", "shown"),
    [("en", "Ann", "Ann"), ("en", "محمد", "\u2068محمد\u2069"), ("ar", "Ann", "\u2068Ann\u2069")],
)
def test_a_name_turns_no_words_around(language: str, name: str, shown: str) -> None:
    with translation.override(language):
        assert languages.isolate(name) == shown
        assert shown in act_sentence("follow", None, name)


def test_what_several_did_is_a_sentence_of_several() -> None:
    with translation.override("en"):
        said = [words_of("follow_request", None, count) for count in (1, 2)]
    assert said == ["{people} wants to follow you", "{people} want to follow you"]


@pytest.mark.django_db
def test_titles_isolate_names(client: Client) -> None:
    UserFactory.create(username="author", display_name="محمد")
    page = client.get("/@author").content.decode()
    assert "<title>\u2068\u2068محمد\u2069 (@author)\u2069 · feedsite</title>" in page


@pytest.mark.django_db
def test_a_letter_from_right_to_left(arabic: None) -> None:
    context = {"name": "ann", "device": "Firefox", "ip": "192.0.2.1", "when": "…"}
    letter = compose(Letter(kind="new_sign_in", language="ar", context=context, created_at=MOMENT))
    html, _type = letter.alternatives[0]
    assert '<html lang="ar" dir="rtl">' in str(html)
    assert "\u2068feedsite\u2069" in letter.subject
    assert "\u2068192.0.2.1\u2069" in letter.body


@pytest.mark.django_db
def test_the_admin_is_english_where_it_is_not_translated(arabic: None, client: Client) -> None:
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True, language="ar"))
    assert '<html lang="en" dir="ltr"' in client.get("/admin/").content.decode()
    settings_page = client.get("/settings").content.decode()
    assert "(in English)" in settings_page or in_arabic("(in English)") in settings_page
