"""Rules by hash: what they find and do. A rule and an upload must not miss each other."""

import io
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from PIL import Image, ImageEnhance

from accounts import faces
from accounts.models import User
from items import actions as items
from items.models import Item, Visibility
from items.text import ContentError
from media import actions as media
from media import posters
from media.models import MediaFile, Use
from moderation import actions, hashes
from moderation.models import Case, Decision, PictureAction, PictureAttempt, PictureRule, SenderKind, SenderRule
from runtime.embedded import wait_for
from tests.support.admin import text
from tests.support.api import API, client_of
from tests.support.at_once import HERE, at_once
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.pictures import encoded, files_of, jpeg, mp4, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]

RULES = "/admin/moderation/picturerule/"


def photo(seed: int = 1, size: tuple[int, int] = (640, 480)) -> Image.Image:
    """A picture with structure, different for each seed."""
    tiny = Image.new("RGB", (9, 8))
    tiny.putdata(
        [((seed * 37 + place * place * 73) % 251, (seed * place * 91) % 241, place * 3) for place in range(72)]
    )
    return tiny.resize(size, Image.Resampling.BICUBIC)


PHOTO = encoded(photo(), quality=90)
CHANGED = {
    "smaller": encoded(photo(size=(320, 240)), quality=60),
    "brighter": encoded(ImageEnhance.Brightness(photo()).enhance(1.1)),
    "gray": encoded(photo().convert("L")),
    "PNG": encoded(photo(), "PNG"),
    "one byte more": PHOTO + b"\0",
}
OTHER = encoded(photo(2))


def blocked(by: User, data: bytes = PHOTO, action: str = PictureAction.REJECT, **fields: Any) -> PictureRule:
    digest, phash = media.fingerprint(io.BytesIO(data))
    rule = PictureRule(sha256=digest, phash=phash, action=action, note="a known one", **fields)
    return hashes.block(rule=rule, by=by)


def tried(rule: PictureRule) -> list[tuple[str, int | None]]:
    rows = PictureAttempt.objects.filter(rule=rule).order_by("pk")
    return list(rows.values_list("user__username", "item_id"))


@pytest.mark.slow
def test_a_blocked_picture_is_refused(sender: User, moderator: User, media_folder: Any) -> None:
    rule = blocked(moderator)
    assert rule.phash is not None
    client = client_of(sender)
    for data in (PHOTO, *CHANGED.values()):
        answer = client.post(f"{API}/me/media", {"file": upload(data)}, format="multipart")
        assert (answer.status_code, list(answer.json())) == (400, ["file"])
        assert "site's rules" in answer.json()["file"][0]
    assert files_of(media_folder) == []
    assert not MediaFile.objects.exists()
    assert client.post(f"{API}/me/media", {"file": upload(OTHER)}, format="multipart").status_code == 201
    rule.refresh_from_db()
    assert (rule.attempts, len(tried(rule))) == (6, 6)
    assert tried(rule)[0] == ("sender", None)
    assert rule.last_attempt_at
    rule.is_enabled = False
    hashes.change_rule(rule=rule, by=moderator)
    assert client.post(f"{API}/me/media", {"file": upload(PHOTO)}, format="multipart").status_code == 201


def test_a_picture_that_was_sent_before_is_refused_by_the_post(sender: User, moderator: User) -> None:
    first, second = sent(sender, PHOTO), sent(sender, OTHER)
    rule = blocked(moderator, CHANGED["smaller"])
    answer = client_of(sender).post(f"{API}/items", {"type": "image", "content": {"media": [second, first]}})
    assert (answer.status_code, list(answer.json())) == (400, ["content.media"])
    assert not Item.objects.exists()
    assert set(MediaFile.objects.values_list("use", flat=True)) == {""}
    assert tried(rule) == [("sender", None)]
    assert posted(sender, second).status == "published"


def test_a_held_picture_waits_in_the_queue(sender: User, moderator: User) -> None:
    rule = blocked(moderator, action=PictureAction.HOLD)
    item = posted(sender, sent(sender, CHANGED["smaller"]), text="words")
    assert item.status == "in_review"
    assert Case.objects.get(item=item).reasons == ["picture: a known one"]
    assert tried(rule) == [("sender", item.pk)]
    items.approve(item=item)
    items.edit(item=item, content={"text": "other words"})
    assert Item.objects.get(pk=item.pk).status == "published"
    quiet = items.publish(
        sender=sender, type="image", content={"media": [sent(sender, PHOTO)]}, visibility=Visibility.SELF
    )
    assert quiet.status == "published"
    items.change_visibility(item=quiet, visibility=Visibility.PUBLIC)
    assert Item.objects.get(pk=quiet.pk).status == "in_review"


@pytest.mark.slow
@pytest.mark.parametrize("exempt", ["staff", "white"])
def test_staff_and_the_white_list_are_not_held_but_refused(moderator: User, exempt: str) -> None:
    sender = UserFactory.create(is_staff=exempt == "staff")
    if exempt == "white":
        SenderRule.objects.create(user=sender, kind=SenderKind.WHITE)
    blocked(moderator, action=PictureAction.HOLD)
    assert posted(sender, sent(sender, PHOTO)).status == "published"
    PictureRule.objects.update(action=PictureAction.REJECT)
    with pytest.raises(media.BlockedError):
        sent(sender, PHOTO)


@pytest.mark.parametrize("action", PictureAction.values)
def test_posters_are_refused_by_every_rule(sender: User, moderator: User, media_folder: Any, action: str) -> None:
    rule = blocked(moderator, action=action)
    video = media.upload(owner_id=sender.pk, file=upload(mp4()))
    before = files_of(media_folder)
    for data in (PHOTO, CHANGED["smaller"]):
        with pytest.raises(media.BlockedError):
            posters.set_poster(owner_id=sender.pk, media_id=video.pk, file=upload(data))
    assert len(tried(rule)) == 2
    assert files_of(media_folder) == before
    assert posters.set_poster(owner_id=sender.pk, media_id=video.pk, file=upload(OTHER)).small_ext


@pytest.mark.slow
@pytest.mark.parametrize("action", PictureAction.values)
@pytest.mark.parametrize("use", [Use.AVATAR, Use.BANNER])
def test_faces_are_refused_by_every_rule(sender: User, moderator: User, action: str, use: Use) -> None:
    rule = blocked(moderator, action=action)
    for data in (PHOTO, CHANGED["PNG"]):
        with pytest.raises(media.BlockedError):
            faces.set_face(user=sender, use=use, file=upload(data))
    assert len(tried(rule)) == 2
    assert not MediaFile.objects.exists()


def test_videos_and_plain_pictures_are_found_as_the_same_file(sender: User, moderator: User) -> None:
    plain = encoded(Image.new("RGB", (64, 64), (9, 9, 9)))
    for data, other in ((mp4(), mp4(secret=b"another place at all")), (plain, jpeg())):
        assert blocked(moderator, data).phash is None
        with pytest.raises(media.BlockedError):
            sent(sender, data)
        assert sent(sender, other)


@pytest.mark.parametrize("other", [OTHER, jpeg(), encoded(photo(3)), encoded(photo(4))])
def test_others_are_left(sender: User, moderator: User, other: bytes) -> None:
    blocked(moderator)
    assert sent(sender, other)


@pytest.mark.slow
def test_blocking_and_posting_at_the_same_time(sender: User, moderator: User) -> None:
    """Either the post is refused or the rule's page lists it."""
    for number in range(4):
        data = encoded(photo(10 + number))
        medium = sent(sender, data)
        rules: list[PictureRule] = []

        def block(data: bytes = data, rules: list[PictureRule] = rules) -> None:
            rules.append(blocked(moderator, data))
            connection.close()

        def post(medium: str = medium) -> bool:
            try:
                posted(sender, medium)
            except ContentError:
                return False
            finally:
                connection.close()
            return True

        _, was_posted = at_once(block, post)
        (rule,) = rules
        assert [str(row.pk) for row in hashes.matching_media(rule)] == [medium]
        assert was_posted == (tried(rule) == [])
        hashes.unblock(rule=rule, by=moderator)


def test_an_upload_waits_for_a_rule_that_is_being_written(sender: User, moderator: User) -> None:
    refused: list[bool] = []

    def send() -> None:
        try:
            sent(sender, PHOTO)
        except media.BlockedError:
            refused.append(True)
        finally:
            connection.close()

    upload_it = threading.Thread(target=send)
    with transaction.atomic():
        rule = blocked(moderator)
        upload_it.start()
        assert wait_for(waiting, 30)
        assert refused == []
    upload_it.join(30)
    assert refused == [True]
    assert tried(rule) == [("sender", None)]


def waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND {HERE}")
        row: Any = cursor.fetchone()
    return bool(row[0])


def test_one_rule_a_file_and_so_many_rules(moderator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = blocked(moderator)
    with pytest.raises(hashes.DuplicateHashError):
        blocked(moderator)
    monkeypatch.setattr(hashes, "RULES", 1)
    with pytest.raises(hashes.TooManyRulesError):
        blocked(moderator, OTHER)
    hashes.unblock(rule=rule, by=moderator)
    blocked(moderator, OTHER)
    assert list(Decision.objects.order_by("pk").values_list("verb", flat=True)) == ["block", "unblock", "block"]


def test_attempts_are_bounded_and_forgotten(sender: User, moderator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ATTEMPTS", 3)
    rule = blocked(moderator)
    for _ in range(5):
        hashes.count_attempts(user_id=sender.pk, rules=[rule.pk, 10**9])
    rule.refresh_from_db()
    assert (rule.attempts, len(tried(rule))) == (5, 3)
    assert hashes.forget_attempts() == 0
    PictureAttempt.objects.filter(pk=PictureAttempt.objects.latest("pk").pk).update(
        at=timezone.now() - hashes.LIFE - timedelta(hours=1)
    )
    assert hashes.forget_attempts() == 1
    assert hashes.forget_user(user=sender, limit=1) == 1
    assert hashes.forget_user(user=sender, limit=9) == 1


FIELDS = {"action": "reject", "distance": "6", "note": "a known one", "is_enabled": "on"}


@pytest.mark.slow
def test_a_picture_is_blocked_by_its_file(desk: Client, sender: User, media_folder: Any) -> None:
    posted(sender, mine := sent(sender, CHANGED["PNG"]))
    answer = desk.post(f"{RULES}add/", FIELDS | {"file": upload(PHOTO)})
    assert answer.status_code == 302, answer.content.decode()[:3000]
    rule = PictureRule.objects.get()
    assert MediaFile.objects.count() == 1
    with pytest.raises(media.BlockedError):
        sent(sender, PHOTO)
    page = text(desk.get(f"{RULES}{rule.pk}/change/"))
    assert "@sender" in page
    assert f"/staff/media/{mine}/preview" in page
    assert "Already blocked" in desk.post(f"{RULES}add/", FIELDS | {"file": upload(PHOTO)}).content.decode()
    assert "a known one" in text(desk.get(RULES))
    desk.post(f"{RULES}{rule.pk}/change/", {"action": "hold", "distance": "0", "note": "n"})
    rule.refresh_from_db()
    assert (rule.action, rule.distance, rule.is_enabled) == ("hold", 0, False)
    desk.post(f"{RULES}{rule.pk}/delete/", {"post": "yes"})
    assert not PictureRule.objects.exists()
    assert "unblocked the picture" in text(desk.get("/admin/moderation/decision/"))


@pytest.mark.slow
def test_a_picture_is_blocked_from_its_case(desk: Client, sender: User, moderator: User) -> None:
    item = posted(sender, medium := sent(sender, PHOTO))
    case = actions.open_by_hand(by=moderator, item_id=item.pk)
    assert case is not None
    assert f"{RULES}add/?medium={medium}" in text(desk.get(f"/admin/moderation/case/{case.pk}/change/"))
    page = text(desk.get(f"{RULES}add/?medium={medium}"))
    assert f'value="{medium}"' in page
    assert f"/staff/media/{medium}/preview" in page, "the page shows what is to be blocked"
    assert 'type="file"' not in page
    assert desk.post(f"{RULES}add/", FIELDS | {"medium": medium}).status_code == 302
    assert PictureRule.objects.get().medium_id == int(medium)
    with pytest.raises(media.BlockedError):
        sent(sender, CHANGED["gray"])


@pytest.mark.slow
def test_of_two_admins_who_add_a_rule_at_once_the_second_is_told(
    desk: Client, moderator: User, media_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = hashes.block

    def after_another(*, rule: PictureRule, by: User) -> PictureRule:
        first = PictureRule(sha256=rule.sha256, phash=rule.phash, action=rule.action, note="of another")
        block(rule=first, by=moderator)
        return block(rule=rule, by=by)

    monkeypatch.setattr(hashes, "block", after_another)
    answer = desk.post(f"{RULES}add/", FIELDS | {"file": upload(PHOTO)}, follow=True)
    assert "Already blocked" in text(answer)
    assert "of another" in text(answer)

    monkeypatch.setattr(hashes, "block", lambda **rule: (_ for _ in ()).throw(hashes.TooManyRulesError))
    answer = desk.post(f"{RULES}add/", FIELDS | {"file": upload(OTHER)}, follow=True)
    assert "the limit of 5000 rules" in text(answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"medium": "1"},
        {"medium": "x"},
        {"file": b"<svg/>"},
        {"file": b""},
        {"file": PHOTO[:200]},
        {"file": PHOTO, "distance": "11"},
        {"file": PHOTO, "distance": "-1"},
        {"file": PHOTO, "action": "burn"},
        {"file": PHOTO, "note": ""},
    ],
)
def test_rules_that_are_none(desk: Client, fields: dict[str, Any], media_folder: Any) -> None:
    sending = {**FIELDS, **fields}
    if "file" in sending:
        sending["file"] = upload(sending["file"])
    answer = desk.post(f"{RULES}add/", sending)
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert not PictureRule.objects.exists()
    assert files_of(media_folder) == []


def test_staff_without_the_permission(client: Client, sender: User) -> None:
    client.force_login(UserFactory.create(is_staff=True))
    assert client.get(RULES).status_code == 403
    assert client.post(f"{RULES}add/", FIELDS | {"file": upload(PHOTO)}).status_code == 403
