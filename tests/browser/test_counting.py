# ruff: noqa: RUF001 - full-width signs are what is tested
"""The counter of the composer against the server's."""

import random
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import Browser, expect

from items.links import is_link
from items.text import _WIDE_DOMAIN, ARTICLE_LENGTH, TEXT_LENGTH, counted_length, links
from tests.items import test_text
from tests.items.test_links import BAD, GOOD
from tests.support.browsers import Visit

pytestmark = pytest.mark.slow

BEGINNINGS = ["https://", "http://", "HTTPS://", "www.", "WwW.", "http\u017f://", "https://www.", "", "ftp://"]
HOSTS = [
    "example.com", "a.b.example.org", "例子.中国", "例子.中国看看", "www.example.org", "a.很好",
    "例.みんな", "müller.de", "हिन्दी.example",
    "localhost", "[2001:db8::1]", "[::1.2.3.4]", "[1.2.3]", "x", "a..b", "-a.org", "xn--fiqs8s", "203.0.113.7",
    "a" * 63 + ".org", "a" * 64 + ".org", ".".join(["abcdefghi"] * 26), "e\u0301.org",
    "a\u200d.org", "𝕏.example",
    *_WIDE_DOMAIN.pattern.split("|"), *(f"例.{name}很好" for name in _WIDE_DOMAIN.pattern.split("|")),
]  # fmt: skip
PORTS = ["", "", "", "", ":80", ":65535", ":65536", ":123456", ":", ":x"]
PARTS = [
    "/", "/wiki/", "/zh-cn/", "/item/", "/a", "/C语言", "C语言", "/第1次世界大戦",
    "茶_(曖昧さ回避)", "-日本关系", "A級戦犯",
    "#历史", "?q=", "&wd=", "&n=1", "微博", "スター・ウォーズ", "·", "・", "(", ")", "[", "]",
    "_(x)", ".", ",", "!", "'", "*",
    "&", ";", ":", "。", "，", "」", "）", "｜", "　", " ", "\n", "🎉", "👨\u200d👩\u200d👧",
    "❤\ufe0f", "\u2800", "\u3164", "\u200b",
    "\U0001d159", "é", "e\u0301", "น้ำ", "๕", "שָׁלוֹם", "می\u200cخواهم", "한국어", "C언어",
    "%E4%B8%AD", "~", "→", "𠮷", "ﬃ", "ﾞ",
    "word", "words" * 8, "7", "_", "@alice", "#tag", "\\", "<", ">", '"', "`", "|", "^", "{",
    "\u0941", "々", "〇", "￥", "𝟙",
    "\u1cd0", "️⃣", "\u20dd", "\u00b2", "①", "Ⅷ", "〜",
]  # fmt: skip
BEFORE = [
    "", " ", "看", "a", "é", "_", "7", "(", "「", "@", "#", ".", "/", "-", "e\u0301", "ไ", "๕", "𝕏", "𠮷", "\u200d",
    "𝟙",
]  # fmt: skip


def texts(count: int) -> list[str]:
    choose = random.Random(54)  # noqa: S311 (the same texts each time)

    def one() -> str:
        path = "".join(choose.choices(PARTS, k=choose.randrange(9)))
        host = choose.choice(HOSTS[: None if choose.random() < 0.2 else 5])
        before = choose.choice((BEFORE, [" "]))
        return "".join(map(choose.choice, (before, BEGINNINGS))) + host + choose.choice(PORTS) + path

    return ["".join(one() for _ in range(choose.randrange(1, 4))) for _ in range(count)]


def test_the_counter_counts_as_the_server(browser: Browser) -> None:
    (cases,) = (mark.args[1] for mark in test_text.test_links.pytestmark)  # type: ignore[attr-defined]
    tried = [*texts(2_000), *GOOD, *BAD, *(text for text, _ in cases)]
    longer = [text + "x" * 30 for text in tried]
    page = browser.new_page()
    page.add_script_tag(path=Path(str(finders.find("feedsite/counting.js"))))
    counts = page.evaluate("(texts) => texts.map(countedLength)", tried + longer)
    page.close()
    expected = list(map(counted_length, tried + longer))
    wrong = [both for both in zip(tried + longer, counts, expected, strict=True) if both[1] != both[2]]
    assert not wrong
    assert sum(counted_length(text) < len(text) for text in tried + longer) > 500
    assert all(is_link(link, is_secure=False) for text in tried for link in links(text))


@pytest.mark.django_db(transaction=True)
def test_the_composer_shows_what_is_left(visit: Visit, screen: dict[str, Any], reader: Any) -> None:
    visitor = visit(**screen)
    visitor.enter(reader)
    visitor.goto("/")
    area, left = visitor.page.get_by_label("What's new?"), visitor.page.locator(".composer .count span").first
    text = f"  {'x' * (TEXT_LENGTH - 100)} www.example.com/wiki/C语言{'a' * 300}，好 \n"
    area.fill(text)
    expect(left).to_have_text(str(TEXT_LENGTH - counted_length(text.strip())))
    area.fill("https://a.example/" + "a" * ARTICLE_LENGTH)
    expect(left).to_have_text("-18")
