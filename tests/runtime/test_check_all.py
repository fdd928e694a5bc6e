import os
import sys
from pathlib import Path

import pytest

from runtime.management.commands.check_all import Check, checks, run_all

WAIT = """
import pathlib, sys, time
until = time.monotonic() + 60
while not pathlib.Path(sys.argv[1]).exists() and time.monotonic() < until: time.sleep(0.01)
print("waited in vain" if time.monotonic() > until else "came")
"""


def python(name: str, code: str, *arguments: str, is_loud: bool = False) -> Check:
    return Check(name, [sys.executable, "-c", code, *arguments], {"MORE": "more"}, is_loud=is_loud)


def test_the_quiet_run_beside_the_loud_and_all_to_their_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sign = str(tmp_path / "sign")
    every = [
        python("refuses", "import os, sys; print(os.environ['MORE'], file=sys.stderr); sys.exit(1)"),
        python("signs", "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()", sign),
        python("waits", WAIT, sign, is_loud=True),
    ]
    results = run_all(every, dict(os.environ))
    assert [(result.name, result.passed) for result in results] == [
        ("refuses", False),
        ("signs", True),
        ("waits", True),
    ]
    said = capfd.readouterr().out
    assert "\n=== refuses ===\nmore\n" in said
    assert "came\n" in said


@pytest.mark.long
def test_a_run_that_is_broken_off_begins_nothing_more(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    missing = Check("missing", [str(tmp_path / "missing")], is_loud=True)
    every = [python("first", "import time; time.sleep(3)"), python("second", f"open({str(begun)!r}, 'w')"), missing]
    with pytest.raises(FileNotFoundError):
        run_all(every, dict(os.environ))
    assert not begun.exists()


@pytest.mark.parametrize("amount", ["fast", "usual", "all"])
def test_only_the_tests_are_loud(amount: str) -> None:
    *quiet, tests = checks(amount=amount, pytest=["-k", "home"])  # type: ignore[arg-type]
    assert tests.is_loud
    assert tests.command[-2:] == ["-k", "home"]
    assert not any(check.is_loud for check in quiet)
