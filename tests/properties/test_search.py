# ruff: noqa: RUF001 - a Chinese comma is meant
"""A plain oracle compares words, scripts and phrases letter by letter."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from items.models import Item, ItemDocument, ItemTag, Status, Visibility
from items.search import search
from items.search.indexing import index
from items.search.query import parse
from items.search.search import search_items
from items.text import hashtags
from relations import actions as relations
from tests.support.effort import tries
from tests.support.factories import ItemFactory, UserFactory

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(900)]

Unit = tuple[str, bool]
"""A word or a Chinese character, and whether it touches the Chinese one before it."""

PIECES = ["fix", "Fix", "fixed", "bug", "b", "7", "小", "红", "书", "小红书", "小红", "红书", "#小书", "#fix"]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).flatmap(
    lambda pieces: st.lists(
        st.sampled_from([" ", " ", "", ",", "，", "_", "\n"]), min_size=len(pieces), max_size=len(pieces)
    ).map(lambda gaps: "".join(piece + gap for piece, gap in zip(pieces, gaps, strict=True)))
)
terms = st.tuples(
    st.sampled_from(["fi", "fix", "FIXED", "b", "bug", "7", "小", "红书", "小红书", "书小", "fix小", "小_红"]),
    st.none(),
)
quoted_words = st.lists(st.sampled_from(["fi", "fix", "bug", "小", "红书"]), min_size=1, max_size=2)
phrases = st.tuples(st.just("quoted"), quoted_words.map(" ".join))
tags = st.tuples(st.sampled_from(["#小书", "#FIX"]), st.none())
senders = st.tuples(st.sampled_from(["from:ann", "from:Bob", "from:nobody"]), st.none())
parts = st.one_of(terms, phrases, tags, senders)
queries = st.one_of(
    parts.map(lambda part: [part]),
    st.lists(terms | phrases, min_size=2, max_size=2),
    st.lists(parts, min_size=2, max_size=3),
)


def units(text: str) -> list[Unit]:
    found: list[Unit] = []
    word, touches = "", False
    for letter in [*text.lower(), " "]:
        is_chinese = "一" <= letter <= "龥"
        if word and (is_chinese or not letter.isalnum()):
            found.append((word, False))
            word = ""
        if is_chinese:
            found.append((letter, touches))
        elif letter.isalnum():
            word += letter
        touches = is_chinese
    return found


def holds(text: list[Unit], wanted: list[Unit], *, is_open: bool) -> bool:
    """Whether the words are in a row, and touch where the wanted ones do."""
    last = wanted[-1][0]
    may_go_on = is_open and last.isascii() and len(last) > 1 and not last.isdigit()
    for at in range(len(text) - len(wanted) + 1):
        stretch = text[at : at + len(wanted)]
        if (
            all(one[0] == other[0] for one, other in zip(stretch[:-1], wanted[:-1], strict=True))
            and (stretch[-1][0] == last or (may_go_on and stretch[-1][0].startswith(last)))
            and all(one[1] for one, other in zip(stretch, wanted, strict=True) if other[1])
        ):
            return True
    return False


def fits(item: Item, query: list[tuple[str, Any]]) -> bool:
    for place, (term, quoted) in enumerate(query):
        if term.startswith("from:"):
            if item.sender.username.lower() != term[5:].lower():
                return False
        elif term.startswith("#"):
            if term[1:].lower() not in hashtags(item.text):
                return False
        elif not holds(units(item.text), units(quoted or term), is_open=quoted is None and place == len(query) - 1):
            return False
    return True


@pytest.mark.slow
@settings(
    max_examples=tries(25, 120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), walk=st.sampled_from([1, 3, 1000]), limit=st.integers(1, 4))
def test_walking_a_search_gives_what_the_oracle_says(
    monkeypatch: pytest.MonkeyPatch, data: st.DataObject, walk: int, limit: int
) -> None:
    for model in (ItemDocument, ItemTag, Item):
        model.objects.all().delete()
    monkeypatch.setattr(search, "WALK", walk)
    monkeypatch.setattr(search, "STEP", 2)
    people = {name: user_named(name) for name in ("ann", "bob", "reader", "mutual", "blocked")}
    reader = people[data.draw(st.sampled_from(["ann", "reader", "mutual", "blocked"]))]
    for text in data.draw(st.lists(texts, min_size=1, max_size=10)):
        item = ItemFactory.create(
            sender=people[data.draw(st.sampled_from(["ann", "bob"]))],
            content={"text": "once something else #fix 小红书"},
            visibility=data.draw(st.sampled_from([Visibility.PUBLIC, *Visibility.values])),
            status=data.draw(st.sampled_from([Status.PUBLISHED] * 4 + Status.values)),
        )
        index(item)
        item.content = {"text": text}
        item.save(update_fields=["content"])
        index(item)
    query = data.draw(queries)
    spelled = " ".join(f'"{quoted}"' if quoted else term for term, quoted in query)

    visible = (
        Item.objects.visible_to(reader)
        .exclude(visibility=Visibility.MENTIONED)
        .select_related("sender")
        .order_by("-pk")
    )
    expected = [str(item.pk) for item in visible if fits(item, query)]
    walked: list[str] = []
    last_id = None
    while True:
        page = search_items(parse(spelled), reader, last_id=last_id, limit=limit)
        walked += [item.id for item in page.items]
        assert len(page.items) <= limit
        assert page.has_more == (len(walked) < len(expected))
        if not page.has_more:
            break
        last_id = int(page.last_id or 0)
    assert walked == expected


def user_named(name: str) -> Any:
    user = UserFactory._meta.model.objects.named(name).first()
    if user:
        return user
    user = UserFactory.create(username=name)
    if name in ("reader", "mutual"):
        relations.follow(follower=user, followee=user_named("ann"))
    if name == "mutual":
        relations.follow(follower=user_named("ann"), followee=user)
    if name == "blocked":
        relations.block(blocker=user_named("ann"), blocked=user)
    return user
