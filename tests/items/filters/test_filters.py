from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from discover.feed import refresh
from items import actions as items
from items.bodies import ItemBody
from items.filters import filters
from items.filters.filters import FilterRule, Filters, apply_filters, folded
from items.hydrate import hydrate
from items.models import PHRASE_LENGTH, Filter, FilterAction, Item
from items.profiles.profile import find_item, profile_page, replies_page
from items.search.query import parse
from items.search.search import search_items
from items.text import ARTICLE_LENGTH
from relations import actions as relations
from relations import lists
from storage.connections import count_trips
from tests.support.at_once import at_once
from tests.support.factories import UserFactory, say
from tests.support.patience import BUSY, cpu
from timeline.home import home_page
from timeline.lists import list_page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reader(author: User) -> User:
    reader = UserFactory(username="reader")
    relations.follow(follower=reader, followee=author)
    return reader


def add(owner: User, phrase: str, *, whole_word: bool = True, **fields: Any) -> Filter:
    return filters.create(owner=owner, phrase=phrase, whole_word=whole_word, **fields)


def met(item: Item, reader: User) -> ItemBody:
    return hydrate([item.pk], User.objects.get(pk=reader.pk))[0]


@pytest.mark.parametrize(
    ("phrase", "whole_word", "text", "is_found"),
    [
        ("cat", True, "a Cat!", True),
        ("cat", True, "category", False),
        ("cat", False, "category", True),
        ("CAT", True, "\uff43\uff41\uff54", True),  # full width
        ("straße", True, "STRASSE", True),
        ("cat", True, "c\u200bat", True),  # an invisible character
        ("猫", True, "小猫咪", True),  # no word borders in Chinese
        ("AI", True, "我爱AI技术", True),
        ("AI", True, "MAIL", False),
        ("ｱｲ", True, "アイス", True),  # half-width kana
        ("two  words", True, "two\nwords", True),
        ("a.*b", False, "axxb", False),
        ("(a+)+$", False, "(A+)+$", True),
        ("é", True, "e\u0301", True),
    ],
)
def test_what_a_phrase_finds(
    reader: User, author: User, phrase: str, whole_word: bool, text: str, is_found: bool
) -> None:
    add(reader, phrase, whole_word=whole_word)
    assert met(say(author, text), reader).filtered == [phrase] * is_found


def test_all_that_people_read_is_looked_at(reader: User, author: User) -> None:
    add(reader, "zebra")
    said = items.publish(
        sender=author, type="article", title="A zebra", content={"text": "words", "warning": "a zebra, too"}
    )
    assert met(said, reader).filtered == ["zebra"]
    split = items.publish(sender=author, type="article", title="two", content={"text": "words"})
    add(reader, "two words")
    assert met(split, reader).filtered == [], "no phrase crosses from the title into the text"
    again, _ = items.repost(sender=UserFactory(), item=said)
    body = met(again, reader)
    assert body.filtered == ["zebra"]
    assert body.repost_of
    assert body.repost_of.filtered == ["zebra"]


def test_hiding_wins_and_own_items_are_never_filtered(reader: User, author: User) -> None:
    add(reader, "zebra", action="warn")
    add(reader, "giraffe", action="hide")
    assert met(say(author, "a zebra"), reader).filter_action == "warn"
    both = met(say(author, "a giraffe and a zebra"), reader)
    assert (both.filtered, both.filter_action) == (["zebra", "giraffe"], "hide")
    own = say(reader, "my giraffe")
    assert met(own, reader).filtered == []
    again, _ = items.repost(sender=author, item=own)
    assert met(again, reader).filtered == [], "what somebody reposts of oneself is one's own"
    assert met(say(author, "a zebra"), author).filtered == []
    assert not Filter.objects.filter(owner=author).exists()


def test_filters_end(reader: User, author: User) -> None:
    said = say(author, "a zebra")
    made = add(reader, "zebra", expires_at=timezone.now() + timedelta(hours=1))
    add(reader, "nothing")
    assert met(said, reader).filtered == ["zebra"]
    version = User.objects.get(pk=reader.pk).filters_version
    Filter.objects.filter(pk=made.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    filters._compiled.cache_clear()
    assert met(said, reader).filtered == []
    assert filters.forget_expired() == 1
    assert filters.forget_expired() == 0
    reader.refresh_from_db()
    assert reader.filters_version not in (0, version)
    filters.delete(owner=reader, filter_id=Filter.objects.get().pk)
    reader.refresh_from_db()
    assert reader.filters_version == 0


def test_every_change_counts_at_once(reader: User, author: User) -> None:
    said = say(author, "a zebra")
    assert met(said, reader).filtered == []
    made = add(reader, "zebra")
    assert met(said, reader).filtered == ["zebra"]
    filters.change(owner=reader, filter_id=made.pk, phrase="giraffe")
    assert met(said, reader).filtered == []
    filters.change(owner=reader, filter_id=made.pk, phrase="ZEBRA", action="hide")
    assert (met(said, reader).filtered, met(said, reader).filter_action) == (["ZEBRA"], "hide")
    filters.delete(owner=reader, filter_id=made.pk)
    assert met(said, reader).filtered == []


@pytest.mark.slow
def test_every_feed_is_marked_and_none_is_changed(reader: User, author: User, say_all: Callable[[], Any]) -> None:
    feeds = say_all()
    before = {name: read() for name, read in feeds.items()}
    add(reader, "zebra", action="hide")
    for name, read in feeds.items():
        page, plain = read(), before[name]
        assert [item.id for item in page.items] == [item.id for item in plain.items], name
        assert getattr(page, "last_id", None) == getattr(plain, "last_id", None), name
        assert page.has_more == plain.has_more, name
        assert {"zebra"} == {phrase for item in page.items for phrase in item.filtered}, name
        assert all((item.filter_action == "hide") == ("zebra" in item.shown.text) for item in page.items), name


@pytest.fixture
def say_all(reader: User, author: User) -> Callable[[], Any]:
    def make() -> dict[str, Callable[[], Any]]:
        for text in ("a zebra", "words", "zebras are no zebra"):
            root = say(author, text)
            say(author, f"{text}, again", reply_to=root)
        thread = say(reader, "my thread")
        for text in ("zebra", "words"):
            say(author, text, reply_to=thread)
        made = lists.create(owner=reader, title="a list")
        lists.add(owner=reader, list_id=made.pk, member=author)
        body = find_item(thread.pk, reader)
        assert body

        def fresh() -> User:
            return User.objects.get(pk=reader.pk)

        return {
            "home": lambda: home_page(fresh(), limit=3),
            "list": lambda: list_page(fresh(), made.pk, limit=2),
            "profile": lambda: profile_page(author, fresh(), limit=2),
            "thread": lambda: replies_page(body, fresh()),
        }

    return make


def test_discover_is_marked(reader: User, author: User) -> None:
    say(author, "a zebra")
    add(reader, "zebra")
    page = refresh(User.objects.get(pk=reader.pk), limit=5)
    assert [item.filtered for item in page.items] == [["zebra"]]


def test_readers_without_filters_cost_no_statement(reader: User, author: User) -> None:
    said = say(author, "a zebra")
    fresh = User.objects.get(pk=reader.pk)
    with count_trips() as asked, CaptureQueriesContext(connection) as others:
        hydrate([said.pk], fresh)
    assert (asked.statements, len(others)) == (1, 0)
    add(reader, "zebra")
    fresh = User.objects.get(pk=reader.pk)
    for statements in (2, 1, 1):  # compiled once per version
        with count_trips() as asked, CaptureQueriesContext(connection) as others:
            hydrate([said.pk], fresh)
        assert (asked.statements, len(others)) == (statements, 0)


def test_bounds_hold_under_concurrent_calls(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "FILTERS", 2)
    made = at_once(*(partial(add, reader, f"word{number}") for number in range(4)))
    assert sum(isinstance(one, filters.FilterCapError) for one in made) == 2
    assert Filter.objects.count() == 2
    for phrase in ("", " ", "\u200b"):
        with pytest.raises(filters.NothingToFindError):
            add(UserFactory(), phrase)


HOSTILE = ["a", "ab", "\u0301", "ﷺ", "ﷺﷻ ", "㌖", "a\u0301", "猫", " ", "(", "a\u200b", "İ", "ß"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_the_longest_text_is_read_in_a_moment(piece: str) -> None:
    """20 ms for the most and longest phrases, which nearly match everywhere."""
    phrases = [piece * (PHRASE_LENGTH // len(piece) - number % 20) + chr(0x4E00 + number) for number in range(100)]
    most = Filters(
        FilterRule(0, number, phrase, number % 2 == 0, FilterAction.HIDE, None) for number, phrase in enumerate(phrases)
    )
    text = (piece * ARTICLE_LENGTH)[:ARTICLE_LENGTH]
    now = timezone.now()
    assert cpu(lambda: most.found(folded([text]), now), 0.02) < BUSY * 0.02


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("gap", ["", " "])
def test_phrases_that_stand_everywhere_take_a_moment(gap: str, whole: bool) -> None:
    """60 ms. Each phrase is part of the next and the text's first half holds all at every letter. Its second half is
    runs of single characters.
    """
    phrases = [f"a{gap}" * length + "a" for length in range(PHRASE_LENGTH // 2)]
    phrases += [chr(0x4E00 + number) for number in range(70)] + ["absent"]
    most = Filters(
        [FilterRule(0, number, phrase, whole, FilterAction.HIDE, None) for number, phrase in enumerate(phrases)]
    )
    half = ARTICLE_LENGTH // 2
    text = (f"a{gap}" * half)[:half] + " " + "".join(phrase * (half // 70) for phrase in phrases[-71:-1])
    expected = [phrase for phrase in phrases[:-1] if gap or not whole or (len(phrase) == 1 and phrase != "a")]
    now = timezone.now()
    assert [rule.phrase for rule in most.found(folded([text]), now)] == expected
    assert cpu(lambda: most.found(folded([text]), now), 0.06) < BUSY * 0.06


def test_nothing_is_filtered_of_no_items(reader: User) -> None:
    assert apply_filters([], reader) == []


def test_a_filter_applies_where_it_is_wanted(reader: User) -> None:
    author = UserFactory(username="elsewhere")
    relations.follow(follower=reader, followee=author)
    post = items.publish(sender=author, content={"text": "a zebra"})
    reply = items.publish(sender=author, content={"text": "zebra again"}, reply_to=post)
    for contexts, shown in (
        (["home"], "home"),
        (["account"], "account"),
        (["thread"], "thread"),
        (["public"], "public"),
        ([], "home account thread public"),
        (["home", "thread"], "home thread"),
    ):
        made = filters.create(owner=reader, phrase="zebra", whole_word=True, contexts=contexts)
        fresh = User.objects.get(pk=reader.pk)
        pages = {
            "home": home_page(fresh).items[0],
            "account": profile_page(author, fresh).items[0],
            "thread": replies_page(find_item(post.pk, fresh), fresh).items[0],
            "public": search_items(parse("zebra"), fresh, last_id=None, limit=20).items[-1],
        }
        assert {name for name, item in pages.items() if item.filtered} == set(shown.split()), contexts
        assert hydrate([reply.pk], fresh)[0].filtered == ["zebra"], "of all contexts"
        filters.delete(owner=reader, filter_id=made.pk)


def test_keywords_share_what_their_filter_says(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    made = filters.create(
        owner=reader,
        keywords=[filters.Keyword("zebra", True), filters.Keyword("okapi", False)],
        action="hide",
        title="X",
    )
    filters.change(owner=reader, filter_id=made.pk, action="warn", contexts=["home"])
    (listed,) = filters.filters_of(reader)
    assert (listed.id, listed.title, listed.action, listed.contexts) == (made.pk, "X", "warn", ["home"])
    second = listed.keywords[1]
    filters.change(owner=reader, filter_id=made.pk, keywords=[second])
    (left,) = filters.filters_of(reader)
    assert (left.id, left.keywords) == (made.pk, [second]), "the filter keeps its id"
    monkeypatch.setattr(filters, "FILTERS", 1)
    with pytest.raises(filters.FilterCapError):
        filters.change(owner=reader, filter_id=made.pk, keywords=[second, filters.Keyword("more", True)])
    filters.change(owner=reader, filter_id=made.pk, keywords=[filters.Keyword("more", True)])
    assert filters.filters_of(reader)[0].phrases == ["more"]
    with pytest.raises(Filter.DoesNotExist):
        filters.change(owner=UserFactory(), filter_id=made.pk, action="hide")


def test_keywords_that_another_app_adds_or_deletes_meanwhile(ann: User) -> None:
    first, second, third = (filters.Keyword(phrase, whole_word=False) for phrase in ("zebra", "okapi", "lemur"))
    number = filters.create(owner=ann, keywords=[first, second]).pk
    read = filters.filters_of(ann)[0].keywords
    filters.change(owner=ann, filter_id=number, keywords=[read[1], third])
    filters.change(owner=ann, filter_id=number, keywords=[*read, first._replace(phrase="bilby")], read=read)
    assert filters.filters_of(ann)[0].phrases == ["okapi", "lemur", "bilby"]
