import contextlib
import time

import pytest

from items.link_cards.pages import (
    DESCRIPTION_LENGTH,
    TITLE_LENGTH,
    NothingError,
    Page,
    page_of,
    plain,
    text_of,
)
from web.outbound import MOST_BYTES

URL = "https://far.example/a/b?c=d"
PAGE = """
<!doctype html><html><head><title>A title</title>
<meta name=description content="A description">
<meta property="og:title" content="Open &amp; graph"><meta property="og:title" content="again">
<meta property="og:description" content="  many
   lines "><meta property="og:site_name" content="Far">
<meta property="og:image" content="/p.png"><meta name="twitter:title" content="Twitter">
"""


def test_a_page() -> None:
    assert page_of(PAGE, URL) == Page("Open & graph", "many lines", "Far", "https://far.example/p.png")


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ("<title> only \n a title </title>", Page("only a title", "", "", "")),
        ('<meta name="twitter:title" content="T"><meta name="TWITTER:IMAGE" content="//x.example/1">',
         Page("T", "", "", "https://x.example/1")),
        ('<title>T</title><meta name="description" content="D">', Page("T", "D", "", "")),
        ('<meta property="og:title" content=" "><title>T</title>', Page("T", "", "", "")),
        ("<title>T</title><meta property=og:image content='javascript:alert(1)'>", Page("T", "", "", "")),
        ("<title>T</title><meta property=og:image content='data:image/png;base64,x'>", Page("T", "", "", "")),
        ("<title>T</title><meta property=og:image content='http://['>", Page("T", "", "", "")),
        ("<title>T</title><meta property=og:image content='http://u:p@x.example/1'>", Page("T", "", "", "")),
        ("<title>T<svg><title>inner</title></svg></title>", Page("T<title>inner", "", "", "")),
        ("<title>T</title><svg><title>drawn</title></svg>", Page("T", "", "", "")),
        ("<title>T</title><script>'<meta property=og:title content=code>'</script>", Page("T", "", "", "")),
        ("<title>T</title><textarea><meta property=og:title content=typed></textarea>", Page("T", "", "", "")),
        ("<title>T</title><!-- <meta property=og:title content=no> -->", Page("T", "", "", "")),
        ("<body><div><p><meta property=og:title content='a > b'></p><title>T</title>", Page("a > b", "", "", "")),
        ("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>", Page("<script>alert(1)</script>", "", "", "")),
    ],
)  # fmt: skip
def test_pages(html: str, wanted: Page) -> None:
    assert page_of(html, URL) == wanted


@pytest.mark.parametrize("html", ["", "<p>words", "<title></title>", "<title>\u200b\u202e \u00a0</title>", "\x00"])
def test_pages_without_a_title(html: str) -> None:
    with pytest.raises(NothingError):
        page_of(html, URL)


def test_hostile_titles() -> None:
    assert plain("a\u202eb\u2066c\u200fd\x00\x07\ne", 100) == "a b c d e"
    assert plain("👩‍👧 می‌خواهم", 100) == "👩‍👧 می‌خواهم"  # joiners stay
    long = page_of(f"<title>{'x' * 1_000_000}</title><meta name=description content='{'y' * 1_000_000}'>", URL)
    assert (len(long.title), len(long.description)) == (TITLE_LENGTH, DESCRIPTION_LENGTH)
    assert len(plain("e" + "\u0301" * 100_000, TITLE_LENGTH)) < 100
    assert plain(" " * 1_000_000 + "late", TITLE_LENGTH) == ""


@pytest.mark.parametrize(
    ("body", "content_type", "wanted"),
    [
        ("ü微".encode(), "text/html", "ü微"),
        ("微博".encode("gbk"), "text/html; charset=GB2312", "微博"),
        ("ü".encode("latin-1"), 'text/html; charset="ISO-8859-1"', "ü"),
        ("<meta charset=big5>微".encode("big5"), "text/html", "<meta charset=big5>微"),
        ('<meta http-equiv=x content="text/html; charset=shift_jis">日'.encode("cp932"), "text/html",
         '<meta http-equiv=x content="text/html; charset=shift_jis">日'),
        ("\ufeffü".encode(), "text/html; charset=latin-1", "ü"),
        ("\ufeffü".encode("utf-16-le"), "text/html", "ü"),
        ("ü".encode(), "text/html; charset=unicode_escape", "ü"),
        ("ü".encode(), "text/html; charset=idna", "ü"),
        ("ü".encode(), "text/html; charset=zlib", "ü"),
        ("ü".encode(), "text/html; charset=no-such", "ü"),
        (b"\xff\xfebad\x80", "text/html; charset=utf-8", "扡聤"[:0] + b"bad\x80".decode("utf-16-le", "replace")),
        (b"a\x80b", "text/html; charset=utf-8", "a\ufffdb"),
    ],
)  # fmt: skip
def test_encodings(body: bytes, content_type: str, wanted: str) -> None:
    assert text_of(body, content_type) == wanted


@pytest.mark.parametrize(
    "part",
    ["<b>", "<a><p>", "<div>", "<table><tr>", "<meta content=x name=y>", "<title>", "<!--", "<svg><math>", "&amp;",
     "<font><p><b>", "<select><option>", "<template>", "<a>x</p>", "<nobr>", "<form><button>", "<div", "<x>",
     "<textarea>", "</title>", "<head>", "<title/>", "<di<i>v>", "<<i>svg>", "<b<>", "<title\v>", "<t\u0131tle>"],
)  # fmt: skip
def test_no_markup_takes_long(part: str) -> None:
    html = "<title>T</title>" + part * (MOST_BYTES // len(part))
    began = time.process_time()
    with contextlib.suppress(NothingError):
        page_of(text_of(html.encode(), ""), URL)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("part", [b"<meta ", b"<meta charset", b"charset=", b"<meta charset = ", b"\xff"])
def test_no_encoding_takes_long(part: bytes) -> None:
    began = time.process_time()
    text_of(part * (MOST_BYTES // len(part)), "text/html" + "; charset" * 1_000)
    assert time.process_time() - began < 0.5
