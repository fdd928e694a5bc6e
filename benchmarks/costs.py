"""What does an act cost in processor time, and what would a million members take?

Pages over HTTP: the web process, PostgreSQL and Redis. Other acts in this process, and the servers. What a million
members take is calculated: the acts of a day (`DAY`), three times as many in the busiest hour, all machines half busy.
"""

import time
from statistics import mean

from celery import current_app

from accounts.models import User
from benchmarks.community import Community, by_session, fresh_item, users
from benchmarks.discover import LIMIT, forget_recall, give_tastes
from benchmarks.fan_out import fill
from benchmarks.http_page import FOLLOWEES, html_pages, notify
from benchmarks.measure import BenchmarkReport, Case, MeasuredRequest, over_http, served, servers_time, written
from discover.feed import load_more, refresh
from items.actions import like, publish
from items.models import Item
from storage.connections import feeds_for_tasks
from timeline import fanout
from timeline.inbox import Inbox
from timeline.models import Delivery

HOME, SEARCH, NOTIFICATIONS = "page of home", "page of search", "page of notifications"
PUBLISH, LIKE, DELIVERY = "publish", "like", "delivery"
REFRESH, MORE = "first refresh of Discover", "further page of Discover"
DAY = {HOME: 5, REFRESH: 2, MORE: 2, SEARCH: 0.2, NOTIFICATIONS: 1, PUBLISH: 0.05, LIKE: 0.25, DELIVERY: 25}
"""Acts of a member. A post is delivered to 500 followers."""
MEMBERS = 1_000_000
BUSIEST, HALF_BUSY = 3, 2


def run(community: Community) -> BenchmarkReport:
    size = community.size
    report = BenchmarkReport(
        "costs",
        __doc__.splitlines()[0],
        ["act", "µs"],
        f"{size.http_rounds} blocks of {size.http_requests} requests over HTTP, {size.page_rounds} other acts; means",
    )
    found = _over_http(community) | _in_process(community)
    report.rows += [[name, round(seconds * 1e6, 1)] for name, seconds in found.items()]
    for name in (HOME, PUBLISH, REFRESH):
        report.figure(f"µs: {name}", f"{found[name] * 1e6:,.0f}")
    cores = {name: found[name] * DAY[name] * MEMBERS / 86_400 * BUSIEST * HALF_BUSY for name in DAY}
    inbox = mean(
        feeds_for_tasks().memory_usage(Inbox(reader).key, samples=0) or 0 for reader in community.readers[FOLLOWEES]
    )
    report.ratio("cores for a million members", sum(cores.values()))
    report.ratio("of these for Discover", cores[REFRESH] + cores[MORE])
    report.ratio("KB of a full inbox", inbox / 1000)
    for ratio in report.ratios:
        report.figure(ratio.name, written(ratio.value))
    return report


def _over_http(community: Community) -> dict[str, float]:
    size = community.size
    community.index_words(size.searched)
    (reader,) = users(community.readers[FOLLOWEES][:1])
    notify(community, reader)
    addresses, browser = html_pages(community), by_session(reader)
    names = {HOME: "home", SEARCH: "search", NOTIFICATIONS: "notifications"}
    pages = {name: [MeasuredRequest(addresses[address], browser)] for name, address in names.items()}
    with served() as port:
        found = over_http(port, pages, rounds=size.http_rounds, each=size.http_requests)
    return {name: blocks.total for name, blocks in found.items()}


def _in_process(community: Community) -> dict[str, float]:
    size = community.size
    readers, senders = users(community.readers[FOLLOWEES]), users(community.publishers.values())
    give_tastes(readers, size)
    posts = list(Item.objects.published().filter(reply_to=None).order_by("-pk")[: 2 * size.page_rounds])
    fill(community, 3, community.followers)
    publisher, followers = community.publishers[max(community.publishers)], max(community.publishers)
    items = [fresh_item(publisher) for _ in range(2 * size.fan_out_rounds)]

    def first(number: int) -> object:
        forget_recall(_one(readers, number))
        return refresh(_one(readers, number), limit=LIMIT)

    rounds = size.page_rounds
    costs = {
        PUBLISH: _cost(lambda n: publish(sender=_one(senders, n), content={"text": f"costs {n}"}), rounds),
        LIKE: _cost(lambda n: like(user=_one(readers, n), item=posts[n]), rounds),
        REFRESH: _cost(first, rounds),
        MORE: _cost(lambda n: load_more(_one(readers, n), limit=LIMIT), rounds),
        DELIVERY: _cost(lambda n: fanout.fan_out(items[n].pk), size.fan_out_rounds) / followers,
    }
    current_app.control.purge()
    Delivery.objects.filter(sender__in=senders).delete()
    return costs


def _one(people: list[User], number: int) -> User:
    return people[number % len(people)]


def _cost(case: Case, rounds: int) -> float:
    """Mean processor seconds of this process and the servers, after a warm-up."""
    warm_up = min(5, rounds)
    for number in range(warm_up):
        case(number)
    before = time.process_time() + sum(servers_time())
    for number in range(warm_up, rounds + warm_up):
        case(number)
    return (time.process_time() + sum(servers_time()) - before) / rounds
