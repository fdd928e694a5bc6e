import http.client
import json
from urllib.parse import urlsplit

import grpc
from django.conf import settings
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from operation.doctor.findings import OK, WAIT_SECONDS, Findings, make_finding

PAGE_SECONDS = 10.0
"""Seconds for a page, on a busy machine."""


def process(name: str, url: str) -> Findings:
    """Check that a process answers /healthz."""
    status, said = _request(url, "/healthz", WAIT_SECONDS)
    yield make_finding(name, said, warning=status != 200, todo=f"Start it. If it listens elsewhere, add --{name} URL.")


def web(url: str) -> Findings:
    """Check that web answers, is ready, and renders a page."""
    for finding in process("web", url):
        yield finding
        if finding.state != OK:
            return
    status, said = _request(url, "/readyz", WAIT_SECONDS)
    is_ready = status == 200 or ("secret key" not in said and "static files" not in said)
    yield make_finding(
        "web readiness", said, error=not is_ready, todo="Fix what is named here: docs/runbook.md, No answer."
    )
    if status != 200 and is_ready:
        return  # a server does not answer; other checks report it
    status, said = _request(url, "/about", PAGE_SECONDS)
    yield make_finding(
        "web page",
        said,
        error=status != 200,
        todo="Run `manage.py collectstatic --noinput` and restart web. If it still fails, web's log has the traceback.",
    )


def _request(url: str, path: str, seconds: float) -> tuple[int, str]:
    """Ask a process as the proxy does. Returns the status (0: no answer) and a description."""
    place, shown = urlsplit(url), url if path == "/healthz" else f"{url}{path}"
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    host = next((each.lstrip(".") for each in settings.ALLOWED_HOSTS if each != "*"), "localhost")
    scheme = "https" if settings.HTTPS else "http"
    session = kind(place.hostname or "", place.port, timeout=seconds)
    try:
        session.request("GET", path, headers={"Host": host, "Forwarded": f"for=127.0.0.1;proto={scheme}"})
        answer = session.getresponse()
        said = f"{shown} answers {answer.status}"
        if path == "/readyz" and answer.status != 200:
            states = json.loads(answer.read())["servers"]
            said += "".join(f"; {name} {state}" for name, state in states.items() if state != "ok")
        return answer.status, said
    except (OSError, http.client.HTTPException, ValueError) as error:
        return 0, f"{shown} does not answer ({type(error).__name__})"
    finally:
        session.close()


def grpc_process(place: str) -> Findings:
    """Check gRPC's standard health service."""
    with grpc.insecure_channel(place) as channel:
        try:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=WAIT_SECONDS)
            serves, said = answer.status == answer.SERVING, HealthCheckResponse.ServingStatus.Name(answer.status)
        except grpc.RpcError as error:
            serves, said = False, f"no answer ({error.code().name})"
    yield make_finding(
        "grpc",
        f"{place}: {said}",
        warning=not serves,
        todo="Start it. If it listens elsewhere, add --grpc HOST:PORT. If you need no gRPC, remove FEEDSITE_GRPC_PORT.",
    )


def program_addresses() -> tuple[str, str, str]:
    """Where web, stream and gRPC (maybe empty) listen under `up`."""
    port = settings.PORT
    stream = settings.STREAM_PORT or port + 1
    return (
        f"http://127.0.0.1:{port}",
        f"http://127.0.0.1:{stream}",
        f"{settings.GRPC_HOST}:{settings.GRPC_PORT}" if settings.GRPC_PORT else "",
    )
