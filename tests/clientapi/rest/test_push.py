from typing import Any

import pytest

from accounts.models import User
from accounts.signing_in.sealing import unseal
from clientapi.rest.oauth import AppBody
from notifications.models import PushSubscription, PushWords
from notifications.push import actions
from notifications.push.encryption import public_key
from tests.support.clients import Caller, app_of
from tests.support.factories import say
from tests.support.far_servers import FarServer
from tests.support.push_services import Device, headers_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PUSH = "v1/push/subscription"


@pytest.fixture
def caller(ann: User, prompt: None) -> Caller:
    return Caller(ann)


def asked(device: Device, *alerts: str, **more: Any) -> dict[str, Any]:
    return {
        "subscription": {**device.body, **more.pop("subscription", {})},
        "data": {"alerts": dict.fromkeys(alerts, True), **more},
    }


def test_an_app_subscribes_and_gets_messages_as_of_mastodon(
    service: FarServer, caller: Caller, ann: User, bob: User
) -> None:
    device = Device(service)
    told = caller.post(PUSH, asked(device, "mention", "favourite", subscription={"standard": True}))
    assert told["endpoint"] == device.endpoint
    assert told["server_key"] == public_key()
    assert (told["standard"], told["policy"]) == (True, "all")
    on = {name for name, is_on in told["alerts"].items() if is_on}
    assert on == {"mention"}
    assert {"favourite", "reblog", "follow", "poll", "admin.sign_up", "admin.report"} < set(told["alerts"])
    assert caller.get(PUSH) == told
    said = say(bob, "hello @ann")
    say(bob, "an answer", reply_to=say(ann))
    first, second = device.messages
    token = caller.headers["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    assert (first["access_token"], first["notification_type"], first["title"]) == (
        token,
        "mention",
        "bob mentioned you",
    )
    assert (first["body"], first["preferred_locale"]) == ("hello @ann", "en")
    assert first["icon"].startswith("http")
    found = caller.get(f"v1/notifications/{first['notification_id']}")
    assert (found["type"], found["status"]["id"]) == ("mention", str(said.pk))
    assert second["notification_type"] == "mention"


def test_an_app_of_before_the_standard(service: FarServer, caller: Caller, ann: User, bob: User) -> None:
    device = Device(service)
    assert caller.post(PUSH, asked(device, "mention"))["standard"] is False
    say(bob, "hello @ann")
    assert device.messages[0]["body"] == "hello @ann"
    head = headers_of(service.heads[0])
    assert head["Content-Encoding"] == "aesgcm"
    assert head["Authorization"].startswith("WebPush ")
    assert f"p256ecdsa={public_key()}" in head["Crypto-Key"]


def test_the_token_is_kept_sealed(service: FarServer, caller: Caller) -> None:
    caller.post(PUSH, asked(Device(service), "mention"))
    row = PushSubscription.objects.get()
    token = caller.headers["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    assert token not in row.app_token
    assert unseal(row.app_token) == token


def test_changes(service: FarServer, caller: Caller, ann: User) -> None:
    device = Device(service)
    caller.put(PUSH, {"data": {"alerts": {"mention": True}}}, status=404)
    assert caller.get(PUSH, status=404) == {"error": "Record not found"}
    made = caller.post(PUSH, asked(device, "mention", "follow"))
    actions.change(user=ann, subscription_id=int(made["id"]), choice=actions.PushChoice(words=PushWords.NONE))
    changed = caller.put(
        PUSH, {"data": {"alerts": {"follow": "1", "quote": "true", "poll": True}, "policy": "follower"}}
    )
    assert {name for name, is_on in changed["alerts"].items() if is_on} == {"follow", "quote", "poll"}
    assert (changed["policy"], changed["id"]) == ("follower", made["id"])
    again = caller.post(PUSH, asked(device, "mention", policy="none"))
    assert (again["policy"], PushSubscription.objects.get().words) == ("none", "none")
    assert caller.delete(PUSH) == {}
    assert caller.delete(PUSH) == {}
    assert not PushSubscription.objects.exists()


def test_by_form(service: FarServer, caller: Caller) -> None:
    device = Device(service)
    form = {
        "subscription[endpoint]": device.endpoint,
        "subscription[keys][p256dh]": device.p256dh.replace("-", "+").replace("_", "/") + "=",
        "subscription[keys][auth]": device.auth + "==",
        "data[alerts][follow_request]": "true",
        "policy": "followed",
    }
    told = caller.post(PUSH, form, form=True)
    assert told["alerts"]["follow_request"] is True
    assert told["policy"] == "followed"
    assert PushSubscription.objects.get().p256dh == device.p256dh


def test_bad_subscriptions(caller: Caller) -> None:
    device = Device()
    keys = {"p256dh": device.p256dh, "auth": device.auth}
    for bad in (
        {},
        {"subscription": {}},
        {"subscription": "text"},
        {"subscription": {"endpoint": "https://push.example.org/1"}},
        {"subscription": {"endpoint": "http://push.example.org/1", "keys": keys}},
        {"subscription": {"endpoint": "https://10.0.0.1/1", "keys": keys}},
        {"subscription": {"endpoint": "https://push.example.org/1", "keys": {**keys, "auth": "A"}}},
        {"subscription": {"endpoint": "https://push.example.org/1", "keys": keys}, "data": {"policy": "some"}},
        {"subscription": {"endpoint": "https://push.example.org/1", "keys": keys}, "data": {"alerts": {"follow": 7}}},
    ):
        assert "Validation failed" in caller.post(PUSH, bad, status=422)["error"]
    assert not PushSubscription.objects.exists()


def test_scopes_and_other_tokens(service: FarServer, caller: Caller, ann: User, bob: User) -> None:
    device = Device(service)
    Caller(ann, "read write").post(PUSH, asked(device, "mention"), status=403)
    Caller(None).post(PUSH, asked(device, "mention"), status=401)
    caller.post(PUSH, asked(device, "mention"))
    Caller(ann).get(PUSH, status=404)
    assert "another account" in Caller(bob).post(PUSH, asked(Device(service), "mention"), status=422)["error"]
    only_push = Caller(ann, "push")
    assert only_push.get("v1/me/push")["subscription"] is None
    only_push.get("v1/notifications", status=403)


def test_the_key_is_told() -> None:
    anybody = Caller(None)
    assert anybody.get("v2/instance")["configuration"]["vapid"] == {"public_key": public_key()}
    assert AppBody.of(app_of()).vapid_key == public_key()


def test_revoking_the_token_ends_it(service: FarServer, caller: Caller, ann: User) -> None:
    caller.post(PUSH, asked(Device(service), "mention"))
    from accounts.actions import revoke_token

    token_id = PushSubscription.objects.get().token_id
    assert token_id is not None
    revoke_token(token_id=token_id)
    assert not PushSubscription.objects.exists()
