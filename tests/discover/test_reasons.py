# ruff: noqa: RUF001 - a full-width colon is meant

import pytest
from django.utils import translation

from discover.reasons import words

CODES = [
    "liked", "follows:1", "follows:12", "similar", "sender", "follower", "tag:小事", "words:redis", "words:音机",
    "popular", "fresh", "followed",
]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_code_has_words_of_its_own(language: str) -> None:
    with translation.override(language):
        said = [words(code) for code in [*CODES, ""]]
    assert len(set(said)) == len(said)
    assert all(said)


def test_details_are_said() -> None:
    assert words("follows:1") == "Followed by 1 person you follow"
    assert words("follows:12") == "Followed by 12 people you follow"
    assert words("tag:小事") == "Because of #小事"
    assert words("tag:a:b") == "Because of #a:b"
    assert words("words:音机") == "Similar to posts you read", "a part of 收音机 is no word"
    assert words("words:café") == "Similar to posts you read: café"
    with translation.override("zh-hans"):
        assert words("follows:12") == "12 位你关注的人也关注了作者"
        assert words("words:{x} %s") == "与你看过的相似：{x} %s"


@pytest.mark.parametrize(
    "code",
    ["", ":", "nonsense", "liked:1", "follows", "follows:", "follows:x", "follows:-1", "follows:²", "tag:", "<b>"],
)
def test_unknown_reasons_are_said_plainly(code: str) -> None:
    assert words(code) == "Recommended"
