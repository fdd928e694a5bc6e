# ruff: noqa: RUF001 - full-width letters are meant
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from items.search.words import WORD_LENGTH, document, phrase, runs


@pytest.mark.parametrize(
    ("title", "text", "words"),
    [
        ("", "Hello, WORLD", "hello:1 world:2"),
        ("", "a_b c-d 3.14 don't", "a:1 b:2 c:3 d:4 3:5 14:6 don:7 t:8"),
        ("A title", "text", "a:1 title:2 text:5"),
        ("", "ＡＢＣ ½ Straße Ⅳ", "abc:1 12:2 strasse:3 iv:4"),
        ("", "Café CAFE\u0301 naïve", "cafe:1 cafe:2 naive:3"),
        ("", "Привет й", "привет:1 й:2"),
        ("", "小红书", "小:1 红:2 小红:1 书:3 红书:2"),
        ("", "你好，世界", "你:1 好:2 你好:1 世:3 界:4 世界:3"),
        ("", "买iPhone手机", "买:1 iphone:2 手:3 机:4 手机:3"),
        ("", "ｶﾞ 한국", "が:1 한:2 국:3 한국:2"),
        ("", "x" * 100, f"{'x' * WORD_LENGTH}:1"),
        ("", "?!，。 🎉", ""),
        ("", "don’t donʼt", "don:1 t:2 don:3 t:4"),
        ("", "Łódź Ёлка Ἀθήνα", "lodz:1 елка:2 αθηνα:3"),
        ("", "שָׁלוֹם مَرْحَبًا می\u200cخواهم", "שלום:1 مرحبا:2 ميخواهم:3"),
        ("", "हिन्दी चाय", "हिन्दी:1 चाय:2"),
        ("", "ที่ดี", "ที่:1 ดี:2 ที่ดี:1"),
    ],
)
def test_document(title: str, text: str, words: str) -> None:
    assert document(title, text) == words


@pytest.mark.parametrize(
    ("text", "is_open", "query"),
    [
        ("hello", False, "('hello')"),
        ("hel", True, "('hel':*)"),
        ("h", True, "('h')"),
        ("12", True, "('12')"),
        ("foo bar", False, "('foo' <1> 'bar')"),
        ("学", True, "('学')"),
        ("小红书", True, "('小红' <1> '红书')"),
        ("小红 书x", True, "('小红' <2> '书' <1> 'x')"),
        ("手机ipho", True, "('手机' <2> 'ipho':*)"),
    ],
)
def test_phrase(text: str, is_open: bool, query: str) -> None:
    assert phrase(list(runs(text)), is_open=is_open) == query


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "sought"),
    [
        ("ภาษาไทยไม่มีวรรค", "ไทย"),
        ("ພາສາລາວບໍ່ມີຍະຫວ່າງ", "ລາວ"),
        ("ភាសាខ្មែរគ្មានចន្លោះ", "ខ្មែរ"),
        ("မြန်မာဘာသာစကား", "ဘာသာ"),
        ("ที่" + "\u0e31" * 5_000, "ที่"),
        ("I don’t know", "don't"),
        ("w Łodzi", "lodzi"),
        ("el año pasado en España", "ESPAN\u0303A"),
        ("今日のラーメン", "らーめん"),
        ("きょうのらーめん", "ﾗｰﾒﾝ"),
        ("مدرسة", "مدرسه"),
        ("الْعَرَبِيَّة", "العربيه"),
        ("أحمد إلى آخر", "احمد الي اخر"),
        ("جميـــل", "جميل"),
        ("كتاب فارسی", "کتاب فارسي"),
        ("عام ٢٠٢٦", "2026"),
    ],
)
def test_what_is_sought_is_found(text: str, sought: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::tsvector @@ %s::tsquery", [document("", text), phrase(list(runs(sought)))])
        assert cursor.fetchone()[0] == ("\u0e31" not in text)


@pytest.mark.slow
@pytest.mark.django_db
@given(st.text(max_size=60), st.text(max_size=60))
def test_postgresql_reads_what_is_written(title: str, text: str) -> None:
    found = list(runs(text))
    with connection.cursor() as cursor:
        cursor.execute("SELECT length(%s::tsvector)", [document(title, text)])
        assert (cursor.fetchone()[0] > 0) == bool(found or list(runs(title)))
        if found:  # a text contains itself as a phrase
            cursor.execute("SELECT %s::tsvector @@ %s::tsquery", [document(title, text), phrase(found)])
            assert cursor.fetchone()[0]
