# ruff: noqa: RUF001 - full-width signs are what is tested
"""Payloads and the parser's special strings."""

from hypothesis import strategies as st

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    'https://example.org/"onmouseover="alert(1)',
    "{{ 'rend' ~ 'ered' }}{% set it = cycler.__init__ %}",
    "</textarea><script>alert(1)</script>",
]
WIDE_AT, WIDE_HASH = "\uff20", "\uff03"
# Far more often than by chance.
PIECES = st.sampled_from([
    *"@#/.:?=()[]&'\"<> \n-_%，。！？）】」", WIDE_AT, WIDE_HASH, "https://", "HTTP://", "www.", "example.com",
    "例子.中国", "a", "Alice", "小事", "7", "é", "ß", "한", "ภา", "\u0301", "\ufb03", "\u200d", "🎉", "<script>",
    "javascript:",
    "\x00",
])  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES | st.text(max_size=3)).map("".join))
