import io
import json
from typing import IO, Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from accounts.models import User
from items import actions as items
from items import export
from items.hydrate import hydrate
from items.models import Item, ItemType, Status
from media.captioning import set_captions
from media.files import StoreError
from media.store import store
from moderation import actions, pictures
from moderation.decisions import Grounds
from moderation.models import Case, Decision, WordRule
from notifications import actions as notifications
from notifications.feed import notifications_page, unread_count
from notifications.models import CHOOSABLE
from notifications.sentences import sentence
from tests.support.admin import text
from tests.support.cases import status
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import mp4

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]

ACT = "/admin/moderation/case/act/"


@pytest.fixture
def item(sender: User) -> Item:
    return posted(sender, sent(sender, description="a red square"), sent(sender), text="look at this")


@pytest.fixture
def case(item: Item, moderator: User) -> Case:
    case = actions.open_by_hand(by=moderator, item_id=item.pk)
    assert case is not None
    return case


def ids(item: Item) -> list[str]:
    return [each.id for each in hydrate([item.pk], item.sender)[0].media]


def press(desk: Client, case: Case, verb: str, note: str = "") -> str:
    fields = {"verb": verb, "note": note, "text": note, "state": case.state, "modified_at": case.opened_at.isoformat()}
    return text(desk.post(f"/admin/moderation/case/{case.pk}/change/", fields, follow=True))


def log() -> list[tuple[str, str, Any]]:
    lines = Decision.objects.filter(verb__in=["hide", "show"]).order_by("pk")
    return [(line.verb, line.note, line.after) for line in lines]


def told(user: User) -> list[tuple[str, str]]:
    return [(str(sentence(one)), one.text) for one in notifications_page(user).items if one.kind == "picture"]


def test_a_description_that_moderators_have_to_see_first(desk: Client, sender: User, spam: WordRule) -> None:
    held = posted(sender, sent(sender, description="a tin of spam"), sent(sender, description="a plate"))
    assert held.status == Status.IN_REVIEW
    case = Case.objects.get(item=held)
    assert "words: spam" in case.reasons
    assert items.approve(item=held)
    first, second = ids(held)
    items.edit(item=held, content={"media": [second, first]})
    assert status(held) == Status.PUBLISHED, "the same words in another order were seen"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["api", "editor"])
def test_a_description_is_looked_at_when_it_changes(client: Client, sender: User, spam: WordRule, way: str) -> None:
    item = posted(sender, sent(sender, description="a plate"), text="look")
    (medium,) = ids(item)
    client.force_login(sender)

    def describe(words: str) -> int:
        if way == "api":
            change = {"data": {"description": words}, "content_type": "application/json"}
            return client.patch(f"/api/v1/me/media/{medium}", **change).status_code
        fields = {"media": [medium], "description": [words], "focus": ["0,0"], "text": "look", "visibility": "public"}
        return client.post(f"/items/{item.pk}/edit", fields).status_code

    assert describe("https://plates.example") < 400
    assert status(item) == Status.PUBLISHED, "a description leads nowhere, so its links are no reason"
    assert describe("Spam in a tin") < 400
    assert status(item) == Status.IN_REVIEW
    assert "words: spam" in Case.objects.get(item=item).reasons
    item.refresh_from_db()
    before = item.modified_at
    assert describe("something else") < 400
    item.refresh_from_db()
    assert item.modified_at > before, "a moderator who looks at it is told"
    assert item.media[0]["description"] == "something else"


def captioned(sender: User, medium: str, words: str) -> None:
    file = io.BytesIO(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{words}\n".encode())
    assert set_captions(owner_id=sender.pk, media_id=int(medium), file=file)


def filmed(sender: User, words: str) -> Item:
    medium = sent(sender, mp4())
    captioned(sender, medium, words)
    return items.publish(sender=sender, type=ItemType.VIDEO, content={"media": [medium]})


@pytest.mark.slow
def test_captions_are_looked_at(desk: Client, sender: User, spam: WordRule, monkeypatch: pytest.MonkeyPatch) -> None:
    held = filmed(sender, "all about spam")
    assert held.status == Status.IN_REVIEW
    case = Case.objects.get(item=held)
    assert case.reasons == ["words: spam"]
    page = text(desk.get(f"/admin/moderation/case/{case.pk}/change/"))
    assert f'src="/staff/media/{held.content["media"][0]}/captions"' in page
    items.approve(item=held)
    items.edit(item=held, content=held.content | {"text": ""})
    assert status(held) == Status.PUBLISHED, "a moderator has seen them"

    item = filmed(sender, "all about plates")
    (medium,) = ids(item)
    captioned(sender, medium, "all about forks")
    assert status(item) == Status.PUBLISHED
    captioned(sender, medium, "all about spam")
    assert status(item) == Status.IN_REVIEW

    opened = store().open

    def fail(name: str) -> IO[bytes]:
        if name.endswith(".vtt"):
            raise StoreError(name)
        return opened(name)

    monkeypatch.setattr(store(), "open", fail)
    unread = filmed(sender, "all about knives")
    assert Case.objects.get(item=unread).reasons == ["captions: the captions could not be read"]


@pytest.mark.slow
def test_one_picture_from_a_case(desk: Client, case: Case, item: Item, sender: User) -> None:
    one, two = ids(item)
    page = text(desk.get(f"/admin/moderation/case/{case.pk}/change/"))
    assert f'value="hide-{one}"' in page
    assert 'value="hide-all"' in page
    shown = press(desk, case, f"hide-{one}", "a private person")
    assert "1 picture hidden." in shown
    assert f'value="show-{one}"' in shown
    assert "hidden by moderators" in shown
    assert ids(item) == [two]
    assert log() == [("hide", "a private person", {"pictures": [one]})]
    assert told(sender) == [("Moderators removed a picture from your post", "a private person")]
    assert "Nothing changed: the pictures were already like this." in press(desk, case, f"hide-{one}")
    assert len(told(sender)) == 1
    desk.get(f"/staff/media/{one}/preview").close()
    assert desk.head(f"/staff/media/{one}/preview").status_code == 200
    assert "1 picture shown again." in press(desk, case, f"show-{one}", "a mistake")
    assert ids(item) == [one, two]
    assert log()[1] == ("show", "a mistake", {"pictures": [one]})
    case.refresh_from_db()
    assert case.state == "open"


@pytest.mark.slow
def test_all_pictures_from_a_case(desk: Client, case: Case, item: Item, sender: User) -> None:
    both = ids(item)
    sender.language = "zh-hans"
    sender.save(update_fields=["language"])
    assert "2 pictures hidden." in press(desk, case, "hide-all")
    assert ids(item) == []
    assert told(sender) == [("Moderators removed 2 pictures from your post", "")]
    sender_page = logged_in(sender)
    assert "管理员移除了你帖子中的 2 张图片" in text(sender_page.get("/notifications"))
    assert "2 pictures shown again." in press(desk, case, "show-all")
    assert ids(item) == both
    assert told(sender) == [("Your post shows its pictures again. Moderators had removed them", "")]


@pytest.mark.slow
def test_another_removal_tells_anew(item: Item, moderator: User, sender: User) -> None:
    one, two = map(int, ids(item))
    pictures.hide(item=item, by=moderator, ids=[one], grounds=Grounds("first"))
    notifications.mark_read(user=sender)
    assert unread_count(sender).unread == 0
    pictures.hide(item=item, by=moderator, ids=[two], grounds=Grounds("second"))
    assert told(sender) == [("Moderators removed 2 pictures from your post", "second")]
    assert unread_count(sender).unread == 1
    notifications.silence(user=sender, kinds=list(CHOOSABLE))
    assert len(told(sender)) == 1, "it cannot be left out"
    with pytest.raises(ValueError, match="picture"):
        notifications.silence(user=sender, kinds=["picture"])


@pytest.mark.slow
def test_the_log_in_words(desk: Client, case: Case, item: Item) -> None:
    press(desk, case, "hide-all")
    press(desk, case, "show-all")
    page = text(desk.get("/admin/moderation/decision/"))
    assert "hid pictures in" in page
    assert "showed pictures in" in page


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["hide-", "hide-x", "hide--1", "drop-all", f"hide-{'9' * 16}", "hide-0", "hide-all "])
def test_verbs_that_no_button_has(desk: Client, case: Case, item: Item, verb: str) -> None:
    press(desk, case, verb)
    assert len(ids(item)) == 2
    assert log() == []


@pytest.mark.slow
def test_pictures_of_other_items_are_left(desk: Client, case: Case, sender: User) -> None:
    other = posted(sender, sent(sender))
    press(desk, case, f"hide-{ids(other)[0]}")
    assert len(ids(other)) == 1


@pytest.mark.slow
def test_staff_who_may_only_look(client: Client, case: Case, item: Item) -> None:
    looking = UserFactory.create(is_staff=True)
    looking.user_permissions.set(Permission.objects.filter(codename__in=["view_case", "view_item"]))
    client.force_login(looking)
    address = f"/admin/moderation/case/{case.pk}/change/"
    assert "hide-" not in text(client.get(address))
    fields = {"verb": "hide-all", "state": "open", "modified_at": case.opened_at.isoformat()}
    assert client.post(address, fields).status_code == 403
    assert client.post(f"{ACT}?items={item.pk}", {"verb": "hide"}).status_code == 403
    assert len(ids(item)) == 2


@pytest.mark.slow
def test_by_hand(desk: Client, item: Item, sender: User) -> None:
    one, two = ids(item)
    address = f"{ACT}?items={item.pk}"
    page = text(desk.get(address))
    assert f'name="picture" value="{one}"' in page
    answer = text(desk.post(address, {"verb": "hide", "note": "why", "text": "why", "picture": [two]}, follow=True))
    assert "Pictures of 1 post hidden." in answer
    assert ids(item) == [one]
    assert "Pictures of 1 post hidden." in text(desk.post(address, {"verb": "hide"}, follow=True))
    assert ids(item) == []
    assert "has no picture to hide" in text(desk.post(address, {"verb": "hide"}, follow=True))
    assert "shown again" in text(desk.post(address, {"verb": "show"}, follow=True))
    assert ids(item) == [one, two]
    assert "has no picture to hide" in text(desk.post(address, {"verb": "hide", "picture": ["1"]}, follow=True))
    words = items.publish(sender=sender, content={"text": "words"})
    both = f"{ACT}?items={item.pk},{words.pk}"
    assert 'name="picture"' not in text(desk.get(both))
    assert "1 post has no picture to hide." in text(desk.post(both, {"verb": "hide"}, follow=True))
    assert desk.post(f"{ACT}?users={sender.pk}", {"verb": "hide"}).status_code == 200  # no verb of users


@pytest.mark.slow
def test_a_card_says_so(client: Client, item: Item, moderator: User) -> None:
    pictures.hide(item=item, by=moderator, ids=[int(ids(item)[0])])
    words = "Moderators removed a picture."
    assert words not in text(client.get(f"/items/{item.pk}"))
    client.force_login(item.sender)
    assert words in text(client.get(f"/items/{item.pk}"))


def test_the_archive_counts_them(item: Item, moderator: User, sender: User) -> None:
    pictures.hide(item=item, by=moderator)
    items.publish(sender=sender, content={"text": "words"})
    rows = list(export.files(sender)[0].rows)
    assert [row.removed_media for row in rows] == [2, 0]
    assert json.loads(bytes(rows[0].content))["media"]


@pytest.mark.slow
def test_users_who_left_are_not_told(item: Item, moderator: User, sender: User) -> None:
    sender.is_active = False
    sender.save(update_fields=["is_active"])
    assert pictures.hide(item=Item.objects.get(pk=item.pk), by=moderator) == 2
    assert told(sender) == []
