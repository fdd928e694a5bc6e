"""Do the site's own tasks come later while strangers' hosts hang?

Ten accounts post links, mention each other and upload archives. Their hosts and push services hang, drip, answer just
in time or send bombs. Meanwhile posts go out, and letters, scheduled posts, ends of polls and live starts come due.
The calm half has as many posts of the same accounts, without links and mentions.
"""

import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import cycle
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from celery import current_app
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.levels import policy
from accounts.mail import actions as mail
from accounts.mail.models import Letter
from accounts.models import User
from benchmarks.community import emptied
from benchmarks.hostile import PAGES
from benchmarks.measure import BenchmarkReport, Size, free_ports, stop
from community.archives import actions as archives
from community.archives.models import ArchiveImport
from items import actions as items
from items import scheduling
from items.models import CardState, Item, LinkCard, Poll, ScheduledPost
from live import actions as live
from live.models import LiveSession
from notifications.models import PUSHED, PushSubscription
from notifications.push.encryption import public_key, public_point, to_base64url
from operation.gauges import queue_lengths
from relations.models import Follow
from runtime.embedded import die_with_parent, wait_for
from storage.connections import feeds_for_tasks, fetch, pipelined
from storage.queue import OUTSIDE
from storage.window import WindowEntry
from timeline.inbox import Inbox
from timeline.models import Delivery

ATTACKERS, DEVICES = 10, 10
MOST = 1.3
EMPTY_SECONDS = 60.0
"""Seconds within which the lane is empty again."""
LANE_MB = 250
"""Most MB of private memory of a process of the lane."""
EVERY_SECONDS = 1.2
"""An account acts this often: 50 posts a minute."""
LOOK_SECONDS = 0.02
JITTER = 0.618


class LaneMembers:
    """A star with followers, hosts of chores, and attackers."""

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size = size

    def build(self) -> None:
        """Replace all data."""
        emptied()
        now = timezone.now()
        old = now - timedelta(days=400)  # whose links moderation does not hold
        self.star, self.host, *self.attackers = User.objects.bulk_create(
            User(username=name, level=3, last_seen_at=now, date_joined=old)
            for name in ("star", "host", *(f"attacker{number}" for number in range(ATTACKERS)))
        )
        self.fans = User.objects.bulk_create(
            User(username=f"fan{number}", level=3, last_seen_at=now, date_joined=old, following_count=1)
            for number in range(self.size.lane_followers)
        )
        Follow.objects.bulk_create([Follow(follower=fan, followee=self.star) for fan in self.fans])
        epochs = dict(fetch(f"SELECT u.id, {policy.EPOCH} FROM accounts_user u"))
        for fan in self.fans:
            inbox, epoch = Inbox(fan.pk), epochs[fan.pk]
            pipelined(feeds_for_tasks(), [inbox.begin("t", epoch), inbox.complete("t", epoch, 0, [])])

    def described(self) -> str:
        """What was built."""
        return f"{len(self.fans):,} followers of one sender; {ATTACKERS} attackers with {DEVICES} devices each"


class Half(NamedTuple):
    """What one half of the run took."""

    late: dict[str, list[float]]
    """Seconds from due to done, by kind."""
    lane_mb: float
    """The largest process of the lane."""


def run(people: LaneMembers) -> BenchmarkReport:
    size = people.size
    report = BenchmarkReport(
        "outside",
        __doc__.splitlines()[0],
        ["what", "calm, s", "attacked, s", "ratio"],
        f"{size.lane_posts} posts to {len(people.fans):,} followers and {size.lane_chores} of each other kind a half, "
        f"within {size.lane_seconds:g} s; means",
    )
    _bomb()  # takes this process a second
    port, tls_port = free_ports(2)
    certificate = settings.DATA_DIR / "hostile.pem"
    certificate.write_bytes(_certificate())
    with _hosts(port, tls_port, certificate), _worker(certificate):
        calm = _half(people, attack=lambda sender, _number: items.publish(sender=sender, content={"text": "calm"}))
        _subscribe(people, tls_port)
        attacked = _half(people, attack=lambda sender, number: _attack(people, sender, number, port))
        empty = _seconds_until(_lane_is_empty, 10 * EMPTY_SECONDS)
    for kind, late in calm.late.items():
        ratio = mean(attacked.late[kind]) / mean(late)
        report.rows.append([kind, round(mean(late), 3), round(mean(attacked.late[kind]), 3), round(ratio, 2)])
        report.ratio(f"attacked / calm, {kind}", ratio, at_most=MOST)
    report.ratio("seconds until the lane is empty", empty, at_most=EMPTY_SECONDS)
    report.ratio("MB of the largest process of the lane", attacked.lane_mb, at_most=LANE_MB)
    missing = _missing(people)
    report.notes.append(f"{missing} of the inboxes' entries are missing. {_ends()}")
    assert not missing, "a delivery was lost"
    return report


# --- The site's own work ---------------------------------------------------------------------------------
def _half(people: LaneMembers, *, attack: Callable[[User, int], object]) -> Half:
    """Let the attackers act, and wait for everything that comes due meanwhile."""
    stopped = threading.Event()
    acting = threading.Thread(target=_act, args=(people.attackers, attack, stopped))
    acting.start()
    time.sleep(people.size.lane_seconds / 3)  # the lane fills
    try:
        chores = _Chores(people)
        chores.plan()
        largest = chores.wait()
    finally:
        stopped.set()
        acting.join()
    return Half(chores.late, largest)


class _Chores:
    """Posts that go out, and what comes due beside them."""

    def __init__(self, people: LaneMembers) -> None:
        self.people, self.size = people, people.size
        self.begin = time.time()
        self.late: dict[str, list[float]] = {}
        self.open: list[tuple[str, float, Callable[[], bool]]] = []
        """Kind, time when due, and whether it is done."""

    def plan(self) -> None:
        """Let the same number of each kind come due, spread over the time."""
        now, step = timezone.now(), timedelta(seconds=self.size.lane_seconds / self.size.lane_chores)
        for number in range(self.size.lane_chores):
            due = now + (number + JITTER * number % 1) * step  # at all places of beat's periods
            self._scheduled(due, number)
            self._poll(due)
            self._live(due, number)

    def wait(self) -> float:
        """Publish the posts and send the letters, and wait for all. Returns the MB of the lane's largest process."""
        largest = 0.0
        posts = self._times(self.size.lane_posts)
        sent = self._times(self.size.lane_chores)
        looked = 0.0
        while posts or sent or self.open:
            now = time.time()
            if posts and now > posts[0]:
                posts.pop(0)
                item = items.publish(sender=self.people.star, content={"text": f"post {now}"})
                self._expect("a post to all followers", now, lambda key=item.pk: not Delivery.objects.filter(pk=key))
            if sent and now > sent[0]:
                sent.pop(0)
                mail.send(kind="test", to=f"to{now}@example.org", language="en", context={"name": "Ann"})
                letter = Letter.objects.latest("pk")
                self._expect("a letter", now, lambda key=letter.pk: not Letter.objects.filter(pk=key, state="waiting"))
            if now > looked + 1:
                looked, largest = now, max(largest, _largest_of_lane())
            for one in [one for one in self.open if now > one[1] and one[2]()]:
                self.open.remove(one)
                self.late.setdefault(one[0], []).append(time.time() - one[1])
            assert now < self.begin + 2 * self.size.lane_seconds + 120, self.open
            time.sleep(LOOK_SECONDS)
        return largest

    def _times(self, count: int) -> list[float]:
        return [self.begin + self.size.lane_seconds * (number + 0.5) / count for number in range(count)]

    def _expect(self, kind: str, due: float, is_done: Callable[[], bool]) -> None:
        self.open.append((kind, due, is_done))

    def _scheduled(self, due: datetime, number: int) -> None:
        row = scheduling.schedule(
            sender=self.people.host, publish_at=due + timedelta(hours=1), content={"text": f"scheduled {number}"}
        )
        ScheduledPost.objects.filter(pk=row.pk).update(publish_at=due)
        self._expect(
            "a scheduled post", due.timestamp(), lambda key=row.pk: not ScheduledPost.objects.filter(pk=key).exists()
        )

    def _poll(self, due: datetime) -> None:
        poll = {"options": ["yes", "no"], "closes_at": (due + timedelta(hours=1)).isoformat()}
        item = items.publish(sender=self.people.host, type="poll", content={"text": "poll", "poll": poll})
        Poll.objects.filter(pk=item.pk).update(closes_at=due)
        self._expect(
            "the end of a poll", due.timestamp(), lambda key=item.pk: Poll.objects.filter(pk=key, is_told=True).exists()
        )

    def _live(self, due: datetime, number: int) -> None:
        user = self.people.fans[number]
        now = timezone.now()
        row = live.create(
            host=user, title="live", url="https://example.org/", starts_at=due + timedelta(hours=1), now=now,
            automatic=True,
        )  # fmt: skip
        LiveSession.objects.filter(pk=row.pk).update(starts_at=due)
        self._expect(
            "a live start", due.timestamp(), lambda key=row.pk: not LiveSession.objects.filter(pk=key, state="upcoming")
        )


def _missing(people: LaneMembers) -> int:
    """Entries that inboxes of the star's followers lack."""
    posts = Item.objects.filter(sender=people.star).values_list("pk", flat=True)
    members = [WindowEntry(item_id, people.star.pk).member for item_id in posts]
    commands = [("ZMSCORE", Inbox(fan.pk).key, *members) for fan in people.fans]
    return sum(score is None for scores in pipelined(feeds_for_tasks(), commands) for score in scores)


# --- The attack ------------------------------------------------------------------------------------------
def _act(senders: list[User], act: Callable[[User, int], object], stopped: threading.Event) -> None:
    """Act as each sender in turn, at an even rate."""
    try:
        for number, sender in enumerate(cycle(senders)):
            if stopped.wait(EVERY_SECONDS / len(senders)):
                return
            act(sender, number)
    finally:
        connection.close()


def _attack(people: LaneMembers, sender: User, number: int, port: int) -> None:
    """Post a link to a host of one's own, mention somebody with devices, or upload a bomb."""
    host = f"127.0.{sender.pk % 250}.{1 + number % 200}"
    if number % 20 == 19:
        try:
            archives.begin(user=sender, file=io.BytesIO(_bomb()))
        except (archives.ImportRunningError, archives.CapError):
            return
    elif number % 2:
        url = f"http://{host}:{port}/{PAGES[number // 2 % len(PAGES)]}/{number}"
        items.publish(sender=sender, content={"text": f"see {url} there"})
    else:
        other = random.choice(people.attackers)  # noqa: S311 (no secret)
        items.publish(sender=sender, content={"text": f"@{other.username} {number}"})


def _subscribe(people: LaneMembers, tls_port: int) -> None:
    """Give each attacker devices: half of them take messages late, the others hang."""
    key = to_base64url(public_point(ec.generate_private_key(ec.SECP256R1())))
    for user in people.attackers:
        for number in range(DEVICES):
            PushSubscription.objects.create(
                user=user,
                session_key=_session(user),
                endpoint=f"https://localhost:{tls_port}/{'taken' if number % 2 else 'hang'}/{user.pk}/{number}",
                p256dh=key,
                auth=to_base64url(os.urandom(16)),
                server_key=public_key(),
                kinds=[kind.value for kind in PUSHED],
                language="en",
            )


def _session(user: User) -> str:
    from importlib import import_module

    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session.create()
    return str(session.session_key)


@cache
def _bomb() -> bytes:
    """An archive that unpacks to much more than it may."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, size in (("actor.json", 2), ("outbox.json", 1 << 28)):
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, io.BytesIO(b"{}" if size == 2 else bytes(size)))
    return made.getvalue()


def _lane_is_empty() -> bool:
    """Whether nothing waits for the lane or runs in it."""
    if queue_lengths()[OUTSIDE] or LinkCard.objects.exclude(state=CardState.DONE).exists():
        return False
    active = current_app.control.inspect(timeout=1).active() or {}
    is_idle = not any(tasks for name, tasks in active.items() if name.startswith(f"{OUTSIDE}@"))
    return is_idle and not ArchiveImport.objects.filter(finished_at=None).exists()


def _ends() -> str:
    errors = fetch("SELECT split_part(error, ':', 1), count(*) FROM items_linkcard GROUP BY 1 ORDER BY 2 DESC LIMIT 5")
    return "Link cards ended by: " + ", ".join(f"{error or 'a card'} ({count})" for error, count in errors) + "."


def _largest_of_lane() -> float:
    """MB of private memory of the largest process of the lane."""
    sizes = [0.0]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text() == f"{OUTSIDE}\n":
                lines = (folder / "smaps_rollup").read_text().splitlines()
                sizes.append(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024)
        except OSError:  # it has ended
            continue
    return max(sizes)


def _seconds_until(condition: Callable[[], bool], most: float) -> float:
    begin = time.monotonic()
    assert wait_for(condition, most), "the lane does not become empty"
    return time.monotonic() - begin


# --- Programs --------------------------------------------------------------------------------------------
@contextmanager
def _hosts(port: int, tls_port: int, certificate: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.hostile", str(port), str(tls_port), str(certificate)]
    program = subprocess.Popen(command, cwd=settings.BASE_DIR, preexec_fn=die_with_parent(signal.SIGTERM))
    try:
        yield
    finally:
        stop(program, 30)


@contextmanager
def _worker(certificate: Path) -> Iterator[None]:
    """Run a worker with beat and its lane, with the rates of a site."""
    command = [sys.executable, "-m", "celery", "-A", "feedsite", "--quiet", "worker", "--concurrency", "2", "--beat"]
    command += ["--schedule", str(settings.DATA_DIR / "beat"), "--loglevel", "error"]
    changed = {
        "DJANGO_SETTINGS_MODULE": "benchmarks.loopback",
        "FEEDSITE_RATE_SCALE": "1",
        "FEEDSITE_EMAIL_URL": f"filemail://{settings.DATA_DIR / 'letters'}",
        "SSL_CERT_FILE": str(certificate),
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
    }
    worker = subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=os.environ | changed, preexec_fn=die_with_parent(signal.SIGTERM)
    )
    try:
        assert wait_for(lambda: len(current_app.control.ping(timeout=0.5)) == 2, 120), "a worker does not answer"
        yield
    finally:
        stop(worker, 120)


def _certificate() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    begins = datetime.now(UTC) - timedelta(days=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=3))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) + secret
