"""Which tests a pytest-xdist worker runs together.

`xdist_group` does nothing under pytest 9.2, which no longer allows renaming test ids.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    # Too many at once for a small machine.
    "tests/benchmarks/test_bench.py": "servers",
    "tests/faults/test_cluster.py": "servers",
    "tests/faults/test_failover.py": "servers",
    "tests/operation/test_doctor.py::test_a_cluster": "servers",
    "tests/properties/test_cluster.py": "servers",
    "tests/runtime/test_embedded.py": "servers",
    "tests/runtime/test_supervisor.py": "servers",
    "tests/storage/test_cluster.py": "servers",
    "tests/storage/test_replica.py": "servers",
    # One node of OpenSearch.
    "tests/discover/test_indexing.py": "opensearch",
    "tests/discover/test_opensearch.py": "opensearch",
    # Every worker would make what they make once.
    "tests/media/test_bucket.py": "bucket",
    "tests/schema/test_schema.py": "schema",
}
"""The group of a file or a test. The largest starts first: other tests fill its waits for servers."""


class Scheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid) or GROUPS.get(nodeid.partition("::")[0]) or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    return Scheduling(config, log)  # type: ignore[arg-type]


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Rewrite assertions once, on all processors. Otherwise each worker takes long for it before its first test."""
    tests = config.rootpath / "tests"
    new = [path for path in tests.rglob("*.py") if is_test(path) and not rewritten(path).exists()]
    if new:
        with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(keep_rewritten, new, chunksize=20))


def is_test(path: Path) -> bool:
    return path.name == "conftest.py" or path.name.startswith("test_")


def rewritten(path: Path) -> Path:
    """The file must match the source."""
    return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)


def keep_rewritten(path: Path) -> None:
    source, code = rewrite._rewrite_test(path, None)  # type: ignore[arg-type]  # it asks for options that are not ours
    kept = rewritten(path)
    kept.parent.mkdir(exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}")
    with part.open("wb") as file:
        rewrite._write_pyc_fp(file, source, code)
    part.replace(kept)
