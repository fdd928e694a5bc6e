# ruff: noqa: RUF001 - full-width signs are meant
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection

from accounts.actions import delete_account, edit_profile
from accounts.models import User
from accounts.names import folded_name
from items.completing import completions
from items.search.query import parse
from items.search.user_search import search_users
from relations import actions as relations
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def people(query: str, reader: User | AnonymousUser | None = None, **options: Any) -> list[str]:
    return [user.username for user in search_users(parse(query), reader or AnonymousUser(), **options)]


def test_users_by_username_and_display_name() -> None:
    UserFactory.create(username="zhang", display_name="张三丰")
    UserFactory.create(username="Maria-Lopez", display_name="María López")
    for query in ("zhang", "ZHA", "@zhang", "张三", "三丰", "丰", "张三丰", "zhang 张", "#zhang", "zhang -maria"):
        assert people(query) == ["zhang"], query
    for query in ("maria", "lop", "López", "María López", "ia-lo", "ＭＡＲＩＡ", "m", '"maria-lopez"'):
        assert people(query) == ["Maria-Lopez"], query
    for query in ("李四", "zhang maria", "#zhang #maria", "-zhang", "from:zhang", "!", "%", "_", "\\"):
        assert people(query) == [], query


FOLDED = {
    "Łukasz Żak": ("lukasz", "Łukasz", "zak", "ŁUKASZ ŻAK", "ukas", "ża"),
    "Anaïs O\u2019Brien": ("anais", "o'brien", "O\u2019Brien", "anaïs o\u02bcbrien"),
    "O`Neil": ("o'neil", "o\u2019neil", "O`Neil"),
    "Straße": ("strasse", "STRASSE", "straße"),
    "Ёжик": ("ежик", "Ёжик", "ёж"),
    "Νίκος": ("νικος", "Νίκος", "ΝΊΚΟΣ"),
    "שָׁרָה": ("שרה", "שָׁרָה"),
    "نر\u06af\u0633\u200cجان": ("نر\u06af\u0633جان", "نر\u06af\u0633\u200cجان"),
    "x\u030cenia": ("xenia", "x\u030cenia"),
    "Iñaki Muñoz": ("munoz", "Muñoz", "mun\u0303oz", "inaki"),
}
"""Names, and queries that must find them."""


@pytest.mark.parametrize("name", FOLDED)
def test_names_are_folded_as_texts_are(name: str) -> None:
    user = UserFactory.create(username="someone", display_name=name)
    UserFactory.create(username="other", display_name="Other")
    for query in FOLDED[name]:
        assert people(query) == ["someone"], query
        assert [one.pk for one in User.objects.called(query)] == [user.pk], query
        assert [one.text for one in completions(f"@{query}", user)] == ["@someone"] * (" " not in query), query
    edit_profile(user=user, display_name="Jürgen")
    assert people(FOLDED[name][0]) == []
    assert people("jurgen") == people("jürgen") == ["someone"]
    edit_profile(user=user, display_name="Jurgen")
    assert people("jürgen") == ["someone"]


def test_a_plain_name_is_found_by_an_accented_query_and_first_if_it_begins_so() -> None:
    UserFactory.create(username="a", display_name="Ewa Łukasz", follower_count=9)
    UserFactory.create(username="b", display_name="Łukasz Nowak")
    UserFactory.create(username="c", display_name="Lukasz")
    assert people("łukasz") == people("lukasz") == ["b", "c", "a"]
    assert people("lukazs") == people("łukazs") == ["c", "a"], "misspelt"


def test_most_names_need_no_folded_copy() -> None:
    for name in ("Ann Other", "林美", "Маша", "", "ＡＢＣ", "Ann-Marie"):
        assert folded_name("ann", name) is None, name
    assert folded_name("ann", "Zoë") == "ann zoe"


def test_no_folded_name_is_left_of_a_deleted_account() -> None:
    user = UserFactory.create(username="someone", display_name="Zoë")
    delete_account(user=user)
    assert User.objects.get(pk=user.pk).folded_name is None


def test_users_who_are_found_have_their_pictures() -> None:
    facts = {"name": "aa/bb", "ext": "jpg", "small": True}
    UserFactory.create(username="alexandra", avatar=facts, banner=facts)
    UserFactory.create(username="alexander")
    for query in ("alexandra", "alexandar"):
        found = {user.username: user for user in search_users(parse(query), AnonymousUser())}
        assert (found["alexandra"].avatar, found["alexandra"].banner) == (facts, facts), query
        assert found["alexandra"].banner_url.endswith("/media/aa/bb.jpg")


def test_misspelt_names_are_found_where_few_fit() -> None:
    UserFactory.create(username="alexandra", display_name="Alexandra Smith")
    UserFactory.create(username="walter")
    assert people("alexandar") == people("alxandra") == ["alexandra"]
    assert people("xyzzy") == []


def test_a_similar_name_is_found_among_many_with_the_same_two_letters() -> None:
    User.objects.bulk_create(UserFactory.build(username=f"u{number}mna") for number in range(500))
    UserFactory.create(username="anna")
    assert people("bnna") == ["anna"], "its first letter is wrong"
    assert people("uxyz") == []


def test_the_very_name_comes_first_then_who_is_followed() -> None:
    reader = UserFactory.create()
    users = {name: UserFactory.create(username=name) for name in ("sam", "sam2", "sam3", "x-sam", "sam-big")}
    User.objects.filter(username="sam-big").update(follower_count=100)
    User.objects.filter(username="sam2").update(follower_count=5)
    assert people("sam") == ["sam", "sam-big", "sam2", "sam3", "x-sam"]
    relations.follow(follower=reader, followee=users["x-sam"])
    assert people("sam", reader) == ["sam", "x-sam", "sam-big", "sam2", "sam3"]
    assert people("sam", reader, limit=2) == ["sam", "x-sam"]


def test_users_who_block_the_reader_or_are_suspended_are_not_found() -> None:
    reader = UserFactory.create(username="reader")
    blocking, blocked, gone = (UserFactory.create(username=name) for name in ("tom-1", "tom-2", "tom-3"))
    relations.block(blocker=blocking, blocked=reader)
    relations.block(blocker=reader, blocked=blocked)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert people("tom", reader) == ["tom-2"]
    assert people("tom") == ["tom-1", "tom-2"]
    assert people("tom-1", reader) == ["tom-2"]


def test_renamed_users_are_found_by_the_new_name() -> None:
    user = UserFactory.create(username="someone", display_name="旧名字")
    User.objects.filter(pk=user.pk).update(display_name="新名字")
    assert people("旧名") == []
    assert people("新名") == ["someone"]


def test_the_functions_of_the_index_are_those_of_the_query() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT feedsite_grams(feedsite_name('Ab', '张')), feedsite_grams('')")
        assert cursor.fetchone() == ([" a", " ab", " 张", "ab", "ab ", "b ", "b 张", "张"], [])
