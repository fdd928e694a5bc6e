import json
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import BY_NAME, KNOWN, REAL, parsed
from benchmarks.measure import BenchmarkReport, exponent, percentile
from benchmarks.report import as_text, renew, write
from runtime.management.commands import bench

PAGE = """# Benchmarks
Before all. Ten people.
<!-- figures: second -->
old
<!-- end of second -->
Between.
<!-- figures: first -->
<!-- end of first -->
After.
"""


def report(name: str, value: float = 1.5) -> BenchmarkReport:
    made = BenchmarkReport(name, "Is it fast?", ["what", "ms"], "3 rounds", rows=[["this", value]])
    made.ratio("this / that", value, at_most=2)
    made.ratio("that / <other>", 0.5, at_least=0.8)
    made.ratio("that / this", 1.0)
    versions = {"cores": 2, "processor": "X", "python": "3", "postgresql": "18", "valkey": "9"}
    made.machine = versions | {"date": "today", "load_before": 0.5, "load_after": 1.0}
    made.data_set, made.seconds = "Ten people", 4.2
    return made


def test_a_report_is_json_for_programs(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"first": report("first")})
    found = json.loads((tmp_path / "a.json").read_text())["results"]["first"]
    assert found["rows"] == [["this", 1.5]]
    assert [ratio["is_met"] for ratio in found["ratios"]] == [True, False, None]


def test_a_report_is_text_for_people() -> None:
    said = as_text(report("first"))
    assert said.startswith("### first: Is it fast?\n\n3 rounds.\n\n| what |  ms |\n|------|----:|\n| this | 1.5 |\n")
    assert "| that / <other> | 0.50  | ≥ 0.8  | **missed** |" in said


def test_a_run_renews_its_part_of_the_page_and_leaves_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE)
    renew(page, {"first": report("first"), "second": report("second"), "new": report("new")})
    before = page.read_text()
    renew(page, {"second": report("second", 2.5)})
    after = page.read_text()
    assert {line for line in after.split("\n") if line not in before.split("\n")} == {
        "| this | 2.5 |",
        "Targets met: 0 of 2. **Missed**: this / that (≤ 2): 2.50. that / <other> (≥ 0.8): 0.50.",
    }
    assert "Targets met: 1 of 2. **Missed**: that / <other> (≥ 0.8): 0.50." in after
    for words in ("Before all.", "Between.", "After.", "### new\n"):
        assert after.count(words) == 1
    assert after.count("Ten people") == 1, "the head is repeated"
    assert "old" not in after
    places = [after.index(words) for words in ("figures: second", "figures: first", "After.", "figures: new")]
    assert places == sorted(places)


def test_what_runs_by_default() -> None:
    assert parsed([]).name == [name for name in KNOWN if name not in (*BY_NAME, *REAL)]
    assert parsed(["--data", "."]).name == [name for name in KNOWN if name not in BY_NAME]


def test_percentiles_are_of_what_was_measured() -> None:
    times = [place / 1000 for place in range(1, 101)]
    assert percentile(times, 0.5) == pytest.approx(51)
    assert percentile(times, 0.99) == pytest.approx(100)
    assert percentile([0.001], 0.99) == pytest.approx(1)


@pytest.mark.parametrize("law", [-0.5, 0.0, 1.0, 2.0])
def test_a_law_is_found_again(law: float) -> None:
    assert exponent([(x, 3 * x**law) for x in (1_000, 10_000, 100_000)]) == pytest.approx(law, abs=1e-9)


def test_the_command_hands_every_option_over(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(["--help"])
    options = set(re.findall(r"--[a-z]+", capsys.readouterr().out)) - {"--help"}
    command = bench.Command().create_parser("manage.py", "bench")
    assert {"--items", "--soak"} <= options <= command._option_string_actions.keys()
