"""The processes that answer requests: web, stream and gRPC."""

import http.client
from urllib.parse import urlsplit

import grpc
from django.conf import settings
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from operation.doctor.findings import WAIT_SECONDS, Findings, judge


def process(name: str, url: str) -> Findings:
    """Whether a process answers /healthz."""
    place = urlsplit(url)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    host = next((each.lstrip(".") for each in settings.ALLOWED_HOSTS if each != "*"), "localhost")
    session = kind(place.hostname or "", place.port, timeout=WAIT_SECONDS)
    try:
        session.request("GET", "/healthz", headers={"Host": host})
        status = session.getresponse().status
        said = f"{url} answers {status}"
    except (OSError, http.client.HTTPException) as error:
        status, said = 0, f"{url} does not answer ({type(error).__name__})"
    finally:
        session.close()
    yield judge(name, said, warning=status != 200, todo=f"Start it, or say where it listens (--{name} URL).")


def grpc_process(place: str) -> Findings:
    """Whether the standard health service says that it serves."""
    with grpc.insecure_channel(place) as channel:
        try:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=WAIT_SECONDS)
            serves, said = answer.status == answer.SERVING, HealthCheckResponse.ServingStatus.Name(answer.status)
        except grpc.RpcError as error:
            serves, said = False, f"no answer ({error.code().name})"
    yield judge(
        "grpc",
        f"{place}: {said}",
        warning=not serves,
        todo="Start it, say where it listens (--grpc HOST:PORT), or leave FEEDSITE_GRPC_PORT out where there is none.",
    )


def addresses() -> tuple[str, str, str]:
    """Where web, stream and gRPC listen under `up`; gRPC is empty where there is none."""
    port = settings.PORT
    stream = settings.STREAM_PORT or port + 1
    return (
        f"http://127.0.0.1:{port}",
        f"http://127.0.0.1:{stream}",
        f"{settings.GRPC_HOST}:{settings.GRPC_PORT}" if settings.GRPC_PORT else "",
    )
