"""The figures in docs/scaling.md are those of docs/benchmarks.json, and the arithmetic between them."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from benchmarks.measure import Report
from benchmarks.report import put, read
from benchmarks.scaling import SITES, Assumed, Units, lines, parts, renew

DOCS = Path(settings.BASE_DIR) / "docs"


@pytest.fixture(scope="module")
def measured() -> dict[str, Report]:
    return read(DOCS / "benchmarks.json")


def test_the_page_says_what_was_measured(measured: dict[str, Report]) -> None:
    page = (DOCS / "scaling.md").read_text()
    made = parts(measured)
    assert made.keys() == {"units", "sites"}, "a benchmark that it is made of was not run"
    for name, part in made.items():
        assert put(page, name, part) == page, (
            f"run: manage.py bench --from docs/benchmarks.json --page docs/benchmarks.md ({name})"
        )


def test_the_figures_follow_from_the_units(measured: dict[str, Report]) -> None:
    units, of = Units(measured), Assumed()
    by_name = {name: [work(site) for site in SITES] for name, _, work, _ in lines(units, of)}
    pages = by_name["pages of home/s"]
    assert pages[1] == pytest.approx(50e6 * 5 / 86_400 * 3)
    assert by_name["cores: workers for them"][1] == pytest.approx(pages[1] * units.page_worker)
    assert by_name["items/s"][3] == 3_500
    assert by_name["deliveries/s"][3] == pytest.approx(1.41e6, rel=0.01)
    assert by_name["an item of the largest, on one core"][3] == pytest.approx(22e6 * units.delivery)
    parts_of_all = [name for name in by_name if name.startswith("cores:") and "requests of their own" not in name]
    for place in range(len(SITES)):
        whole = sum(by_name[name][place] for name in parts_of_all) / of.busy
        assert by_name["**cores in all, half busy**"][place] == pytest.approx(whole)


def test_a_unit_that_is_measured_anew_changes_what_follows(measured: dict[str, Report], tmp_path: Path) -> None:
    page = tmp_path / "scaling.md"
    page.write_text((DOCS / "scaling.md").read_text())
    slower = read(DOCS / "benchmarks.json")
    for row in slower["http_page"].rows:
        row[1] = 10 * row[1]  # type: ignore[index, operator]
        row[2] = 10 * row[2]  # type: ignore[index, operator]
    renew(page, slower)
    cores = [
        re.search(r"cores: workers for them +\| ([\d.,]+)", text)
        for text in (page.read_text(), (DOCS / "scaling.md").read_text())
    ]
    assert cores[0]
    assert cores[1]
    assert float(cores[0].group(1)) == pytest.approx(10 * float(cores[1].group(1)), rel=0.1)


def test_a_page_without_the_figures_stays_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "scaling.md"
    renew(page, {})
    assert not page.exists()
    page.write_text("# Scaling\n")
    renew(page, {})
    assert page.read_text() == "# Scaling\n"
