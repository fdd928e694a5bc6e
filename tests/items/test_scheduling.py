import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.about import site as about
from accounts.actions import issue_token
from accounts.models import User
from items import actions, scheduling
from items.models import Failure, Item, ScheduledPost, Status, Visibility
from items.purge import purge
from items.quotes import NotQuotableError
from items.text import ContentError
from items.threads.replying import NotRepliableError
from media import sweeping
from media.models import MediaFile, Use
from moderation.models import WordRule
from notifications.feed import notifications_page, unread_count
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say
from tests.support.pages import PART
from tests.support.picture_posts import sent as uploaded

pytestmark = pytest.mark.django_db(transaction=True)


def soon(minutes: float = 60) -> Any:
    return timezone.now() + timedelta(minutes=minutes)


def plan(sender: User, text: str = "later", **fields: Any) -> ScheduledPost:
    return scheduling.schedule(sender=sender, publish_at=soon(), content={"text": text}, **fields)


def come_due(*posts: ScheduledPost) -> None:
    ScheduledPost.objects.filter(pk__in=[post.pk for post in posts]).update(publish_at=timezone.now())


# --- Publishing ------------------------------------------------------------------------------------------
def test_a_post_is_published_at_its_time_and_once(ann: User, bob: User) -> None:
    answered = say(bob)
    post = plan(ann, "an answer", reply_to=answered, visibility=Visibility.FOLLOWERS)
    assert scheduling.publish_due() == 0
    assert not Item.objects.filter(sender=ann).exists()
    come_due(post)
    assert scheduling.publish_due() == 1
    assert scheduling.publish_due() == 0
    item = Item.objects.get(sender=ann)
    assert (item.text, item.reply_to_id, item.visibility) == ("an answer", answered.pk, "followers")
    assert not ScheduledPost.objects.exists()


def test_a_quote_is_for_no_more_people_than_what_it_quotes(ann: User, bob: User) -> None:
    own, mention = say(ann, visibility=Visibility.FOLLOWERS), say(ann, "@bob", visibility=Visibility.MENTIONED)
    for quoted, visibility in ((own, Visibility.PUBLIC), (mention, Visibility.SELF)):
        with pytest.raises(NotQuotableError):
            plan(ann, quote_of=quoted, visibility=visibility)
    post = plan(ann, quote_of=own, visibility=Visibility.FOLLOWERS)
    with pytest.raises(NotQuotableError):
        scheduling.change(sender=ann, post_id=post.pk, visibility=Visibility.PUBLIC)
    actions.change_visibility(item=own, visibility=Visibility.SELF)
    come_due(post)
    assert scheduling.publish_due() == 0
    post.refresh_from_db()
    assert post.failure == Failure.QUOTE_GONE


def test_two_workers_publish_once_and_none_waits_for_the_other(ann: User) -> None:
    post = plan(ann)
    come_due(post)
    done: list[bool] = []
    with transaction.atomic():
        ScheduledPost.objects.select_for_update().get(pk=post.pk)
        other = threading.Thread(target=lambda: (done.append(bool(scheduling.publish_due())), connection.close()))
        other.start()
        other.join(10)
        assert done == [False], "the row is locked: it is left to who has it"
    assert scheduling.publish_due() == 1


def test_a_crash_between_publishing_and_forgetting_publishes_once(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    post = plan(ann)
    come_due(post)

    def crash(self: ScheduledPost) -> None:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as patch:
        patch.setattr(ScheduledPost, "delete", crash)
        with pytest.raises(OperationalError):
            scheduling.publish_due()
    assert not Item.objects.filter(sender=ann).exists()
    assert scheduling.publish_due() == 1
    assert Item.objects.filter(sender=ann).count() == 1


def test_one_that_breaks_keeps_no_other_waiting(ann: User, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = plan(ann, "broken"), plan(bob)
    come_due(first)
    come_due(second)
    publish = actions.publish

    def broken(**fields: Any) -> Item:
        if fields["content"]["text"] == "broken":
            raise RuntimeError("a fault")
        return publish(**fields)

    monkeypatch.setattr(actions, "publish", broken)
    assert scheduling.publish_due() == 1
    assert ScheduledPost.objects.get().failure == Failure.ERROR


def test_nothing_is_published_in_the_read_only_mode(ann: User) -> None:
    come_due(plan(ann))
    about.site_copy.set(about.Site(read_only_why="We move"))
    try:
        assert scheduling.publish_due() == 0
    finally:
        about.site_copy.set(about.Site())
    assert scheduling.publish_due() == 1


# --- Failing ---------------------------------------------------------------------------------------------
def test_what_cannot_be_published_stays_with_the_reason(ann: User, bob: User) -> None:
    answered, quoted, other = say(bob), say(bob), say(bob)
    posts = {
        Failure.REPLY_GONE: plan(ann, reply_to=answered),
        Failure.QUOTE_GONE: plan(ann, quote_of=quoted),
    }
    closed = say(bob)
    posts[Failure.REPLY_CLOSED] = plan(ann, reply_to=closed)
    not_quotable = plan(ann, quote_of=other)
    actions.delete(item=answered)
    actions.delete(item=quoted)
    actions.change_repliable(item=closed, repliable_by="nobody")
    with pytest.raises(NotRepliableError):
        plan(ann, reply_to=closed)
    actions.change_quotable(item=other, quotable_by="nobody")
    come_due(*posts.values(), not_quotable)
    assert scheduling.publish_due() == 0
    for failure, post in posts.items():
        post.refresh_from_db()
        assert post.failure == failure
    not_quotable.refresh_from_db()
    assert not_quotable.failure == Failure.QUOTE_GONE
    assert unread_count(ann).unread == 4
    assert {(entry.kind, entry.count, entry.item) for entry in notifications_page(ann).items} == {
        ("scheduled", 0, None)
    }
    assert scheduling.publish_due() == 0, "they wait for the author"
    scheduling.change(sender=ann, post_id=not_quotable.pk, publish_at=soon(), content={"text": "alone"})
    not_quotable.refresh_from_db()
    assert not_quotable.failure == ""


def test_a_suspended_author_publishes_nothing(ann: User) -> None:
    post = plan(ann)
    come_due(post)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert scheduling.publish_due() == 0
    assert ScheduledPost.objects.get().failure == Failure.INACTIVE


def test_an_author_is_told_that_a_rule_holds_the_post(ann: User, client: Client) -> None:
    WordRule.objects.create(text="forbidden")
    come_due(plan(ann, "forbidden words"))
    assert scheduling.publish_due() == 1
    held = Item.objects.get(sender=ann)
    assert held.status == Status.IN_REVIEW
    (entry,) = notifications_page(ann).items
    assert (entry.kind, entry.item and entry.item.id) == ("scheduled", str(held.pk))
    client.force_login(ann)
    assert "Your scheduled post is in review" in client.get("/notifications").content.decode()


# --- Scheduling ------------------------------------------------------------------------------------------
def test_what_is_wrong_is_said_at_once(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"text": ""}, {"text": "x" * 6_000}):
        with pytest.raises(ContentError):
            scheduling.schedule(sender=ann, publish_at=soon(), content=wrong)
    with pytest.raises(ContentError, match="Mention someone"):
        plan(ann, visibility=Visibility.MENTIONED)
    for minutes in (-1, 4, 60 * 24 * 367):
        with pytest.raises(scheduling.PublishTimeError):
            scheduling.schedule(sender=ann, publish_at=soon(minutes), content={"text": "later"})
    monkeypatch.setattr(scheduling, "MOST", 1)
    plan(ann)
    with pytest.raises(scheduling.ScheduledCapError):
        plan(ann)


def test_a_repeated_key_schedules_once(ann: User) -> None:
    at = soon()
    made = [
        scheduling.schedule(sender=ann, publish_at=at, content={"text": "later"}, idempotency_key="k") for _ in range(2)
    ]
    assert made[0].pk == made[1].pk
    assert ScheduledPost.objects.count() == 1


def test_pictures_are_kept_while_they_wait(ann: User) -> None:
    medium, other = (MediaFile.objects.get(pk=uploaded(ann)) for _ in range(2))
    content = {"text": "look", "media": [str(medium.pk)]}
    post = scheduling.schedule(sender=ann, publish_at=soon(), type="image", content=content)
    with pytest.raises(ContentError):
        actions.publish(sender=ann, type="image", content=content)
    MediaFile.objects.update(created_at=timezone.now() - timedelta(days=3))
    sweeping.sweep()
    assert list(MediaFile.objects.values_list("pk", flat=True)) == [medium.pk], other.pk
    come_due(post)
    assert scheduling.publish_due() == 1
    medium.refresh_from_db()
    assert (medium.use, medium.item_id) == (Use.ITEM, Item.objects.get().pk)

    last = MediaFile.objects.get(pk=uploaded(ann))
    content = {"media": [str(last.pk)]}
    post = scheduling.schedule(sender=ann, publish_at=soon(), type="image", content=content)
    scheduling.cancel(sender=ann, post_id=post.pk)
    last.refresh_from_db()
    assert last.use == Use.NONE


def test_staff_see_no_pictures_of_a_scheduled_private_mention(ann: User, bob: User, client: Client) -> None:
    client.force_login(UserFactory(is_staff=True, is_superuser=True))
    medium = MediaFile.objects.get(pk=uploaded(ann))
    content = {"text": "@bob", "media": [str(medium.pk)]}
    fields: dict[str, Any] = {"sender": ann, "publish_at": soon(), "type": "image", "content": content}

    def is_shown() -> bool:
        return client.get(f"/admin/media/mediafile/{medium.pk}/change/").status_code == 200

    assert is_shown()
    post = scheduling.schedule(**fields, visibility="mentioned")
    assert not is_shown()
    scheduling.change(sender=ann, post_id=post.pk, visibility="public")
    assert is_shown()
    scheduling.change(sender=ann, post_id=post.pk, visibility="mentioned")
    assert not is_shown()
    scheduling.cancel(sender=ann, post_id=post.pk)
    assert is_shown(), "an upload that may become anything"
    private = say(bob, "@ann", visibility="mentioned")
    post = scheduling.schedule(**fields, reply_to=private)
    scheduling.change(sender=ann, post_id=post.pk, visibility="public")
    assert not is_shown()
    assert Caller(ann).get(f"v1/scheduled_statuses/{post.pk}")["params"]["visibility"] == "direct"
    come_due(post)
    assert scheduling.publish_due() == 1
    assert Item.objects.get(reply_to=private).is_private
    assert not is_shown()


def test_an_account_that_goes_takes_them_along(ann: User) -> None:
    plan(ann)
    purge(user_id=ann.pk, limit=10)
    assert not ScheduledPost.objects.exists()


# --- Pages -----------------------------------------------------------------------------------------------
def test_the_composer_schedules_and_edits(ann: User, client: Client) -> None:
    client.force_login(ann)
    User.objects.filter(pk=ann.pk).update(time_zone="Asia/Shanghai")
    at = (timezone.now() + timedelta(days=2)).replace(second=0, microsecond=0)
    local = (at + timedelta(hours=8)).strftime("%Y-%m-%dT%H:%M")
    form = {"text": "zebra", "visibility": "public", "publish_at": local, "zone": "Asia/Shanghai"}
    assert client.post("/items/new", form)["Location"] == "/scheduled"
    post = ScheduledPost.objects.get()
    assert (post.publish_at, post.post["content"]) == (at, {"text": "zebra"})
    assert "zebra" in client.get("/scheduled").content.decode()
    page = client.get(f"/scheduled/{post.pk}").content.decode()
    assert f'value="{local}"' in page
    assert "zebra" in page

    ScheduledPost.objects.update(publish_at=at + timedelta(seconds=7))
    changed = form | {"text": "okapi", "scheduled": str(post.pk)}
    assert client.post("/items/new", changed)["Location"] == "/scheduled"
    post.refresh_from_db()
    assert (post.publish_at, post.post["content"]) == (at + timedelta(seconds=7), {"text": "okapi"})
    for wrong in ("", "2020-01-01T00:00", "x"):
        assert client.post("/items/new", changed | {"publish_at": wrong}).status_code == 422
    client.post(f"/scheduled/{post.pk}/delete")
    assert not ScheduledPost.objects.exists()
    assert client.post("/items/new", changed).status_code == 422
    assert not Item.objects.exists()


def test_an_open_page_stays(ann: User, client: Client) -> None:
    client.force_login(ann)
    at = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    answer = client.post("/items/new", {"text": "zebra", "visibility": "public", "publish_at": at}, **PART)
    assert answer.status_code == 200
    assert "Scheduled for" in answer["HX-Trigger-After-Settle"]
    assert "zebra" not in answer.content.decode()


def test_others_meet_none(ann: User, bob: User, client: Client) -> None:
    post = plan(ann)
    client.force_login(bob)
    assert client.get(f"/scheduled/{post.pk}").status_code == 404
    assert client.post(f"/scheduled/{post.pk}/delete").status_code == 404
    at = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    changed = {"text": "mine", "visibility": "public", "publish_at": at, "scheduled": str(post.pk)}
    assert client.post("/items/new", changed).status_code == 422
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=bob)}")
    for method in ("get", "patch", "delete"):
        assert getattr(api, method)(f"/api/v1/me/scheduled/{post.pk}").status_code == 404
    post.refresh_from_db()
    assert post.post["content"] == {"text": "later"}


# --- The APIs --------------------------------------------------------------------------------------------
def test_the_api(ann: User) -> None:
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=ann)}")
    at = soon().isoformat()
    made = api.post("/api/v1/me/scheduled", {"content": {"text": "later"}, "publish_at": at}, format="json")
    assert made.status_code == 201
    address = f"/api/v1/me/scheduled/{made.json()['id']}"
    assert api.get("/api/v1/me/scheduled").json()["items"] == [made.json()]
    assert api.patch(address, {"content": {"text": "changed"}}, format="json").json()["content"] == {"text": "changed"}
    assert api.patch(address, {"publish_at": "2020-01-01T00:00:00Z"}, format="json").status_code == 400
    assert api.delete(address).status_code == 204
    assert api.get(address).status_code == 404


def test_mastodons_api(ann: User, bob: User) -> None:
    medium, caller = MediaFile.objects.get(pk=uploaded(ann)), Caller(ann)
    sent = {"status": "later @bob", "scheduled_at": soon().isoformat(), "media_ids": [str(medium.pk)]}
    made = caller.post("v1/statuses", sent | {"visibility": "private", "spoiler_text": "cats"})
    assert (made["params"]["text"], made["params"]["visibility"]) == ("later @bob", "private")
    assert made["params"]["spoiler_text"] == "cats"
    assert made["media_attachments"][0]["id"] == str(medium.pk)
    assert caller.get("v1/scheduled_statuses") == [made]
    at = soon(600).replace(microsecond=0)
    changed = caller.put(f"v1/scheduled_statuses/{made['id']}", {"scheduled_at": at.isoformat()})
    assert changed["scheduled_at"].startswith(at.strftime("%Y-%m-%dT%H:%M:%S"))
    Caller(bob).get(f"v1/scheduled_statuses/{made['id']}", status=404)
    for wrong in ("x", soon(1).isoformat(), "9999-12-31T23:59:59-11:00"):
        caller.post("v1/statuses", {"status": "x", "scheduled_at": wrong}, status=422)
    assert caller.delete(f"v1/scheduled_statuses/{made['id']}") == {}
    assert caller.get("v1/scheduled_statuses") == []
    more = [caller.post("v1/statuses", sent | {"media_ids": [], "status": f"{n}"})["id"] for n in range(3)]
    assert [one["id"] for one in caller.get("v1/scheduled_statuses?limit=2")] == more[:0:-1]
    assert [one["id"] for one in caller.get(f"v1/scheduled_statuses?max_id={more[1]}")] == more[:1]
    assert [one["id"] for one in caller.get(f"v1/scheduled_statuses?min_id={more[0]}&limit=1")] == [more[1]]


def test_a_poll_and_what_apps_sent_stay_through_an_edit(ann: User, client: Client) -> None:
    client.force_login(ann)
    at = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    form = {"text": "which?", "visibility": "public", "publish_at": at, "option_1": "zebra", "option_2": "okapi"}
    assert client.post("/items/new", form | {"poll_lasts": "3600"}).status_code == 302
    post = ScheduledPost.objects.get()
    assert post.post["content"]["poll"] == {"options": ["zebra", "okapi"], "multiple": False, "closes_in": 3600}
    page = client.get(f"/scheduled/{post.pk}").content.decode()
    assert 'value="zebra"' in page
    assert 'value="3600" selected' in page
    come_due(post)
    assert scheduling.publish_due() == 1
    poll = Item.objects.get().content["poll"]
    assert timezone.now() + timedelta(minutes=50) < datetime.fromisoformat(poll["closes_at"])

    content = {"text": "look", "url": "https://example.org/", "mine": 1}
    post = scheduling.schedule(sender=ann, publish_at=soon(), type="link", content=content)
    sent = {"text": "see", "visibility": "public", "publish_at": at, "scheduled": str(post.pk)}
    assert client.post("/items/new", sent).status_code == 302
    post.refresh_from_db()
    assert (post.post["type"], post.post["content"]) == ("link", content | {"text": "see"})
