import pytest
from django.utils.html import escape
from hypothesis import given, settings
from hypothesis import strategies as st

from items.link_cards.pages import (
    DESCRIPTION_LENGTH,
    MOST_PICTURES,
    TITLE_LENGTH,
    NoMetadataError,
    RemotePage,
    head_of,
    page_of,
    refresh_of,
    single_line,
)
from tests.support.effort import tries

URL = "https://far.example/a/b?c=d"
PAGE = """
<!doctype html><html><head><title>A title</title>
<meta name=description content="A description">
<meta property="og:title" content="Open &amp; graph"><meta property="og:title" content="again">
<meta property="og:description" content="  many
   lines "><meta property="og:site_name" content="Far">
<meta property="og:image" content="/p.png"><meta name="twitter:title" content="Twitter">
"""


def page(html: str | bytes, content_type: str = "text/html; charset=utf-8") -> RemotePage:
    return page_of(head_of(html.encode() if isinstance(html, str) else html, content_type), URL)


def test_a_page() -> None:
    assert page(PAGE) == RemotePage("Open & graph", "many lines", "Far", ("https://far.example/p.png",))


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ("<title> only \n a title </title>", "only a title"),
        ('<meta name="twitter:title" content="T">', "T"),
        ('<meta property="og:title" content=" "><title>T</title>', "T"),
        ("<title>T<svg><title>inner</title></svg></title>", "T<svg><title>inner"),
        ("<title>Using <div> and <!-- in React</title>", "Using <div> and <!-- in React"),
        ("<TITLE\n>T</TITLE\n>", "T"),
        ("<title>T", "T"),
        ("<title></title><title> &nbsp; </title><title>T</title>", "T"),
        ("<svg><title>drawn</title></svg><title>T</title>", "T"),
        ("<svg><title>drawn</title><p><title>T</title>", "T"),
        ("<svg/><title>T</title>", "T"),
        ("<svg><![CDATA[</svg><title>no</title>]]></svg><title>T</title>", "T"),
        ("<svg><style></svg><title>T</title>", "T"),
        ("<svg><foreignObject><div></div><title>no</title></foreignObject></svg><title>T</title>", "T"),
        ("<math><title>no</title></math><title>T</title>", "T"),
        ("<template><template></template><title>no</title></template><title>T</title>", "T"),
        ("<template/><title>no</title></template><title>T</title>", "T"),
        ("<template></svg><title>no</title></template><title>T</title>", "T"),
        ("<noscript><title>no</title></noscript><title>T</title>", "T"),
        ("<script>'<meta property=og:title content=code>'</script><title>T</title>", "T"),
        ("<script><!-- <script></script><title>no</title> --></script><title>T</title>", "T"),
        ("<script><!--> <script></script><title>T</title>", "T"),
        ("<script>'</scripts>'</script a='>'><title>T</title>", "T"),
        ("<textarea><meta property=og:title content=typed></textarea><title>T</title>", "T"),
        ("<!-- <meta property=og:title content=no> --><title>T</title>", "T"),
        ("<!--><title>T</title>", "T"),
        ("<!---><title>T</title>", "T"),
        ("<!-- --!><title>T</title>", "T"),
        ("<!doctype html PUBLIC '-//x'><?x y?></ z></><title>T</title>", "T"),
        ("<![CDATA[><title>T</title>", "T"),
        ("<p title=it's><title>T</title>", "T"),
        ("<p a='<title>no</title>'><title>T</title>", "T"),
        ("<body><div><p><meta property=og:title content='a > b'></p><title>T</title>", "a > b"),
        ("<meta content=a/ property=og:title />", "a/"),
        ("<meta property=og:title property=x content=T content=no>", "T"),
        ("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>", "<script>alert(1)</script>"),
        ("<title>&#0;&#x110000;&#xD800;T&notit;</title>", "T¬it;"),
        ("<title>a\ufffdb</title>", "ab"),
        ("<title>T</title><plaintext><meta property=og:title content=no>", "T"),
    ],
)  # fmt: skip
def test_titles(html: str, wanted: str) -> None:
    assert page(html).title == wanted


def test_xhtml() -> None:
    html = "<script src='a'/><title>T</title><style/><meta name='description' content='D'/>"
    assert page(html, "application/xhtml+xml") == RemotePage("T", "D", "", ())


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ('<meta name="TWITTER:IMAGE" content="//x.example/1">', ["https://x.example/1"]),
        ("<meta property=og:image content='javascript:alert(1)'>", []),
        ("<meta property=og:image content='data:image/png;base64,x'>", []),
        ("<meta property=og:image content='http://['>", []),
        ("<meta property=og:image content='http://u:p@x.example/1'>", []),
        ("<meta property=og:image content='javascript:x'><meta property=og:image content=/2>", ["https://far.example/2"]),
        ("<meta property=og:image content=/1><meta property=og:image content=/2><meta property=og:image content=/1>",
         ["https://far.example/1", "https://far.example/2"]),
        ("<meta property=og:image content=/1><meta property=og:image:secure_url content=/2>",
         ["https://far.example/2", "https://far.example/1"]),
        ("<meta name=twitter:image:src content=/1><link rel='x image_src' href=/2>",
         ["https://far.example/1", "https://far.example/2"]),
        ("<meta property=og:image content=' /a b\n.png '>", ["https://far.example/a%20b.png"]),
        ("<meta property=og:image content='/a?b=1&copy=2&amp;lt=3&reg;'>", ["https://far.example/a?b=1&copy=2&lt=3®"]),
        ("<meta property=og:image content=i.png><base target=x><base href=/sub/><base href=/no/>",
         ["https://far.example/sub/i.png"]),
        ("<meta property=og:image content=i.png><base href=//x.example>", ["https://x.example/i.png"]),
        ("<meta property=og:image content=i.png><base href='data:text/html,x'>", ["https://far.example/a/i.png"]),
        ("<meta property=og:image content=i.png><svg><base href=/no/></svg>", ["https://far.example/a/i.png"]),
        ("".join(f"<meta property=og:image content=/{number}>" for number in range(9)),
         [f"https://far.example/{number}" for number in range(MOST_PICTURES)]),
    ],
)  # fmt: skip
def test_pictures(html: str, wanted: list[str]) -> None:
    assert page(f"<title>T</title>{html}").pictures == tuple(wanted)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("0;url=/x", "https://far.example/x"),
        ("0; URL='http://x.example/a b'", "http://x.example/a%20b"),
        (' 1.5 , url = "x#y" z', "https://far.example/a/x"),
        ("3 //x.example/", "https://x.example/"),
        ("0;http://x.example/?url=1", "http://x.example/?url=1"),
        ("300;url=/x", ""),
        ("99999999999999999999;url=/x", ""),
        ("0", ""),
        ("0;", ""),
        ("url=/x", ""),
        ("0;url=javascript:alert(1)", ""),
        ("0;url=file:///etc/passwd", ""),
    ],
)
def test_where_a_page_sends_its_readers(content: str, wanted: str) -> None:
    html = f"<meta http-equiv=Refresh content='{escape(content)}'><meta http-equiv=refresh content='0;url=/no'>"
    assert refresh_of(head_of(html.encode(), "text/html"), URL) == wanted


@pytest.mark.parametrize("html", ["", "<p>words", "<title></title>", "<title>\u200b\u202e \u00a0</title>", "\x00"])
def test_pages_without_a_title(html: str) -> None:
    with pytest.raises(NoMetadataError):
        page(html)


def test_hostile_titles() -> None:
    assert single_line("a\u202eb\u2066c\u200fd\x00\x07\ne", 100) == "a b c d e"
    assert single_line("👩‍👧 می‌خواهم", 100) == "👩‍👧 می‌خواهم"  # joiners stay
    long = page(f"<title>{'x' * 1_000_000}</title><meta name=description content='{'y' * 1_000_000}'>")
    assert (len(long.title), len(long.description)) == (TITLE_LENGTH, DESCRIPTION_LENGTH)
    assert len(single_line("e" + "\u0301" * 100_000, TITLE_LENGTH)) < 100
    assert single_line(" " * 1_000_000 + "late", TITLE_LENGTH) == ""
    assert page(f"<title>T&#{'9' * 100_000};</title>").title.startswith("T")


# --- Ordinary pages --------------------------------------------------------------------------------------
WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=30)
BESIDES = st.sampled_from(
    [
        *("", "\n", "<!-- <title>no</title> -->", "<script>a < b && '<title>'</script>", "<p>x</p>", "<link href=/i>"),
        *(
            "<meta charset=utf-8>",
            "<style>p > a { }</style>",
            "<svg><title>no</title></svg>",
            "<div class='a b' hidden>",
        ),
    ]
)


@given(WORDS, WORDS, st.lists(BESIDES, min_size=3, max_size=3), st.booleans())
@settings(max_examples=tries(100, 2_000), deadline=None, database=None)
def test_ordinary_pages(title: str, description: str, besides: list[str], is_turned: bool) -> None:
    first, second = f"content='{escape(description)}'", 'NAME="description"'
    meta = f"<meta {second} {first}>" if is_turned else f"<META {first}\n{second}/>"
    head = head_of(f"{besides[0]}<title>{escape(title)}</title>{besides[1]}{meta}{besides[2]}".encode(), "text/html")
    assert (head.title if title.strip() else head.title.strip()) == (title if title.strip() else "")
    assert head.said == {"description": [description]}


# --- Encodings -------------------------------------------------------------------------------------------
def in_(encoding: str, title: str, label: str = "") -> bytes:
    return f"<!doctype html><html><head>{label}<title>{title}</title></head><body>".encode(encoding)


LATE = "<!-- " + "x" * 2_000 + " -->"


@pytest.mark.parametrize(
    ("body", "content_type", "wanted"),
    [
        (in_("utf-8", "ü微"), "text/html", "ü微"),
        # by the server
        (in_("gbk", "微博"), "text/html; charset=GB2312", "微博"),
        (in_("latin-1", "ü"), 'text/html; charset="ISO-8859-1"', "ü"),
        (in_("cp1252", "ü €"), "text/html;charset=us-ascii", "ü €"),
        (in_("cp1254", "İş"), "text/html; charset=iso-8859-9", "İş"),
        (in_("cp949", "뷁"), "text/html; charset=euc-kr", "뷁"),
        (in_("cp932", "①髙"), "text/html; charset=Windows-31J", "①髙"),
        (in_("euc_jis_2004", "①日"), "text/html; charset=x-euc-jp", "①日"),
        (in_("cp874", "ไทย"), "text/html; charset=windows-874", "ไทย"),
        (in_("cp874", "ไทย"), "text/html; charset=TIS-620", "ไทย"),
        (in_("mac-roman", "Ünï"), "text/html; charset=macintosh", "Ünï"),
        (in_("koi8-u", "Їжак"), "text/html; charset=koi8-ru", "Їжак"),
        (in_("big5hkscs", "中文"), "text/html; charset=x-x-big5", "中文"),
        (in_("iso2022_jp", "日本"), "text/html; charset=iso-2022-jp", "日本"),
        (in_("utf-16-le", "ü微"), "text/html; charset=utf-16", "ü微"),
        (in_("latin-1", "ü", "<meta charset=latin1>"), "text/html; charset=no-such", "ü"),
        (in_("utf-8", "ü", "<meta charset=latin1>"), "text/html; charset=utf-8", "ü"),
        *((in_("utf-8", "ü"), f"text/html; charset={name}", "ü") for name in ("idna", "zlib", "utf-7")),
        # by the first bytes
        (in_("utf-8-sig", "ü"), "text/html; charset=latin-1", "ü"),
        ("\ufeff".encode("utf-16-le") + in_("utf-16-le", "ü"), "text/html", "ü"),
        ("\ufeff".encode("utf-16-be") + in_("utf-16-be", "ü"), "text/html; charset=utf-8", "ü"),
        ('<?xml version="1.0"?>'.encode("utf-16-le") + in_("utf-16-le", "ü"), "application/xhtml+xml", "ü"),
        # by the page
        (in_("big5", "微", "<meta charset=big5>"), "text/html", "微"),
        (in_("cp932", "日本", "<META CHARSET = ' x-sjis '>"), "text/html", "日本"),
        (in_("gbk", "中文", "<meta content='text/html; charset=x-gbk' http-equiv=Content-Type>"), "text/html", "中文"),
        (in_("utf-8", "ü", "<meta http-equiv=x content='text/html; charset=shift_jis'>"), "text/html", "ü"),
        (in_("utf-8", "ü", "<meta name=x content='charset=shift_jis'>"), "text/html", "ü"),
        (in_("utf-8", "ü", "<!-- <meta charset=shift_jis> -->"), "text/html", "ü"),
        (in_("utf-8", "ü", "<p title='<meta charset=shift_jis>'>"), "text/html", "ü"),
        (in_("utf-8", "ü", "<? <meta charset=shift_jis>"), "text/html", "ü"),
        (in_("utf-8", "ü", "</meta charset=shift_jis>"), "text/html", "ü"),
        (in_("utf-8", "ü", "<metal charset=shift_jis>"), "text/html", "ü"),
        (in_("koi8-r", "Мир", "<meta charset=none><meta charset=koi8-r>"), "text/html", "Мир"),
        (in_("utf-8", "ü", "<meta charset=utf-16>"), "text/html", "ü"),
        (in_("cp1252", "ü€", "<meta charset=x-user-defined>"), "text/html", "ü€"),
        # by the page behind its beginning, where only an element counts
        (in_("gbk", "中文", f"{LATE}<meta charset=nothing><meta charset=x-gbk>"), "text/html", "中文"),
        (in_("utf-8", "ü", f"{LATE}<script>'<meta charset=shift_jis>'</script>"), "text/html", "ü"),
        # by XML
        (b"<?xml version='1.0' encoding='windows-1251'?>" + in_("cp1251", "Мир"), "application/xhtml+xml", "Мир"),
        (b'<?xml version="1.0" encoding = "koi8-r"?>' + in_("koi8-r", "Мир"), "text/html", "Мир"),
        (b"<?xml encoding='cp1251'?>" + in_("koi8-r", "Мир", "<meta charset=koi8-r>"), "text/html", "Мир"),
        (b"<?xml encoding='koi8-r'?>" + in_("koi8-r", "Мир", "<meta charset=cp1251>"), "application/xhtml+xml", "Мир"),
        # by nothing, or not by what is said
        (in_("cp1252", "Café à la carte: été"), "text/html", "Café à la carte: été"),
        (in_("cp1252", "Grüße", "<!-- <meta charset=koi8-r> -->"), "text/html", "Grüße"),
        (in_("cp1251", "Новости сегодня"), "text/html", "Новости сегодня"),
        (in_("cp932", "日本語のページ"), "text/html", "日本語のページ"),
        (in_("gb18030", "中文网页标题"), "text/html", "中文网页标题"),
        (in_("big5hkscs", "今日天氣預報查詢"), "text/html", "今日天氣預報查詢"),
        (in_("cp949", "한국어 페이지"), "text/html", "한국어 페이지"),
        (in_("iso2022_jp", "日本語のページ"), "text/html", "日本語のページ"),
        (in_("cp1252", "Crème brûlée: recette"), "text/html; charset=utf-8", "Crème brûlée: recette"),
        (in_("utf-8", "ü") + b"<p>\xfc", "text/html", "ü"),
        (in_("utf-8", "日本語のページ").replace("語".encode(), b"\xe8"), "text/html; charset=utf-8", "日本のページ"),
    ],
)  # fmt: skip
def test_encodings(body: bytes, content_type: str, wanted: str) -> None:
    assert page(body, content_type).title == wanted


@given(st.binary(max_size=200), st.sampled_from(["text/html", "text/html; charset=euc-jp", "application/xhtml+xml"]))
@settings(max_examples=tries(100, 2_000), deadline=None, database=None)
def test_no_bytes_give_a_card_with_replaced_letters(title: bytes, content_type: str) -> None:
    try:
        found = page(b"<title>x" + title + b"</title><meta name=description content='" + title, content_type)
    except NoMetadataError:
        return
    assert "\ufffd" not in found.title + found.description


@pytest.mark.parametrize("label", ["replacement", "iso-2022-kr", "hz-gb-2312"])
def test_encodings_that_browsers_refuse(label: str) -> None:
    with pytest.raises(NoMetadataError):
        page("<title>T</title>", f"text/html; charset={label}")
