# ruff: noqa: RUF001 - full-width signs are what is tested
"""Parts found in texts: mentions, hashtags and links, where people mean them, at the price of one walk."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from items.models import TAG_LENGTH
from items.text import TAGS_AN_ITEM, Kind, canonical_tag, hashtags, links, mentions, spans
from tests.support.patience import cpu
from tests.support.texts import TEXTS, WIDE_AT, WIDE_HASH


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
    ],
)
def test_mentions(text: str, names: list[str]) -> None:
    assert mentions(text) == names


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
        ("#" + "a" * TAG_LENGTH, ["a" * TAG_LENGTH]),
        ("#" + "a" * (TAG_LENGTH + 1), []),
        ("#" + "ﬃ" * 40, []),  # 120 letters in the canonical form
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
        # A part before `@`, which a browser would take for a password, is not part of the address.
        ("https://example.com@evil.example/", ["https://example.com"]),
        ("http:// https://x www. www.a ftp://a.org javascript:alert(1) example.com shttp://a.org", []),
        ("http\u017f://example.com", []),
        ("https://a.org https://a.org", ["https://a.org"]),
    ],
)  # fmt: skip
def test_links(text: str, found: list[str]) -> None:
    assert links(text) == found


@pytest.mark.slow
@given(TEXTS)
def test_spans_are_the_text(text: str) -> None:
    found = list(spans(text))
    assert "".join(span.text for span in found) == text
    assert all(span.text for span in found)
    assert all(one.kind != Kind.TEXT or two.kind != Kind.TEXT for one, two in itertools.pairwise(found))
    for span in found:
        if span.kind == Kind.LINK:
            assert span.value.lower().startswith(("https://", "http://"))
            assert not set(span.value) & set("<>\"'` \n\x00，。！？）】」")
        elif span.kind == Kind.HASHTAG:
            assert canonical_tag(span.value) == span.value


@given(st.text() | st.text(alphabet="ǅΐ\u0345\ufb03\u0301ﾞßİ\u017f小a1_"))
def test_a_canonical_tag_is_its_own_canonical_form(text: str) -> None:
    tag = canonical_tag(text)
    assert tag is None or (canonical_tag(tag) == tag == canonical_tag(tag.upper()) and hashtags(f"#{tag}") == [tag])


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    [
        "@", "#", "@a", "#a", "#1", "#小", "#小#", "@-", "x@", "http://", "http://a", "http://a.", "www.", "www.a.",
        "a.", "https://a.b/(", "https://a.b/)", "https://例.", "[http://[", f"http://{'a' * 60}.",
        "https://a.b/小", "/=小",
    ],
)  # fmt: skip
def test_hostile_texts_cost_in_proportion_to_their_length(piece: str) -> None:
    """Four times the text takes about four times as long; if every place looked on to the end it would be sixteen."""

    def cost(length: int) -> float:
        text = (piece * length)[:length]
        return cpu(lambda: list(spans(text)))

    assert cost(20_000) < 9 * cost(5_000)
