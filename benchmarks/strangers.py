"""The page of a post as strangers get it over HTTP, against the same page for a member.

granian serves the site with one worker; a client asks in turn, over kept connections, for a post with 20 replies: as a
stranger whose browser takes gzip, as a stranger whose browser has the page already, and as a member. Pages of strangers
are kept for 15 seconds, so those of the rounds in which they are made anew are among the measured ones.
"""

import http.client
import time

from django.core.management import call_command

from accounts.models import User
from benchmarks.http_page import served
from benchmarks.measure import Report, interleaved, milliseconds, over, percentile
from benchmarks.pictures import WITHOUT, Pictured, Visitor, entered
from items.actions import publish
from items.models import Item

REPLIES = 20
TARGET = 5
WARM_UP = 30
MEMBER, STRANGER, KNOWN = "member", "stranger", "stranger who has the page"


def run(data: Pictured) -> Report:
    """Run the benchmark, and return its report."""
    rounds = max(4, 2 * data.size.page_rounds)
    report = Report(
        "strangers",
        __doc__.splitlines()[0],
        ["reader", "p50 ms", "p90 ms", "pages/s", "bytes"],
        f"{rounds} rounds after {WARM_UP} of warm-up, each of every reader in turn; ms that the client waits",
    )
    call_command("collectstatic", interactive=False, verbosity=0)
    reader = data.readers[WITHOUT]
    path = f"/items/{_thread(reader).pk}"
    with served() as port:
        member = Visitor(port, cookie=entered(port, reader.username))
        stranger, known = Stranger(port), Stranger(port)
        known.headers["If-None-Match"] = stranger.ask(path)[1]
        sizes = {MEMBER: len(member.ask(path)), STRANGER: len(stranger.ask(path)[0]), KNOWN: 0}
        cases = {
            MEMBER: lambda _number: member.ask(path),
            STRANGER: lambda _number: stranger.ask(path),
            KNOWN: lambda _number: known.ask(path),
        }
        begin = time.perf_counter()
        times = interleaved(cases, rounds=rounds, warm_up=WARM_UP)
        seconds = time.perf_counter() - begin
    for name, waited in times.items():
        throughput = len(waited) / sum(waited)
        figures = [milliseconds(waited), percentile(waited, 0.9), throughput]
        report.rows.append([name, *(round(figure, 2) for figure in figures), sizes[name]])
    report.notes.append(f"A page was made anew about {seconds / 15:.0f} times.")
    throughput = sum(times[MEMBER]) / sum(times[STRANGER])
    report.ratio("pages/s of a post: stranger / member", throughput, at_least=TARGET)
    report.ratio("p50: member / stranger", 1 / over(times, STRANGER, MEMBER))
    report.ratio("p50: member / stranger who has the page", 1 / over(times, KNOWN, MEMBER))
    return report


def _thread(reader: User) -> Item:
    """A post with replies."""
    sender = User.objects.get(username="sender2")
    post = publish(sender=sender, content={"text": "A post that spreads. " * 8})
    for number in range(REPLIES):
        publish(sender=reader, content={"text": f"Reply number {number} to a post that spreads."}, reply_to=post)
    return post


class Stranger:
    """One kept connection of a browser without a session."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.headers = {"Host": "localhost", "Accept-Encoding": "gzip"}

    def ask(self, path: str) -> tuple[bytes, str]:
        """The answer to a GET, as it is sent, and its ETag."""
        self._connection.request("GET", path, headers=self.headers)
        response = self._connection.getresponse()
        answer = response.read()
        assert response.status in (200, 304), (path, response.status, answer[:200])
        return answer, response.headers["ETag"]
