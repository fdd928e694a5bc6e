"""Readers and writers against a running site: `locust -f benchmarks/locustfile.py --headless -u 55 -t 60`.

Start the site with `FEEDSITE_RATE_SCALE=1000 python3 manage.py up`: everybody here comes from one address. Fifty
readers scroll, look at items, like, search and read what concerns them; five writers publish, answer and delete. Each
signs up at first and follows whom the site suggests by its posts. A pause of 0.5 to 1.5 s lies between two calls of one
of them. Any answer but the expected one is an error.
"""

import random
import secrets

from locust import HttpUser, between, events, task
from locust.env import Environment

API = "/api/v1"
PASSWORD = secrets.token_urlsafe(16)
WRITERS = 5
WORDS = ("harbor", "ferry", "market", "tram", "moon", "雨停了", "今天的云")

published: list[str] = []
"""Ids that anybody may look at; some are deleted by now."""
people: list[str] = []


class Person(HttpUser):
    """Somebody with an account of their own."""

    abstract = True
    wait_time = between(0.5, 1.5)

    def on_start(self) -> None:
        self.name = f"load-{secrets.token_hex(6)}"
        body = {"username": self.name, "password": PASSWORD}
        self.client.post(f"{API}/users", json=body).raise_for_status()
        token = self.client.post(f"{API}/auth/token", json=body).json()["token"]
        self.client.headers["Authorization"] = f"Token {token}"
        for other in random.sample(people, min(len(people), 20)):
            self.client.put(f"{API}/users/{other}/follow", name=f"{API}/users/:name/follow")
        people.append(self.name)
        for other in ("harbor-news", "weather-desk", "mira", "tomas", "lin-wei"):
            with self.client.put(
                f"{API}/users/{other}/follow", name=f"{API}/users/:name/follow", catch_response=True
            ) as answer:
                if answer.status_code == 404:  # a site without the demo community
                    answer.success()

    def get(self, path: str, name: str = "", *, gone: bool = False) -> dict[str, object]:
        """Read; with `gone`, that there is nothing any more is an answer too."""
        with self.client.get(f"{API}{path}", name=f"{API}{name or path}", catch_response=True) as answer:
            if gone and answer.status_code == 404:
                answer.success()
            return answer.json() if answer.ok else {}


class Reader(Person):
    """Scrolls most of the time."""

    weight = 10

    @task(10)
    def scroll(self) -> None:
        page = self.get("/timeline/home")
        published.extend(item["id"] for item in page.get("items", [])[:3])  # type: ignore[index, attr-defined]
        del published[:-500]
        for _ in range(2):
            if not page.get("has_more"):
                break
            page = self.get(f"/timeline/home?last_id={page['last_id']}", "/timeline/home?last_id=:id")

    @task(4)
    def count_news(self) -> None:
        if published:
            self.get(f"/timeline/home/new?since_id={published[-1]}", "/timeline/home/new")

    @task(4)
    def look(self) -> None:
        if published:
            item = random.choice(published)  # noqa: S311
            self.get(f"/items/{item}", "/items/:id", gone=True)
            self.get(f"/items/{item}/replies", "/items/:id/replies", gone=True)

    @task(3)
    def like(self) -> None:
        if published:
            item = random.choice(published)  # noqa: S311
            with self.client.put(
                f"{API}/items/{item}/like", name=f"{API}/items/:id/like", catch_response=True
            ) as answer:
                if answer.status_code == 404:
                    answer.success()

    @task(1)
    def search(self) -> None:
        self.get(f"/search?q={random.choice(WORDS)}", "/search")  # noqa: S311

    @task(2)
    def notifications(self) -> None:
        self.get("/notifications")


class Writer(Person):
    """Publishes most of the time."""

    weight = 1

    def on_start(self) -> None:
        super().on_start()
        self.own: list[str] = []

    @task(8)
    def publish(self) -> None:
        words = " ".join(random.choices(WORDS, k=12))  # noqa: S311
        body = {"content": {"text": f"{words} {secrets.token_hex(4)} #load"}}
        answer = self.client.post(f"{API}/items", json=body)
        if answer.ok:
            self.own.append(answer.json()["id"])
            published.append(self.own[-1])

    @task(3)
    def answer(self) -> None:
        if self.own:
            body = {"content": {"text": f"and {secrets.token_hex(4)}"}, "reply_to": self.own[-1]}
            self.client.post(f"{API}/items", json=body)

    @task(1)
    def repost(self) -> None:
        if self.own:
            self.client.post(f"{API}/items/{random.choice(self.own)}/repost", name=f"{API}/items/:id/repost")  # noqa: S311

    @task(1)
    def delete(self) -> None:
        if len(self.own) > 3:
            self.client.delete(f"{API}/items/{self.own.pop(0)}", name=f"{API}/items/:id")


@events.init.add_listener
def _fix_writers(environment: Environment, **kwargs: object) -> None:
    Writer.fixed_count = WRITERS
