"""The environment's word on the site's processes: all that the supervisor needs to know, without Django.

feedsite/settings.py takes the same values from here, so that a variable has one meaning and one default.
"""

import os
from pathlib import Path
from typing import NamedTuple

from runtime.embedded import Servers
from runtime.environment import Given
from runtime.options import SMALL

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Processors that this process may use; of the whole machine on macOS, which does not say."""


class Family(NamedTuple):
    """The site's folder, servers, places and numbers of processes."""

    base_dir: Path
    data_dir: Path
    servers: Servers
    host: str
    port: int
    stream_port: int
    """0: the next free one."""
    grpc_host: str
    grpc_port: int
    """0: no gRPC."""
    web_processes: int
    web_threads: int
    worker_processes: int
    stream_limit: int
    allowed_hosts: list[str]
    log_format: str
    log_level: str
    is_small: bool
    web_memory_mb: int
    worker_memory_mb: int

    @property
    def metrics_folder(self) -> Path:
        """Where the programs count under `up` (runtime.metrics)."""
        return self.servers.home.run / "metrics"


def of(env: Given, base_dir: Path) -> Family:
    """The family that an environment asks for; `base_dir` has manage.py."""
    data_dir = Path(env.text("FEEDSITE_DATA_DIR", str(base_dir / "var"))).resolve()
    return Family(
        base_dir=base_dir,
        data_dir=data_dir,
        servers=Servers(data_dir, env.texts),
        host=env.text("FEEDSITE_HOST"),
        port=env.whole("PORT"),
        stream_port=env.whole("FEEDSITE_STREAM_PORT"),
        grpc_host=env.text("FEEDSITE_GRPC_HOST"),
        grpc_port=env.whole("FEEDSITE_GRPC_PORT"),
        web_processes=env.whole("FEEDSITE_WEB_PROCESSES", PROCESSORS),
        web_threads=env.whole("FEEDSITE_WEB_THREADS"),
        worker_processes=env.whole("FEEDSITE_WORKER_PROCESSES", PROCESSORS),
        stream_limit=env.whole("FEEDSITE_STREAM_CAP"),
        allowed_hosts=env.words("FEEDSITE_ALLOWED_HOSTS"),
        log_format=env.text("FEEDSITE_LOG_FORMAT"),
        log_level=env.text("FEEDSITE_LOG_LEVEL"),
        is_small=env.switch(SMALL),
        web_memory_mb=env.whole("FEEDSITE_WEB_MEMORY_MB"),
        worker_memory_mb=env.whole("FEEDSITE_WORKER_MEMORY_MB"),
    )
