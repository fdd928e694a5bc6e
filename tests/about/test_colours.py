import re

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts.about import colours, site
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def test_contrasts_are_those_of_wcag() -> None:
    assert colours.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colours.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("accent", [colours.OWN, "#b3261e", "#16704a", "#000000", "#6a1b9a"])
def test_colours_that_can_be_read(accent: str) -> None:
    colours.check_accent(accent)


@pytest.mark.parametrize("accent", ["#ffffff", "#ffcc00", "#8ea6ff", "#777777"])
def test_colours_that_cannot_be_read_are_refused_with_the_reason(accent: str) -> None:
    with pytest.raises(ValidationError, match=r"its contrast is \d\.\d, and 4\.5 is needed") as refused:
        colours.check_accent(accent)
    near = re.findall("#[0-9a-f]{6}", refused.value.messages[0])[-1]
    colours.check_accent(near)
    lighter = colours.mix(near, accent, 0.05)
    assert colours.contrast(lighter, colours.WHITE) < colours.contrast(near, colours.WHITE)
    with pytest.raises(ValidationError):
        colours.check_accent(lighter)


@pytest.mark.parametrize("accent", ["", "red", "#12345", "#12345g", "#123456\n", "#123456;}body{display:none"])
def test_texts_that_are_no_colour_are_refused(accent: str) -> None:
    with pytest.raises(ValidationError):
        colours.check_accent(accent)


@pytest.mark.slow
@given(st.integers(0, 0xFFFFFF))
def test_whatever_is_let_in_can_be_read_in_both_themes(number: int) -> None:
    accent = f"#{number:06x}"
    try:
        sheet = colours.accent_stylesheet(accent)
    except ValidationError:
        return
    light, *darks = re.findall(
        r"--accent:(\S{7});--accent-strong:(\S{7});--accent-soft:(\S{7});--on-accent:(\S{7})", sheet
    )
    for grounds, themes in ((colours.LIGHT_GROUNDS, [light]), (colours.DARK_GROUNDS, darks)):
        for own, strong, soft, on in themes:
            for ground in (*grounds, soft, on):
                assert colours.contrast(own, ground) >= 4.5
                assert colours.contrast(strong, ground) >= 4.5


def test_the_stylesheet_stands_at_an_address_that_says_all(client: Client) -> None:
    assert "/about/theme-" not in client.get("/about").content.decode()
    site.site_copy.set(site.Site(accent="#B3261E"))
    address = re.search(r'href="(/about/theme-\S+)"', client.get("/about").content.decode())
    assert address
    with statements() as asked:
        sheet = client.get(address[1])
    assert asked == []
    assert sheet.headers["Content-Type"] == "text/css; charset=utf-8"
    assert sheet.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "--accent:#b3261e" in sheet.content.decode()


@pytest.mark.parametrize("code", ["ffffff", "ffcc00"])
def test_no_stylesheet_of_a_colour_that_cannot_be_read(client: Client, code: str) -> None:
    assert client.get(f"/about/theme-v1-{code}.css").status_code == 404
