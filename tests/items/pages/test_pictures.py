import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from django.template import loader
from django.utils import translation
from django.utils.html import escape

from accounts.models import User
from items.bodies import Counts, ItemBody, Sender
from items.pages.cards import Cards
from items.pages.pictures import figures
from media.objects import MediaObject, decode_medium

BAD = "\"'<script>alert(1)</script>&amp;"
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def medium(**facts: Any) -> MediaObject:
    sizes = {"width": 1200, "height": 900, "small_width": 640, "small_height": 480, "small_ext": "jpg"}
    found = decode_medium(
        {"id": "5", "kind": "image", "name": "ab/c", "ext": "jpg", "blurhash": "LEHV6nWB2yk8"} | sizes | facts
    )
    assert found is not None
    return found


def item(**fields: Any) -> ItemBody:
    nothing = msgspec.Raw(b"{}")
    told: dict[str, Any] = {"id": "7", "type": "text", "title": "", "content": nothing, "extra_info": nothing}
    told |= {"media": [], "visibility": "public", "sender": Sender("1", "ann", "", False), "created_at": NOW}
    told |= {"modified_at": NOW, "reply_to": None, "repost_of": None, "quote": None, "poll": None}
    told |= {"repliable_by": "everyone", "can_reply": True}
    told |= {"quotable_by": "everyone", "counts": Counts(0, 0, 0), "reason": None}
    return ItemBody(**(told | {"liked": False, "reposted": False, "bookmarked": False} | fields))


@pytest.mark.parametrize("kind", ["image", "video"])
def test_words_of_people_are_escaped(kind: str) -> None:
    html = figures([medium(kind=kind, description=BAD), medium(kind=kind, description=BAD, name=BAD)], whole=True)
    assert "<script>" not in html
    assert escape(BAD) in html
    assert html.count("<figure") == html.count("</figure>") == 2


def test_pictures_without_words_are_numbered_in_the_language_of_the_reader() -> None:
    two = [medium(), medium()]
    assert 'alt="Picture 2 of 2, without a description"' in figures(two)
    with translation.override("zh-hans"):
        assert "Picture" not in figures(two)
        assert "Picture" not in figures(two[:1])
    assert 'alt="Picture without a description"' in figures(two[:1])


def test_each_screen_is_offered_the_narrowest_file_that_is_wide_enough() -> None:
    sized = medium(width=2048, height=1365, widths=[160, 320, 640, 1280])
    one, two = 'src="/media/ab/c.640.webp" srcset="/media/ab/c.1280.webp 2x"', 'srcset="/media/ab/c.1280.webp 2x'
    assert one in figures([sized])
    assert two in figures([sized, sized])
    assert 'src="/media/ab/c.small.jpg" srcset="/media/ab/c.jpg 2x"' in figures([medium()]), "of an earlier version"
    assert "srcset" not in figures([medium(width=300, height=200, small_ext="")])


def test_an_animation_moves_on_its_own_page_for_those_who_want_motion() -> None:
    moving = medium(width=1000, ext="webp", widths=[160, 320, 640], is_moving=True)
    assert 'c.webp"' not in figures([moving]).replace('href="/media/ab/c.webp"', "")
    still = '<source media="(prefers-reduced-motion: reduce)" srcset="/media/ab/c.small.jpg">'
    assert f'<picture>{still}<img class="fx-5 fy-5" src="/media/ab/c.webp"' in figures([moving], whole=True)


def test_a_single_picture_of_few_pixels_is_not_made_wide() -> None:
    assert 'class="picture few"' in figures([medium(width=319)])
    for others in ([medium(width=320)], [medium(width=100), medium()], [medium(width=100, kind="video")]):
        assert "few" not in figures(others)


def buttons(shown: ItemBody) -> str:
    reader = User(pk=1, username="ann")
    html = loader.get_template("items/_acts.html").render({"card": Cards(reader).one(shown), "user": reader})
    return re.sub(r"\s+", " ", html)


def test_buttons_say_what_a_press_does() -> None:
    plain = buttons(item())
    assert 'formaction="/items/7/like" aria-pressed="false"' in plain
    assert 'formaction="/items/7/repost"' in plain
    assert "aria-label" not in plain
    assert "Like <" in plain
    assert 'href="/items/7/likes"' not in plain
    done = buttons(item(liked=True, reposted=True, counts=Counts(1, 2, 3)))
    assert 'formaction="/items/7/unlike" aria-pressed="true"' in done
    assert 'formaction="/items/7/undo-repost" aria-pressed="true"' in done
    assert 'aria-label="2 replies"' in done
    assert 'href="/items/7/likes"><b>1</b> like</a>' in done
    assert 'href="/items/7/reposts"><b>3</b> reposts</a>' in done
    assert 'data-act="repost"' not in buttons(item(visibility="self"))
    with translation.override("zh-hans"):
        assert "Like" not in buttons(item())
    assert "Like" in buttons(item()), "words are kept by language"
