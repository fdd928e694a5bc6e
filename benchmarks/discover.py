"""The cost of a page of the recommended feed that comes from the cache, against a raw LPOP.

Measured: `CandidateList.pop` (ids, reasons and how many are left, in one round trip) and `load_more` (a lock, the pop,
one query that verifies and hydrates, and the row that says what was issued), both against redis-py's `lpop(key, 20)`;
`load_more` also against that LPOP with one query for the rows; and the same page over HTTP, as `http_page` measures it,
against the constant views. Readers have up to 50 pages of the day behind them. Beside them a `refresh`, which recalls
from PostgreSQL, mixes and fills the cache, as each day begins with and each pull of the page makes another.
"""

from statistics import median

from django.conf import settings
from django.utils import timezone

from accounts.actions import issue_token
from accounts.models import User
from benchmarks.community import Community, users
from benchmarks.http_page import COUNTED, PLAIN, Client, served
from benchmarks.measure import Report, interleaved, milliseconds, over, percentile
from discover.cache import CandidateList, Entry
from discover.candidates import mixed
from discover.feed import load_more, refresh
from discover.models import IssuedPage
from discover.recall import Candidate
from discover.refreshing import refresh_popular, refresh_words
from items.hydrate import BY_ID, ItemRow, bodies
from storage.connections import client_of, fetch, id_array

LIMIT = 20
PAGES = 50
"""Pages that a reader scrolls in a day at most."""
HTTP_TARGET = 3.5
FEED = "/api/v1/discover/feed"


def candidates(count: int) -> list[Entry]:
    """The newest posts, mixed as a refresh does."""
    rows = fetch(
        """
        SELECT id, sender_id FROM items_item
        WHERE status = 'published' AND reply_to_id IS NULL AND repost_of_id IS NULL ORDER BY id DESC LIMIT %s
        """,
        [count * 2],
    )
    posts = mixed([Candidate(item_id, sender_id, item_id, "fresh") for item_id, sender_id in rows], LIMIT)
    return [Entry(post.item_id, post.reason) for post in posts[:count]]


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    pages = min(PAGES, size.http_requests)
    report = Report(
        "discover",
        __doc__.splitlines()[0],
        ["call", "ms"],
        f"{size.page_rounds} rounds in process, {size.http_rounds} blocks of {pages} requests over HTTP; medians",
    )
    readers = [reader for group in community.readers.values() for reader in users(group)]
    in_process, over_http = readers[: len(readers) // 2], readers[len(readers) // 2 :]
    entries = candidates(LIMIT * (PAGES + 5))
    _process(report, in_process, entries, min(size.page_rounds, len(in_process) * (PAGES - 5)))
    _refreshed(report, in_process, size.http_rounds * len(in_process))
    _http(report, over_http[: 1 + size.http_rounds], entries, pages)
    IssuedPage.objects.all().delete()
    return report


def _process(report: Report, readers: list[User], entries: list[Entry], rounds: int) -> None:
    raw = client_of(settings.REDIS_URL, 1.0)
    lists = [CandidateList(reader.pk) for reader in readers]
    shadows = [CandidateList(-reader.pk) for reader in readers]
    for each in (*lists, *shadows):
        each.drop()
        each.push(entries)
    for key in ("bench:raw", "bench:rows"):
        raw.delete(key)
        raw.rpush(key, *(entry.item_id for entry in entries * (1 + rounds * LIMIT // len(entries))))

    def rows(number: int) -> object:
        popped = raw.lpop("bench:rows", LIMIT)
        reader = readers[number % len(readers)]
        params = {"ids": id_array(map(int, popped)), "reader": reader.pk}
        return bodies(fetch(BY_ID, params, into=ItemRow.of), reader)

    def page(number: int) -> object:
        found = load_more(readers[number % len(readers)], limit=LIMIT)
        assert (len(found.items), found.sources) == (LIMIT, ["cache"])
        return found

    cases = {
        "redis-py lpop": lambda number: raw.lpop("bench:raw", LIMIT),
        "CandidateList.pop": lambda number: shadows[number % len(shadows)].pop(LIMIT),
        "redis-py lpop and one query": rows,
        "load_more": page,
    }
    times = interleaved(cases, rounds=rounds, warm_up=5)
    report.rows += [[name, round(milliseconds(times[name]), 3)] for name in cases]
    report.ratio("CandidateList.pop / redis-py lpop", over(times, "CandidateList.pop", "redis-py lpop"))
    report.ratio("load_more / redis-py lpop", over(times, "load_more", "redis-py lpop"))
    report.ratio("load_more / redis-py lpop and one query", over(times, "load_more", "redis-py lpop and one query"))
    raw.delete("bench:raw", "bench:rows")
    raw.close()


def _refreshed(report: Report, readers: list[User], rounds: int) -> None:
    """A pull of the page, with all that it asks PostgreSQL and leaves in Redis, against the page that comes after."""
    now = timezone.now()
    refresh_words(now=now)
    refresh_popular(now=now)

    def pulled(number: int) -> object:
        found = refresh(readers[number % len(readers)], limit=LIMIT)
        assert (len(found.items), found.sources) == (LIMIT, ["recall"])
        return found

    def next_page(number: int) -> object:
        return load_more(readers[number % len(readers)], limit=LIMIT)

    times = interleaved({"refresh": pulled, "load_more after it": next_page}, rounds=rounds, warm_up=5)
    report.rows += [[f"{name} (recall)", round(milliseconds(times[name]), 3)] for name in times]
    report.rows.append(["refresh (recall), p99", round(percentile(times["refresh"], 0.99), 3)])
    report.ratio("refresh / load_more", over(times, "refresh", "load_more after it"))


def _http(report: Report, readers: list[User], entries: list[Entry], pages: int) -> None:
    """Each block is another reader's day."""
    for reader in readers:
        cache = CandidateList(reader.pk)
        cache.drop()
        cache.push(entries)
    tokens = [issue_token(user=reader) for reader in readers]
    pull = {"action": "load_more", "limit": LIMIT}
    asked = {PLAIN: ("/bench/constant", None), COUNTED: ("/bench/counted", None), "load_more over HTTP": (FEED, pull)}
    spent: dict[str, list[float]] = {name: [] for name in asked}
    with served() as port:
        client = Client(port)
        for number, token in enumerate(tokens):
            for name, (path, body) in asked.items():
                before = client.processor_time()
                for _ in range(pages):
                    client.ask(path, token, body)
                if number:  # the first warms up
                    spent[name].append((client.processor_time() - before) / pages)
    middle = {name: median(times) for name, times in spent.items()}
    report.rows += [[f"{name} (CPU)", round(middle[name] * 1000, 3)] for name in asked]
    name = "load_more over HTTP"
    report.ratio(f"{name} / plain constant (CPU)", middle[name] / middle[PLAIN], at_most=HTTP_TARGET)
    report.ratio(f"{name} / counted constant (CPU)", middle[name] / middle[COUNTED])
