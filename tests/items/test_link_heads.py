"""Pages that are made to be slow, or to take much memory."""

import contextlib
import itertools
import string
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from items.link_cards.heads import MOST_ATTRIBUTES, MOST_OPEN, NoMetadataError, scan
from items.link_cards.pages import head_of, page_of
from tests.support.effort import some, tries

SIZE = 16 << 10
MEMORY = 1 << 20
"""Bytes that a guess of the encoding takes, besides those in proportion to the page."""
PARTS = [
    *(
        "<",
        "<a ",
        "&",
        "<!--",
        "<!-",
        "<!---",
        "--!>",
        "<!doctype x [",
        "<?",
        "</",
        "</>",
        "<![CDATA[",
        "\x00",
        "<\x00",
    ),
    *("<b>", "<a><p>", "<div>", "<table><tr>", "<font><p><b>", "<select><option>", "<nobr>", "<form><button>", "<x>"),
    *("<div", "<di<i>v>", "<<i>svg>", "<b<>", "<p<x>>x</p<x>>", "<b i=0 a0 a1 a2<x>>", "<a>x</p>", "<head>", "<body>"),
    *("<svg>", "</svg>", "<svg></svg>", "<svg/>", "<svg><p>", "<svg></p>", "<svg><![CDATA[", "<svg><![CDATA[]]>"),
    *("<svg><foreignObject>", "<svg><math>", "<template>", "<template></template>", "</template>"),
    *("<script>", "<script><!--", "<script><!--<script>", "</script", "<script></script>", "<!--<script>-->", "--"),
    *(
        "<title>",
        "<title></title>",
        "<title> </title>",
        "<title>&nbsp;",
        "</title>",
        "</title",
        "<title/>",
        "<title\v>",
    ),
    *("<t\u0131tle>", "<TITLE>", "<plaintext>", "<noscript>", "<textarea>", "<textarea></textarea", "<xmp></xmp>"),
    *("<meta>", "<meta content=x name=y>", "<meta name=og:title content=a>", "<meta charset=x>", "<meta charset=gbk>"),
    *("<meta content='", "<meta content=\"'", "<meta content='charset charset=\"'>", "<meta name=x content=&#9999>"),
    *("<meta http-equiv=content-type content='charset charset=\"'>", "<meta http-equiv=refresh content='0;url=x'>"),
    *("<base href=x>", "<base href=''>", "<link rel=image_src href=x>", "<meta property=og:image content='/a b'>"),
    *("<a b=", "<a b c d e>", "<a =", "<a /", "<a\n", "<a b='c'd=\"e\"f=g h>", 'a="', "'\"", "<a b='<'>", "<a b=c/>"),
    *("&amp;", "&#99999", "&#x", "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\u2028", "é", "\U0001f600", "e\u0301", "\x1b$B"),
    *(" ", "\n", "a", "charset=", "<meta charset", "<meta charset = ", "<?xml encoding=", "<?xml encoding='"),
]


def read(html: str | bytes, content_type: str = "text/html") -> None:
    with contextlib.suppress(NoMetadataError):
        page_of(head_of(html.encode() if isinstance(html, str) else html, content_type), "https://far.example/")


def seconds(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def check(made: Callable[[int], str | bytes], content_type: str = "text/html") -> None:
    """Four times the page takes no more than eight times the work, and a few times its length of memory."""
    small, large = made(SIZE), made(4 * SIZE)
    read(small, content_type)  # what is loaded once is loaded
    assert any(
        seconds(lambda: read(large, content_type)) < 8 * max(seconds(lambda: read(small, content_type)), 0.01)
        for _time in range(3)
    )
    tracemalloc.start()
    try:
        read(small, content_type)
        assert tracemalloc.get_traced_memory()[1] < MEMORY + 20 * SIZE
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("title", some(1, ["\ufffd", "T"]))  # the first is read twice
def test_no_markup_takes_long(title: str, part: str) -> None:
    check(lambda size: f"<title>{title}</title>" + part * (size // len(part.encode())))


def names(count: int) -> str:
    letters = itertools.chain.from_iterable(
        itertools.product(string.ascii_lowercase, repeat=size) for size in (2, 3, 4)
    )
    return " ".join(map("".join, itertools.islice(letters, count)))


@pytest.mark.slow
@pytest.mark.parametrize("tag", ["meta", "title", "head", "script", "p", "/p", "!doctype", "svg"])
def test_no_attributes_take_long(tag: str) -> None:
    check(lambda size: f"<title>T</title><{tag} {names(size // 4)}>")


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["", "<x>"])
def test_no_open_elements_take_long(hidden: str) -> None:
    """Parsers open elements of formatting again in every paragraph."""

    def made(size: int) -> str:
        opened = "".join(f"<b i={number} a0 a1 a2{hidden}>" for number in range(size // 50))
        return f"<title>t</title><p{hidden}>{opened}</p{hidden}>" + f"<p{hidden}>x</p{hidden}>" * (size // 25)

    check(made)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [b"\xff", b"\x80", b"\x1b$", b"\x81\x30\x81", b"a\xa1", b"\xe3", b"\xf0\x9f", b" \xe9", b"\0<"]
)
@pytest.mark.parametrize(
    "label", ["", "gbk", "big5", "euc-jp", "shift_jis", "euc-kr", "iso-2022-jp", "utf-16", "windows-874"]
)
def test_no_bytes_take_long(part: bytes, label: str) -> None:
    check(lambda size: b"<title>" + part * (size // len(part)), f"text/html; charset={label}" + "; charset" * 1_000)


@pytest.mark.parametrize(
    ("most", "made"),
    [
        (MOST_ATTRIBUTES, lambda number: f"<title>T</title><p {names(number)}>"),
        (MOST_ATTRIBUTES, lambda number: f"<title {names(number)}>T</title>"),
        (MOST_OPEN, lambda number: "<title>T</title>" + "<svg>" * number),
        (MOST_OPEN, lambda number: "<title>T</title>" + "<template>" * number),
    ],
)
def test_bounds(most: int, made: Callable[[int], str]) -> None:
    assert scan(made(most)).title == "T"
    with pytest.raises(NoMetadataError):
        scan(made(most + 1))


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=5)), max_size=30).map("".join), st.booleans())
@settings(max_examples=tries(200, 5_000), deadline=None, database=None)
def test_any_text_is_read(text: str, is_xml: bool) -> None:
    with contextlib.suppress(NoMetadataError):
        head = scan(text, is_xml=is_xml)
        assert set(map(type, [head.title, head.base, head.refresh, head.words])) == {str}


@given(st.binary(max_size=2_000), st.text(st.characters(max_codepoint=255), max_size=40))
@settings(max_examples=tries(200, 5_000), deadline=None, database=None)
def test_any_bytes_are_read(body: bytes, content_type: str) -> None:
    read(body, f"text/html;{content_type}")
    read(b"<title>\xff" + body, f"text/html;charset={content_type}")
