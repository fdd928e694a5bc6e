import json
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import BY_NAME, GROUPS, KNOWN, REAL, named, parsed
from benchmarks.growing import Growing
from benchmarks.measure import BenchmarkReport, Size, exponent, percentile
from benchmarks.report import as_text, renew, write
from runtime.management.commands import bench

PAGE = """# Benchmarks
Before all.

Measured on no day at 0000000.

## Some
### second
old

### first

## By hand
### more
After.
"""


def report(name: str, value: float = 1.5) -> BenchmarkReport:
    made = BenchmarkReport(name, "Is it fast?", ["what", "ms"], "3 rounds", rows=[["this", value]])
    made.ratio("this / that", value, at_most=2)
    made.ratio("that / <other>, by day", 0.5, at_least=0.8)
    made.ratio("that / <other>, by night", 0.9, at_least=0.7)
    made.ratio("that / this", 1.0)
    made.ratio("lost", 0, at_most=0)
    made.figure("ms", "1\N{EN DASH}2")
    versions = {"cores": 2, "processor": "X", "system": "L", "python": "3", "postgresql": "18", "valkey": "9"}
    made.machine = versions | {"date": "today 12:00", "commit": "abc", "load_before": 0.5, "load_after": 1.0}
    made.data_set, made.seconds = "Ten people", 4.2
    return made


def test_a_report_is_json_for_programs(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"first": report("first")})
    found = json.loads((tmp_path / "a.json").read_text())["results"]["first"]
    assert found["rows"] == [["this", 1.5]]
    assert [ratio["is_met"] for ratio in found["ratios"]] == [True, False, True, None, True]


def test_a_report_is_text_for_people() -> None:
    said = as_text(report("first"))
    assert said.startswith("### first: Is it fast?\n\n3 rounds.\n\n| what |  ms |\n|------|----:|\n| this | 1.5 |\n")
    assert "| that / <other>, by day   | 0.50  | ≥0.8   | **missed** |" in said


def test_a_whole_run_renews_its_sections_and_the_head(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE)
    for name in ("first", "second", "new"):
        renew(page, {name: report(name, 2.5)}, is_whole=True)
    text = page.read_text()
    assert text.count("Measured on today at abc, 2 cores of X, L, Python 3, PostgreSQL 18, Valkey 9; load 0.5") == 1
    assert text.count("Ten people.") == 1
    assert "old" not in text
    places = [text.index(words) for words in ("Before", "today", "## Some", "### sec", "### fir", "After", "### new")]
    assert places == sorted(places)
    section = """### first
Is it fast?

Ten people.

|                | measured      | target     |
|----------------|---------------|------------|
| ms             | 1\N{EN DASH}2           |            |
| this / that    | **2.50**      | ≤2         |
| that / <other> | **0.50\N{EN DASH}0.90** | ≥0.8, ≥0.7 |

Zero: lost. **Missed**: that / <other>: by day 0.50.

## By hand
"""
    assert section in text


def test_a_run_by_name_is_told_in_its_section(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE)
    renew(page, {"first": report("first"), "second": report("second")})
    renew(page, {"second": report("second", 2.5)})
    text = page.read_text()
    assert text.index("Measured on no day") < text.index("### second") < text.index("Measured on today")
    assert "| this / that    | **2.50** " in text
    assert text.count("Is it fast?\n\nMeasured on today at abc, 2 cores") == 2
    renew(page, {"first": report("first")}, is_whole=True)
    renew(page, {"second": report("second")})
    assert page.read_text().count("Measured on today at abc; load 0.5 at the start.") == 1
    assert text.count("### ") == 3


def test_a_large_community_is_compared_with_a_million() -> None:
    assert Size().grown(50_000_000).growth_items == (1_000_000, 50_000_000)
    assert Size().grown(1_000_000).growth_items == (100_000, 1_000_000)


def test_a_community_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"10,000,000,000,000 items need .* would fit"):
        Growing(Size().grown(10**13)).build()


@pytest.mark.parametrize(("data", "benchmarks"), GROUPS)
def test_every_name_leads_to_code(data: str, benchmarks: dict[str, str]) -> None:
    assert callable(named(data).build)
    assert all(callable(named(place)) for place in benchmarks.values())


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
