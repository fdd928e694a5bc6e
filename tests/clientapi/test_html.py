"""Typed text may produce only the tags and attributes of `TAGS`."""

from html.parser import HTMLParser

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from clientapi import html
from items.text import spans

TAGS = {"p": set(), "br": set(), "span": {"class"}, "a": {"href", "class", "rel", "target"}}
CLASSES = {"h-card", "mention", "mention hashtag", "u-url mention"}
PIECES = st.sampled_from(
    [
        *(
            "<script>alert(1)</script>",
            '<img src=x onerror="a">',
            "<a href='javascript:x'>",
            "</p>",
            "<br>",
            "&lt;",
            "&",
        ),
        *(
            '"',
            "'",
            "<",
            ">",
            "\n",
            "\n\n",
            "\r\n",
            " ",
            "@ann",
            "@eve<",
            "#tag",
            "#标签#",
            "https://e.org/?a=<b>&c='d'\"",
        ),
        *(
            "http://e.org/\"onmouseover='x",
            "www.e.org/<",
            "`",
            "\u202e",
            "\u2028",
            "\ufeff",
            "javascript:alert(1)",
            "data:x",
        ),
        *("@" + "a" * 40, "#" + "é" * 120, "https://e.org/微博", "]]>", "<!--", "-->", "{{ x }}", "<svg/onload=x>"),
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=12).map("".join)


class Checked(HTMLParser):
    """Fails at a tag or attribute outside `TAGS`. Keeps the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= TAGS[tag]
        for name, value in attrs:
            if name == "href":
                assert value is not None
                assert value.startswith(("https://", "http://", settings.SITE_URL))
            elif name == "class":
                assert value in CLASSES
        if tag == "br":
            self.text += "\n"
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def checked(text: str) -> str:
    parser = Checked()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser.text


@pytest.mark.slow
@given(TEXTS, st.sets(st.sampled_from(["ann", "eve"])))
def test_whatever_was_typed_no_other_tags_come_out(text: str, known: set[str]) -> None:
    found = html.rendered(text).html(known)
    shown = checked(found)
    # Only paragraph breaks may be lost.
    assert "".join(shown.split()) == "".join(text.split())


@pytest.mark.slow
@given(TEXTS)
def test_mentions_and_hashtags_are_those_of_the_text(text: str) -> None:
    found = html.rendered(text)
    parts = list(spans(text.replace("\r\n", "\n").replace("\r", "\n").strip()))
    if len(parts) <= html.LINKS:
        assert set(found.tags) == {part.value for part in parts if part.kind == "hashtag"}
        assert set(found.names) == {part.value.lower() for part in parts if part.kind == "mention"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("one\ntwo\n\n\nthree", "<p>one<br>two</p><p>three</p>"),
        ("  a < b & c  ", "<p>a &lt; b &amp; c</p>"),
        ("@nobody", "<p>@nobody</p>"),
    ],
)
def test_plain_texts(text: str, expected: str) -> None:
    assert html.rendered(text).html(()) == expected


def test_a_text_leads_to_so_many_places_as_on_pages() -> None:
    found = html.rendered(" ".join(f"#tag{number}x" for number in range(80)))
    assert found.html(()).count("<a ") == html.LINKS


def test_all_that_an_item_says_is_escaped() -> None:
    class Said:
        title, url = "<b>title</b>", "https://e.org/?a=<b>&c=1"

    found = html.content(Said(), html.rendered("text"), ())
    checked(found)
    assert found.startswith("<p>&lt;b&gt;title&lt;/b&gt;</p><p>text</p><p><a href=")
