"""Reports: JSON, the page that they renew part by part, and its plots."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import BY_NAME, KNOWN, LIKED, NAMES, REAL, parsed
from benchmarks.fits import Chart
from benchmarks.measure import Report, percentile
from benchmarks.report import read, renew, write
from runtime.management.commands import bench

TEXT = "{http://www.w3.org/2000/svg}text"
PAGE = """# Benchmarks
Before all.
<!-- figures: all -->
old
<!-- end of all -->
Between.
<!-- figures: second -->
old
<!-- end of second -->
<!-- figures: first -->
<!-- end of first -->
After.
"""


def report(name: str, value: float = 1.5) -> Report:
    made = Report(name, "Is it fast?", ["what", "ms"], "3 rounds", rows=[["this", value]])
    made.ratio("this / that", value, at_most=2)
    made.ratio("that / <other>", 0.5, at_least=0.8)
    chart = Chart("page", "A page", "users", "ms")
    chart.add("p50", [(1_000, 1.0), (10_000, 1.1), (40_000, 1.2)])
    chart.add("p99", [(1_000, 2.0), (10_000, 2.0), (40_000, 2.0)])
    made.charts.append(chart)
    versions = {"cores": 2, "processor": "X", "system": "Linux", "python": "3", "postgresql": "18", "valkey": "9"}
    made.machine = versions | {"date": "today", "load_before": 0.5, "load_after": 1.0, "packages": {"django": "5"}}
    made.data_set, made.seconds = "ten people", 4.2
    return made


def test_a_report_comes_back_from_json(tmp_path: Path) -> None:
    first = report("first")
    write(tmp_path / "a.json", {"seconds": 4}, {"first": first})
    assert read(tmp_path / "a.json") == {"first": first}


def test_a_run_renews_its_part_of_the_page_and_leaves_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE)
    renew(page, {"first": report("first"), "second": report("second"), "new": report("new")})
    before = page.read_text()
    renew(page, {"second": report("second", 2.5)})
    after = page.read_text()
    changed = {line for line in after.split("\n") if line not in before.split("\n")}
    assert changed == {
        "| second    | 0 of 2      | today    | 0.5 to 1 | 4       |",
        "- **second** misses this / that (2.50, ≤ 2); that / <other> (0.50, ≥ 0.8).",
        "![second: 0 of 2 targets met](benchmarks/second.targets.svg)",
        "| this | 2.5 |",
        "| this / that    | 2.50  | ≤ 2    | **missed** |",
    }
    for words in ("Before all.", "Between.", "After."):
        assert after.count(words) == 1
    assert "old" not in after
    assert after.index("### second: ") < after.index("### first: ") < after.index("After.") < after.index("### new: ")
    pictures = tmp_path / "benchmarks"
    for place in ("first", "second", "new"):
        for what in ("page", "targets"):
            assert (pictures / f"{place}.{what}.svg").exists()
            assert after.count(f"](benchmarks/{place}.{what}.svg)") == 1


def test_the_plots_say_all_in_words_and_are_the_same_each_time(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(PAGE)
    renew(page, {"first": report("first")})
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "benchmarks").iterdir()}
    words = {}
    for name, picture in drawn.items():
        root = ElementTree.fromstring(picture)  # noqa: S314 (our own)
        assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
        words[name] = [text.text for text in root.iter(TEXT)]
    assert {"this / that", "1.50", "≤ 2", "met", "that / <other>", "missed"} <= set(words["first.targets.svg"])
    assert {"users (by powers of ten)", "ms (by powers of ten)", "p50: 0.05", "40,000"} <= set(words["first.page.svg"])
    renew(page, read(page.with_suffix(".json")))
    assert {path.name: path.read_bytes() for path in (tmp_path / "benchmarks").iterdir()} == drawn


def test_what_runs_by_default() -> None:
    assert parsed([]).name == list(NAMES)
    assert parsed(["--data", "."]).name == [*NAMES, *REAL, *LIKED]
    assert set(KNOWN) == {*NAMES, *REAL, *LIKED, *BY_NAME}


def test_percentiles_are_of_what_was_measured() -> None:
    times = [place / 1000 for place in range(1, 101)]
    assert percentile(times, 0.5) == pytest.approx(51)
    assert percentile(times, 0.99) == pytest.approx(100)
    assert percentile([0.001], 0.99) == pytest.approx(1)


def test_the_command_hands_every_option_over(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(["--help"])
    options = set(re.findall(r"--[a-z]+", capsys.readouterr().out)) - {"--help"}
    command = bench.Command().create_parser("manage.py", "bench")
    assert {"--keep", "--soak"} <= options <= command._option_string_actions.keys()
