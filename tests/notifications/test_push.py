from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError
from rest_framework.test import APIClient

from accounts import actions as accounts
from accounts.models import Session, User
from accounts.proofs import LoginEndedError
from feedsite import celery
from items import actions as items
from items.filters import filters
from items.models import Visibility
from items.threads import muting
from live import actions as live
from notifications import actions as notifications
from notifications import bells
from notifications.feed import notifications_page
from notifications.models import PUSHED, PushSubscription, PushWords, QuietHours
from notifications.push import actions, messages, sending, waiting
from notifications.push.actions import DeviceHolder, PushChoice
from relations import actions as relations
from tests.support.factories import PASSWORD, UserFactory, say
from tests.support.far_servers import FarServer, answer, raw
from tests.support.pages import logged_in
from tests.support.push_services import Device, headers_of
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PUSH = "/api/v1/me/push"
PAGE = "/settings/notifications/push"
COLUMNS = [field.attname for field in PushSubscription._meta.fields if not field.primary_key]


def later() -> None:
    """The pauses of devices are over."""
    now = timezone.now()
    PushSubscription.objects.exclude(retry_at=None).update(retry_at=now)
    PushSubscription.objects.exclude(due_at=None).update(due_at=now)
    waiting.sweep()


def pause(row: PushSubscription) -> float:
    row.refresh_from_db()
    assert row.retry_at is not None
    return round((row.retry_at - timezone.now()).total_seconds())


@pytest.fixture
def reader(client: Client) -> User:
    reader = UserFactory(username="reader")
    client.force_login(reader)
    return reader


@pytest.fixture
def other() -> User:
    return UserFactory(username="other", display_name="Other")


@pytest.fixture
def device(service: FarServer, reader: User, client: Client, prompt: None) -> Device:
    device = Device(service)
    assert subscribed(client, device, words="all").status_code == 201
    return device


def subscribed(client: Any, device: Device, **more: Any) -> Any:
    options = {} if isinstance(client, APIClient) else {"content_type": "application/json"}
    if isinstance(client, APIClient):
        options = {"format": "json"}
    return client.post(PUSH, {**device.body, **more}, **options)


def titles(device: Device) -> list[str]:
    return [message["title"] for message in device.messages]


# --- Messages --------------------------------------------------------------------------------------------
def test_a_message_by_the_standard(device: Device, reader: User, other: User) -> None:
    said = say(other, "Hello @reader, are you there?")
    (message,) = device.messages
    assert message["title"] == "Other mentioned you"
    assert message["body"] == "Hello @reader, are you there?"
    assert message["url"] == f"/items/{said.pk}"
    assert (message["notification_type"], message["preferred_locale"], message["access_token"]) == ("mention", "en", "")
    assert message["notification_id"] == int(notifications_page(reader).items[0].id)
    assert device.service is not None
    head = headers_of(device.service.heads[0])
    assert head["Content-Encoding"] == "aes128gcm"
    assert head["TTL"] == "172800"
    assert head["Urgency"] == "normal"
    assert 0 < len(head["Topic"]) <= 32
    assert head["Authorization"].startswith("vapid t=")
    assert b"Hello" not in device.service.bodies[0]


def test_every_kind(device: Device, reader: User, other: User) -> None:
    post = say(reader, "my post")
    say(other, "an answer", reply_to=post)
    say(other, "look", quote_of=post)
    say(other, "@reader")
    relations.follow(follower=other, followee=reader)
    host = UserFactory(display_name="Host")
    session = live.create(
        host=host, title="Cats live", starts_at=timezone.now() + timedelta(hours=1), now=timezone.now()
    )
    notifications.notify_of_session(session_id=session.pk, host_id=host.pk, user_ids=[reader.pk])
    relations.follow(follower=reader, followee=other, bell=True)
    bells.ring(say(other).pk)
    assert titles(device) == [
        "Other replied to you",
        "Other quoted your post",
        "Other mentioned you",
        "Other followed you",
        "Host went live",
        "Other posted",
    ]
    assert device.messages[-2]["body"] == "Cats live"
    assert device.messages[-2]["url"] == f"/live/{session.pk}"
    rest = {"follow_request", "poll"}  # tested separately
    assert {kind.value for kind in PUSHED} == {"reply", "quote", "mention", "follow", "live", "post"} | rest


def test_the_end_of_polls(device: Device, reader: User, other: User) -> None:
    asked = {"options": ["tea", "coffee"], "closes_in": 3600}
    for sender in (other, reader):
        poll = items.publish(sender=sender, type="poll", content={"text": "Which?", "poll": asked})
        notifications.notify_of_poll(item=poll, user_ids=[reader.pk])
    assert titles(device) == ["A poll you voted in has ended", "Your poll has ended"]
    assert {(message["notification_type"], message["body"]) for message in device.messages} == {("poll", "Which?")}


def test_a_request_to_follow(device: Device, reader: User, other: User) -> None:
    accounts.edit_profile(user=reader, is_locked=True)
    relations.follow(follower=other, followee=User.objects.get(pk=reader.pk))
    assert titles(device) == ["Other wants to follow you"]


def test_likes_and_reposts_are_not_pushed(device: Device, reader: User, other: User) -> None:
    post = say(reader, "my post")
    items.like(user=other, item=post)
    items.repost(sender=other, item=post)
    assert device.messages == []


def test_an_act_that_is_done_again_is_pushed_once(device: Device, reader: User, other: User) -> None:
    for _ in range(3):
        relations.follow(follower=other, followee=reader)
        relations.unfollow(follower=other, followee=reader)
    relations.follow(follower=other, followee=reader)
    assert titles(device) == ["Other followed you"]


def test_only_chosen_kinds(client: Client, device: Device, reader: User, other: User) -> None:
    assert subscribed(client, device, kinds=["reply"]).json()["kinds"] == ["reply"]
    say(other, "@reader")
    say(other, "an answer", reply_to=say(reader))
    assert titles(device) == ["Other replied to you"]


def test_what_the_page_leaves_out_is_not_pushed(device: Device, reader: User, other: User) -> None:
    notifications.silence(user=reader, kinds=["mention"])
    say(other, "@reader")
    assert device.messages == []


@pytest.mark.parametrize("act", ["mute", "block", "blocked"])
def test_people_whom_the_reader_does_not_hear_from(device: Device, reader: User, other: User, act: str) -> None:
    if act == "mute":
        relations.mute(muter=reader, muted=other, notifications=True)
    elif act == "block":
        relations.block(blocker=reader, blocked=other)
    else:
        relations.block(blocker=other, blocked=reader)
    say(other, "@reader")
    relations_before = PushSubscription.objects.count()
    assert (device.messages, relations_before) == ([], 1)


def test_a_mute_between_writing_and_sending(
    device: Device, reader: User, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(waiting.queue_pushes, "delay", told.append)
    for text in ("@reader one", "@reader two"):
        say(other, text)
    waiting.queue_pushes(told[0])
    relations.mute(muter=reader, muted=other, notifications=True)
    waiting.queue_pushes(told[1])
    assert [message["body"] for message in device.messages] == ["@reader one"]


def test_a_muted_thread(device: Device, reader: User, other: User) -> None:
    post = say(reader, "my post")
    muting.mute_thread(user=reader, item=post)
    say(other, "an answer", reply_to=post)
    assert device.messages == []


def test_what_was_read_or_deleted_meanwhile(
    device: Device, reader: User, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(waiting.queue_pushes, "delay", told.append)
    said = say(other, "@reader one")
    items.delete(item=said)
    waiting.queue_pushes(told[0])
    say(other, "@reader two")
    notifications.mark_read(user=reader)
    waiting.queue_pushes(told[1])
    assert device.messages == []


def test_filters(device: Device, reader: User, other: User) -> None:
    filters.create(owner=reader, phrase="spider", whole_word=True, action="warn")
    filters.create(owner=reader, phrase="snake", whole_word=True, action="hide")
    say(other, "@reader a spider")
    say(other, "@reader a snake")
    assert [message["body"] for message in device.messages] == ["Muted word: spider"]


def test_a_warning_hides_the_text(device: Device, reader: User, other: User) -> None:
    items.publish(sender=other, content={"text": "@reader the butler did it", "warning": "spoiler"})
    assert [message["body"] for message in device.messages] == ["spoiler"]


@pytest.mark.parametrize(
    ("words", "bodies"),
    [("all", ["@reader open", "@reader secret"]), ("open", ["@reader open", ""]), ("none", ["", ""])],
)
def test_whose_words_are_sent(
    client: Client, device: Device, reader: User, other: User, words: str, bodies: list[str]
) -> None:
    subscribed(client, device, words=words)
    relations.follow(follower=reader, followee=other)
    say(other, "@reader open")
    say(other, "@reader secret", visibility=Visibility.MENTIONED)
    assert [message["body"] for message in device.messages] == bodies
    assert titles(device)[1] == "Other sent you a message"


def test_private_mentions_are_pushed_to_their_people_only(
    service: FarServer, device: Device, reader: User, other: User
) -> None:
    third = UserFactory(username="third")
    theirs = Device(service, "/send/third")
    their_client = logged_in(third)
    subscribed(their_client, theirs, words="all")
    relations.follow(follower=reader, followee=other)
    first = say(other, "@reader the secret", visibility=Visibility.MENTIONED)
    items.edit(item=first, content={"text": "@reader @third the secret"})
    say(other, "@reader @third more", visibility=Visibility.MENTIONED, reply_to=first)
    assert theirs.messages == []
    assert "the secret" in device.messages[0]["body"]


def test_the_first_message_of_a_stranger_is_not_pushed(device: Device, reader: User, other: User) -> None:
    say(other, "@reader psst", visibility=Visibility.MENTIONED)
    assert device.messages == []


def test_the_longest_message_fits(client: Client, device: Device, reader: User, other: User) -> None:
    accounts.edit_profile(user=other, display_name="😀" * 50)
    say(User.objects.get(pk=other.pk), "@reader " + "\U0001f469\u200d\U0001f680" * 400)
    (message,) = device.messages
    assert len(message["body"]) == messages.BODY_LENGTH
    assert device.service is not None
    assert len(device.service.bodies[0]) <= messages.MOST_BYTES + 103


def test_the_language_of_the_device(client: Client, device: Device, reader: User, other: User) -> None:
    reader.language = "zh-hans"
    reader.save()
    device_body = {**device.body, "words": "none"}
    client.post(PUSH, device_body, content_type="application/json", HTTP_X_READER=str(reader.pk))
    say(other, "an answer", reply_to=say(reader))
    (message,) = device.messages
    assert message["preferred_locale"] == "zh-hans"
    assert message["title"] == "Other 回复了你"


def test_policies(client: Client, device: Device, reader: User, other: User) -> None:
    row = PushSubscription.objects.get()
    for policy, follow in (("followed", (reader, other)), ("follower", (other, reader))):
        device.service.heads.clear(), device.service.bodies.clear()  # type: ignore[union-attr]
        actions.change(user=reader, subscription_id=row.pk, choice=PushChoice(kinds=["mention"], policy=policy))
        say(other, "@reader no")
        relations.follow(follower=follow[0], followee=follow[1])
        say(other, "@reader yes")
        relations.unfollow(follower=follow[0], followee=follow[1])
        assert [message["body"] for message in device.messages] == ["@reader yes"]
    actions.change(user=reader, subscription_id=row.pk, choice=PushChoice(policy="none"))
    say(other, "@reader no")
    assert len(device.messages) == 1


@pytest.mark.parametrize(
    ("hours", "hour", "is_quiet"),
    [((22, 7), 23, True), ((22, 7), 6, True), ((22, 7), 7, False), ((9, 17), 12, True), ((9, 17), 17, False)],
)
def test_quiet_hours(hours: tuple[int, int], hour: int, is_quiet: bool) -> None:
    now = datetime(2026, 7, 1, hour - 8 if hour >= 8 else hour + 16, 30, tzinfo=UTC)
    assert sending.is_quiet(*hours, "Asia/Shanghai", now) == is_quiet


def test_nothing_is_pushed_in_quiet_hours(device: Device, reader: User, other: User) -> None:
    now = timezone.now().hour
    actions.set_quiet_hours(user=reader, hours=(now, (now + 2) % 24))
    say(other, "@reader one")
    actions.set_quiet_hours(user=reader, hours=None)
    say(other, "@reader two")
    assert [message["body"] for message in device.messages] == ["@reader two"]
    assert not QuietHours.objects.exists()


def test_without_devices_nothing_is_enqueued(reader: User, other: User, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(waiting.queue_pushes, "delay", sent.append)
    say(other, "@reader")
    assert sent == []


def test_many_recipients_are_several_tasks(service: FarServer, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(waiting.queue_pushes, "delay", sent.append)
    told = []
    for number in range(waiting.ACTS + 5):
        user = UserFactory()
        client = logged_in(user)
        subscribed(client, Device(service, f"/send/{number}"))
        told.append((user.pk, number + 1))
    with statements() as asked:
        waiting.push_later(told)
    assert [len(acts) for acts in sent] == [waiting.ACTS, 5]
    assert len(asked) == 1


# --- Answers of the service ------------------------------------------------------------------------------
@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_a_device_that_is_gone_is_forgotten(device: Device, reader: User, other: User, status: str) -> None:
    device.service.rules[device.path] = answer(b"", status=status)  # type: ignore[union-attr]
    say(other, "@reader")
    assert not PushSubscription.objects.exists()


@pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Internal Server Error", "503 Service Unavailable"])
def test_a_service_that_is_busy_is_asked_again(device: Device, reader: User, other: User, status: str) -> None:
    assert device.service is not None
    device.service.rules[device.path] = answer(b"", status=status)
    say(other, "@reader one")
    row = PushSubscription.objects.get()
    for seconds in waiting.RETRIES:
        assert seconds - 5 <= pause(row) <= seconds
        waiting.push_device(row.pk)  # a failed device is paused
        later()
    assert [message["body"] for message in device.messages] == ["@reader one"] * 4
    row.refresh_from_db()
    assert (row.waiting, row.due_at, row.tries) == ([], None, 0)


def test_a_device_that_takes_messages_again(device: Device, reader: User, other: User) -> None:
    assert device.service is not None
    rule = device.service.rules[device.path]
    device.service.rules[device.path] = raw(b"")
    say(other, "@reader one")
    row = PushSubscription.objects.get()
    assert row.failing_since
    assert row.retry_at
    device.service.rules[device.path] = rule
    say(other, "@reader two")
    say(other, "@reader three")
    assert len(device.messages) == 1
    later()
    row.refresh_from_db()
    assert (row.failing_since, row.retry_at) == (None, None)
    say(other, "@reader four")
    bodies = [message["body"] for message in device.messages]
    assert bodies == ["@reader one", "@reader three\nand 2 more", "@reader four"]


def test_another_refusal_is_not_repeated(device: Device, reader: User, other: User) -> None:
    device.service.rules[device.path] = answer(b"", status="403 Forbidden")  # type: ignore[union-attr]
    say(other, "@reader one")
    row = PushSubscription.objects.get()
    assert row.failing_since
    assert (row.waiting, row.due_at) == ([], None)


def test_a_redirect_is_not_followed(device: Device, reader: User, other: User) -> None:
    assert device.service is not None
    device.service.rules[device.path] = answer(b"", status="307 Moved", Location=device.service.url("/other"))
    say(other, "@reader one")
    assert device.service.paths == [device.path]


def test_a_device_that_fails_for_a_week_is_forgotten(device: Device, reader: User, other: User) -> None:
    device.service.rules[device.path] = answer(b"", status="500 Oops")  # type: ignore[union-attr]
    row = PushSubscription.objects.get()
    pauses = []
    for days in (0, 1, 6.9, 7.1):
        PushSubscription.objects.update(
            failing_since=timezone.now() - timedelta(days=days), retry_at=None, due_at=None, waiting=[], tries=0
        )
        say(other, f"@reader {days}")
        found = PushSubscription.objects.filter(pk=row.pk).first()
        pauses.append(found and found.retry_at and round((found.retry_at - timezone.now()).total_seconds(), -1))
    assert pauses[1:] == [6 * 3600, 6 * 3600, None]
    assert pauses[0] in (10, 20)


@pytest.mark.parametrize("of", ["an act", "a test"])
def test_names_inside_end_as_names_that_are_not_there(
    client: Client,
    device: Device,
    reader: User,
    other: User,
    settings: Any,
    names: dict[str, list[list[str]]],
    monkeypatch: pytest.MonkeyPatch,
    of: str,
) -> None:
    """Neither in what is kept, nor by what a page shows when."""
    settings.OUTBOUND_TO_LOOPBACK = False
    row = PushSubscription.objects.get()
    fresh = PushSubscription(pk=row.pk, **{name: getattr(row, name) for name in COLUMNS})
    kept: dict[str, list[Any]] = {}
    shown: dict[str, list[Any]] = {}
    for name, address in (("inside.example.org", "10.0.0.1"), ("nonesuch.example.org", "..")):
        names[name] = [[address]] * 9
        fresh.endpoint = f"https://{name}/send/1"
        fresh.save()
        if of == "an act":
            say(other, "@reader")
        else:
            assert client.post(f"{PAGE}/{row.pk}/trial").status_code == 302
        kept[name], shown[name] = [], []
        for _ in range(len(waiting.RETRIES) + 1):
            row.refresh_from_db()
            assert row.failing_since is not None
            kept[name].append((len(row.waiting), row.trial_at is None, row.tries, pause(row) // 5, row.due_at is None))
            for seconds in (-1, 1):  # before and after the longest request would have ended
                moment = row.failing_since + timedelta(seconds=seconds)
                with monkeypatch.context() as patched:
                    patched.setattr("notifications.models.timezone.now", lambda moment=moment: moment)
                    page = client.get(PAGE).content.decode()
                shown[name].append((seconds, "reach this device" in page, "on its way" in page, "/trial" in page))
            later()
    assert [kept["inside.example.org"], shown["inside.example.org"]] == [
        kept["nonesuch.example.org"],
        shown["nonesuch.example.org"],
    ]
    assert {one[:2] for one in shown["inside.example.org"]} == {(-1, False), (1, True)}


# --- Recipients ------------------------------------------------------------------------------------------
def test_nothing_comes_after_the_log_out(client: Client, device: Device, reader: User, other: User) -> None:
    client.post("/logout")
    assert not PushSubscription.objects.exists()
    say(other, "@reader")
    assert device.messages == []


def test_nothing_comes_after_the_session_was_ended_elsewhere(client: Client, device: Device, other: User) -> None:
    Session.objects.all().delete()
    assert not PushSubscription.objects.exists()


def test_an_expired_session_gets_nothing(device: Device, other: User) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    say(other, "@reader")
    assert device.messages == []


@pytest.mark.parametrize("how", ["password", "everywhere", "deletion", "ban"])
def test_sessions_that_end_together(device: Device, reader: User, other: User, how: str) -> None:
    reader = User.objects.get(pk=reader.pk)
    if how == "password":
        reader.set_password("correct horse 5")
        reader.save()
        accounts.change_password(user=reader, current="correct horse 5", new="battery staple 7")
    elif how == "everywhere":
        accounts.log_out_everywhere(user=reader)
    elif how == "deletion":
        accounts.delete_account(user=reader)
    else:
        from moderation.senders import ban

        ban(user=reader, by=UserFactory(is_superuser=True, is_staff=True))
    assert not PushSubscription.objects.exists()


def test_an_inactive_user_gets_nothing(device: Device, reader: User, other: User) -> None:
    User.objects.filter(pk=reader.pk).update(is_active=False)
    say(other, "@reader")
    assert device.messages == []


def test_a_token_and_its_end(service: FarServer, prompt: None, reader: User, other: User) -> None:
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=reader)}")
    device = Device(service)
    assert subscribed(api, device).status_code == 201
    assert api.get(PUSH).json()["subscription"]["endpoint"] == device.endpoint
    say(other, "@reader")
    assert len(device.messages) == 1
    row = PushSubscription.objects.get()
    assert row.token_id
    accounts.revoke_token(token_id=row.token_id)
    assert not PushSubscription.objects.exists()


def test_another_user_of_the_same_browser(client: Client, device: Device, reader: User, other: User) -> None:
    client.logout()
    client.force_login(other)
    assert subscribed(client, device).status_code == 201
    say(UserFactory(), "@reader for the reader")
    say(UserFactory(), "@other for the other")
    assert [message["body"] for message in device.messages] == ["@other for the other"]


def test_two_sessions_with_one_device(device: Device, reader: User, other: User) -> None:
    another = logged_in(other)
    assert subscribed(another, device).status_code == 201
    assert PushSubscription.objects.get().user == other


def test_an_endpoint_alone_takes_no_device_away(device: Device, reader: User, other: User) -> None:
    thief = Device(device.service)
    another = logged_in(other)
    assert subscribed(another, thief).status_code == 409
    assert PushSubscription.objects.get().user == reader


def test_the_oldest_of_too_many_goes(service: FarServer, reader: User) -> None:
    for number in range(actions.MOST + 3):
        client = logged_in(reader)
        assert subscribed(client, Device(service, f"/send/{number}")).status_code == 201
    kept = PushSubscription.objects.filter(user=reader).order_by("pk")
    assert kept.count() == actions.MOST
    assert kept[0].endpoint.endswith("/send/3")


def test_a_new_subscription_of_a_session_replaces_the_old(client: Client, device: Device, reader: User) -> None:
    subscribed(client, device, kinds=["follow"], words="none")
    answer = subscribed(client, Device(device.service, "/send/2")).json()
    assert (answer["kinds"], answer["words"]) == (["follow"], "none")
    assert PushSubscription.objects.count() == 1


def test_a_session_that_has_ended_meanwhile(reader: User, service: FarServer) -> None:
    device = Device(service)
    with pytest.raises(actions.EndpointTakenError):
        actions.subscribe(
            user=reader,
            holder=DeviceHolder(session_key="x" * 32),
            device=actions.Device(device.endpoint, device.p256dh, device.auth),
            choice=PushChoice(),
        )


def test_a_session_of_an_old_password_subscribes_no_device(reader: User, service: FarServer) -> None:
    device, browser = Device(service), Client()
    browser.force_login(reader)
    before = User.objects.get(pk=reader.pk)
    accounts.change_password(user=reader, current=PASSWORD, new="another long passphrase")
    with pytest.raises(LoginEndedError):
        actions.subscribe(
            user=before,
            holder=DeviceHolder(session_key=browser.session.session_key),
            device=actions.Device(device.endpoint, device.p256dh, device.auth),
            choice=PushChoice(),
        )


def test_reading_and_removing(client: Client, device: Device, reader: User) -> None:
    told = client.get(PUSH).json()
    assert told["subscription"]["words"] == PushWords.ALL
    assert client.delete(PUSH).status_code == 204
    assert client.delete(PUSH).status_code == 204
    assert client.get(PUSH).json() == {"key": told["key"], "subscription": None}
    assert Client().get(PUSH).status_code == 401


def test_purge_leaves_nothing(device: Device, reader: User) -> None:
    actions.set_quiet_hours(user=reader, hours=(1, 2))
    from notifications import forgetting

    assert forgetting.forget_user(user=reader, limit=100) == 2
    assert not PushSubscription.objects.exists()
    assert not QuietHours.objects.exists()


# --- Bad subscriptions -----------------------------------------------------------------------------------
BAD_ENDPOINTS = [
    "http://push.example.org/1",
    "https://",
    "https://127.0.0.1/1",
    "https://127.1/1",
    "https://2130706433/1",
    "https://0x7f.0.0.1/1",
    "https://[::1]/1",
    "https://[::ffff:10.0.0.1]/1",
    "https://10.0.0.1/1",
    "https://169.254.169.254/latest",
    "https://100.64.0.1/1",
    "https://localhost/1",
    "https://printer/1",
    "https://db.internal/1",
    "https://push.example.org:8443/1",
    "https://user:word@push.example.org/1",
    "https://push.example.org/#part",
    "https://push.example.org/a b",
    "https://push.example.org\\[/1",
    "https://push.example.org/\u00e9",
    "ftp://push.example.org/",
    "javascript:alert(1)",
    "",
    "https://push.example.org/" + "a" * 2000,
]


def test_bad_endpoints(client: Client, reader: User, settings: Any) -> None:
    settings.RATE_SCALE = 1e6
    device = Device()
    for endpoint in BAD_ENDPOINTS:
        body = {"endpoint": endpoint, "keys": {"p256dh": device.p256dh, "auth": device.auth}}
        answer = client.post(PUSH, body, content_type="application/json")
        assert answer.status_code == 400, answer.content
        assert list(answer.json()) == ["endpoint"], endpoint
    assert not PushSubscription.objects.exists()


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://fcm.googleapis.com/fcm/send/abc:def",
        "https://updates.push.services.mozilla.com/wpush/v2/gAAA",
        "https://web.push.apple.com/QA",
        "https://wns2-par02p.notify.windows.com/w/?token=BQ%3d",
        "https://app.joinmastodon.org:443/relay-to/fcm/x",
        "https://8.8.8.8/1",
    ],
)
def test_endpoints_of_services(endpoint: str) -> None:
    actions.check_endpoint(endpoint)


@pytest.mark.parametrize(
    "keys",
    [
        {"p256dh": "", "auth": Device().auth},
        {"p256dh": Device().auth, "auth": Device().auth},
        {"p256dh": "B" + "A" * 86, "auth": Device().auth},
        {"p256dh": Device().p256dh, "auth": "AAAA"},
        {"p256dh": Device().p256dh, "auth": "ü" * 22},
        {"p256dh": Device().p256dh},
        {"p256dh": "B" * 101, "auth": Device().auth},
        {"p256dh": 7, "auth": Device().auth},
        "text",
    ],
)
def test_bad_keys(client: Client, reader: User, keys: Any) -> None:
    body = {"endpoint": "https://push.example.org/1", "keys": keys}
    assert client.post(PUSH, body, content_type="application/json").status_code == 400


@pytest.mark.parametrize(
    "more", [{"kinds": ["like"]}, {"kinds": ["reply"] * 9}, {"kinds": "reply"}, {"words": "some"}, {"user": 1}]
)
def test_bad_choices(client: Client, reader: User, more: Any) -> None:
    device = Device()
    body = {"endpoint": "https://push.example.org/1", "keys": {"p256dh": device.p256dh, "auth": device.auth}, **more}
    assert client.post(PUSH, body, content_type="application/json").status_code == 400


def test_a_dead_broker_costs_no_post(
    device: Device, reader: User, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **options: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(celery.app, "send_task", fails)
    assert say(other, "@reader").pk
