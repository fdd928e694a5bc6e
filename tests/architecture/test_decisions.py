"""The records of docs/decisions.md and the code that they explain name each other, and the index names every record."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

PAGE = Path(settings.BASE_DIR, "docs/decisions.md")
SEE = re.compile(r"See docs/decisions\.md: (.+)\.$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
PARTS = ["**Context.**", "**Choice.**", "**Consequence.**", "Code:"]
WRONG_SUBJECTS = re.compile(r"(?:^|[.:] )((?:Who|Whoever|Nobody|Everybody|Everyone|What is)\b.{0,40})", re.MULTILINE)


class Record(NamedTuple):
    room: str
    title: str
    text: str

    @property
    def paths(self) -> list[str]:
        """The files of the line `Code:`, as they are linked from docs/."""
        line = next(line for line in self.text.splitlines() if line.startswith("Code: "))
        return [address for _, address in LINK.findall(line)]


def records() -> Iterator[Record]:
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        room, _, text = section.partition("\n")
        for record in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
            title, _, body = record.partition("\n")
            yield Record(room, title, body)


RECORDS = list(records())


def anchor(heading: str) -> str:
    """The address of a heading within its page, as GitHub makes it."""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def named() -> Iterator[tuple[str, str]]:
    """The path of every source that names a record, and the title."""
    for folder in Path(settings.BASE_DIR).iterdir():
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in {"docs", "var"}:
            for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.js")]):
                for title in SEE.findall(path.read_text()):
                    yield path.relative_to(settings.BASE_DIR).as_posix(), title


def test_the_index_names_every_record_under_its_room() -> None:
    index = PAGE.read_text().partition("## Index\n")[2].partition("\n## ")[0]
    rooms = list(dict.fromkeys(record.room for record in RECORDS))
    expected = [
        (heading, anchor(heading))
        for room in rooms
        for heading in [room, *(record.title for record in RECORDS if record.room == room)]
    ]
    assert LINK.findall(index) == expected
    assert len({address for _, address in expected}) == len(expected), "two headings have one address"


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.title)
def test_a_record_and_its_code_name_each_other(record: Record) -> None:
    places = [record.text.find(f"\n{part} ") for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)
    for address in record.paths:
        path = (PAGE.parent / address).resolve()
        assert path.is_file(), f"{address} does not exist"
        assert record.title in SEE.findall(path.read_text()), (
            f"{address} lacks `See docs/decisions.md: {record.title}.`"
        )


def test_every_record_that_a_source_names_exists_and_names_the_source() -> None:
    places = {(path.removeprefix("../"), record.title) for record in RECORDS for path in record.paths}
    assert set(named()) - places == set()


def test_links_to_records_lead_somewhere() -> None:
    headings = {anchor(line.lstrip("# ")) for line in PAGE.read_text().splitlines() if line.startswith("#")}
    for path in [*Path(settings.BASE_DIR).glob("*.md"), *PAGE.parent.glob("*.md")]:
        pattern = r"\]\((#[^)]+)\)" if path == PAGE else r"decisions\.md(#[^)\s]+)\)"
        assert set(re.findall(pattern, path.read_text())) <= headings, path


def test_the_subject_of_a_sentence_is_the_thing() -> None:
    assert [found for record in RECORDS for found in WRONG_SUBJECTS.findall(record.text)] == []
