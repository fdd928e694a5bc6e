import http.client
import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone
from oauth2_provider.models import AccessToken, set_token_value

from accounts.models import ClientApp, User
from runtime import shedding
from tests.support.api import API
from tests.support.streams import StreamServer

PATIENCE = 150


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def ids(self) -> list[int]:
        return [int(item["id"]) for item in self.json()["items"]]


class WebServer(StreamServer):
    """granian without rates."""

    def __init__(self, folder: Path, **environ: str) -> None:
        super().__init__(folder, **{"FEEDSITE_RATE_SCALE": "100000"} | environ)

    def start(self) -> None:
        manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
        if not manifest.exists():  # tests ask only for data
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.write_text(json.dumps({"paths": {"a.css": "a.css"}, "version": "1.1", "hash": ""}))
        super().start()

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--no-ws", "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--workers", "1", "--blocking-threads", "4", "--log-level", "warning"]
        return [*command, "--workers-kill-timeout", "1", "feedsite.wsgi:application"]

    def ask(self, path: str, token: str = "", *, method: str = "GET", body: Any = None, cookie: str = "") -> Answer:
        """One request on a new connection."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Authorization": f"Token {token}"} if token else {}
        if cookie:
            headers["Cookie"] = cookie
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            client.request(method, path, None if body is None else json.dumps(body), headers)
            response = client.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            client.close()

    def publish(self, token: str, text: str = "words") -> Answer:
        return self.ask(f"{API}/items", token, method="POST", body={"content": {"text": text}})

    def homes(self, tokens: Iterable[str], *, at_once: int) -> list[Answer]:
        """Read homes with this many clients at the same time."""
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda token: self.ask(f"{API}/timeline/home", token), tokens))


class Queueing(WebServer):
    def command(self) -> list[str]:
        command = [sys.executable, "-m", "runtime.preloaded", "granian", "--interface", "wsgi", "--no-ws"]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1", "--blocking-threads"]
        return [
            *command,
            str(shedding.DOORS),
            "--log-level",
            "warning",
            "--workers-kill-timeout",
            "1",
            "feedsite.wsgi:application",
        ]


def tokens_of(users: Sequence[User]) -> list[str]:
    tokens = [f"{user.pk:064x}" for user in users]
    app, ends = ClientApp.objects.own(), timezone.now() + timedelta(days=1)
    rows = [AccessToken(user=user, application=app, expires=ends) for user in users]
    for row, token in zip(rows, tokens, strict=True):
        set_token_value(row, token)
    AccessToken.objects.bulk_create(rows)
    return tokens
