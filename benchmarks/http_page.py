"""What does a page cost over HTTP, against a DRF view of a constant?

Measures processor time of one granian worker, PostgreSQL, Redis and two idle Celery workers, and the client's waiting
time. The constant views use the site's authentication and middleware; one also counts calls.
"""

import time
from collections.abc import Sequence
from statistics import median

from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from rest_framework.request import Request as DrfRequest
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from benchmarks.community import Community, by_app, by_session, by_token
from benchmarks.measure import BenchmarkReport, MeasuredRequest, over_http, served, workers
from items.actions import publish
from storage.connections import fetch
from web.rest import ApiView

TARGET = 2.5
APPS_TARGET = 1.2
PAGES: dict[str, tuple[float | None, float | None]] = {
    "home": (3.5, None),
    "profile": (3.5, None),
    "search": (4, 5),
    "thread": (4, None),
    "Discover": (4, None),
    "live": (None, 3),
    "notifications": (None, 3),
    "about": (None, None),
}
"""HTML pages: most processor time over the API's home, and most ms of PostgreSQL."""
STRANGER = "HTML: profile, kept for strangers"
STRANGER_TARGET = 1.0
NOTICES = 20
PAGE = "/api/v1/timeline/home"
APPS_PAGE = "/api/v1/timelines/home"
PLAIN = "plain constant"
COUNTED = "counted constant"
FOLLOWEES = 200
"""Followees of the reader with the browser."""
# The newest with more than a page of replies.
LONG_THREAD = """
    SELECT root_id FROM items_item WHERE root_id IS NOT NULL GROUP BY root_id HAVING count(*) > 20
    ORDER BY root_id DESC LIMIT 1
"""


def run(community: Community) -> BenchmarkReport:
    size = community.size
    report = BenchmarkReport(
        "http_page",
        __doc__.splitlines()[0],
        [
            "request",
            "CPU ms",
            "CPU of all, ms",
            "PostgreSQL",
            "Redis",
            "waited ms",
            "CPU over plain",
            "for apps: CPU ms",
            "CPU of all",
        ],
        f"{size.http_rounds} blocks of {size.http_requests} requests; ms a request, of processors means, else medians",
    )
    community.index_words(size.searched)
    kinds = {f"home, {count} followees": readers[0] for count, readers in community.readers.items()}
    kinds |= {f"home, {count} big-Vs followed": readers[0] for count, readers in community.hybrids.items()}
    users = {name: User.objects.get(pk=reader) for name, reader in kinds.items()}
    reader = users[f"home, {FOLLOWEES} followees"]
    requests: dict[str, Sequence[MeasuredRequest]] = constants(reader)
    requests |= {name: [MeasuredRequest(PAGE, by_token(user))] for name, user in users.items()}
    app_headers = zip(users, by_app(users.values()), strict=True)
    requests |= {for_apps(name): [MeasuredRequest(APPS_PAGE, headers)] for name, headers in app_headers}
    notify(community, reader)
    browser = by_session(reader, "/discover")
    addresses = html_pages(community)
    pages = {f"HTML: {name}": [MeasuredRequest(address, browser)] for name, address in addresses.items()}
    pages[STRANGER] = [MeasuredRequest(addresses["profile"], {"Accept-Encoding": "gzip"})]
    with workers() as family, served() as port:
        found = over_http(port, requests | pages, rounds=size.http_rounds, each=size.http_requests, family=family)
    plain, counted = found[PLAIN], found[COUNTED]
    for name in [PLAIN, COUNTED, *kinds, *pages]:
        blocks = found[name]
        own, truth, feeds, _ = blocks.parts
        figures = [seconds * 1000 for seconds in (own, blocks.total, truth, feeds, median(blocks.waited))]
        apps = found.get(for_apps(name))
        of_apps: list[str | float] = (
            [round(seconds * 1000, 3) for seconds in (apps.parts[0], apps.total)] if apps else ["", ""]
        )
        over_plain = blocks.worker / plain.worker
        report.rows.append([name, *(round(figure, 3) for figure in (*figures, over_plain)), *of_apps])
    for name in kinds:
        page, for_app = found[name], found[for_apps(name)]
        case = name.removeprefix("home, ")
        report.ratio(f"API's home / plain constant (CPU), {case}", page.worker / plain.worker, at_most=TARGET)
        report.ratio(f"API's home / counted constant (CPU), {case}", page.worker / counted.worker)
        report.ratio(f"API's home / counted constant (CPU of all), {case}", page.total / counted.total)
        report.ratio(f"home for apps / API's home (CPU), {case}", for_app.worker / page.worker, at_most=APPS_TARGET)
    api = found[f"home, {FOLLOWEES} followees"]
    report.figure(
        "CPU ms of API's home, of HTML home", f"{api.total * 1000:.2f}, {found['HTML: home'].total * 1000:.2f}"
    )
    for name, (most, most_ms) in PAGES.items():
        page = found[f"HTML: {name}"]
        report.ratio(f"HTML page / API's home (CPU), {name}", page.worker / api.worker, at_most=most)
        if most_ms:
            report.ratio(f"ms of PostgreSQL for a HTML page, {name}", page.parts[1] * 1000, at_most=most_ms)
    report.ratio("CPU ms of a kept profile for strangers", found[STRANGER].worker * 1000, at_most=STRANGER_TARGET)
    return report


def constants(user: User) -> dict[str, Sequence[MeasuredRequest]]:
    """The two views that return a constant."""
    headers = by_token(user)
    return {
        PLAIN: [MeasuredRequest("/api/v1/bench/constant", headers)],
        COUNTED: [MeasuredRequest("/api/v1/bench/counted", headers)],
    }


def for_apps(name: str) -> str:
    """The name of a page for apps."""
    return f"{name}, for apps"


def notify(community: Community, reader: User) -> None:
    """Mention the reader in new items, for a full page of notifications."""
    for sender in community.followers[:NOTICES]:
        publish(sender=User.objects.get(pk=sender), content={"text": f"@{reader.username} bench"})


def html_pages(community: Community) -> dict[str, str]:
    """Addresses of HTML pages, by name."""
    sender = User.objects.get(pk=community.size.big_vs + 1)
    ((root,),) = fetch(LONG_THREAD)
    return {
        "home": "/",
        "profile": f"/@{sender.username}",
        "search": "/search?q=w3",
        "thread": f"/items/{root}",
        "Discover": "/discover",
        "live": "/live",
        "notifications": "/notifications",
        "about": "/about",
    }


# --- The addresses that granian serves -----------------------------------------------------------------------
class ConstantView(APIView):
    """The least that an authenticated DRF view does."""

    def get(self, request: DrfRequest) -> Response:
        """Return a constant."""
        return Response({"answer": 42})


class CountedConstantView(ApiView):
    """The same constant by the site's own ApiView, which counts calls."""

    def get(self, request: DrfRequest) -> Response:
        """Return a constant."""
        return Response({"answer": 42})


def processor_time(request: HttpRequest) -> HttpResponse:
    """The user and system seconds of this process."""
    return HttpResponse(repr(time.process_time()))


urlpatterns = [
    path("bench/processor", processor_time),
    path("api/v1/bench/constant", ConstantView.as_view()),
    path("api/v1/bench/counted", CountedConstantView.as_view()),
    path("", include("feedsite.urls")),
]
