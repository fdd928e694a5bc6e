"""A real node of OpenSearch, by the jars that Maven fetches, and a relay before it that makes trouble.

Tests that need it are skipped where Java or Maven is missing.
"""

import base64
import gzip
import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3

from runtime.embedded import EmbeddedServer, Home, wait_for
from tests.support.rabbits import free_ports

SOURCE = Path(__file__).with_name("search_node")
CAN_RUN = all(shutil.which(program) for program in ("java", "javac", "mvn"))
HEAP = "512m"
START_SECONDS = 120.0
CREDENTIALS = "admin:pass word"
Json = dict[str, Any]


def class_path(folder: Path) -> str:
    """The class path of the node, which is compiled into `folder`. Maven keeps the jars."""
    jars = folder / "jars"
    pom, output = SOURCE / "pom.xml", f"-Dmdep.outputFile={jars}"
    subprocess.run(
        ["mvn", "-q", "-B", "-f", pom, "dependency:build-classpath", output], check=True, capture_output=True
    )
    java = ["javac", "-cp", jars.read_text(), "-d", folder, SOURCE / "SearchNode.java"]
    subprocess.run(java, check=True, capture_output=True)
    return f"{folder}:{jars.read_text()}"


class SearchNode(EmbeddedServer):
    """A node with a data folder of its own."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, "opensearch")
        self.folder = home.data_dir / "opensearch"
        (self.port,) = free_ports(1)
        self.pool = urllib3.HTTPConnectionPool("127.0.0.1", self.port, maxsize=8)
        self.class_path = ""

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.class_path = self.class_path or class_path(self.folder)

    def command(self) -> Sequence[str]:
        sizes = [f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:TieredStopAtLevel=1"]  # compiles fast, not well
        return ["java", *sizes, "-cp", self.class_path, "SearchNode", str(self.folder), str(self.port)]

    def answers(self) -> bool:
        with suppress(urllib3.exceptions.HTTPError):
            return self.pool.request("GET", "/", timeout=0.5, retries=False).status == 200
        return False

    def run(self) -> None:
        """Start, and wait until it answers."""
        self.start()
        assert wait_for(self.answers, START_SECONDS), self.last_words()

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """The answer of the node, past the relay."""
        headers = {"Content-Type": "application/json"}
        answer = self.pool.request(
            method, path, body=json.dumps(body) if body else None, headers=headers, retries=False
        )
        assert answer.status < 300, answer.data
        return dict(answer.json())


Trouble = Callable[["Handler"], bool]
"""Acts in place of an answer. False: the node answers after all."""


class OpenSearch:
    """A relay to the node, at `url`. It asks for a password, makes trouble, and records requests.

    The node shows what was written about a second later, so the relay refreshes the index before each search.
    """

    name = "site-items"

    def __init__(self, node: SearchNode, context: ssl.SSLContext | None = None) -> None:
        self.node = node
        self.requests: list[tuple[str, str, bytes]] = []
        self.trouble: Trouble | None = None
        self.underway: set[object] = set()
        self.password = base64.b64encode(CREDENTIALS.encode()).decode()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"relay": self}))
        self.http.daemon_threads = True
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        scheme = "http" if context is None else "https"
        credentials = CREDENTIALS.replace(" ", "%20")
        self.url = f"{scheme}://{credentials}@localhost:{self.http.server_address[1]}/{self.name}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Let late requests end: they would write into the next test's index."""
        wait_for(lambda: not self.underway, 30)
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    @contextmanager
    def in_trouble(self, trouble: Trouble) -> Iterator[None]:
        self.trouble = trouble
        try:
            yield
        finally:
            self.trouble = None

    def refresh(self) -> None:
        self.node.ask("POST", "/_refresh")

    @property
    def documents(self) -> dict[int, Json]:
        """Documents by item, without empty ones."""
        self.refresh()
        answer = self.node.ask("POST", f"/{self.name}/_search", {"size": 10_000, "query": {"match_all": {}}})
        return {int(hit["_id"]): hit["_source"] for hit in answer["hits"]["hits"] if hit["_source"]}

    def bodies(self, end: str) -> list[bytes]:
        """The bodies of the requests to addresses with this end."""
        return [body for _, path, body in self.requests if path.partition("?")[0].endswith(end)]

    def searches(self) -> list[Json]:
        return [json.loads(body) for body in self.bodies("/_search")]

    @property
    def indexes(self) -> list[str]:
        return sorted(self.node.ask("GET", "/_all/_settings"))

    def scores(self, body: Json) -> dict[int, float]:
        """The node's scores of a search of the site."""
        self.refresh()
        hits = self.node.ask("POST", f"/{self.name}/_search", body)["hits"]["hits"]
        return {int(hit["_id"]): hit["sort"][0] for hit in hits}

    def delete_indexes(self) -> None:
        self.node.ask("DELETE", "/*")


class Handler(BaseHTTPRequestHandler):
    relay: OpenSearch
    protocol_version = "HTTP/1.1"
    timeout = 20

    def do(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.relay.underway.add(self)
        try:
            if not (self.relay.trouble and self.relay.trouble(self)):
                self.reply(*self.obey())
        finally:
            self.relay.underway.discard(self)

    def obey(self) -> tuple[bytes, int]:
        """The node's answer."""
        relay, node = self.relay, self.relay.node
        if self.headers.get("authorization") != f"Basic {relay.password}":
            return b'{"error": {"type": "security_exception"}, "status": 401}', 401
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        relay.requests.append((self.command, self.path, gzip.decompress(self.body) if is_packed else self.body))
        if "/_search" in self.path:
            relay.refresh()
        named = ("Content-Type", "Content-Encoding", "Accept")
        headers = {name: self.headers[name] for name in named if name in self.headers}
        answer = node.pool.request(self.command, self.path, body=self.body or None, headers=headers, retries=False)
        return answer.data, answer.status

    do_GET = do_POST = do_PUT = do_DELETE = do  # noqa: N815 (the names of http.server)

    def reply(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        with suppress(OSError):  # the client disconnected
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of http.server)
        pass


# --- Troubles --------------------------------------------------------------------------------------------
def status(code: int, body: bytes = b'{"error": {"type": "trouble"}}') -> Trouble:
    def trouble(handler: Handler) -> bool:
        handler.reply(body, code)
        return True

    return trouble


def says(data: bytes) -> Trouble:

    def trouble(handler: Handler) -> bool:
        handler.wfile.write(data)
        handler.close_connection = True
        return True

    return trouble


def obeys_and_cuts(handler: Handler) -> bool:
    """Act, but cut the connection before the answer."""
    handler.obey()
    handler.close_connection = True
    return True


def late(seconds: float) -> Trouble:

    def trouble(handler: Handler) -> bool:
        time.sleep(seconds)
        return False

    return trouble


def refuses(item_id: int, code: int) -> Trouble:
    """A bulk request succeeds for all items but one, as with a full queue."""

    def trouble(handler: Handler) -> bool:
        lines = gzip.decompress(handler.body).splitlines(keepends=True)
        at = next((at for at in range(0, len(lines), 2) if json.loads(lines[at])["index"]["_id"] == str(item_id)), None)
        if at is None:
            return False
        del lines[at : at + 2]
        handler.body = gzip.compress(b"".join(lines))
        answer = json.loads(handler.obey()[0]) if lines else {"items": []}
        error = {"_id": str(item_id), "status": code, "error": {"type": "rejected_execution_exception"}}
        handler.reply(json.dumps({"errors": True, "items": [*answer["items"], {"index": error}]}).encode())
        return True

    return trouble
