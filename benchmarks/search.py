"""The cost of a page of search, by the kind of query, against the index alone and against a scan.

The newest items get texts of words by Zipf's law, one in twenty Chinese. Measured: `search_items` (a page of 20,
verified and hydrated). Peers: the ids of the same page from the GIN index alone, which collects every place of a word
and sorts; and ILIKE from the newest item down. Both are ids only, without visibility. Every round takes the next query
of a kind. It changes items, so it comes last.
"""

import random
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

from django.db import connection

from benchmarks.community import Community, users
from benchmarks.measure import Report, interleaved, milliseconds, over, percentile
from items.indexing import copy_index
from items.query import Query, parse
from items.search import search_items

LIMIT = 20
VOCABULARY = 30_000
IDEOGRAPHS = 1_500
CHINESE_SHARE = 0.05
TARGET = 0.5
"""The part of the index's price that a page for a common word may cost, with all the rows that it brings."""

BY_INDEX = """
    SELECT item_id FROM items_itemdocument WHERE document @@ %s::tsquery ORDER BY item_id + 0 DESC LIMIT 20
"""
BY_SCAN = "SELECT id FROM items_item WHERE content->>'text' ILIKE %s ORDER BY id DESC LIMIT 20"


class Writer:
    """Writes texts of words by Zipf's law: the word of rank r comes up in proportion to 1 / r."""

    def __init__(self) -> None:
        self.chance = random.Random(7)  # noqa: S311 (texts, no secrets)
        letters = "etaoinshrdlu"
        self.words = ["".join(self.chance.choices(letters, k=2 + rank % 7)) + str(rank) for rank in range(VOCABULARY)]
        self.ideographs = [chr(0x4E00 + rank) for rank in range(IDEOGRAPHS)]
        self._ranks = {
            size: list(accumulate(1 / (rank + 1) for rank in range(size))) for size in (VOCABULARY, IDEOGRAPHS)
        }

    def text(self) -> str:
        """A text by chance, in English or Chinese."""
        if self.chance.random() < CHINESE_SHARE:
            return "".join(self.drawn(self.ideographs, self.chance.randint(8, 60))) + "。"
        return " ".join(self.drawn(self.words, self.chance.randint(4, 30)))

    def drawn(self, things: Sequence[str], count: int) -> list[str]:
        """`count` of the things, drawn by Zipf's law."""
        ranks = self._ranks[len(things)]
        return [things[bisect(ranks, self.chance.random() * ranks[-1])] for _ in range(count)]


def write(writer: Writer, count: int) -> None:
    """Give the newest `count` items texts, and write down what they are found by."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT id FROM items_item WHERE status = 'published' AND repost_of_id IS NULL ORDER BY id DESC LIMIT %s
            """,
            [count],
        )
        texts = [(row[0], "", writer.text()) for row in reversed(cursor.fetchall())]
        cursor.execute("CREATE TEMPORARY TABLE said (id bigint PRIMARY KEY, text text)")
        with cursor.copy("COPY said FROM STDIN") as copy:
            for item_id, _, text in texts:
                copy.write_row((item_id, text))
        cursor.execute(
            "UPDATE items_item i SET content = jsonb_build_object('text', said.text) FROM said WHERE said.id = i.id"
        )
        cursor.execute("DROP TABLE said")
        # The reports of the benchmarks that published the other documents are written already.
        cursor.execute("TRUNCATE items_itemdocument, items_itemtag")
        copy_index(texts)
        cursor.execute("VACUUM ANALYZE items_item, items_itemdocument")


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    writer = Writer()
    write(writer, size.searched)
    words, signs = writer.words, writer.ideographs
    kinds = {
        "common word": words[:5],
        "word in 1 of 1,000": words[100:105],
        "rare word": words[20_000:20_005],
        "unknown word": [f"nowhere{number}" for number in range(5)],
        "two common words": [f"{words[number]} {words[number + 1]}" for number in range(5)],
        "common and rare word": [f"{words[number]} {words[20_000 + number]}" for number in range(5)],
        "phrase": [f'"{words[number]} {words[number + 2]}"' for number in range(5)],
        "unfinished word": [word[:2] for word in words[50:55]],
        "1 Chinese character": signs[200:205],
        "2 Chinese characters": [signs[number] + signs[number + 1] for number in range(5)],
        "4 Chinese characters": ["".join(signs[number : number + 4]) for number in range(5)],
    }
    report = Report(
        "search",
        __doc__.splitlines()[0],
        ["query", "p50", "p99", "index alone, p50", "index alone, p99", "ILIKE"],
        f"{size.search_rounds} rounds over 5 queries of each kind, {size.scan_rounds} of ILIKE, "
        f"{size.searched:,} documents; ms",
    )
    reader = users(next(iter(community.readers.values())))[0]
    for kind, texts in kinds.items():
        queries = [parse(text) for text in texts]
        for query in queries:
            page = [int(item.id) for item in search_items(query, reader, limit=LIMIT).items]
            assert page == by_index(query), f"{kind}: the ways do not lead to the same page"
        cases: dict[str, Callable[[int], object]] = {
            "search": lambda number, queries=queries: search_items(queries[number % 5], reader, limit=LIMIT),
            "index": lambda number, queries=queries: by_index(queries[number % 5]),
        }
        times = interleaved(cases, rounds=size.search_rounds, warm_up=5)
        scans = interleaved({"scan": lambda number, texts=texts: by_scan(texts[number % 5])}, rounds=size.scan_rounds)
        spent = [percentile(times[name], share) for name in cases for share in (0.5, 0.99)]
        report.rows.append([
            kind,
            *(round(figure, 2) for figure in spent),
            round(milliseconds(scans["scan"]), 1),
        ])  # fmt: skip
        target = TARGET if kind == "common word" else None
        report.ratio(f"search_items / index alone, {kind}", over(times, "search", "index"), at_most=target)
        report.ratio(f"search_items / ILIKE, {kind}", over(times | scans, "search", "scan"))
    return report


def by_index(query: Query) -> list[int]:
    """The ids that a query finds by the index."""
    with connection.cursor() as cursor:
        cursor.execute(BY_INDEX, [query.tsquery])
        return [row[0] for row in cursor.fetchall()]


def by_scan(text: str) -> list[int]:
    """The ids that a scan of all texts finds."""
    with connection.cursor() as cursor:
        cursor.execute(BY_SCAN, [f"%{text.strip(chr(34))}%"])
        return [row[0] for row in cursor.fetchall()]
