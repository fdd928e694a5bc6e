import pytest
from django.test import Client
from django.utils import translation

from items.completing import completions
from items.emoji import FILE, GROUPS, all_emoji, emoji_named, emoji_of_group
from tests.support.factories import UserFactory
from tests.support.pages import PART


def test_the_file_is_small_and_whole() -> None:
    assert FILE.stat().st_size < 400_000
    assert len({one.emoji for one in all_emoji()}) == len(all_emoji()) > 1_800
    assert all(all(one.titles.values()) and one.group in GROUPS for one in all_emoji())
    assert all(emoji_of_group(group) for group in GROUPS)


@pytest.mark.parametrize(
    ("typed", "emoji"),
    [
        ("smi", "😄"),
        ("grinning_face", "😀"),
        ("HEART", "❤️"),
        ("嘿嘿", "😀"),
        ("笑", "😄"),
        ("中国", "🇨🇳"),
        ("火箭", "🚀"),
    ],
)
def test_names_are_found_in_both_languages(typed: str, emoji: str) -> None:
    found = [one.emoji for one in emoji_named(typed, 40)]
    assert emoji in found
    assert len(emoji_named(typed, 3)) <= 3


@pytest.mark.parametrize(
    ("language", "typed", "emoji"), [("es", "cohete", "🚀"), ("es", "corazón rojo", "❤️"), ("ja", "ろけっと", "🚀")]
)
def test_names_of_other_languages_are_for_their_readers(language: str, typed: str, emoji: str) -> None:
    assert emoji not in [one.emoji for one in emoji_named(typed, 40)]
    with translation.override(language):
        assert emoji_named(typed, 1)[0].emoji == emoji
        assert emoji_named("rocket", 1)[0].emoji == "🚀"


def test_the_best_is_first() -> None:
    assert emoji_named("rocket", 3)[0].emoji == emoji_named("rocke", 3)[0].emoji == "🚀"
    assert {one.emoji[0] for one in emoji_named("cat", 2)} == {"🐱", "🐈"}


@pytest.mark.parametrize(
    ("typed", "emoji"),
    [
        ("tada", "🎉"), ("heart", "❤️"), ("thumbsup", "👍️"), ("+1", "👍️"), ("pray", "🙏"), ("wave", "👋"),
        ("muscle", "💪"), ("fire", "🔥"), ("eyes", "👀"), ("clap", "👏"), ("100", "💯"), ("rocket", "🚀"),
        ("joy", "😂"), ("sob", "😭"), ("thinking", "🤔"), ("ok_hand", "👌"), ("raised_hands", "🙌"),
        ("sparkles", "✨"), ("x", "❌️"), ("white_check_mark", "✅️"), ("sunglasses", "😎"), ("party_popper", "🎉"),
        ("8ball", "🎱"), ("1st_place_medal", "🥇"), ("thumbs_up", "👍️"), ("-1", "👎️"), ("TADA", "🎉"),
        ("tad", "🎉"),
        ("1st_pl", "🥇"),
        ("赞", "👍️"),
        ("鼓掌", "👏"),
        ("红心", "❤️"),
        ("拉炮彩带", "🎉"),
    ],
)  # fmt: skip
def test_everyday_names_complete_first(typed: str, emoji: str) -> None:
    for colon in (":", "\uff1a"):
        assert completions(colon + typed, UserFactory.build())[0].text.rstrip("\ufe0f") == emoji.rstrip("\ufe0f")


@pytest.mark.parametrize(
    "typed", ["30", "00", "12", "10", "7pm", "30am", "8点", "8", "30分", "3_", "1_", "\u0663\u0660", "\uff13\uff10"]
)
def test_a_time_of_day_completes_nothing(typed: str) -> None:
    assert completions(f":{typed}", UserFactory.build()) == []


@pytest.mark.parametrize("typed", ["", " ", "zzzzz", "x" * 31, "\\", "smi["])
def test_what_names_none(typed: str) -> None:
    assert emoji_named(typed, 6) == []


@pytest.mark.django_db
def test_completions_and_the_picker(client: Client) -> None:
    reader = UserFactory.create()
    assert completions(":rocket", reader)[0].text == "🚀"
    with translation.override("zh-hans"):
        assert completions(":rocket", reader)[0].name == "火箭"
    assert client.get("/emoji", **PART).status_code in (302, 401)
    client.force_login(reader)
    assert 'data-text="🚀"' in client.get("/complete?q=:rocket", **PART).content.decode()
    assert 'data-emoji="🚀"' in client.get("/emoji?q=rocket", **PART).content.decode()
    first = client.get("/emoji", **PART).content.decode()
    assert 'data-emoji="😀"' in first
    assert client.get("/emoji?group=nonsense", **PART).content.decode() == first
    assert 'data-emoji="🐵"' in client.get("/emoji?group=3", **PART).content.decode()
    assert "No emoji" in client.get("/emoji?q=zzzzz", **PART).content.decode()
