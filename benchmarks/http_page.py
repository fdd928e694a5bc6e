"""What does a page cost over HTTP, against an authenticated DRF view that returns a constant?

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
from web.rest import ApiView

TARGET = 2.5
APPS_TARGET = 1.25
HOME_TARGET, PAGES_TARGET = 4, 5
PAGE = "/api/v1/timeline/home"
APPS_PAGE = "/api/v1/timelines/home"
PLAIN = "plain constant"
COUNTED = "counted constant"
FOLLOWEES = 200
"""Followees of the reader with the browser."""


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
    browser = by_session(reader)
    pages = {f"HTML: {name}": [MeasuredRequest(address, browser)] for name, address in html_pages(community).items()}
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
        report.ratio(f"{name} / plain constant (CPU)", page.worker / plain.worker, at_most=TARGET)
        report.ratio(f"{name} / counted constant (CPU)", page.worker / counted.worker)
        report.ratio(f"{name} / counted constant (CPU of all)", page.total / counted.total)
        report.ratio(f"{for_apps(name)} / the own API's (CPU)", for_app.worker / page.worker, at_most=APPS_TARGET)
    api = found[f"home, {FOLLOWEES} followees"]
    for name in pages:
        most = HOME_TARGET if name == "HTML: home" else PAGES_TARGET
        report.ratio(f"{name} / the API's home (CPU)", found[name].worker / api.worker, at_most=most)
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


def html_pages(community: Community) -> dict[str, str]:
    """Addresses of HTML pages, by name."""
    sender = User.objects.get(pk=community.size.big_vs + 1)
    return {
        "home": "/",
        "profile": f"/@{sender.username}",
        "search": "/search?q=w3",
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
