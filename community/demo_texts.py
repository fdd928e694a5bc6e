"""What the people of the demo write: `posts.txt`, dealt in random order."""

import random
from collections.abc import Collection, Sequence
from pathlib import Path

from accounts.models import User
from items.models import Item

FILE = Path(__file__).with_name("posts.txt")
COLDEST, WARMEST = 9, 16
"""The degrees of forecasts, in a week of autumn."""
STYLES = {"harbor-news": "news", "weather-desk": "forecasts"}
"""The parts of the file for people who write nothing else."""
WRITE_CHINESE = {"lin-wei", "zhou-mo", "su-he", "gu-yuan", "tang-li", "he-chuan"}


def writes_chinese(user: User) -> bool:
    """Whether somebody writes in Chinese. All others write in English."""
    return user.username in WRITE_CHINESE


def read_posts() -> dict[str, dict[str, list[str]]]:
    """The posts of each part of the file, with the replies that fit them."""
    parts: dict[str, dict[str, list[str]]] = {}
    fitting: list[str] = []
    for line in FILE.read_text().splitlines():
        text = line.strip().replace("\\n", "\n")
        if line.startswith("== "):
            part = parts[line.removeprefix("== ")] = {}
        elif line.startswith("  "):
            fitting.append(text)
        elif line and not line.startswith("#"):
            fitting = part[text] = []
    return parts


class Deck:
    """Deals cards in random order, all before repeating one."""

    def __init__(self, chance: random.Random, cards: Collection[str]) -> None:
        self._chance = chance
        self._cards = [*cards]
        self._left: list[str] = []

    def deal(self) -> str:
        """The next card."""
        self._left = self._left or self._chance.sample(self._cards, len(self._cards))
        return self._left.pop()


class Voices:
    """Texts of posts and replies."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        parts = read_posts()
        self._decks = {name: Deck(chance, posts) for name, posts in parts.items()}
        self._answers = {False: parts["replies"], True: parts["chinese replies"]}
        self.fitting: dict[str, Sequence[str]] = {
            text: answers for one in parts.values() for text, answers in one.items()
        }
        """The replies that fit a post, by its text."""

    def post(self, sender: User) -> str:
        """A post in the sender's language and style."""
        deck = self._decks[STYLES.get(sender.username, "chinese" if writes_chinese(sender) else "english")]
        text = next(text for text in iter(deck.deal, None) if f"@{sender.username}" not in text)
        if "{0}" not in text:
            return text
        forecast = text.format(self._chance.randint(COLDEST, WARMEST))
        self.fitting[forecast] = self.fitting[text]
        return forecast

    def count_fitting(self, text: str) -> int:
        """The number of replies that fit a post."""
        return len(self.fitting[text])

    def reply(self, post: Item, thread: Collection[str]) -> str:
        """A reply, new to the thread if possible: one that fits the post, or one that fits all."""
        everywhere = [*self._answers[writes_chinese(post.sender)]]
        others = self._chance.sample(everywhere, len(everywhere))
        return next((text for text in (*self.fitting[post.text], *others) if text not in thread), others[0])
