# ruff: noqa: RUF001 - full-width signs are what is tested
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from items.models import ItemType
from items.text import (
    TAGS_AN_ITEM,
    ContentError,
    SpanKind,
    check_content,
    hashtags,
    links,
    mentions,
    spans,
)
from tests.support.texts import TEXTS, WIDE_AT, WIDE_HASH
from web.hashtags import LENGTH, canonical_tag
from web.letters import is_blank


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@alice", ["alice"]),
        ("hi @Alice, @bob! (@c-d_9) .@e", ["Alice", "bob", "c-d_9", "e"]),
        ("@alice @ALICE @bob @Alice", ["alice", "bob"]),
        ("你好@alice，谢谢@bob！【@c】「@d」@e。", ["alice", "bob", "c", "d", "e"]),
        ("@alice你好", ["alice"]),
        (f"{WIDE_AT}alice", ["alice"]),
        ("@" + "a" * 30, ["a" * 30]),
        ("@" + "a" * 31, []),
        ("a@b.org first.last@b.org first.@b x_@b 9@b é@b", []),
        ("/@alice x/@alice", []),
        ("https://example.com/@alice www.example.com?q=@alice", []),
        ("@alice@example.com @alice@ @@alice", []),
        ("@joséphine @é @", []),
        ("@alice.\n@bob", ["alice", "bob"]),
        ("@tomas/@mira", ["tomas", "mira"]),
        ("@tomas/@mira/#tea/@bo", ["tomas", "mira", "bo"]),
        ("@tomas- @a--, @-", ["tomas", "a"]),
        ("สวัสดี@tomas ❤\ufe0f@mira", ["tomas", "mira"]),
        ("e\u0301@b.org", []),
    ],
)
def test_mentions(text: str, names: list[str]) -> None:
    assert mentions(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@tomas@this.site", ["tomas"]),
        ("@tomas@This.Site. @mira@this.site:8000/x", ["tomas", "mira"]),
        ("@tomas@this.site你好", ["tomas"]),
        ("@tomas@x.example @tomas@this.site.example @tomas@sub.this.site @tomas@this.site@x @tomas-@this.site", []),
    ],
)
def test_mentions_with_the_domain_of_this_site(text: str, names: list[str], settings: Settings) -> None:
    settings.SITE_URL = "https://this.site"
    assert mentions(text) == names
    assert "".join(span.text for span in spans(text)) == text


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#django", ["django"]),
        ("#Django #DJANGO #django, (#rest).", ["django", "rest"]),
        ("#小事", ["小事"]),
        ("#小事# 真好", ["小事"]),
        ("今天#小事#真好", ["小事"]),
        ("#小事##大事#", ["小事", "大事"]),
        ("#小事，#大事！#好事。", ["小事", "大事", "好事"]),
        ("#a_b #v2 #2024年 #_x", ["a_b", "v2", "2024年", "_x"]),
        ("#123 #_ #12_3 # ## #! #-a", []),
        ("C#sharp a#b é#b ##x /#x &#x27;", []),
        ("https://example.com/#part www.example.com#part", []),
        (f"{WIDE_HASH}ＤＪＡＮＧＯ", ["django"]),
        ("#Straße #STRASSE", ["strasse"]),
        ("#ｶﾞｷﾞ #ภาษาไทย #हिन्दी #Ελλάς", ["ガギ", "ภาษาไทย", "हिन्दी", "ελλάσ"]),
        ("#می\u200cخواهم می", ["می\u200cخواهم"]),
        ("#می\u200c خواهم", ["می"]),
        ("#ශ්\u200dරී #क्\u200dष", ["ශ්\u200dරී", "क्\u200dष"]),
        ("#a\u200db\u200c #ab", ["ab"]),
        ("#col·lecció #COL·LECCIÓ #a· b", ["col·lecció", "a"]),
        ("#スター・ウォーズ #ｽﾀｰ･ｳｫｰｽﾞ", ["スター・ウォーズ"]),
        ("#列夫·托尔斯泰", ["列夫·托尔斯泰"]),
        ('#צה״ל #צה"ל #ג׳ירפה "#שלום"', ["צה״ל", "ג׳ירפה", "שלום"]),
        ("#tea/#coffee", ["tea", "coffee"]),
        ("#tea/#coffee/@mira/#cake", ["tea", "coffee", "cake"]),
        ("#1/#x example.org/#x https://example.org/#tea/#x", []),
        ("#️⃣love #\u0301a", []),
        ("https://zh.example/wiki/C语言#历史 https://zh.example/p#历史", []),
        ("#" + "a" * LENGTH, ["a" * LENGTH]),
        ("#" + "a" * (LENGTH + 1), []),
        ("#" + "ﬃ" * 40, []),  # 120 letters in canonical form
        (" ".join(f"#t{number}" for number in range(40)), [f"t{number}" for number in range(TAGS_AN_ITEM)]),
    ],
)
def test_hashtags(text: str, tags: list[str]) -> None:
    assert hashtags(text) == tags


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://example.com", ["https://example.com"]),
        ("http://a.org/x, https://b.org/y. (https://c.org/z)!", ["http://a.org/x", "https://b.org/y", "https://c.org/z"]),
        ("HTTPS://Example.COM/A", ["HTTPS://Example.COM/A"]),
        ("www.example.com/a and xwww.example.com", ["https://www.example.com/a"]),
        ("看https://example.com/a很好", ["https://example.com/a"]),
        ("看https://example.com很好，www.example.org。", ["https://example.com", "https://www.example.org"]),
        ("https://example.com/很好看", ["https://example.com/"]),
        ("https://example.com/a？https://example.com/b】", ["https://example.com/a", "https://example.com/b"]),
        ("https://zh.wikipedia.org/wiki/微博。", ["https://zh.wikipedia.org/wiki/微博"]),
        ("https://example.com/?q=微博&p=2，", ["https://example.com/?q=微博&p=2"]),
        ("https://en.wikipedia.org/wiki/A_(b)", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("(https://en.wikipedia.org/wiki/A_(b))", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("[x](https://example.com/a)", ["https://example.com/a"]),
        ("https://例子.中国/a http://müller.de/ü", ["https://例子.中国/a", "http://müller.de/ü"]),
        ("去https://例子.中国看看", ["https://例子.中国"]),
        ("http://localhost:8000/x http://[::1]:80/", ["http://localhost:8000/x", "http://[::1]:80/"]),
        ("http://127.0.0.1:80 http://127.0.0.1:123456", ["http://127.0.0.1:80", "http://127.0.0.1"]),
        ("https://example.com/a?b=c&d=%20#e~f", ["https://example.com/a?b=c&d=%20#e~f"]),
        ('"https://example.com/a" <https://example.com/b>', ["https://example.com/a", "https://example.com/b"]),
        # Browsers take a part before `@` for a password, so it is not part of the link.
        ("https://example.com@evil.example/", ["https://example.com"]),
        ("http:// https://x www. www.a ftp://a.org javascript:alert(1) example.com shttp://a.org", []),
        ("http\u017f://example.com", []),
        ("https://a.org https://a.org", ["https://a.org"]),
        ("https://hi.example/wiki/चाय_(पेय)।", ["https://hi.example/wiki/चाय_(पेय)"]),
        ("(https://fr.example/cafe\u0301)", ["https://fr.example/cafe\u0301"]),
        ("https://th.example/wiki/น้ำ https://he.example/שָׁלוֹם", ["https://th.example/wiki/น้ำ", "https://he.example/שָׁלוֹם"]),
        ("https://ar.example/مَرْحَبًا، https://fa.example/می\u200cخواهم", ["https://ar.example/مَرْحَبًا", "https://fa.example/می\u200cخواهم"]),
        ("https://a.example/?q=✓&type=Code.", ["https://a.example/?q=✓&type=Code"]),
        ("https://a.example/👨\u200d👩\u200d👧/❤\ufe0f#→", ["https://a.example/👨\u200d👩\u200d👧/❤\ufe0f#→"]),
        ("https://a.example/🏴\U000e0067\U000e0062\U000e007f", ["https://a.example/🏴\U000e0067\U000e0062\U000e007f"]),
        ("https://a.example🎉 https://a.example/x｜y", ["https://a.example", "https://a.example/x"]),
        ("https://हिन्दी.example/x http://ไทย.example", ["https://हिन्दी.example/x", "http://ไทย.example"]),
        ("https://a\u200d.example/ https://a.example/x\u200by", ["https://a.example/x"]),
        ("https://ja.example/wiki/スター・ウォーズ", ["https://ja.example/wiki/スター・ウォーズ"]),
        ("「https://ja.example/wiki/茶_(曖昧さ回避)」を見て", ["https://ja.example/wiki/茶_(曖昧さ回避)"]),
        ("https://ja.example/wiki/第1次世界大戦。次", ["https://ja.example/wiki/第1次世界大戦"]),
        ("https://zh.example/wiki/中华人民共和国-日本关系，好", ["https://zh.example/wiki/中华人民共和国-日本关系"]),
        ("https://zh.example/wiki/C语言#历史。", ["https://zh.example/wiki/C语言#历史"]),
        ("(https://ja.example/wiki/A級戦犯)、https://ja.example/wiki/3月", ["https://ja.example/wiki/A級戦犯", "https://ja.example/wiki/3月"]),
        ("https://zh.example/zh-cn/T恤？https://ko.example/w/C언어!", ["https://zh.example/zh-cn/T恤", "https://ko.example/w/C언어"]),
        ("https://baike.example/item/C语言/105958很好", ["https://baike.example/item/C语言/105958"]),
        ("https://a.example/s?ie=utf-8&wd=C语言&pn=10很好", ["https://a.example/s?ie=utf-8&wd=C语言&pn=10"]),
        ("https://a.example/wiki/微博·a https://a.example/wiki/微薄・", ["https://a.example/wiki/微博", "https://a.example/wiki/微薄"]),
        ("https://a.example/p#第2章、https://a.example/p/5很好", ["https://a.example/p#第2章", "https://a.example/p/5"]),
        ("https://a.example/wiki/茶_(飲料)_(x)) https://a.example/wiki/茶-。", ["https://a.example/wiki/茶_(飲料)_(x)", "https://a.example/wiki/茶-"]),
        ("看https://a.example.很好 https://很好 https://香港 www.a.很好 https://b.中国.很好", ["https://a.example", "https://b.中国"]),
        ("https://a.example/wiki很好 https://a.example/wiki/很好/a很好", ["https://a.example/wiki", "https://a.example/wiki/很好/a"]),
    ],
)  # fmt: skip
def test_links(text: str, found: list[str]) -> None:
    assert links(text) == found


BLANKS = "".join(map(chr, range(0x3100))) + "\u3164\ufeff\uffa0\U000e0020\U0001d159"
BLANKS = "".join(letter for letter in BLANKS if is_blank(letter) and letter != "\x00")


@pytest.mark.parametrize("text", ["\u200b", "\u2060\u00ad", "\u3164", "\u2800 \ufeff", "\u200e\u202e", BLANKS])
@pytest.mark.parametrize("kind", [ItemType.TEXT, ItemType.ARTICLE])
def test_a_text_of_nothing_that_is_seen_is_refused(text: str, kind: str) -> None:
    with pytest.raises(ContentError):
        check_content(kind, {"text": text}, "A title")
    with pytest.raises(ContentError):
        check_content(ItemType.ARTICLE, {"text": "words"}, text)
    check_content(kind, {"text": f"{text}a"}, "A title")


@pytest.mark.slow
@given(TEXTS)
def test_spans_are_the_text(text: str) -> None:
    found = list(spans(text))
    assert "".join(span.text for span in found) == text
    assert all(span.text for span in found)
    assert all(one.kind != SpanKind.TEXT or two.kind != SpanKind.TEXT for one, two in itertools.pairwise(found))
    for span in found:
        if span.kind == SpanKind.LINK:
            assert span.value.lower().startswith(("https://", "http://"))
            assert not set(span.value) & set("<>\"'` \n\x00，。！？）】」")
        elif span.kind == SpanKind.HASHTAG:
            assert canonical_tag(span.value) == span.value


@given(st.text() | st.text(alphabet="ǅΐ\u0345\ufb03\u0301ﾞßİ\u017f小a1_"))
def test_a_canonical_tag_is_its_own_canonical_form(text: str) -> None:
    tag = canonical_tag(text)
    assert tag is None or (canonical_tag(tag) == tag == canonical_tag(tag.upper()) and hashtags(f"#{tag}") == [tag])
