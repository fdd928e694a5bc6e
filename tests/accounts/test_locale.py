from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory
from django.utils import timezone, translation
from rest_framework.test import APIClient

from accounts.about import site
from accounts.actions import issue_token
from accounts.locale import zone_city, zone_of
from accounts.models import User
from items.models import Item
from items.pages.reading import ago, full_time, time_left
from tests.support.factories import ItemFactory
from tests.support.pages import logged_in
from tests.support.pictures import upload
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

CHINESE: Any = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9,en;q=0.5"}
NOON = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("accepts", "tag"),
    [
        ("", "en"),
        ("en-GB", "en"),
        ("zh-CN", "zh-Hans"),
        ("zh", "zh-Hans"),
        ("zh-Hans-CN;q=0.9, en;q=0.8", "zh-Hans"),
        ("zh-TW", "zh-Hans"),
        ("de, zh;q=0.1", "zh-Hans"),
        ("en, zh;q=0.9", "en"),
        ("de", "en"),
        ("\xff\x00, ;;;q=x" + "a" * 5000, "en"),
    ],
)
def test_strangers_read_what_their_browser_asks_for(client: Client, accepts: str, tag: str) -> None:
    response = client.get("/login", HTTP_ACCEPT_LANGUAGE=accepts)
    page = response.content.decode()
    assert f'<html lang="{tag}" dir="ltr">' in page
    assert ("<h1>登录</h1>" in page) is (tag == "zh-Hans")
    assert response["Content-Language"].lower() == tag.lower()
    assert {"Accept-Language", "Cookie"} <= {name.strip() for name in response["Vary"].split(",")}


def test_a_stranger_switches_and_comes_back_to_the_page(client: Client) -> None:
    assert '<button name="language" value="zh-hans" lang="zh-Hans">简体中文</button>' in (
        client.get("/signup?next=%2F").content.decode()
    )
    response = client.post("/language", {"language": "zh-hans", "next": "/signup?next=%2F"})
    assert response["Location"] == "/signup?next=%2F"
    page = client.get("/signup").content.decode()
    assert "创建账号" in page
    assert 'value="en" lang="en">English</button>' in page
    client.post("/language", {"language": "en"})
    assert "Create account" in client.get("/signup", **CHINESE).content.decode()


@pytest.mark.parametrize("language", ["", "de", "zh-hant", "zh", "../en", "\x00"])
def test_other_languages_are_a_bad_request(client: Client, language: str) -> None:
    assert client.post("/language", {"language": language}).status_code == 400
    assert client.get("/language").status_code == 405


def test_a_user_keeps_a_language_wherever_they_sign_in(client: Client, reader: User) -> None:
    client.force_login(reader)
    client.post("/language", {"language": "zh-hans"})
    reader.refresh_from_db()
    assert reader.language == "zh-hans"
    elsewhere = logged_in(reader)
    elsewhere.cookies["language"] = "en"
    assert '<html lang="zh-Hans"' in elsewhere.get("/settings", HTTP_ACCEPT_LANGUAGE="en").content.decode()
    assert '<html lang="en"' in Client().get("/login").content.decode()


def test_a_language_that_the_site_no_longer_has_is_the_browsers(client: Client, reader: User) -> None:
    User.objects.update(language="de", time_zone="Atlantis/Capital")
    client.force_login(reader)
    assert '<html lang="zh-Hans"' in client.get("/settings", **CHINESE).content.decode()


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/nothing", 404, "页面不存在"),
        ("/items/1", 404, "页面不存在"),
        ("/@reader?last_id=x", 400, "链接有误"),
    ],
)
def test_error_pages_too(client: Client, reader: User, address: str, status: int, words: str) -> None:
    response = client.get(address, **CHINESE)
    assert response.status_code == status
    page = response.content.decode()
    assert words in page
    assert '<html lang="zh-Hans" dir="ltr">' in page


def test_refusals_too(reader: User, settings: Any) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert "提交失败" in strict.post("/login", {}, **CHINESE).content.decode()
    settings.RATES = settings.RATES | {"login": "1/hour"}
    client = Client()
    for _ in range(2):
        response = client.post("/login", {"username": "reader", "password": "x"}, **CHINESE)
    assert response.status_code == 429
    assert "操作太频繁了" in response.content.decode()


def test_what_forms_refuse_is_said_in_the_readers_language(client: Client) -> None:
    page = client.post("/signup", {"username": "no spaces", "password": "longer than eight"}, **CHINESE)
    assert "1 到 30 个英文字母" in page.content.decode()
    page = client.post("/signup", {"username": "fine", "password": "short"}, **CHINESE)
    assert "密码" in page.content.decode()
    assert "too short" not in page.content.decode()


def test_the_api_speaks_english_and_utc(reader: User) -> None:
    User.objects.update(language="zh-hans", time_zone="Asia/Shanghai")
    item = Item.objects.get(pk=ItemFactory(sender=reader).pk)
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=reader)}", HTTP_COOKIE="time_zone=Asia/Shanghai")
    assert api.get("/api/v1/items/1", **CHINESE).json() == {"detail": "Not found."}
    refused = api.post("/api/v1/items", {"content": {"text": ""}}, **CHINESE)
    assert "is empty" in refused.content.decode()
    shown = api.get(f"/api/v1/items/{item.pk}", **CHINESE).json()
    assert shown["created_at"].endswith("Z")


def test_the_api_answers_scripts_of_a_page_in_its_language(client: Client, reader: User, media_folder: Path) -> None:
    User.objects.update(language="zh-hans", time_zone="Asia/Shanghai")
    client.force_login(reader)
    sent = {"file": upload(b"no picture")}
    refused = client.post("/api/v1/me/media", sent, headers={"X-Reader": str(reader.pk)})
    assert refused.status_code == 415
    assert "请使用图片" in refused.json()["file"][0]
    item = ItemFactory(sender=reader)
    shown = client.get(f"/api/v1/items/{item.pk}", headers={"X-Reader": str(reader.pk)}).json()
    assert shown["created_at"].endswith("Z")


def test_nothing_is_left_for_the_next_reader(client: Client, reader: User) -> None:
    User.objects.update(language="zh-hans", time_zone="Asia/Shanghai")
    client.force_login(reader)
    client.get("/settings")
    assert translation.get_language() == "en"
    assert timezone.get_current_timezone_name() == "UTC"


def test_a_page_asks_for_its_reader_once(client: Client, reader: User) -> None:
    client.force_login(reader)
    client.get("/settings")
    with statements() as asked:
        client.get("/settings")
    assert sum('FROM "accounts_user"' in query for query in asked) == 1


@pytest.mark.slow
def test_times_are_those_of_the_reader(client: Client, reader: User) -> None:
    with time_machine.travel(NOON, tick=False):
        item = Item.objects.get(pk=ItemFactory(sender=reader).pk)
    address = f"/items/{item.pk}"
    moment = item.created_at

    def says(zone: str, pattern: str = "%H:%M") -> bool:
        return moment.astimezone(ZoneInfo(zone)).strftime(pattern) in client.get(address).content.decode()

    assert says("UTC")
    client.cookies["time_zone"] = "Asia/Shanghai"
    assert says("Asia/Shanghai")
    assert "UTC+8" in client.get(address).content.decode()
    for nonsense in ("Asia/Nowhere", "../../etc/passwd", "x" * 3000, "/etc/localtime", "Asia"):
        client.cookies["time_zone"] = nonsense
        assert says("UTC"), nonsense
    client.cookies["time_zone"] = "Asia/Shanghai"
    client.force_login(reader)
    User.objects.update(time_zone="America/New_York")
    assert says("America/New_York")


def test_ages_and_dates_in_both_languages() -> None:
    with time_machine.travel(NOON, tick=False), timezone.override(ZoneInfo("Asia/Shanghai")):
        moments = [
            NOON - timedelta(seconds=30),
            NOON - timedelta(minutes=3),
            NOON - timedelta(hours=5),
            NOON - timedelta(days=2),
            datetime(2025, 12, 31, 16, 30, tzinfo=UTC),  # already next year in Shanghai
            datetime(2025, 12, 31, 15, 30, tzinfo=UTC),
        ]
        assert [ago(moment) for moment in moments] == ["now", "3 min", "5 h", "20 Nov", "1 Jan", "31 Dec 2025"]
        assert full_time(NOON) == "22 November 2026, 04:30 UTC+8"
        with translation.override("zh-hans"):
            assert [ago(moment) for moment in moments] == [
                "刚刚",
                "3 分钟前",
                "5 小时前",
                "11月20日",
                "1月1日",
                "2025年12月31日",
            ]
            assert full_time(NOON) == "2026年11月22日 04:30 UTC+8"
    for zone, offset in {"America/St_Johns": "UTC−3:30", "Asia/Kathmandu": "UTC+5:45", "UTC": "UTC"}.items():  # noqa: RUF001
        with timezone.override(ZoneInfo(zone)):
            assert full_time(NOON).endswith(offset)


def test_what_is_left_in_both_languages() -> None:
    with time_machine.travel(NOON, tick=False):
        ends = [
            NOON + timedelta(seconds=seconds)
            for seconds in (-5, 59, 119, 3_599, 3_600, 80_000, 86_399, 30 * 86_400 - 1)
        ]
        said = ["1 min", "1 min", "2 min", "1 h", "1 h", "22 h", "1 day", "30 days"]
        assert [time_left(end) for end in ends] == [f"{one} left" for one in said]
        with translation.override("zh-hans"):
            said = ["1 分钟", "1 分钟", "2 分钟", "1 小时", "1 小时", "22 小时", "1 天", "30 天"]
            assert [time_left(end) for end in ends] == [f"还剩 {one}" for one in said]


def test_numbers_are_grouped_in_both_languages(client: Client, reader: User) -> None:
    User.objects.update(follower_count=1234567)
    for headers in ({}, CHINESE):
        assert "<b>1,234,567</b>" in client.get("/@reader", **headers).content.decode()


@pytest.mark.parametrize(
    ("language", "zone", "name"),
    [
        ("en", "Asia/Shanghai", "Shanghai"),
        ("zh-hans", "Asia/Shanghai", "上海"),
        ("zh-hans", "America/Argentina/Ushuaia", "Argentina / Ushuaia"),
        ("zh-hans", "UTC", "UTC"),
    ],
)
def test_a_zone_has_the_name_of_its_city(language: str, zone: str, name: str) -> None:
    with translation.override(language):
        assert zone_city(zone) == name


@pytest.mark.parametrize(
    ("asked", "cookie", "found"),
    [
        ("", "", "zh-Hans"),
        ("fr-FR,fr;q=0.9", "", "zh-Hans"),
        ("fr-FR,en;q=0.5", "", "en"),
        ("en-GB", "", "en"),
        ("fr", "en", "en"),
        ("zh-CN", "", "zh-Hans"),
    ],
)
def test_the_sites_language_is_for_browsers_that_ask_for_none_of_its_own(asked: str, cookie: str, found: str) -> None:
    site.site_copy.set(site.Site(language="zh-hans"))
    client = Client(headers={"Accept-Language": asked} if asked else {})
    if cookie:
        client.cookies[settings.LANGUAGE_COOKIE_NAME] = cookie
    assert f'<html lang="{found}"' in client.get("/login").content.decode()


def test_the_sites_time_zone_is_for_readers_whose_own_is_not_known() -> None:
    site.site_copy.set(site.Site(time_zone="Asia/Kathmandu"))
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    assert str(zone_of(request)) == "Asia/Kathmandu"
    request.COOKIES["time_zone"] = "Europe/Paris"
    assert str(zone_of(request)) == "Europe/Paris"
