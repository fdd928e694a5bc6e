"""Does a page cost more the further down one scrolls: on page 10, on page 50, below the floor of the inbox?

Readers walk in pages of 20 through an inbox of cap 1000, past its floor. "Past the floor" is the first page that
reaches below what the inbox holds, pulled from PostgreSQL with nothing kept of an earlier pull; "tail" is the page
after it, served from what that pull kept.
"""

from collections.abc import Callable

from accounts.models import User
from benchmarks.community import Community, users
from benchmarks.measure import Report, interleaved, milliseconds, over
from storage.connections import feeds, pipelined
from timeline.home import home_page
from timeline.inbox import Tail

LIMIT = 20
FOLLOWEES = 200
PAGES = (1, 10, 49, 50)


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    readers = users(community.readers[FOLLOWEES])
    walks = [walk(reader) for reader in readers]
    floors = [first_below(steps) for steps in walks]
    count = len(readers)

    def page(number: int, place: int) -> Callable[[int], object]:
        return lambda round_number: home_page(
            readers[round_number % count], last_id=walks[round_number % count][place - 1][0], limit=LIMIT
        )

    def past(round_number: int) -> None:
        one = round_number % count
        pipelined(feeds(), [Tail(readers[one].pk).drop()])
        home_page(readers[one], last_id=walks[one][floors[one]][0], limit=LIMIT)

    def tail(round_number: int) -> None:
        one = round_number % count
        home_page(readers[one], last_id=walks[one][floors[one] + 1][0], limit=LIMIT)

    cases = {f"page {place}": page(0, place) for place in PAGES} | {"past": past, "tail": tail}
    times = interleaved(cases, rounds=community.size.page_rounds, warm_up=2 * count)
    report = Report(
        "depth",
        __doc__.splitlines()[0],
        ["page", "ms", "over page 1", "served by"],
        f"{community.size.page_rounds} rounds over {count} readers of {FOLLOWEES} followees; medians",
    )
    steps = walks[0]
    sources = {f"page {place}": steps[place - 1][1] for place in PAGES}
    sources |= {"past": steps[floors[0]][1], "tail": "tail (sql)"}
    names = {"past": f"page {floors[0] + 1}, the first past the floor", "tail": f"page {floors[0] + 2}, from the tail"}
    for name in cases:
        ratio = over(times, name, "page 1")
        report.rows.append([names.get(name, name), round(milliseconds(times[name]), 3), round(ratio, 2), sources[name]])
    report.ratio("page 50 / page 1", over(times, "page 50", "page 1"), at_most=1.3)
    report.ratio("first page past the floor / page 1", over(times, "past", "page 1"), at_most=4)
    return report


def walk(reader: User) -> list[tuple[int | None, str]]:
    """Where each page begins and what serves it, until two pages past the floor."""
    pipelined(feeds(), [Tail(reader.pk).drop()])
    steps: list[tuple[int | None, str]] = []
    last_id: int | None = None
    while len(steps) < 2 or steps[-2][1] != "sql" or len(steps) <= max(PAGES):
        page = home_page(reader, last_id=last_id, limit=LIMIT)
        steps.append((last_id, ",".join(page.sources)))
        last_id = page.last_id
        assert page.has_more, "the reader's home ends before the floor"
    return steps


def first_below(steps: list[tuple[int | None, str]]) -> int:
    """The place of the first page that PostgreSQL served."""
    return next(place for place, (_, source) in enumerate(steps) if source == "sql")
