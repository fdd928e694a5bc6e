from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from items.pages.reading import LINK_LETTERS, domain, linked, short_link
from items.search.query import parse
from items.text import SpanKind, spans
from tests.support.texts import TEXTS


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        ("@Alice!", '<a href="/@Alice">@Alice</a>!'),
        ("#Django #小事#", '<a href="/tags/django">#Django</a> <a href="/tags/%E5%B0%8F%E4%BA%8B">#小事#</a>'),
        (
            "www.example.com/?a&b",
            '<a href="https://www.example.com/?a&amp;b" rel="nofollow noopener ugc">example.com/?a&amp;b</a>',
        ),
        (
            f"https://example.com/{'x' * 60}",
            f'<a href="https://example.com/{"x" * 60}" rel="nofollow noopener ugc">example.com/{"x" * 23}…</a>',
        ),
        ("javascript:alert(1)", "javascript:alert(1)"),
    ],
)
def test_linked(text: str, html: str) -> None:
    assert linked(text, always) == html


@pytest.mark.parametrize(
    ("address", "host", "short"),
    [
        ("https://www.example.com/", "example.com", "example.com/"),
        ("http://example.com?a#b", "example.com", "example.com?a#b"),
        ("HTTPS://例子.中国/路", "例子.中国", "例子.中国/路"),
        ("www.", "", "www."),
        (f"https://example.com/{'y' * 99}", "example.com", f"example.com/{'y' * (LINK_LETTERS - 13)}…"),
    ],
)
def test_addresses_are_shown_short(address: str, host: str, short: str) -> None:
    assert domain(address) == host
    assert short_link(address) == short


@pytest.mark.parametrize(
    ("text", "query", "html"),
    [
        ("red <b> blue", "b red", "<mark>red</mark> &lt;<mark>b</mark>&gt; blue"),
        ("see #blue", "blue", 'see <a href="/tags/blue">#<mark>blue</mark></a>'),
        ("今天天气", "天气", "今天<mark>天气</mark>"),
        ("one two", '"one two"', "<mark>one two</mark>"),
        (
            "at www.blue.example/blue",
            "blue",
            'at <a href="https://www.blue.example/blue" rel="nofollow noopener ugc">BLUE.example/BLUE</a>'.replace(
                "BLUE", "<mark>blue</mark>"
            ),
        ),
    ],
)
def test_marks(text: str, query: str, html: str) -> None:
    assert linked(text, always, parse(query)) == html


def always(_name: str) -> bool:
    return True


class Seen(HTMLParser):
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


@pytest.mark.slow
@given(TEXTS, TEXTS)
def test_no_text_gets_out_of_its_html(text: str, query: str) -> None:
    seen = Seen()
    seen.feed(linked(text, always, parse(query)))
    seen.close()
    assert seen.open == []
    found = list(spans(text))
    expected = "".join(short_link(span.text) if span.kind == SpanKind.LINK else span.text for span in found)
    assert seen.text == expected
    targets = {SpanKind.MENTION: "/@{}", SpanKind.HASHTAG: "/tags/{}", SpanKind.LINK: "{}"}
    wanted = [targets[span.kind].format(span.value) for span in found if span.kind in targets]
    assert [href if "://" in href else unquote(href) for href in seen.hrefs] == wanted


@pytest.mark.slow
@given(st.text(alphabet="ab 小事天\"'<&#@.", max_size=30), st.text(alphabet='ab 小事天"#@.', max_size=8))
def test_marks_change_no_letter(text: str, query: str) -> None:
    seen = Seen()
    seen.feed(linked(text, always, parse(query)))
    seen.close()
    assert seen.text == text
