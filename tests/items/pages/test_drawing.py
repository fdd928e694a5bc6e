"""Parts of cards are drawn once for all readers, and never shown after a change or to somebody else."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from accounts import actions as accounts
from accounts import faces
from accounts.models import User
from items import actions
from items.attachments import hiding
from items.models import Item, Visibility
from items.pages import drawing
from media.actions import describe
from media.models import MediaFile, Use
from relations.actions import block, follow
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg, upload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    drawing._kept.clear()
    yield
    drawing._kept.clear()


@pytest.fixture
def sender() -> Any:
    return UserFactory.create(username="sender", display_name="Zebra")


def cards(reader: User, path: str = "/@sender", **cookies: str) -> str:
    client = logged_in(reader)
    client.cookies.update(cookies)
    page = client.get(path).content.decode()
    return "".join(re.findall(r"<article.*?</article>", page, re.DOTALL))


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that are drawn from now on."""
    made: list[str] = []
    keep = drawing._cut
    monkeypatch.setattr(drawing, "_cut", lambda html: made.append(html) or keep(html))
    return made


def test_a_card_is_drawn_once_for_all_readers(sender: User, monkeypatch: pytest.MonkeyPatch) -> None:
    actions.publish(sender=sender, content={"text": "okapi"})
    first = cards(UserFactory.create())
    made = drawn(monkeypatch)
    assert cards(UserFactory.create()) == first
    assert made == []


CHANGES: dict[str, Callable[[Item, MediaFile], object]] = {
    "name": lambda item, _: accounts.edit_profile(user=item.sender, display_name="Okapi"),
    "picture": lambda item, _: faces.set_face(user=item.sender, use=Use.AVATAR, file=upload(jpeg())),
    "badge": lambda item, _: User.objects.filter(pk=item.sender_id).update(is_big_v=True),
    "text": lambda item, _: actions.edit(item=item, content=item.content | {"text": "okapi"}),
    "warning": lambda item, _: actions.edit(item=item, content=item.content | {"warning": "okapi"}),
    "audience": lambda item, _: actions.change_visibility(item=item, visibility=Visibility.FOLLOWERS),
    "description": lambda _, medium: describe(medium=medium, description="okapi", focus=(0.0, 0.0)),
    "hidden picture": lambda item, _: hiding.hide_media(item=item),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_drawn_at_once(sender: User, media_folder: Path, change: str) -> None:
    reader = UserFactory.create()
    follow(follower=reader, followee=sender)
    item = posted(sender, sent(sender), text="walrus")
    before = cards(reader)
    CHANGES[change](item, MediaFile.objects.get())
    fresh = cards(reader)
    drawing._kept.clear()
    assert fresh == cards(reader) != before


@pytest.mark.parametrize("change", ["deleted", "held", "narrowed", "blocked"])
def test_what_a_reader_may_not_see_any_more_is_gone(sender: User, change: str) -> None:
    reader = UserFactory.create()
    item = actions.publish(sender=sender, content={"text": "walrus"})
    sharer = UserFactory.create(username="sharer")
    actions.repost(sender=sharer, item=item)
    assert "walrus" in cards(reader, "/@sharer")
    undo: dict[str, Callable[[], object]] = {
        "deleted": lambda: actions.delete(item=item),
        "held": lambda: actions.hold(item=item, reasons=["test"]),
        "narrowed": lambda: actions.change_visibility(item=item, visibility=Visibility.FOLLOWERS),
        "blocked": lambda: block(blocker=sender, blocked=reader),
    }
    undo[change]()
    assert "walrus" not in cards(reader, "/@sharer")


def test_each_reader_has_their_own_language_zone_and_acts(sender: User) -> None:
    item = actions.publish(sender=sender, content={"text": "walrus"})
    english = UserFactory.create(language="en", time_zone="UTC")
    chinese = UserFactory.create(language="zh-hans", time_zone="Asia/Shanghai")
    actions.like(user=english, item=item)
    one, other = cards(english), cards(chinese)
    with translation.override("zh-hans"):
        assert f">{translation.gettext('Like')} <" in other
    assert ">Like <" in one
    assert "+00:00" in one
    assert "+08:00" in other
    assert one.count('aria-pressed="true"') == 1
    assert 'aria-pressed="true"' not in other
    assert other.count('<span class="number">1</span>') == 1


def test_a_name_leads_only_those_who_may_know_of_it(sender: User) -> None:
    named: User = UserFactory.create(username="named")
    friend, blocked = UserFactory.create(), UserFactory.create()
    actions.publish(sender=sender, content={"text": "as @named said"})
    block(blocker=named, blocked=blocked)
    assert 'href="/@named"' in cards(friend)
    assert 'href="/@named"' not in cards(blocked)
    assert 'href="/@named"' in cards(friend)


def test_ages_go_on(sender: User, monkeypatch: pytest.MonkeyPatch) -> None:
    actions.publish(sender=sender, content={"text": "walrus"})
    reader = UserFactory.create()
    cards(reader)
    monkeypatch.setattr(drawing, "ago", lambda time: f"<{time.year}")
    assert re.search(r'title="[^"]+">&lt;2\d{3}</time>', cards(reader))


def test_what_is_kept_has_a_bound(sender: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing._kept, "most", 3)
    for number in range(5):
        actions.publish(sender=sender, content={"text": f"walrus {number}"})
    reader = UserFactory.create()
    first = cards(reader)
    assert len(drawing._kept) == 3
    monkeypatch.setattr(drawing, "LONGEST", 10)
    drawing._kept.clear()
    assert cards(reader) == first
    assert not len(drawing._kept)
