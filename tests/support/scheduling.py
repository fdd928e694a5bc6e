"""Which tests a worker of pytest-xdist runs one after the other, and what the workers begin with.

pytest-xdist's own `xdist_group` groups nothing under pytest 9.2, whose tests' ids cannot be renamed any more.
"""

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    # Several PostgreSQLs, sites or clusters at once are too many for a small machine.
    "tests/benchmarks/test_bench.py": "servers",
    "tests/faults/test_cluster.py": "servers",
    "tests/faults/test_failover.py": "servers",
    "tests/operation/test_doctor.py::test_a_cluster": "servers",
    "tests/properties/test_cluster.py": "servers",
    "tests/runtime/test_embedded.py": "servers",
    "tests/runtime/test_supervisor.py": "servers",
    "tests/storage/test_cluster.py": "servers",
    "tests/storage/test_replica.py": "servers",
    # Every worker would make what these modules make once.
    "tests/media/test_bucket.py": "bucket",
    "tests/benchmarks/test_scaling.py": "scaling",
    "tests/operation/test_simulation.py": "simulation",
    "tests/schema/test_schema.py": "schema",
}
"""The group of a file's tests, or of one test. The largest group begins first: the tests of other workers fill the time
in which it waits for servers."""


class Scheduling(LoadScopeScheduling):
    """Gives a worker one group at a time, and one test of those that have none."""

    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid) or GROUPS.get(nodeid.partition("::")[0]) or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling:
    """The scheduler of a run with workers."""
    return Scheduling(config, log)  # type: ignore[arg-type]
