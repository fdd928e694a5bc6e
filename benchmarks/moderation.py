"""The cost of the rules of moderation for a publish, by the number of words.

Each call is one transaction that is rolled back, so that no commit hides what is measured: `publish` with the rules
and, its limit, without them; and the rules alone, for a post of 200 characters and for the longest. The words are
compiled before; what that takes once a change and process stands beside them.
"""

import random
import time
from functools import partial

from django.db import transaction

from accounts.models import User
from benchmarks.community import Community
from benchmarks.measure import Report, interleaved, milliseconds, over
from items.actions import publish
from items.models import Item
from items.signals import item_submitted
from items.text import TEXT_LENGTH
from moderation import receivers, rules
from moderation.models import WordRule

WORDS = (0, 1_000, 5_000, 50_000)
TARGET = 1.3
"""Publish over publish without rules, with 5,000 words and a post as posts are: the one query is most of it."""
LATIN, HAN = "etaoinshrdlucmf", [chr(code) for code in range(0x4E00, 0x5E00)]


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    rounds = community.size.page_rounds
    report = Report(
        "moderation",
        __doc__.splitlines()[0],
        [
            "words",
            "compiled, ms",
            "publish without rules, ms",
            "publish, ms",
            "rules, 200 letters, ms",
            "rules, 5,000 letters, ms",
        ],
        f"median of {rounds} rounds",
    )
    chance = random.Random(1)  # noqa: S311 (the same words in every run)
    sender = User.objects.get(pk=community.size.senders)
    short, long = _text(chance, 200), _text(chance, TEXT_LENGTH)
    for count in WORDS:
        WordRule.objects.all().delete()
        words = {_word(chance) for _ in range(count)}
        WordRule.objects.bulk_create([WordRule(text=word, whole=word.isascii()) for word in words], batch_size=5_000)
        begin = time.perf_counter()
        rules.current_words()
        compiled = (time.perf_counter() - begin) * 1000
        times = interleaved(
            {
                "without": partial(_publish, sender, short, looked_at=False),
                "publish": partial(_publish, sender, short, looked_at=True),
                "short": partial(_look, sender, short),
                "long": partial(_look, sender, long),
            },
            rounds=rounds,
        )
        figures = [round(milliseconds(times[name]), 2) for name in ("without", "publish", "short", "long")]
        report.rows.append([f"{len(words):,}", round(compiled), *figures])
        target = TARGET if count == 5_000 else None
        report.ratio(f"publish / without rules, {count:,} words", over(times, "publish", "without"), at_most=target)
    WordRule.objects.all().delete()
    return report


def _publish(sender: User, text: str, number: int, *, looked_at: bool) -> None:
    if not looked_at:
        item_submitted.disconnect(receivers.look)
    try:
        with transaction.atomic():
            publish(sender=sender, content={"text": f"{text} {number}"})
            transaction.set_rollback(True)
    finally:
        item_submitted.connect(receivers.look)


def _look(sender: User, text: str, number: int) -> None:
    rules.reasons(Item(sender=sender, content={"text": text}))


def _word(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return "".join(chance.choices(HAN, k=chance.randint(3, 6)))
    return "".join(chance.choices(LATIN, k=chance.randint(7, 12)))


def _text(chance: random.Random, length: int) -> str:
    """Half Chinese, half words of Latin letters; it meets hardly any rule, and begins many."""
    half = "".join(chance.choices(HAN, k=length // 2))
    return half + "".join(chance.choices(LATIN + "   ", k=length - length // 2))
