"""Texts as HTML: what leads where, what is marked, and that nothing gets out."""

from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from django.template import Context, Template
from hypothesis import given
from hypothesis import strategies as st

from items.search import parse
from items.templatetags.reading import LINK_LETTERS, linked
from items.text import Kind, spans
from tests.support.texts import TEXTS


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("@Alice!", '<a href="/@Alice">@Alice</a>!'),
        ("#Django #小事#", '<a href="/tags/django">#Django</a> <a href="/tags/%E5%B0%8F%E4%BA%8B">#小事#</a>'),
        (
            "www.example.com/?a&b",
            '<a href="https://www.example.com/?a&amp;b" rel="nofollow noopener ugc">www.example.com/?a&amp;b</a>',
        ),
        (
            f"https://example.com/{'x' * 60}",
            f'<a href="https://example.com/{"x" * 60}" rel="nofollow noopener ugc">https://example.com/{"x" * 39}…</a>',
        ),
        ("javascript:alert(1)", "javascript:alert(1)"),
    ],
)
def test_linked(text: str, html: str) -> None:
    assert linked(Context(), text) == html


@pytest.mark.parametrize(
    ("text", "query", "html"),
    [
        ("red <b> blue", "b red", "<mark>red</mark> &lt;<mark>b</mark>&gt; blue"),
        ("see #blue", "blue", 'see <a href="/tags/blue">#<mark>blue</mark></a>'),
        ("今天天气", "天气", "今天<mark>天气</mark>"),
        ("one two", '"one two"', "<mark>one two</mark>"),
    ],
)
def test_marks(text: str, query: str, html: str) -> None:
    template = Template("{% load reading %}{% linked text %}")
    assert template.render(Context({"text": text, "sought": parse(query)})) == html


class Seen(HTMLParser):
    """What a browser makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert (tag, set(dict(attrs))) in [("mark", set()), ("a", {"href"}), ("a", {"href", "rel"})]
        self.open.append(tag)
        self.hrefs += [value or "" for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


@given(TEXTS, TEXTS)
def test_no_text_gets_out_of_its_html(text: str, query: str) -> None:
    seen = Seen()
    seen.feed(linked(Context({"sought": parse(query)}), text))
    seen.close()
    assert seen.open == []
    found = list(spans(text))
    expected = "".join(
        f"{span.text[: LINK_LETTERS - 1]}…" if span.kind == Kind.LINK and len(span.text) > LINK_LETTERS else span.text
        for span in found
    )
    assert seen.text == expected
    targets = {Kind.MENTION: "/@{}", Kind.HASHTAG: "/tags/{}", Kind.LINK: "{}"}
    wanted = [targets[span.kind].format(span.value) for span in found if span.kind in targets]
    assert [href if "://" in href else unquote(href) for href in seen.hrefs] == wanted


@given(st.text(alphabet="ab 小事天\"'<&#@.", max_size=30), st.text(alphabet='ab 小事天"#@.', max_size=8))
def test_marks_change_no_letter(text: str, query: str) -> None:
    seen = Seen()
    seen.feed(linked(Context({"sought": parse(query)}), text))
    seen.close()
    assert seen.text == text
