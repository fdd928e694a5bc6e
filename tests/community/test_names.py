"""`load --names map`: permitted names out of any text, the same ones each time."""

import csv
import io
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.actions import HELD_NAME_LIFE
from accounts.joining.lookalikes import skeleton
from accounts.models import RESERVED_USERNAMES, HeldName, User
from community.dataset import UserRow
from community.names import LONGEST_SHOWN, candidates, display_name, is_permitted
from community.naming import Naming
from tests.support.datasets import packed

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

KNOWN = {
    "ann": "ann",
    "foo|away": "foo_away",
    "[bot]^`": "bot",
    "{Zed}": "Zed",
    "two words": "two_words",
    "Zoë Straße": "Zoe_Strasse",
    "Борис": "Boris",
    "Щука": "Shchuka",
    "Αθηνά": "Athina",
    "さくら": "sakura",
    "김철수": "gimceolsu",
    "\uff37\uff49de": "Wide",
    "x" * 80: "x" * 30,
    "admin": "admin-7",
    "落日": "user-7",
    "🙂": "user-7",
    "": "user-7",
    "___": "___",
    "a\0b": "a_b",
}
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="aAlI1oO0rnm_-|^`[]{} ", max_size=35),
    st.sampled_from(sorted(RESERVED_USERNAMES | {"Admin", "ME", "user-1", "user-2", "a-1", "a-2", "a"})),
)


@pytest.mark.parametrize("text", KNOWN)
def test_a_name_is_written_in_ascii(text: str) -> None:
    assert next(candidates(text, 7)) == KNOWN[text]


@pytest.mark.slow
@given(TEXTS, st.integers(1, 2**63 - 1))
def test_any_text_makes_permitted_names_without_end(text: str, number: int) -> None:
    names = list(islice(candidates(text, number), 5))
    assert all(map(is_permitted, names))
    assert len({name.lower() for name in names}) == len(names)
    User(username=names[0], display_name=display_name(text, names[0])).clean_fields(exclude=["password"])


class Told:
    """Stands for the data set: collects what is told of its lines."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.tell = self.told.append

    def wrong_user(self, *said: Any) -> Any:
        return said


def mapped(texts: list[str], naming: Naming | None = None) -> list[str]:
    rows = [UserRow(line, line, text) for line, text in enumerate(texts, 1)]
    told = Told()
    named = (naming or Naming(is_mapped=True)).name(told, rows)  # type: ignore[arg-type]
    assert not told.told
    return [one.username for one in named]


@pytest.mark.slow
@given(texts=st.lists(TEXTS, max_size=12), more=st.lists(TEXTS, max_size=4))
def test_names_are_unique_and_stay_when_rows_are_appended(texts: list[str], more: list[str]) -> None:
    names = mapped(texts + more)
    assert all(map(is_permitted, names))
    assert len({name.lower() for name in names}) == len({skeleton(name) for name in names}) == len(texts + more)
    assert mapped(texts) == names[: len(texts)]
    assert mapped(texts + more) == names


def test_names_of_the_site_are_left_to_their_users() -> None:
    """A name that is taken, looks like one that is taken, or is held for a deleted account."""
    User.objects.create(username="Ann")
    User.objects.create(username="Bill")
    for digest in HeldName.digests_of("gone"):
        HeldName.objects.create(digest=digest, until=timezone.now() + HELD_NAME_LIFE)
    assert mapped(["ann", "BiII", "g0ne", "gone", "free"]) == ["ann-1", "BiII-2", "g0ne-3", "gone-4", "free"]


def test_a_name_that_is_taken_with_its_number_gets_another() -> None:
    User.objects.create(username="ann")
    User.objects.create(username="ann-1")
    assert mapped(["ann"]) == ["ann-1-2"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("落日", "落日"),
        ("foo|away", "foo|away"),
        ("ann", ""),
        ("admin", ""),
        ("two\nlines\x07", "two lines"),
        ("\u202egnp.exe", ""),
        ("\u200b", ""),
        ("x" * 60, "x" * LONGEST_SHOWN),
    ],
)
def test_the_text_is_the_display_name_as_far_as_it_may_be(text: str, shown: str) -> None:
    assert display_name(text, next(candidates(text, 7))) == shown


# --- By the command --------------------------------------------------------------------------------------
NICKS = ["1,foo|away", "2,foo_away", "3,FOO_AWAY", "4,落日", "5,admin", '6,""', '7,"=1+1"']


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    packed(tmp_path / "users.csv.gz", ["id,name", *NICKS])
    packed(tmp_path / "follows.csv.gz", ["follower_id,followee_id", "1,2"])
    packed(tmp_path / "posts.jsonl.gz", [])
    return tmp_path


def load(folder: Path, **options: Any) -> str:
    out = io.StringIO()
    call_command("load", str(folder), stdout=out, stderr=out, **{"verbosity": 0, "names": "map", **options})
    return out.getvalue()


def written(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        return {row["id"]: row["username"] for row in csv.DictReader(file)}


@committed
def test_a_load_maps_names_and_writes_them_down(folder: Path) -> None:
    names = folder / "names.csv"
    load(folder, names_file=names)
    expected = {
        "1": "foo_away",
        "2": "foo_away-2",
        "3": "FOO_AWAY-3",
        "4": "user-4",
        "5": "admin-5",
        "6": "user-6",
        "7": "1_1",
    }
    assert written(names) == expected
    users = dict(User.objects.values_list("username", "display_name"))
    assert set(users) == set(expected.values())
    assert (users["foo_away"], users["user-4"], users["foo_away-2"]) == ("foo|away", "落日", "foo_away")


@committed
def test_the_file_of_names_is_kept_to(folder: Path) -> None:
    """After an edit by hand, and where the site took a name meanwhile."""
    names = folder / "names.csv"
    names.write_text("id,username\n1,the-away\n4,sunset\n")
    load(folder, names_file=names)
    assert written(names) | {"1": "the-away", "4": "sunset", "2": "foo_away"} == written(names)
    assert User.objects.get(username="sunset").display_name == "落日"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("id,username\n1,the away\n", "users.csv.gz line 2: the names file has 'the away'"),
        ("id,username\n1,taken\n", "users.csv.gz line 2: the names file has 'taken'"),
        ("id,username\n1,a\n2,A\n", "gives two users the same name"),
        ("id,name\n1,a\n", "is not a names file"),
        ("id,username\none,a\n", "is not a names file"),
        ("id,username\n1\n", "is not a names file"),
        ("\0", "is not a names file"),
    ],
)
def test_a_wrong_file_of_names(folder: Path, lines: str, message: str) -> None:
    User.objects.create(username="taken")
    names = folder / "names.csv"
    names.write_text(lines)
    with pytest.raises(CommandError, match=message):
        load(folder, names_file=names)
    assert names.read_text() == lines
    assert User.objects.count() == 1


@committed
def test_a_community_is_not_loaded_a_second_time_under_other_names(folder: Path) -> None:
    """A row that was appended makes another data set, whose other users are there."""
    load(folder)
    packed(folder / "users.csv.gz", ["id,name", *NICKS, "8,new"])
    with pytest.raises(CommandError, match=r"(?s)user 1, foo\|away, was loaded with another data set.*7 lines cannot"):
        load(folder)
    assert User.objects.count() == 7


def test_a_file_of_names_needs_the_map(folder: Path) -> None:
    with pytest.raises(CommandError, match="needs --names map"):
        load(folder, names="keep", names_file=folder / "names.csv")
