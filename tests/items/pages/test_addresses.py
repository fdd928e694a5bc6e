from typing import Any

import pytest
from django.urls import reverse

from accounts.people import profile_address
from items.pages.addresses import item_address, item_id_at, own_path, tag_address


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


@pytest.mark.parametrize("tag", ["tea", "茶", "می\u200cخواهم", "col·lecció", "été", "_a1", "한글", "हिन्दी"])  # noqa: RUF001
def test_addresses_that_cards_put_together_are_those_of_the_site(tag: str) -> None:
    assert item_address(3477895376220160) == reverse("item", args=[3477895376220160])
    assert profile_address("Ann-1_x") == reverse("profile", args=["Ann-1_x"])
    assert tag_address(tag) == reverse("tag", args=[tag])


@pytest.mark.parametrize("sign", [chr(code) for code in range(32, 127) if chr(code) != "/"])
def test_every_sign_is_quoted_as_reverse_quotes_it(sign: str) -> None:
    assert tag_address(sign) == reverse("tag", args=[sign])
