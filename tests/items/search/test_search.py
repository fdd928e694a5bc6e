# ruff: noqa: RUF001 - full-width signs are meant
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from items import actions
from items.models import Item, ItemDocument, ItemTag, Visibility
from items.search import hits as hits_of
from items.search import search
from items.search.hits import HITS, hits
from items.search.indexing import reindex
from items.search.query import parse
from items.search.search import matching_items, search_items
from items.search.words import runs
from relations import actions as relations
from storage.ids import MAX_ID
from tests.support.factories import UserFactory
from tests.support.index_reads import entries_read
from tests.support.statements import as_sent, statements

pytestmark = pytest.mark.django_db


def publish(text: str, sender: User | None = None, **fields: Any) -> Item:
    return actions.publish(sender=sender or UserFactory.create(), content={"text": text}, **fields)


def found(query: str, reader: User | AnonymousUser | None = None) -> list[str]:
    return [item.text for item in search_items(parse(query), reader or AnonymousUser()).items]


@pytest.mark.parametrize(
    ("text", "queries", "others"),
    [
        ("The quick brown fox", ["fox", "FOX quick", "the qui", '"quick brown"', "“brown fox”", "ｆｏｘ"],
         ["foxes", "qui fox", "ox", '"quick fox"', '"quick bro"', "fox cat"]),
        ("今天天气很好，我们去北京", ["今", "天气", "天气很好", "我们去北京", "北京 天气", "好，我", "\"好 我\""],
         ["气天", "很好我们", "天津", "北 京都", "上海"]),
        ("用iPhone拍的照片", ["iphone", "照片 iph", "用iphone拍", "拍"], ["phone", "iphone照片"]),
        ("Café in Zürich", ["cafe", "zurich", "CAFÉ"], ["cax"]),
        ("El año en España", ["AÑO", "an\u0303o", "espa", "españa"], ["ano", "espana"]),
        ("See https://example.com/some_path", ["example.com", "some_path", "path"], ["example.org"]),
        ("no tag: #Python, #小事", ["#python", "#小事", "#小事#", "＃ＰＹＴＨＯＮ tag", "python"], ["#tag", "#pyth"]),
        ("issue #123", ["#123", "123"], ["#124"]),
    ],
)  # fmt: skip
def test_found_items(text: str, queries: list[str], others: list[str]) -> None:
    publish(text)
    assert [query for query in queries if found(query) != [text]] == []
    assert [query for query in others if found(query)] == []


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("sea -swimming", ["sea water", "sea #Travel"]),
        ("sea -swim", ["sea swimming", "sea water", "sea #Travel"]),
        ("-swimming sea -water", ["sea #Travel"]),
        ('sea -"sea swimming"', ["sea water", "sea #Travel"]),
        ('sea -"swimming sea"', ["sea swimming", "sea water", "sea #Travel"]),
        ('sea -"sea swimming', ["sea water", "sea #Travel"]),
        ("sea -„sea swimming“ -«sea water»", ["sea #Travel"]),
        ("sea －water −swimming", ["sea #Travel"]),
        ("sea -#travel", ["sea swimming", "sea water"]),
        ("#travel -swimming", ["sea #Travel"]),
        ("#travel -sea", []),
        ("sea - swimming", ["sea swimming"]),
        ("sea --swimming", ["sea swimming"]),
        ("sea-swimming", ["sea swimming"]),
        ("sea -sea", []),
        ("-swimming", []),
        ("sea -!", ["sea swimming", "sea water", "sea #Travel"]),
        ("from:mira -water", ["我在海里游泳", "sea swimming", "sea #Travel"]),
        ("海 -游泳", []),
        ("海 -泳游", ["我在海里游泳"]),
        ("「海里」 『游泳』", ["我在海里游泳"]),
        ("「里海」", []),
        ("»sea swimming«", ["sea swimming"]),
        ("„swimming sea”", []),
        ("〝sea water〟 ＂sea water＂", ["sea water"]),
    ],
)
def test_words_left_out_and_quotes(query: str, left: list[str]) -> None:
    sender = UserFactory.create(username="mira")
    texts = ["我在海里游泳", "sea swimming", "sea water", "sea #Travel"]
    for text in texts:
        publish(text, sender)
    assert sorted(found(query)) == sorted(left)
    ids, _ = matching_items(parse(query), count=10)
    assert query.startswith("from:") or sorted(Item.objects.get(pk=one).text for one in ids) == sorted(left)


@pytest.mark.parametrize("query", ["", "  ", "!?", '""', "🎉", "from:nobody", "from:no/body", '"'])
def test_nothing_to_look_for(query: str) -> None:
    publish("!? from nobody 🎉")
    assert found(query) == []


def test_from_a_sender() -> None:
    alice, bob = UserFactory.create(username="Alice"), UserFactory.create(username="bob")
    root = publish("one apple", alice)
    publish("two apple", bob)
    publish("three pears", alice, reply_to=root)
    actions.repost(sender=alice, item=root)
    assert found("from:alice") == found("from:@ALICE") == found("FROM：alice") == ["three pears", "one apple"]
    assert found("apple from:alice") == ["one apple"]
    assert found("from:alice from:bob") == []
    relations.block(blocker=alice, blocked=bob)
    assert found("from:alice", bob) == []


def test_title_is_searched_and_no_phrase_crosses_it() -> None:
    publish("text", title="A headline")
    assert found("headline text") == ["text"]
    assert found('"headline text"') == []


@pytest.mark.slow
def test_pages_have_no_gap_and_no_duplicate_at_any_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = UserFactory.create()
    wanted = [publish(f"even {number}", sender) for number in range(0, 60, 2) if publish(f"odd {number}", sender)]
    expected = [str(item.pk) for item in reversed(wanted)]
    for walk, step in ((8_000, 32), (4, 2), (1, 1), (60, 1)):
        monkeypatch.setattr(search, "WALK", walk)
        monkeypatch.setattr(search, "STEP", step)
        for limit in (1, 7, 100):
            walked: list[str] = []
            last_id = None
            while True:
                page = search_items(parse("even"), sender, last_id=last_id, limit=limit)
                assert len(page.items) == min(limit, len(expected) - len(walked))
                walked += [item.id for item in page.items]
                if not page.has_more:
                    break
                last_id = int(page.last_id or 0)
            assert walked == expected


def test_what_was_edited_is_found_by_its_new_words() -> None:
    item = publish("old words #before")
    actions.edit(item=item, content={"text": "new phrases #after"})
    assert found("old") == found("#before") == []
    assert found("new #after") == ["new phrases #after"]
    actions.edit(item=item, content={"text": "!", "url": "https://example.com"})
    assert not ItemDocument.objects.exists()
    assert not ItemTag.objects.exists()


def test_items_that_are_withdrawn_are_gone_on_the_next_request() -> None:
    reader = UserFactory.create()
    item = publish("secret #tag")
    for verb in (
        lambda: actions.delete(item=item),
        lambda: actions.hold(item=item, reasons=["word"]),
        lambda: actions.reject(item=item),
    ):
        assert found("secret", reader) == found("#tag", reader) == ["secret #tag"]
        verb()
        assert found("secret", reader) == found("#tag", reader) == found("secret #tag") == []
        actions.restore(item=item)


def test_muted_senders_are_found() -> None:
    reader, sender = UserFactory.create(), UserFactory.create()
    relations.mute(muter=reader, muted=sender)
    publish("apple", sender)
    assert found("apple", reader) == ["apple"]


def test_reindex_writes_what_publishing_wrote() -> None:
    for text in ("one #a #b", "二 #小事", "!"):
        actions.repost(sender=UserFactory.create(), item=publish(text, title="T"))
    rows = [set(ItemDocument.objects.values_list()), set(ItemTag.objects.values_list("tag", "item"))]
    assert reindex(chunk=2) == 3
    assert rows == [set(ItemDocument.objects.values_list()), set(ItemTag.objects.values_list("tag", "item"))]


def test_number_of_statements_does_not_depend_on_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = UserFactory.create()
    for number in range(12):
        publish(f"word w{number}", sender)
    monkeypatch.setattr(search, "WALK", 4)
    with statements() as sent:
        found("w0", sender)
    assert len(sent) == 6  # stretch bounds, three stretches, count, hydration


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ['"pear apple"', '"pear apple pear"', "#ann #bob", "pear #bob", "#ann from:mallory", "pear from:mallory"]
)
def test_words_that_are_frequent_and_nowhere_together_are_walked_by_the_stretch(
    monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    mallory, sender = UserFactory.create(username="mallory"), UserFactory.create()
    wanted = [publish("pear apple pear #ann #bob", mallory) for _ in range(2)]
    for number in range(40):
        publish("apple so pear #ann", sender) if number % 2 else publish("so apple #bob", mallory)
    wanted.insert(0, publish("pear apple pear #ann #bob", mallory))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE items_item, items_itemdocument, items_itemtag")
    monkeypatch.setattr(search, "WALK", 4)
    monkeypatch.setattr(search, "STEP", 2)
    monkeypatch.setattr(search, "INDEXED", 5)
    before = entries_read("item_words")
    walked: list[str] = []
    pages, last_id = 0, None
    while True:
        page = search_items(parse(query), sender, last_id=last_id, limit=20)
        walked += [item.id for item in page.items]
        pages += 1
        if not page.has_more:
            break
        assert last_id is None or int(page.last_id or 0) < last_id
        last_id = int(page.last_id or 0)
    assert walked == [str(item.pk) for item in (wanted[0], *reversed(wanted[1:]))]
    assert pages > 2
    assert entries_read("item_words") == before


def test_a_search_for_moderators_walks_likewise_and_says_that_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = UserFactory.create()
    old = publish("pear apple pear", sender)
    for number in range(40):
        publish("apple so pear" if number % 2 else "so apple", sender)
    new = publish("pear apple pear", sender)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE items_itemdocument")
    monkeypatch.setattr(search, "WALK", 4)
    monkeypatch.setattr(search, "STEP", 2)
    query = parse('"pear apple pear"')
    assert search.matching_items(query, count=9) == ([new.pk, old.pk], False)
    assert search.matching_items(query, count=1) == ([new.pk], True)
    monkeypatch.setattr(search, "INDEXED", 5)
    before = entries_read("item_words")
    assert search.matching_items(query, count=9) == ([new.pk], True)
    assert entries_read("item_words") == before


def test_the_newest_are_walked_whatever_postgresql_expects() -> None:
    """PostgreSQL expects few matches of a phrase. It would read all items with its words, in any order."""
    sender = UserFactory.create()
    publish("pear apple pear", sender)
    for find in (
        lambda query: search_items(query, sender),
        lambda query: search.matching_items(query, count=5),
    ):
        with statements() as sent:
            find(parse('"pear apple pear"'))
        asked, walked = [as_sent(one) for one in sent if "document @@" in one], as_sent(search.WALKED_DOCUMENTS)
        assert walked in asked[0]
        assert all(walked not in one for one in asked[1:])


@pytest.mark.parametrize("is_walked", [True, False])
def test_a_walk_asks_no_index_of_words(is_walked: bool) -> None:
    params = {"words": "'pear' <-> 'apple'", "count": 10, "below": MAX_ID, "above": 0}
    publish("pear apple")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        cursor.execute(f"EXPLAIN {search._matching_ids_sql(True, 0, False, is_walked=is_walked)}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert ("Subquery Scan on d" in plan) == is_walked, plan
    assert not is_walked or "item_words" not in plan, plan


def test_rare_words_are_found_on_one_page_however_frequent_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = UserFactory.create()
    wanted = publish("pear quince", sender)
    for _ in range(40):
        publish("apple pear", sender)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE items_item, items_itemdocument")
    monkeypatch.setattr(search, "WALK", 4)
    monkeypatch.setattr(search, "STEP", 2)
    monkeypatch.setattr(search, "INDEXED", 20)
    page = search_items(parse("pear quince"), sender)
    assert ([item.id for item in page.items], page.has_more) == ([str(wanted.pk)], False)


@pytest.mark.slow
@pytest.mark.parametrize("query", ["word", "#tag", "word #tag", "from:mallory", "word from:mallory", "#tag #other"])
def test_what_the_reader_may_not_see_is_looked_through_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(search, "ITEM_CANDIDATES", 10)
    mallory, reader = UserFactory.create(username="mallory"), UserFactory.create()
    shown: list[str] = []
    for number in range(60):
        is_public = number in (3, 28, 40)
        visibility = Visibility.PUBLIC if is_public else Visibility.FOLLOWERS
        item = publish(f"word {number} #tag #other", mallory, visibility=visibility)
        if is_public:
            shown.insert(0, str(item.pk))
    page = search_items(parse(query), reader, limit=2)
    assert (page.items, page.has_more) == ([], True)
    walked: list[str] = []
    for _ in range(10):
        walked += [item.id for item in page.items]
        if not page.has_more:
            break
        page = search_items(parse(query), reader, last_id=int(page.last_id or 0), limit=2)
    assert walked == shown
    assert not page.has_more


def test_a_query_says_each_word_once() -> None:
    assert parse("a b a a").tsquery == parse("a b").tsquery.replace(":*", "")
    assert parse("one two one").tsquery == "('one') & ('two')"
    assert parse("one two").tsquery == "('one') & ('two':*)"
    assert parse("#one #one #two").tags == ("one", "two")
    publish("#one #two one two")
    assert found("#one #two") == found("#two #one one") == ["#one #two one two"]
    assert found(" ".join(f"#one{number}" for number in range(31))) == []


def test_senders_of_a_query_are_looked_up_once() -> None:
    with statements() as sent:
        assert found("from:a from:b from:c") == []
    assert sent == []


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("The quick fox", "fox the", ["The", "fox"]),
        ("The quick fox", '"quick fox"', ["quick fox"]),
        ("The quick fox", "qui", ["quick"]),
        ("今天天气很好", "天气", ["天气"]),
        ("今天天气很好", "天", ["天天"]),
        ("用iPhone拍", "iph", ["iPhone"]),
        ("ｶﾞギ", "ガ", ["ｶﾞギ"]),
        ("Café", "cafe", ["Café"]),
        ("<b>", "b", ["b"]),
        ("nothing", "#tag from:b", []),
        ("ภาษาไทยน้ำดี", "ไทย น้ำ", ["ไทยน้ำ"]),
        ("sea water", "sea -water", ["sea"]),
        ("I don’t, w Łodzi", "don't lodzi", ["don", "t", "Łodzi"]),
    ],
)  # fmt: skip
def test_hits(text: str, query: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in hits(text, parse(query))] == marked


@pytest.mark.slow
@given(
    st.text(alphabet="ab 的天。", max_size=30), st.lists(st.text(alphabet="ab的天", min_size=1, max_size=3), max_size=4)
)
def test_hits_are_all_places_of_all_phrases(text: str, wanted: list[str]) -> None:
    query = parse(" ".join(f'"{part}"' for part in wanted))
    units = [(unit, start) for run in runs(text) for unit, start, _ in hits_of._word_spans(run)]
    expected: set[int] = set()
    for phrase in query.phrases:
        sought = [unit for run in phrase for unit, _, _ in hits_of._word_spans(run)]
        for at in range(len(units) - len(sought) + 1):
            if [unit for unit, _ in units[at : at + len(sought)]] == sought:
                expected.update(start for _, start in units[at : at + len(sought)])
    marked = {at for start, end in hits(text, query) for at in range(start, end)}
    assert {start for _, start in units if start in marked} == expected


def test_hits_of_one_text_are_bounded() -> None:
    assert len(hits("a b " * 500, parse('"a"'))) == HITS
