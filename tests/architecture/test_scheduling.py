"""The groups of tests name tests that exist."""

import pytest
from django.conf import settings

from tests.support.scheduling import GROUPS, Scheduling


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_names_tests(name: str) -> None:
    path, _, test = name.partition("::")
    text = (settings.BASE_DIR / path).read_text()
    assert f"def {test or 'test_'}" in text


def test_a_test_without_a_group_is_a_scope_of_its_own() -> None:
    scheduling = object.__new__(Scheduling)  # workers, one of which runs this, schedule nothing
    tests = ["tests/items/test_api.py::test_a", "tests/items/test_api.py::test_b"]
    servers = ["tests/faults/test_cluster.py::test_c", "tests/storage/test_replica.py::test_d[x@y]"]
    scopes = [scheduling._split_scope(test) for test in tests + servers]
    assert scopes == [*tests, "servers", "servers"]
