"""People of a site, for `load`: each has a token, a session and follows drawn by chance; and a big-V, whom a million
follow. Their acts are requests as they go over the wire, and a ledger keeps what was answered to their writes.
"""

import hashlib
import io
import json
import random
import secrets
import time
from collections.abc import Callable

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from knox.models import AuthToken
from PIL import Image

from accounts.models import User
from benchmarks.community import FIRST_FOLLOWER, FOLLOW_PUBLISHER, ITEMS, USERS
from benchmarks.generator import Answer, Call
from benchmarks.ground import Size, emptied
from items.actions import publish
from items.models import ItemType
from media.actions import upload
from media.decoder import decoder
from storage.connections import fetch

PICTURES = 20
ACTIVE_FANS = 1_000
"""Followers of the big-V who take pushes."""
API = "/api/v1"
LIKED = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::bigint[]) AS said(user_id, item_id)
    JOIN items_like USING (user_id, item_id)
"""
FOLLOWED = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::bigint[]) AS said(follower_id, followee_id)
    JOIN relations_follow USING (follower_id, followee_id)
"""
PUBLISHED = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::text[]) AS said(sender_id, words)
    JOIN items_item i ON i.sender_id = said.sender_id AND i.status = 'published' AND i.content ->> 'text' = words
"""
FOLLOWS = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT DISTINCT follower, followee, now() FROM (
        SELECT follower, ceil(%(people)s * random() ^ 2)::bigint AS followee
        FROM generate_series(1, %(people)s) AS follower, generate_series(1, %(each)s)
    ) drawn WHERE follower <> followee
"""


class Crowd:
    """The data set: people 1 to `size.load_people`, and behind them the big-V."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.people = range(1, size.load_people + 1)
        self.big_v = size.load_people + 1
        self.tokens: dict[int, str] = {}
        self.cookies: dict[int, str] = {}
        self.items: list[int] = []
        self.files: list[str] = []
        self.seconds = 0.0

    def build(self) -> None:
        """Generate everything, in place of earlier data."""
        begin = time.perf_counter()
        size = self.size
        emptied(find_people=False)
        call_command("collectstatic", interactive=False, verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT setseed(0.25)")
            cursor.execute("SET session_replication_role = replica")  # the rows refer to each other by construction
            for first, count, level in ((1, size.load_people + 1, 3), (FIRST_FOLLOWER, size.load_fans, 1)):
                cursor.execute(USERS, {"first": first, "count": count, "level": level, "big_vs": 0})
            cursor.execute("UPDATE accounts_user SET is_big_v = true WHERE id = %s", [self.big_v])
            active = min(ACTIVE_FANS, size.load_fans)
            cursor.execute(
                "UPDATE accounts_user SET level = 3 WHERE id >= %s AND id < %s",
                [FIRST_FOLLOWER, FIRST_FOLLOWER + active],
            )
            cursor.execute("SELECT setval(pg_get_serial_sequence('accounts_user', 'id'), max(id)) FROM accounts_user")
            cursor.execute(ITEMS, {"items": size.load_items, "senders": size.load_people})
            cursor.execute(FOLLOWS, {"people": size.load_people, "each": min(50, size.load_people // 2)})
            for first, count in ((1, size.load_people // 2), (FIRST_FOLLOWER, size.load_fans)):
                cursor.execute(FOLLOW_PUBLISHER, {"publisher": self.big_v, "first": first, "count": count})
            cursor.execute(
                """
                UPDATE accounts_user u SET
                    following_count = (SELECT count(*) FROM relations_follow WHERE follower_id = u.id),
                    follower_count = (SELECT count(*) FROM relations_follow WHERE followee_id = u.id)
                WHERE id < %s
                """,
                [FIRST_FOLLOWER],
            )
            cursor.execute("RESET session_replication_role")
            for table in ("accounts_user", "relations_follow", "items_item"):
                cursor.execute(f"VACUUM ANALYZE {table}")
        self.items = [item for (item,) in fetch("SELECT id FROM items_item WHERE reply_to_id IS NULL ORDER BY id")]
        self._let_in()
        self._publish_pictures()
        self.seconds = time.perf_counter() - begin

    def _let_in(self) -> None:
        """A token for everyone, and a session."""
        every = User.objects.in_bulk([*self.people, self.big_v])
        rows = []
        for number, user in every.items():
            token = self.tokens[number] = secrets.token_hex(32)
            digest = hashlib.sha512(token.encode()).hexdigest()
            rows.append(AuthToken(digest=digest, token_key=token[:8], user=user))
            client = Client()
            client.force_login(user, "django.contrib.auth.backends.ModelBackend")
            self.cookies[number] = client.cookies[settings.SESSION_COOKIE_NAME].value
        AuthToken.objects.bulk_create(rows)

    def _publish_pictures(self) -> None:
        senders = User.objects.in_bulk(list(self.people[:PICTURES]))
        for user in senders.values():
            file = io.BytesIO()
            Image.effect_noise((640, 480), 60).save(file, "JPEG")
            row = upload(owner_id=user.pk, file=file, description="A picture of noise.")
            publish(sender=user, type=ItemType.IMAGE, content={"text": "A picture", "media": [str(row.pk)]})
            self.files.append(f"{row.name}.small.{row.small_ext}")
        decoder.stop()

    def described(self) -> str:
        """The data set in a line."""
        return (
            f"{self.size.load_people} people who follow up to 50 each other by chance and have written "
            f"{self.size.load_items:,} items, and a big-V with {self.size.load_fans:,} followers; made in "
            f"{self.seconds:.0f} s"
        )


class Ledger:
    """The writes that were sent, by what was answered: they are held against PostgreSQL at the end."""

    def __init__(self) -> None:
        self.done: dict[str, list[tuple[int, int | str]]] = {"publish": [], "like": [], "follow": []}
        self.refused: dict[str, list[tuple[int, int | str]]] = {"publish": [], "like": [], "follow": []}
        self.unknown = 0
        """Not answered, so that they may have been done or not."""
        self.published: dict[int, float] = {}
        """When each item was acknowledged."""

    def note(self, kind: str, user: int, what: int | str) -> Callable[[Answer], None]:
        """Takes the answer to a write of one, `what` being the text, the item or the followee."""

        def told(answer: Answer) -> None:
            if 200 <= answer.status < 300:
                self.done[kind].append((user, what))
                if kind == "publish":
                    self.published[int(json.loads(answer.body)["id"])] = time.monotonic()
            elif answer.status == 503:
                self.refused[kind].append((user, what))
            else:
                self.unknown += 1

        return told

    def lost(self) -> int:
        """Acknowledged writes that PostgreSQL does not have."""
        return sum(len(pairs) - found(kind, pairs) for kind, pairs in self.done.items())

    def carried_out(self) -> int:
        """Writes that PostgreSQL has, though they were answered 503."""
        return sum(found(kind, pairs) for kind, pairs in self.refused.items())


def found(kind: str, pairs: list[tuple[int, int | str]]) -> int:
    """How many of these writes PostgreSQL has."""
    statement = {"publish": PUBLISHED, "like": LIKED, "follow": FOLLOWED}[kind]
    ((count,),) = fetch(statement, [[user for user, _ in pairs], [what for _, what in pairs]])
    return int(count)


class Acts:
    """Draws what is done next, and by whom. No pair of a person and an item is liked twice, nor followed twice."""

    def __init__(self, crowd: Crowd, ledger: Ledger, chance: random.Random) -> None:
        self.crowd, self.ledger, self.chance = crowd, ledger, chance
        self.used: set[tuple[str, int, int]] = {
            ("follow", *pair)
            for pair in fetch(
                "SELECT follower_id, followee_id FROM relations_follow WHERE follower_id < %s", [FIRST_FOLLOWER]
            )
        }
        self.kinds: dict[Callable[[], Call], int] = {
            self.home: 28,
            self.page: 10,
            self.deeper: 22,
            self.look: 8,
            self.news: 6,
            self.picture: 14,
            self.like: 5,
            self.publish: 3,
            self.follow: 2,
            self.stream: 2,
        }
        self.acts, self.weights = list(self.kinds), list(self.kinds.values())

    def __call__(self) -> Call:
        """The next one."""
        (act,) = self.chance.choices(self.acts, self.weights)
        return act()

    def someone(self) -> int:
        """A person."""
        return self.chance.choice(self.crowd.people)

    def home(self) -> Call:
        """The first page of home, as an app asks for it."""
        return Call("home", self.request("GET", f"{API}/timeline/home", self.someone()))

    def page(self) -> Call:
        """The page of home in a browser."""
        cookie = f"Cookie: {settings.SESSION_COOKIE_NAME}={self.crowd.cookies[self.someone()]}"
        return Call("page", text("GET", "/", cookie))

    def deeper(self) -> Call:
        """A page below the first, anywhere."""
        below = self.chance.choice(self.crowd.items)
        return Call("deeper", self.request("GET", f"{API}/timeline/home?last_id={below}", self.someone()))

    def look(self) -> Call:
        """An item."""
        return Call("item", self.request("GET", f"{API}/items/{self.chance.choice(self.crowd.items)}", self.someone()))

    def news(self) -> Call:
        """How much is new."""
        since = self.crowd.items[-1]
        return Call("news", self.request("GET", f"{API}/timeline/home/new?since_id={since}", self.someone()))

    def picture(self) -> Call:
        """The file of a picture."""
        return Call("picture", text("GET", f"/media/{self.chance.choice(self.crowd.files)}"))

    def stream(self) -> Call:
        """Open a stream."""
        return Call("stream", self.request("GET", f"{API}/stream", self.someone()), opens=True)

    def like(self) -> Call:
        """Like an item."""
        user, item = self.pair("like", lambda: self.chance.choice(self.crowd.items))
        told = self.ledger.note("like", user, item)
        return Call("like", self.request("PUT", f"{API}/items/{item}/like", user), told)

    def follow(self) -> Call:
        """Follow someone."""
        user, other = self.pair("follow", self.someone)
        told = self.ledger.note("follow", user, other)
        return Call("follow", self.request("PUT", f"{API}/users/user{other}/follow", user), told)

    def publish(self) -> Call:
        """Publish a post."""
        return self.published_by(self.someone(), "publish")

    def published_by(self, user: int, kind: str) -> Call:
        """A post of one, as a call of this kind."""
        words = f"load {secrets.token_hex(8)}"
        body = json.dumps({"content": {"text": words}}).encode()
        request = self.request("POST", f"{API}/items", user, body)
        return Call(kind, request, self.ledger.note("publish", user, words))

    def pair(self, kind: str, draw: Callable[[], int]) -> tuple[int, int]:
        """A person and something of theirs that was not drawn before."""
        while True:
            drawn = (kind, self.someone(), draw())
            if drawn not in self.used and not (kind == "follow" and drawn[1] == drawn[2]):
                self.used.add(drawn)
                return drawn[1:]

    def request(self, method: str, path: str, user: int, body: bytes = b"") -> bytes:
        """A call of the API by one."""
        return text(method, path, f"Authorization: Token {self.crowd.tokens[user]}", body)


def text(method: str, path: str, header: str = "", body: bytes = b"") -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [header] if header else []
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body
