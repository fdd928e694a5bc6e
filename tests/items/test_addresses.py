"""Which addresses are those of items of this site."""

from typing import Any

import pytest

from items.addresses import item_id_at, own_path


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("https://here.example/items/5", 5),
        ("http://HERE.example/items/5", 5),
        ("https://here.example/items/5?a=b#c", 5),
        ("https://here.example:444/items/5", None),
        ("https://here.example.evil.example/items/5", None),
        ("https://x@here.example/items/5", None),
        ("https://here.example/items/", None),
        ("https://here.example/items/-5", None),
        ("https://here.example/items/\u0665", None),
        ("https://here.example/items/5/edit", None),
        (f"https://here.example/items/{10**30}", None),
        ("https://here.example/@ann", None),
        ("https://[", None),
        ("/items/5", None),
        ("", None),
    ],
)
def test_the_item_of_an_address(settings: Any, address: str, found: int | None) -> None:
    settings.SITE_URL = "https://here.example"
    assert item_id_at(address) == found


def test_the_path_of_an_address_of_this_site(settings: Any) -> None:
    settings.SITE_URL = "https://here.example"
    assert own_path("https://here.example/@ann") == "/@ann"
    assert own_path("https://far.example/@ann") == ""
