"""The groups of tests name tests that exist, every flow of the browser tests runs in some setting, and its settings
leave out no other test.
"""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from django.conf import settings

from tests.support import flows
from tests.support.effort import is_usual
from tests.support.scheduling import GROUPS, Scheduling, keep_rewritten, rewritten


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


@pytest.mark.parametrize("flow", ["test_liking", "test_leaving"])
@pytest.mark.parametrize("screens", [[None], ["phone", "desktop"]])
@pytest.mark.parametrize("javascript", [[None], [True, False]])
@pytest.mark.parametrize("locales", [[None], ["en-US", "zh-CN"]])
@pytest.mark.parametrize("narrowest", [[None], [True, False]])
def test_every_run_tries_a_flow_in_some_of_its_settings(
    flow: str,
    screens: list[str | None],
    javascript: list[bool | None],
    locales: list[str | None],
    narrowest: list[bool | None],
) -> None:
    usual = [
        setting
        for setting in product(screens, javascript, locales, narrowest)
        if is_usual(flow, setting[0], setting[1], locale=setting[2], is_narrowest=setting[3])
    ]
    both = len(screens) == len(javascript) == 2
    assert len(usual) == (2 if both else 1)


@pytest.mark.slow
def test_settings_of_flows_leave_out_no_other_test(request: pytest.FixtureRequest) -> None:
    """pytest hands a folder's hook the tests of all folders: this one once left 5,025 of them out of every run."""
    others = [item for item in request.session.items if flows.FOLDER not in item.path.parents]
    assert any(hasattr(item, "callspec") for item in others)
    marks = [len(item.own_markers) for item in others]
    flows.pytest_collection_modifyitems(others)
    assert [len(item.own_markers) for item in others] == marks


def test_pytest_takes_what_was_rewritten_for_the_workers(tmp_path: Path) -> None:
    module = tmp_path / "test_sums.py"
    module.write_text("def test_sum():\n    assert 1 + 1 == 3\n")
    keep_rewritten(module)
    code = rewrite._read_pyc(module, rewritten(module))
    assert code is not None
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (written above)
    with pytest.raises(AssertionError, match=r"assert \(1 \+ 1\) == 3"):
        names["test_sum"]()
    module.write_text("def test_sum():\n    pass\n")
    assert rewrite._read_pyc(module, rewritten(module)) is None
