import json
import time
from datetime import timedelta
from typing import Any

import pyotp
import pytest
import time_machine
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from fido2.utils import websafe_encode
from rest_framework.test import APIClient

from accounts import addresses
from accounts.mail.models import Letter
from accounts.models import Authenticator, User
from accounts.signing_in import second_factors, webauthn
from tests.support.at_once import at_once
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def code_at(moment: float) -> str:
    return pyotp.TOTP(SECRET).generate_otp(int(moment) // 30)


@pytest.fixture
def ann() -> User:
    user: User = UserFactory(username="ann", is_staff=True, is_superuser=True)
    addresses.add(user=user, address="ann@example.org")
    addresses.prove_by_code(user=user, code=Letter.objects.latest("pk").context["code"])
    return User.objects.get(pk=user.pk)


@pytest.fixture
def guarded(ann: User) -> User:
    """Set up a while ago, so current codes are unused."""
    before = time.time() - 300
    with time_machine.travel(before, tick=False):
        second_factors.set_up_app(user=ann, secret=SECRET, code=code_at(before))
    return ann


def token(**fields: str) -> Any:
    return APIClient().post("/api/v1/auth/token", {"username": "ann", "password": PASSWORD} | fields)


@pytest.mark.parametrize("name", ["ann", "ANN", " ann ", "@ann", "ann@example.org", "Ann@Example.org "])
def test_by_name_or_address(ann: User, name: str) -> None:
    assert Client().post("/login", {"username": name, "password": PASSWORD}).status_code == 302
    assert (
        Client().post("/admin/login/?next=/admin/", {"username": name, "password": PASSWORD})["Location"] == "/admin/"
    )
    assert token(username=name).status_code == 200


def test_an_address_that_is_not_proven_signs_in_nobody(ann: User) -> None:
    bob: User = UserFactory(username="bob")
    addresses.add(user=bob, address="bob@example.org")
    assert Client().post("/login", {"username": "bob@example.org", "password": PASSWORD}).status_code == 422


def test_the_refusal_of_a_name_says_nothing_of_an_address(ann: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"login": "2/hour"}
    page = Client()
    guesses = [page.post("/login", {"username": "ann", "password": "wrong"}).status_code for _ in range(3)]
    assert guesses == [422, 422, 429]
    for address in ("ann@example.org", "nobody@example.org"):
        assert page.post("/login", {"username": address, "password": "wrong"}).status_code == 422


def test_guesses_at_an_address_are_guesses_at_its_name(ann: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"login_name": "4/hour"}
    names = ["ann", "ann@example.org"] * 3
    statuses = [
        Client().post("/login", {"username": name, "password": "wrong"}, REMOTE_ADDR=f"10.0.5.{n}").status_code
        for n, name in enumerate(names)
    ]
    assert statuses == [422] * 4 + [429] * 2


# --- With a second factor --------------------------------------------------------------------------------
@pytest.mark.parametrize("hours", [-1, 48])
def test_a_right_password_counts_for_ten_minutes_only(guarded: User, hours: int) -> None:
    """Also if the clock ran ahead then, and was set right."""
    client = Client()
    with time_machine.travel(timezone.now() + timedelta(hours=hours)):
        client.post("/login", {"username": "ann", "password": PASSWORD})
        assert client.get("/login/code").status_code == 200
    assert client.get("/login/code")["Location"] == "/login"


def test_the_page_asks_for_a_code_after_the_right_password_only(guarded: User) -> None:
    client = Client()
    assert client.post("/login", {"username": "ann", "password": "wrong"}).status_code == 422
    assert client.get("/login/code")["Location"] == "/login"
    answer = client.post("/login?next=/settings", {"username": "ann", "password": PASSWORD})
    assert answer["Location"] == "/login/code?next=%2Fsettings"
    assert client.get("/settings").status_code == 302
    assert client.post("/login/code", {"code": "000000"}).status_code == 422
    code = code_at(time.time())
    assert client.post("/login/code?next=/settings", {"code": f"{code[:3]} {code[3:]}"})["Location"] == "/settings"
    assert client.get("/settings").status_code == 200


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_no_next_leads_away(guarded: User, target: str) -> None:
    client = Client()
    answer = client.post("/login", {"username": "ann", "password": PASSWORD, "next": target})
    assert answer["Location"] == "/login/code"
    assert client.post("/login/code", {"code": code_at(time.time()), "next": target})["Location"] == "/"
    proof = {"password": PASSWORD, "code": second_factors.recovery_codes(guarded)[0], "next": target}
    assert client.post("/settings/confirm", proof)["Location"] == "/settings"
    carried = {"password": PASSWORD, "code": second_factors.recovery_codes(guarded)[0], "act": target}
    assert client.post("/settings/confirm", carried)["Location"] == "/settings"


def test_the_right_password_waits_ten_minutes_and_ends_with_it(guarded: User) -> None:
    late, changed = Client(), Client()
    for client in (late, changed):
        client.post("/login", {"username": "ann", "password": PASSWORD})
    moment = time.time() + 601
    with time_machine.travel(moment, tick=False):
        assert late.post("/login/code", {"code": code_at(moment)})["Location"] == "/login"
    guarded.set_password("another long password")
    guarded.save()
    assert changed.post("/login/code", {"code": code_at(time.time())})["Location"] == "/login"


def test_the_api_asks_for_a_code(guarded: User) -> None:
    assert token(password="wrong").json().keys() == token(password="wrong", code="123456").json().keys()
    assert token().json().keys() == {"code"}
    assert token(code="000000").status_code == 400
    assert token(code=code_at(time.time())).status_code == 200


def test_the_admin_sends_those_with_a_second_factor_to_the_page(guarded: User) -> None:
    client = Client()
    answer = client.post("/admin/login/", {"username": "ann", "password": PASSWORD})
    assert answer.status_code == 200
    assert "two-step" in answer.content.decode()
    assert client.get("/admin/").status_code == 302


def test_a_code_counts_once_and_none_of_an_earlier_step_after_it(guarded: User) -> None:
    now = time.time()
    with time_machine.travel(now, tick=False):
        assert token(code=code_at(now)).status_code == 200
        cache.clear()  # replay protection must not rest on the cache
        assert token(code=code_at(now)).status_code == 400
        assert token(code=code_at(now - 30)).status_code == 400
    assert token(code=code_at(now + 30)).status_code == 200  # a fast clock


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_code_counts_once_of_many_at_once(guarded: User) -> None:
    code = code_at(time.time())
    recovery = second_factors.recovery_codes(guarded)[0]
    for each in (code, recovery):
        answers = at_once(*[lambda each=each: second_factors.use_code(user=guarded, code=each)] * 4)
        assert answers.count(None) == 1


def test_recovery_codes_count_once_and_new_ones_end_the_old(guarded: User) -> None:
    first, second, *_rest = second_factors.recovery_codes(guarded)
    assert len({first, second, *_rest}) == 10
    assert token(code=f"{first[:4]} {first[4:]}").status_code == 200
    assert token(code=first).status_code == 400
    second_factors.renew_recovery_codes(user=guarded)
    assert token(code=second).status_code == 400
    assert token(code=second_factors.recovery_codes(guarded)[0]).status_code == 200


@pytest.mark.slow
def test_codes_are_counted_and_a_known_browser_apart(guarded: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"login_code": "3/hour"}
    settings.RATE_SCALE = 1
    owner = Client()
    owner.post("/login", {"username": "ann", "password": PASSWORD})
    owner.post("/login/code", {"code": second_factors.recovery_codes(guarded)[0]})
    owner.post("/logout")
    assert [token(code="000000").status_code for _ in range(3)] == [400, 400, 429]
    assert token(code=code_at(time.time())).status_code == 429
    owner.post("/login", {"username": "ann", "password": PASSWORD})
    assert owner.post("/login/code", {"code": code_at(time.time())}).status_code == 302


@pytest.mark.slow
def test_setting_up_and_removing_an_app(ann: User) -> None:
    client = Client()
    client.post("/login", {"username": "ann", "password": PASSWORD})
    page = client.get("/settings/factors/app").content.decode()
    secret = client.session["app_secret"]
    assert secret in page
    assert "<svg" in page
    assert client.post("/settings/factors/app", {"code": "000000"}).status_code == 422
    code = pyotp.TOTP(secret).generate_otp(int(time.time()) // 30)
    assert client.post("/settings/factors/app", {"code": code})["Location"] == "/settings/factors/recovery-codes"
    assert second_factors.recovery_codes(ann)[0][:4] in client.get("/settings/factors/recovery-codes").content.decode()
    assert Letter.objects.filter(kind="factor_added").exists()
    assert token(code=code).status_code == 400  # used up at set-up

    stranger = logged_in(UserFactory())
    row = Authenticator.objects.get(type="totp")
    stranger.post("/settings/factors/remove", {"id": row.pk})
    assert second_factors.has_factor(ann)
    client.post("/settings/factors/remove", {"id": row.pk})
    assert not Authenticator.objects.exists()
    assert token().status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/login/passkey", "login_address"),
        ("/login/passkey/options", "login_address"),
        ("/password-reset", "reset"),
        ("/password-reset/1/x", "reset"),
        ("/verify-email/1.x", "email"),
        ("/settings/confirm", "password"),
        ("/settings/confirm/passkey", "password"),
        ("/settings/confirm/passkey/options", "password"),
        ("/settings/email", "email"),
        ("/settings/email/code", "email"),
        ("/settings/email/again", "email"),
        ("/settings/email/remove", "email"),
        ("/settings/factors/app", "password"),
    ],
)
def test_each_address_that_proves_or_writes_letters_has_a_rate(ann: User, settings: Any, path: str, scope: str) -> None:
    settings.RATES = settings.RATES | {scope: "2/hour"}
    settings.RATE_SCALE = 1
    client = Client()
    if path.startswith("/settings"):
        client.force_login(ann)
    body = {"username_or_email": "nobody", "answer": "{}", "email": "x", "code": "1", "password": "x"}
    statuses = [client.post(path, body).status_code for _ in range(3)]
    assert statuses[2] == 429
    assert 429 not in statuses[:2]


# --- Step-up ---------------------------------------------------------------------------------------------
DANGEROUS = [
    "/settings/factors/app",
    "/settings/factors/passkey",
    "/settings/factors/recovery-codes",
]


@pytest.mark.slow
@pytest.mark.parametrize("path", DANGEROUS)
def test_dangerous_pages_ask_again_after_a_while(guarded: User, path: str) -> None:
    client = logged_in(guarded)
    assert client.get(path).status_code == 200
    moment = time.time() + 901
    with time_machine.travel(moment, tick=False):
        asked = client.get(path)
        assert asked["Location"].startswith("/settings/confirm?next=")
        assert client.post(path, {"email": "x@example.org"})["Location"].startswith("/settings/confirm")
        page = asked["Location"]
        assert client.post(page, {"password": PASSWORD, "code": "000000"}).status_code == 422
        assert client.post(page, {"password": "wrong", "code": code_at(moment)}).status_code == 422
        assert client.post(page, {"password": PASSWORD, "code": code_at(moment)})["Location"] == path
        assert client.get(path).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/settings/password", "/settings/delete"])
def test_pages_with_the_password_want_the_factor_too(guarded: User, path: str) -> None:
    client, bare = Client(), Client()
    client.force_login(guarded)
    bare.force_login(UserFactory())
    with time_machine.travel(time.time() + 901, tick=False):
        assert client.get(path)["Location"] == f"/settings/confirm?next={path.replace('/', '%2F')}"
        assert client.post(path, {"current": PASSWORD, "new": "another long password"}).status_code == 302
        assert bare.get(path).status_code == 200
    guarded.refresh_from_db()
    assert guarded.check_password(PASSWORD)


API_DANGERS = [
    ("patch", "", {"email": "x@example.org", "current_password": PASSWORD}),
    ("get", "/export", {}),
    ("post", "/export", {"password": PASSWORD}),
    ("post", "/password", {"current_password": PASSWORD, "new_password": "another long password"}),
    ("post", "/delete", {"password": PASSWORD}),
]


@pytest.mark.parametrize(("method", "path", "fields"), API_DANGERS)
def test_the_api_wants_the_same_proof_of_a_session(
    guarded: User, method: str, path: str, fields: dict[str, str]
) -> None:
    client = APIClient()
    client.force_login(guarded)
    call = getattr(client, method)
    with time_machine.travel(time.time() + 901, tick=False):
        answer = call(f"/api/v1/users/me{path}", fields)
        assert (answer.status_code, answer.json()["code"]) == (403, "proof_needed")
        assert client.head("/api/v1/users/me/export").status_code == 403
    guarded.refresh_from_db()
    assert guarded.is_active
    assert guarded.check_password(PASSWORD)
    assert addresses.unconfirmed_address(guarded) == ""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "fields"), API_DANGERS)
def test_the_api_takes_a_session_that_proved_itself(
    guarded: User, method: str, path: str, fields: dict[str, str]
) -> None:
    UserFactory(is_staff=True, is_superuser=True)  # not the last admin
    client = APIClient()
    client.force_login(guarded)
    answer = getattr(client, method)(f"/api/v1/users/me{path}", fields)
    answer.close()
    assert answer.status_code in (200, 204)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "fields"), [call for call in API_DANGERS if call[0] != "get"])
@pytest.mark.parametrize("is_by_token", [True, False])
def test_a_call_with_the_password_wants_a_code_of_those_with_a_factor(
    guarded: User, method: str, path: str, fields: dict[str, str], is_by_token: bool
) -> None:
    """A leaked token and password must not delete the account or lock the owner out."""
    UserFactory(is_staff=True, is_superuser=True)  # not the last admin
    client = APIClient()
    if is_by_token:
        client.credentials(HTTP_AUTHORIZATION=f"Token {token(code=code_at(time.time())).json()['token']}")
    else:
        client.force_login(guarded)
    password = "password" if path in ("/delete", "/export") else "current_password"
    recovery = second_factors.recovery_codes(guarded)[0]

    def call(**more: str) -> Any:
        return getattr(client, method)(f"/api/v1/users/me{path}", fields | more)

    with time_machine.travel(time.time() + 901, tick=False):
        assert call().status_code == (400 if is_by_token else 403)
        assert call(code="000000").json().keys() == {"code"}
        assert call(code=recovery, **{password: "wrong"}).json().keys() == {password}  # the code is not used up
        guarded.refresh_from_db()
        assert guarded.check_password(PASSWORD)
        assert addresses.unconfirmed_address(guarded) == ""
        done = call(code=recovery)
        done.close()
        assert done.status_code in (200, 204)


def test_an_export_by_token_wants_the_code_too(guarded: User) -> None:
    """A stolen token must not take everything along."""
    client, bare = APIClient(), APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token(code=code_at(time.time())).json()['token']}")
    for method in ("get", "head"):
        refused = getattr(client, method)("/api/v1/users/me/export")
        assert refused.status_code == 403
    assert client.get("/api/v1/users/me/export").json()["code"] == "code_needed"
    bob: User = UserFactory(username="bob")
    bare.credentials(HTTP_AUTHORIZATION=f"Token {token(username=bob.username).json()['token']}")
    for answer in (
        bare.get("/api/v1/users/me/export"),
        bare.post("/api/v1/users/me/export", {"password": PASSWORD}),
    ):
        assert b"".join(answer.streaming_content).startswith(b"PK")
    assert bare.post("/api/v1/users/me/export", {"password": "wrong"}).json().keys() == {"password"}


def test_guesses_at_a_code_by_a_token_are_counted(guarded: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"login_code": "3/hour"}
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token(code=code_at(time.time())).json()['token']}")
    farewell = {"password": PASSWORD, "code": "000000"}
    answers = [client.post("/api/v1/users/me/delete", farewell).status_code for _ in range(3)]
    assert answers == [400, 400, 429]


def test_without_a_factor_the_password_in_the_call_is_proof(ann: User) -> None:
    client = APIClient()
    client.force_login(ann)
    with time_machine.travel(time.time() + 901, tick=False):
        change = {"current_password": PASSWORD, "new_password": "another long password"}
        assert client.patch("/api/v1/users/me", {"display_name": "Ann"}).status_code == 200
        assert client.get("/api/v1/users/me/export").status_code == 403
        assert client.post("/api/v1/users/me/password", change).status_code == 204


def test_every_passkey_asks_who_holds_it(guarded: User) -> None:
    """A key without PIN or fingerprint would be one factor for two."""
    client = Client()
    client.post("/login", {"username": "ann", "password": PASSWORD})
    assert client.post("/login/passkey/options").json()["publicKey"]["userVerification"] == "required"
    client.force_login(guarded)
    assert client.post("/settings/confirm/passkey/options").json()["publicKey"]["userVerification"] == "required"


@pytest.mark.parametrize("path", ["/login", "/admin/login/"])
def test_a_name_that_no_column_can_hold(path: str) -> None:
    answer = Client().post(path, {"username": "ann@exam\0ple.org", "password": "x"})
    assert answer.status_code in (200, 422)


@pytest.mark.parametrize("path", ["account", "email", "devices", "factors", "data"])
def test_looking_asks_for_no_proof(guarded: User, path: str) -> None:
    client = logged_in(guarded)
    with time_machine.travel(time.time() + 901, tick=False):
        assert client.get(f"/settings/{path}").status_code == 200


@pytest.mark.parametrize("what", ["email", "email/again", "email/remove", "devices/end", "factors/remove"])
def test_what_changes_waits_for_a_proof_and_is_done_then(guarded: User, what: str) -> None:
    client = logged_in(guarded)
    moment = time.time() + 901
    with time_machine.travel(moment, tick=False):
        asked = client.post(f"/settings/{what}", {"email": "new@example.org", "csrfmiddlewaretoken": "x"}, follow=True)
        assert asked.redirect_chain[0][1] == 307
        page = asked.content.decode()
        assert f'<input type="hidden" name="act" value="/settings/{what}">' in page
        assert '<input type="hidden" name="email" value="new@example.org">' in page
        fields = {"act": f"/settings/{what}", "email": "new@example.org", "password": "wrong", "code": code_at(moment)}
        assert 'name="email" value="new@example.org"' in client.post("/settings/confirm", fields).content.decode()
        assert not addresses.unconfirmed_address(guarded)
        assert addresses.confirmed_address(guarded) == "ann@example.org"
        done = client.post("/settings/confirm", fields | {"password": PASSWORD})
        assert (done.status_code, done["Location"]) == (307, f"/settings/{what}")
        assert client.post(done["Location"], fields).status_code == 302
    guarded.refresh_from_db()
    assert (not addresses.confirmed_address(guarded)) is (what == "email/remove")
    assert (addresses.unconfirmed_address(guarded) == "new@example.org") is (what == "email")


def test_a_download_waits_for_a_proof_and_is_asked_again(guarded: User) -> None:
    client = logged_in(guarded)
    with time_machine.travel(time.time() + 901, tick=False):
        assert client.post("/settings/data")["Location"] == "/settings/confirm?next=%2Fsettings%2Fdata"


def test_a_link_carries_no_act(guarded: User) -> None:
    client = logged_in(guarded)
    page = client.get("/settings/confirm?act=/settings/email/remove").content.decode()
    assert 'action="/settings/confirm"' in page
    assert 'name="act"' not in page


@pytest.mark.parametrize(
    "answer", ["", "x", "[]", "null", '{"id": 1}', '{"response": {"userHandle": "x"}}', "[" * 9_000]
)
def test_what_no_passkey_answers(ann: User, answer: str) -> None:
    client = Client()
    client.post("/login/passkey/options")
    assert client.post("/login/passkey", {"answer": answer}).status_code in (302, 400)
    assert client.get("/settings").status_code == 302
    inside = logged_in(ann)
    inside.post("/settings/factors/passkey/options")
    assert inside.post("/settings/factors/passkey", {"name": "x", "credential": answer}).status_code in (400, 422)
    assert inside.post("/settings/confirm/passkey", {"answer": answer}).status_code in (302, 400)


def signed_bytes(*ends: bytes) -> list[str]:
    """Authenticator data that claims extensions, followed by these CBOR bytes."""
    return [websafe_encode(bytes(32) + b"\x80" + bytes(4) + end) for end in ends]


@pytest.mark.slow
@pytest.mark.parametrize("data", ["AA", *signed_bytes(b"", b"\x82\x61", b"\x18", b"\x81" * 3_000)])
def test_bytes_that_no_passkey_signs(ann: User, data: str) -> None:
    said = websafe_encode(b'{"type": "webauthn.get", "challenge": "AA", "origin": "x"}')
    parts = {"clientDataJSON": said, "authenticatorData": data, "attestationObject": data, "signature": "AA"}
    parts["userHandle"] = websafe_encode(webauthn.handle(ann))
    answer = json.dumps({"id": "AA", "rawId": "AA", "type": "public-key", "response": parts})
    client, inside = Client(), Client()
    client.post("/login/passkey/options")
    assert client.post("/login/passkey", {"answer": answer}).status_code == 302
    assert client.get("/settings").status_code == 302
    inside.force_login(ann)
    inside.post("/settings/confirm/passkey/options")
    assert inside.post("/settings/confirm/passkey", {"answer": answer}).status_code == 302
    inside.post("/settings/factors/passkey/options")
    assert inside.post("/settings/factors/passkey", {"name": "x", "credential": answer}).status_code == 422


def test_an_admin_removes_the_factors_of_one_who_lost_them(guarded: User) -> None:
    bob: User = UserFactory(username="bob")
    now = time.time()
    second_factors.set_up_app(user=bob, secret=SECRET, code=code_at(now))
    client = logged_in(guarded)
    asked = client.post("/admin/accounts/user/", {"action": "forget_factors", "_selected_action": [bob.pk]})
    assert "Turn off two-step login" in asked.content.decode()
    assert second_factors.has_factor(bob)
    fields = {"action": "forget_factors", "_selected_action": [bob.pk], "confirmed": "1"}
    assert client.post("/admin/accounts/user/", fields).status_code == 302
    assert not second_factors.has_factor(bob)
    assert second_factors.has_factor(guarded)


def test_the_admin_changes_passwords_on_the_page_of_the_site(guarded: User) -> None:
    """Django's own asks for no second factor, counts no guesses and ends no tokens."""
    client = logged_in(guarded)
    form = {"old_password": PASSWORD, "new_password1": "another long one", "new_password2": "another long one"}
    assert client.post("/admin/password_change/", form)["Location"] == "/settings/password"
    guarded.refresh_from_db()
    assert guarded.check_password(PASSWORD)
