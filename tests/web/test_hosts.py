from typing import Any

import pytest

from web.hosts import is_own


@pytest.mark.parametrize(
    ("domain", "wanted"),
    [
        ("here.example", True),
        ("HERE.example:8000", True),
        ("www.here.example", True),
        ("a.below.example", True),
        ("other.example", False),
        ("here.example.other.example", False),
        ("xhere.example", False),
        ("", False),
        ("here.example/x", False),
        ("[::1", False),
    ],
)
@pytest.mark.parametrize("more", [[], ["*"]])
def test_a_site_knows_its_names(settings: Any, more: list[str], domain: str, wanted: bool) -> None:
    settings.SITE_URL = "https://here.example"
    settings.ALLOWED_HOSTS = ["www.here.example", ".below.example", *more]
    assert is_own(domain) == wanted
