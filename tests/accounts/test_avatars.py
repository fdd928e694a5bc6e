"""An avatar's address holds everything, so drawing it needs no SQL."""

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.avatars import DRAWING, TINTS, banner_url, drawn_url, letter_of, tint
from accounts.drawing import avatar_png
from accounts.models import User
from items.actions import publish
from tests.support.factories import UserFactory
from tests.support.pictures import opened

NAMES = ["Ann", "作者", "ß", "ŉ", "ΐ", "/", "&", "<b>", "🦊", "🦊 fox", "_", "-a", "...", "'", "\u200d?", "ﬃ", "é"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_drawing(client: Client, db: None, name: str) -> None:
    response = client.get(drawn_url("somebody", name))
    assert response.status_code == 200
    drawn = opened(response.content)
    assert (drawn.format, drawn.size) == ("PNG", (256, 256))
    assert (255, 255, 255) in {colour for _count, colour in drawn.convert("RGB").getcolors(1 << 16) or ()}, "a sign"


def test_letters_differ_and_what_no_font_has_is_a_person() -> None:
    drawn = [avatar_png(1, letter) for letter in ("A", "B", "SS", "\U0001f98a", "\U000f0000")]
    assert len(set(drawn)) == 4
    assert drawn[3] == drawn[4], "a person"
    assert avatar_png(2, "A") not in drawn
    assert max(map(len, drawn)) < 20_000


def test_colours_differ_and_stay() -> None:
    assert {tint(f"user{number}") for number in range(100)} == set(range(len(TINTS)))
    assert drawn_url("ann", "Ann") == drawn_url("ann", "anna") != drawn_url("ann", "Bo")
    assert drawn_url("ann", "A") == reverse("drawn-avatar", args=[tint("ann"), "41"])


@pytest.mark.parametrize(
    "code", ["", "g", "041", "41-", "110000", "ffffffff", "d800", "7", "a", "41-41-41-41", "-41", "٤"]
)
def test_other_spellings_are_not_found(client: Client, db: None, code: str) -> None:
    assert letter_of(code) is None
    assert client.get(f"/avatars/v{DRAWING}/1-{code}.png").status_code == 404


def test_a_drawing_is_kept_for_a_year_and_costs_no_statement(client: Client, db: None) -> None:
    client.force_login(UserFactory.create(username="reader"))
    with CaptureQueriesContext(
        connection,
    ) as asked:
        response = client.get(drawn_url("somebody", "Somebody"))
    assert not asked.captured_queries
    assert response["Cache-Control"] == "public, max-age=31536000, immutable"
    assert response["Content-Type"] == "image/png"
    assert response["Content-Security-Policy"].startswith("default-src 'none'")
    assert "Vary" not in response
    assert not response.cookies


def test_apps_in_browsers_show_drawings_on_pages_of_other_sites(client: Client, db: None) -> None:
    for address in (drawn_url("ann", "A"), banner_url(None, "ann")):
        response = client.get(address, HTTP_ORIGIN="https://app.example")
        assert response["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert response["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in response


def test_a_colour_that_is_none(client: Client, db: None) -> None:
    assert client.get(f"/avatars/v{DRAWING}/{len(TINTS)}-41.png").status_code == 404
    assert client.post(drawn_url("a", "a")).status_code == 405


def test_avatars_are_not_counted(client: Client, db: None, settings: Any) -> None:
    settings.RATES = dict.fromkeys(settings.RATES, "1/hour")
    assert {client.get(drawn_url("a", "a")).status_code for _ in range(3)} == {200}


def test_pages_keep_the_place_of_an_avatar(client: Client, db: None) -> None:
    UserFactory.create(username="ann", display_name="ßnn")
    page = client.get("/@ann").content.decode()
    assert f'src="{drawn_url("ann", "ßnn")}" width="104" height="104" alt="" loading="lazy"' in page


def test_pages_draw_one_letter_by_themselves(client: Client, db: None) -> None:
    ann = UserFactory.create(username="ann", display_name="Ann")
    publish(sender=ann, content={"text": "words"})
    for name, letter in {"ann": "A", "< >": "<", "'": "'", "\u202e": "?", "曉": "曉"}.items():
        User.objects.filter(pk=ann.pk).update(display_name=name)
        page = client.get("/@ann", {"whole": "1"}).content.decode()  # a page with a query is not cached
        drawn = re.findall(r'<span class="avatar tint-\d" data-letter="([^"]*)"', page)
        assert {html.unescape(one) for one in drawn} == {letter}
        assert len(drawn) == 2, "the page's head and the card"
        assert 'src="/avatars/' not in page
