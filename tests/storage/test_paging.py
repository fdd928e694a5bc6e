import pytest

from storage.ids import NO_BOUND
from storage.paging import Part, as_text, below, part_of


@pytest.mark.parametrize(
    ("found", "bound", "part"),
    [
        pytest.param([], None, Part([], None, False), id="an empty list"),
        pytest.param([9, 7], None, Part([9, 7], 7, False), id="a last page"),
        pytest.param([9, 7, 5], None, Part([9, 7], 7, True), id="a row more than the page shows"),
        pytest.param([9], 4, Part([9], 4, True), id="a short page at the bound of its work"),
        pytest.param([], 4, Part([], 4, True), id="an empty page at the bound of its work"),
        pytest.param([9, 7, 5], 4, Part([9, 7], 7, True), id="a full page skips nothing, whatever its bound"),
    ],
)
def test_parts(found: list[int], bound: int | None, part: Part[int]) -> None:
    assert part_of(found, 2, int, bound=bound) == part


def test_a_walk_begins_at_the_top() -> None:
    assert (below(None), below(0), below(7)) == (NO_BOUND, 0, 7)
    assert (as_text(None), as_text(0), as_text(2**53)) == (None, "0", "9007199254740992")
