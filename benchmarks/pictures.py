"""The cost of pictures on a page of home: 20 posts of which 10 show pictures, against the same page without.

granian serves the site with one worker; a client asks in turn for the page of HTML, with a session, and for the API's,
with a token, of two readers whose homes hold the same 20 texts. In one of them ten posts have one to four pictures
each. All four are warmed up alike. Files are not asked for: browsers fetch them later, from their own addresses.
"""

import http.client
import io
import json
import re
import time
from collections.abc import Callable
from urllib.parse import urlencode

from django.core.management import call_command
from PIL import Image

from accounts.actions import issue_token
from accounts.models import Level, User
from benchmarks.community import materialise_inbox
from benchmarks.ground import Size, emptied
from benchmarks.http_page import PAGE, served
from benchmarks.measure import Report, interleaved, milliseconds, over, percentile
from items.actions import publish
from items.models import ItemType
from media.actions import upload
from media.decoder import decoder
from relations.actions import follow

POSTS = 20
TARGET = 1.15
WARM_UP = 30
WITH, WITHOUT = "10 with pictures", "without pictures"
PASSWORD = "read all about it"  # noqa: S105 (of a site that is gone after the run)


class Pictured:
    """Two readers, each of whom follows a sender of 20 posts with the same texts."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.readers: dict[str, User] = {}
        self.pictures = 0
        self.seconds = 0.0

    def build(self) -> None:
        """Publish everything, as members do, and build the readers' inboxes."""
        begin = time.perf_counter()
        emptied()
        call_command("collectstatic", interactive=False, verbosity=0)
        for name, number in ((WITH, 1), (WITHOUT, 2)):
            sender = User.objects.create_user(f"sender{number}", password=None, level=Level.DAILY)
            reader = User.objects.create_user(f"reader{number}", password=PASSWORD, level=Level.DAILY)
            follow(follower=reader, followee=sender)
            for place in range(POSTS):
                count = place // 2 % 4 + 1 if place % 2 and name == WITH else 0
                self._publish(sender, place, count)
            materialise_inbox(reader.pk)
            self.readers[name] = reader
        decoder.stop()
        self.seconds = time.perf_counter() - begin

    def _publish(self, sender: User, place: int, count: int) -> None:
        text = f"Post number {place}: " + "what a page holds beside its pictures. " * (1 + place % 4)
        rows = [upload(owner_id=sender.pk, file=_picture(), description="A picture of noise.") for _ in range(count)]
        self.pictures += count
        if rows:
            content = {"text": text, "media": [str(row.pk) for row in rows]}
            publish(sender=sender, type=ItemType.IMAGE, content=content)
        else:
            publish(sender=sender, content={"text": text})

    def described(self) -> str:
        """The data set in a line."""
        return (
            f"two senders of {POSTS} posts with the same texts, a reader each; {self.pictures} pictures in 10 posts of "
            f"one of them; made in {self.seconds:.0f} s"
        )


def _picture() -> io.BytesIO:
    file = io.BytesIO()
    Image.effect_noise((640, 480), 60).save(file, "JPEG")
    return file


def run(data: Pictured) -> Report:
    """Run the benchmark, and return its report."""
    rounds = max(4, data.size.page_rounds // 2)
    report = Report(
        "pictures",
        __doc__.splitlines()[0],
        ["page", "p50 ms", "p90 ms", "bytes"],
        f"{rounds} rounds after {WARM_UP} of warm-up, each of every page in turn; ms that the client waits",
    )
    with served() as port:
        cases: dict[str, Callable[[int], object]] = {}
        sizes: dict[str, int] = {}
        for name, reader in data.readers.items():
            for kind, visitor, path in (
                ("HTML", Visitor(port, cookie=entered(port, reader.username)), "/"),
                ("API", Visitor(port, token=issue_token(user=reader)), PAGE),
            ):
                answer = visitor.ask(path)
                _check(kind, name, answer)
                sizes[f"{kind}, {name}"] = len(answer)
                cases[f"{kind}, {name}"] = lambda _number, visitor=visitor, path=path: visitor.ask(path)
        times = interleaved(cases, rounds=rounds, warm_up=WARM_UP)
    for name, waited in times.items():
        report.rows.append([name, round(milliseconds(waited), 2), round(percentile(waited, 0.9), 2), sizes[name]])
    for kind in ("HTML", "API"):
        ratio = over(times, f"{kind}, {WITH}", f"{kind}, {WITHOUT}")
        report.ratio(f"home over HTTP, {kind}, {WITH} / {WITHOUT} (p50)", ratio, at_most=TARGET)
    return report


def _check(kind: str, name: str, answer: bytes) -> None:
    """The page holds all posts, and pictures where they belong."""
    if kind == "API":
        items = json.loads(answer)["items"]
        assert (len(items), sum(bool(item["media"]) for item in items)) == (POSTS, 10 if name == WITH else 0), name
    else:
        assert answer.count(b"<article") == POSTS, (name, answer.count(b"<article"))
        assert (b"/media/" in answer) == (name == WITH), name


class Visitor:
    """One kept connection of a reader, by session or by token."""

    def __init__(self, port: int, *, cookie: str = "", token: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self._headers = {"Host": "localhost"}
        if cookie:
            self._headers["Cookie"] = cookie
        if token:
            self._headers["Authorization"] = f"Token {token}"

    def ask(self, path: str) -> bytes:
        """The answer to a GET."""
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        assert response.status == 200, (path, response.status, answer[:200])
        return answer


def entered(port: int, username: str) -> str:
    """The cookies of a reader who has logged in by the form."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/login", headers={"Host": "localhost"})
    response = connection.getresponse()
    found = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', response.read())
    cookies = _cookies(response)
    assert found
    form = {"csrfmiddlewaretoken": found[1].decode(), "username": username, "password": PASSWORD}
    headers = {"Host": "localhost", "Content-Type": "application/x-www-form-urlencoded", "Cookie": cookies}
    connection.request("POST", "/login", urlencode(form), headers)
    response = connection.getresponse()
    response.read()
    assert response.status == 302, response.status
    return f"{cookies}; {_cookies(response)}"


def _cookies(response: http.client.HTTPResponse) -> str:
    return "; ".join(value.partition(";")[0] for value in response.headers.get_all("Set-Cookie") or ())
