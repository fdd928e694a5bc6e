import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.webvtt import BYTES, CUES, LETTERS, CaptionsError, caption_words, rewritten

WHOLE = """WEBVTT - Some title
Kind: captions

STYLE
::cue { background-image: url(https://evil.example/) }

NOTE a remark
of two lines

REGION
id:fred

one
00:01.000 --> 00:04.500 align:start position:10%
<v Ann>A <i>first</i> line &amp; more
and <c.red>another</c>

01:00:02.000 --> 01:00:03.000
<00:00:01.000>第二 & 最后

00:00.500 --> 00:00.900
earlier
"""


def cue(words: str) -> bytes:
    return f"WEBVTT\n\n00:01.000 --> 00:02.000\n{words}\n".encode()


def test_captions_are_written_anew() -> None:
    assert rewritten(WHOLE.encode()) == (
        "WEBVTT\n\n00:00:00.500 --> 00:00:00.900\nearlier\n\n"
        "00:00:01.000 --> 00:00:04.500\nAnn: A first line &amp; more\nand another\n\n"
        "01:00:02.000 --> 01:00:03.000\n第二 &amp; 最后\n"
    )


@pytest.mark.parametrize("ends", ["\r\n", "\r", "\n"])
def test_line_ends_and_a_byte_order_mark(ends: str) -> None:
    text = "\ufeff" + WHOLE.replace("\n", ends)
    assert rewritten(text.encode()) == rewritten(WHOLE.encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "kind"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nof another format", "kind"),
        (b"WEBVTTX\n\n00:01.000 --> 00:02.000\nx", "kind"),
        (b"<svg onload=alert(1)>", "kind"),
        (b"WEBVTT\n", "empty"),
        (cue(""), "empty"),
        (cue("<i></i>"), "empty"),
        (cue("<script>alert(1)</script>"), "tags"),
        (cue("<img src=x onerror=alert(1)>"), "tags"),
        (cue("a < b"), "tags"),
        (cue("<v Ann"), "tags"),
        (cue("<i<script>>"), "tags"),
        (cue("a\0b"), "characters"),
        (cue("a\x1bb"), "characters"),
        (cue("a&#13;b"), "characters"),
        (cue("x").replace(b"x", b"\xff"), "encoding"),
        (WHOLE.encode("utf-16"), "kind"),
        (cue("x" * (LETTERS + 1)), "large"),
        (b"WEBVTT\n" + b"\n00:01.000 --> 00:02.000\nx\n" * (CUES + 1), "large"),
        (cue("x") + b"\n" * BYTES, "large"),
        (cue("x") + b"\n00:02.000 --> 00:01.000\ny", "times"),
        (cue("x") + b"\n00:01.000 --> 00:01.000\ny", "times"),
        (cue("x") + b"\n00:61.000 --> 00:62.000\ny", "times"),
        (cue("x") + b"\n00:01,000 --> 00:02,000\ny", "times"),
        (cue("x") + "\n\u0660\u0660:01.000 --> 00:02.000\ny".encode(), "times"),
        (cue("x") + b"\nno times at all", "times"),
        (cue("x\n00:01.000 --> 00:02.000\ny"), "times"),
    ],
)
def test_bad_files(data: bytes, reason: str) -> None:
    with pytest.raises(CaptionsError, match=f"^{reason}$"):
        rewritten(data)


def test_words_of_kept_captions() -> None:
    kept = rewritten(
        b"WEBVTT\n\n1\n00:01.000 --> 00:02.000\nfish &amp; <i>chips</i>\nWEBVTT\n\n00:03.000 --> 00:04.000\n--&gt;\n"
    )
    assert caption_words(kept) == "fish & chips\nWEBVTT\n-->"


def test_references_and_empty_lines_within_words() -> None:
    kept = rewritten(cue("a&#0;&lt;b&gt;&#10;&#10;c\n \n<i></i>\n--&gt; d"))
    assert kept.endswith("\na\ufffd&lt;b&gt;\nc\n--&gt; d\n")


@pytest.mark.slow
@given(st.text(max_size=300))
def test_words_are_never_more_than_words(words: str) -> None:
    """No cue keeps a tag, and reading the result again changes nothing."""
    try:
        kept = rewritten(cue(words))
    except (CaptionsError, UnicodeEncodeError):
        return
    assert "<" not in kept
    assert kept.count("-->") == 1
    assert rewritten(kept.encode()) == kept


@pytest.mark.slow
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        rewritten(b"WEBVTT\n\n" + data)
    except CaptionsError:
        return
