import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from community.archives.markup import LONGEST, text_of
from items.text import mentions
from web.strict_json import UNSTORABLE

LINK = (
    '<a href="https://example.org/a/very/long/path" rel="nofollow"><span class="invisible">https://</span>'
    '<span class="ellipsis">example.org/a/very</span><span class="invisible">/long/path</span></a>'
)
MENTION = '<span class="h-card"><a href="https://x.example/@ben" class="u-url mention">@<span>ben</span></a></span>'
TAG = '<a href="https://x.example/tags/cats" class="mention hashtag" rel="tag">#<span>cats</span></a>'

KNOWN = {
    "<p>one</p><p>two<br>three</p>": "one\n\ntwo\nthree",
    "plain &amp; &lt;b&gt;": "plain & <b>",
    f"<p>see {LINK}, {MENTION} {TAG}</p>": "see https://example.org/a/very/long/path, @ben@x.example #cats",
    '<a href="https://x.example/@ben@y.example" class="mention">@ben@y.example</a>': "@ben@y.example",
    '<a href="https://misskey.example/@bo@x.example" class="u-url mention">@bo@x.example</a>': "@bo@x.example",
    '<a href="https://x.example/@ann/1">@ann wrote</a>': "@ann@x.example wrote (https://x.example/@ann/1)",
    '<a href="https://x.example/@ann" class="mention">@ann wrote</a>': "@ann@x.example wrote (https://x.example/@ann)",
    '<a href="https://x.example/1">says @ann@y.example</a>': "says @ann@y.example (https://x.example/1)",
    '<a href="https://example.org/">the words</a>': "the words (https://example.org/)",
    '<a href="https://www.example.org/a">example.org/a</a>': "https://www.example.org/a",
    '<a href="javascript:alert(1)">click</a>': "click",
    '<a href="https://[bad">click</a>': "click",
    "<a>no address</a>": "no address",
    "<ul><li>a</li><li>b</li></ul>": "- a\n- b",
    "<script>alert(1)</script><style>p{}</style><p>seen</p>": "seen",
    "a\n b\t\tc": "a b c",
    "<p>open": "open",
    "<p>so:</p><pre><code>if a:\n    b()\r\n\tc\n</code></pre><p>x\ny</p>": "so:\n\nif a:\n    b()\n    c\n\nx y",
    "<pre>\n  a  b \n</pre>\x01c": "  a  b\n\nc",
    "<p><a href='https://example.org'>open": "open",
    "</a></p>ends": "ends",
    "a\x00b\x07c": "abc",
    "&#0;&#xD800;x": "\ufffd\ufffdx",
    "": "",
}


@pytest.mark.parametrize("html", KNOWN)
def test_html_becomes_text(html: str) -> None:
    assert text_of(html) == KNOWN[html]


@pytest.mark.slow
@given(st.text(alphabet=st.characters(), max_size=300) | st.text(alphabet="<>ap/ &;\"'=@#x!-[]", max_size=200))
def test_any_text_becomes_text_that_can_be_stored(html: str) -> None:
    assert not UNSTORABLE.search(text_of(html))


def test_a_mention_is_none_here() -> None:
    assert mentions(text_of(MENTION)) == []


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["<p>", "<a href='https://x.example'>", "<", "<!--", "&", "<![CDATA[", "</", "<a b="])
def test_time_grows_with_the_length(piece: str) -> None:
    html = (piece * LONGEST)[:LONGEST]
    begin = time.process_time()
    text_of(html)
    assert time.process_time() - begin < 10
