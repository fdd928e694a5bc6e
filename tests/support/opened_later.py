"""`python -m tests.support.opened_later web`: a program that has loaded, and the files of the tree that it opens later.

Reads requests or tasks from its input as JSON. Prints {"opened": paths, "failed": errors, "shown": answers of 200}.
"""

import importlib
import io
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent.parent
opened: dict[str, str] = {}
doing = ""


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook."""
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(f"{ROOT}/") and "/redis-" not in path:  # redis-py can do without its METADATA
            opened.setdefault(path.removeprefix(f"{ROOT}/"), doing)


def ask(application: Any, asked: dict[str, Any]) -> int:
    """The status of an answer."""
    path, _, query = asked["path"].partition("?")
    body = json.dumps(asked.get("body", {})).encode() if asked["method"] != "GET" else b""
    environ = {
        "REQUEST_METHOD": asked["method"],
        "PATH_INFO": unquote(path, "latin-1"),
        "SCRIPT_NAME": "",
        "QUERY_STRING": query,
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "CONTENT_TYPE": "application/json" if body else "",
        "CONTENT_LENGTH": str(len(body)),
        **{f"HTTP_{name.upper()}": value for name, value in {"host": "testserver", **asked["headers"]}.items()},
    }
    statuses: list[int] = []
    answer = application(environ, lambda status, headers, *error: statuses.append(int(status.split()[0])))
    for _ in answer:
        pass
    if hasattr(answer, "close"):
        answer.close()
    return statuses[-1]


def main(program: str) -> None:
    global doing
    jobs = json.load(sys.stdin)
    failed: list[str] = []
    shown = 0
    if program == "web":
        preloaded = importlib.import_module("runtime.preloaded")
        application = preloaded.load("feedsite.wsgi:application").application
    else:
        celery = importlib.import_module("feedsite.celery")
        celery.app.loader.init_worker()
        celery.share_memory()
    sys.addaudithook(note)
    for job in jobs:
        doing = str(job)
        try:
            if program == "web":
                status = ask(application, job)
                shown += status == 200
                if status >= 500:
                    failed.append(f"{status} {job['method']} {job['path']}")
            else:
                celery.app.tasks[job[0]].run(*job[1:])
        except Exception:  # noqa: BLE001 (named in the answer)
            failed.append(f"{doing}: {traceback.format_exc()}")
    print(json.dumps({"opened": opened, "failed": failed, "shown": shown}))


if __name__ == "__main__":
    main(sys.argv[1])
