"""What is made of a proof that ends meanwhile. The end holds the user's row until the maker waits for it."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyotp
import pytest
import time_machine
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from oauth2_provider.models import AccessToken, Grant

from accounts import actions, addresses, proofs
from accounts.deactivation import deactivate, reactivate
from accounts.mail.models import Letter
from accounts.models import Authenticator, EmailAddress, User
from accounts.signing_in import places, recovery, second_factors
from accounts.signing_in_models import ClientApp
from accounts.user_admin import PasswordByAdminForm
from clientapi.oauth.actions import OUT_OF_BAND, register
from tests.support.at_once import at_once, until_one_waits
from tests.support.effort import tries
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in
from tests.support.passkeys import HOST, Passkey

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

NEW = "another long passphrase"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
TOKEN = "/api/v1/auth/token"

Door = Callable[[User], Iterator[bool]]


def code_at(moment: float, secret: str = SECRET) -> str:
    return pyotp.TOTP(secret).generate_otp(int(moment) // 30)


# --- Doors: prepare, then make the right, then tell whether it opens anything -----------------------------
def by_api(user: User) -> Iterator[bool]:
    yield False
    answer = Client().post(TOKEN, {"username": "ann", "password": PASSWORD}, content_type="application/json")
    yield False
    assert answer.status_code in (200, 400), answer.content
    headers = {"authorization": f"Token {answer.json().get('token')}"}
    yield Client(headers=headers).get("/api/v1/users/me").status_code == 200


def by_page(user: User) -> Iterator[bool]:
    client = Client()
    yield False
    assert client.post("/login", {"username": "ann", "password": PASSWORD}).status_code == 302
    yield False
    yield client.get("/settings").status_code == 200


def by_code(user: User) -> Iterator[bool]:
    client, before = Client(), time.time() - 300
    with time_machine.travel(before, tick=False):
        second_factors.set_up_app(user=user, secret=SECRET, code=code_at(before))
    client.post("/login", {"username": "ann", "password": PASSWORD})
    yield False
    assert client.post("/login/code", {"code": code_at(time.time())}).status_code == 302
    yield False
    yield client.get("/settings").status_code == 200


def by_passkey(user: User) -> Iterator[bool]:
    client, key = Client(), Passkey()
    assert key.add_to(logged_in(user)).status_code == 302
    answer = key.answer(client, user)
    yield False
    assert client.post("/login/passkey", {"answer": answer}, **HOST).status_code == 302
    yield False
    yield client.get("/settings").status_code == 200


def by_admin(user: User) -> Iterator[bool]:
    client = Client()
    actions.promote(user=user)
    yield False
    client.post("/admin/login/?next=/admin/", {"username": "ann", "password": PASSWORD})
    yield False
    yield client.get("/settings").status_code == 200


def _app() -> dict[str, str]:
    app, secret = register(name="An app", addresses=[OUT_OF_BAND])
    return {"client_id": app.client_id, "redirect_uri": OUT_OF_BAND, "client_secret": secret}


def _allowed(client: Client, app: dict[str, str]) -> str:
    query = {"response_type": "code", "client_id": app["client_id"], "redirect_uri": OUT_OF_BAND, "scope": "read"}
    page = client.post(reverse("oauth-authorize", query=query), {"answer": "allow"}).content.decode()
    return page.partition("<code>")[2].partition("</code>")[0]


def _exchanged(app: dict[str, str], code: str) -> Any:
    return Client().post("/oauth/token", app | {"grant_type": "authorization_code", "code": code})


def _opens(answer: Any) -> bool:
    assert answer.status_code in (200, 400), answer.content
    headers = {"authorization": f"Bearer {answer.json().get('access_token')}"}
    return Client(headers=headers).get("/api/v1/accounts/verify_credentials").status_code == 200


def by_authorizing(user: User) -> Iterator[bool]:
    client, app = logged_in(user), _app()
    yield False
    code = _allowed(client, app)
    yield False
    yield _opens(_exchanged(app, code))


def by_exchange(user: User) -> Iterator[bool]:
    app = _app()
    code = _allowed(logged_in(user), app)
    yield False
    answer = _exchanged(app, code)
    yield False
    yield _opens(answer)


def by_new_app(user: User) -> Iterator[bool]:
    client = logged_in(user)
    client.get("/settings/factors/app")
    yield False
    client.post("/settings/factors/app", {"code": code_at(time.time(), client.session["app_secret"])})
    yield False
    yield Authenticator.objects.exists()


def by_new_passkey(user: User) -> Iterator[bool]:
    client = logged_in(user)
    yield False
    Passkey().add_to(client)
    yield False
    yield Authenticator.objects.exists()


def by_address(user: User) -> Iterator[bool]:
    client = logged_in(user)
    addresses.add(user=user, address="thief@example.org")
    code = Letter.objects.latest("pk").context["code"]
    yield False
    client.post("/settings/email/code", {"code": code})
    yield False
    yield EmailAddress.objects.filter(verified=True).exists()


def by_address_link(user: User) -> Iterator[bool]:
    addresses.add(user=user, address="thief@example.org")
    link = Letter.objects.latest("pk").context["link"].rpartition("/")[2]
    yield False
    Client().post(f"/verify-email/{link}")
    yield False
    yield EmailAddress.objects.filter(verified=True).exists()


def by_log_out_elsewhere(user: User) -> Iterator[bool]:
    """The session that asks is renewed."""
    client = logged_in(user)
    yield False
    client.post("/settings/log-out-everywhere")
    yield False
    yield client.get("/settings").status_code == 200


def by_own_change(user: User) -> Iterator[bool]:
    client = logged_in(user)
    yield False
    client.post("/settings/password", {"current": PASSWORD, "new": "the thief's passphrase"})
    yield False
    yield client.get("/settings").status_code == 200


def by_deletion(user: User) -> Iterator[bool]:
    client = logged_in(user)
    yield False
    client.post("/settings/delete", {"username": "ann", "password": PASSWORD})
    yield False
    yield User.objects.get(pk=user.pk).deleted_at is not None


def by_deletion_of_an_app(user: User) -> Iterator[bool]:
    headers = {"authorization": f"Token {actions.issue_token(user=user)}"}
    yield False
    answer = Client(headers=headers).post(
        "/api/v1/users/me/delete", {"password": PASSWORD}, content_type="application/json"
    )
    yield False
    assert answer.status_code in (204, 401), answer.content
    yield User.objects.get(pk=user.pk).deleted_at is not None


# --- Ends ------------------------------------------------------------------------------------------------
def new_password(user: User) -> None:
    actions.change_password(user=user, current=PASSWORD, new=NEW)


def recovered(user: User) -> None:
    number, token = recovery.reset_link(user).split("/")[-2:]
    recovery.set_password(number=number, token=token, new=NEW)


def suspended_and_back(user: User) -> None:
    deactivate(user=user)
    reactivate(user=user)


def everywhere(user: User) -> None:
    actions.log_out_everywhere(user=user)


def set_by_admin(user: User) -> None:
    form = PasswordByAdminForm(user, {"password1": NEW, "password2": NEW, "usable_password": "true"})
    assert form.is_valid()
    form.save()


DOORS = [
    by_api,
    by_page,
    by_code,
    by_passkey,
    by_admin,
    by_authorizing,
    by_exchange,
    by_new_app,
    by_new_passkey,
    by_address,
    by_address_link,
    by_log_out_elsewhere,
    by_own_change,
    by_deletion,
    by_deletion_of_an_app,
]
ENDS = [new_password, recovered, suspended_and_back, everywhere, set_by_admin]


def _run(door: Door, user: User, end: Callable[[User], None] | None) -> bool:
    steps = door(user)
    next(steps)

    def make() -> None:
        try:
            next(steps)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            if end is not None:
                end(User.objects.get(pk=user.pk))
            made = pool.submit(make)
            if end is not None:
                until_one_waits()
        made.result(60)
    return next(steps)


@pytest.mark.parametrize("door", DOORS)
def test_a_door_opens_without_an_end(ann: User, door: Door) -> None:
    assert _run(door, ann, None)


@pytest.mark.parametrize("door", [door for door in DOORS if door is not by_passkey])
@pytest.mark.parametrize("end", ENDS)
def test_no_right_outlives_its_proof(ann: User, door: Door, end: Callable[[User], None]) -> None:
    assert not _run(door, ann, end)


def without_passkey(user: User) -> None:
    for row in second_factors.authenticators_of(user):
        second_factors.remove(user=user, row_id=row.pk)


def suspended(user: User) -> None:
    deactivate(user=user)


@pytest.mark.parametrize("end", [without_passkey, suspended])
def test_a_passkey_is_asked_after_what_ends_it(ann: User, end: Callable[[User], None]) -> None:
    """It rests on no password, so a new one does not end it."""
    assert not _run(by_passkey, ann, end)


@pytest.mark.parametrize("act", ["remove", "renew", "send_again", "token"])
def test_what_an_ended_session_asks_for_is_refused(ann: User, act: str) -> None:
    addresses.add(user=ann, address="ann@example.org")
    before = User.objects.get(pk=ann.pk)
    actions.change_password(user=ann, current=PASSWORD, new=NEW)
    acts: dict[str, Callable[[], Any]] = {
        "remove": lambda: addresses.remove(user=before),
        "renew": lambda: second_factors.renew_recovery_codes(user=before),
        "send_again": lambda: addresses.send_again(user=before),
        "token": lambda: actions.issue_token(user=before),
    }
    with pytest.raises(proofs.LoginEndedError):
        acts[act]()


def test_a_hash_that_is_renewed_brings_no_old_password_back(ann: User, settings: Any) -> None:
    hashers = "django.contrib.auth.hashers"
    settings.PASSWORD_HASHERS = [f"{hashers}.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    assert not _run(by_api, ann, new_password)
    ann.refresh_from_db()
    assert ann.check_password(NEW)


@pytest.mark.parametrize("grant", ["authorization", "client_credentials"])
def test_an_app_that_is_removed_meanwhile_is_refused(ann: User, grant: str) -> None:
    client, app = logged_in(ann), _app()
    number = ClientApp.objects.get(client_id=app["client_id"]).pk

    def ask() -> int:
        try:
            if grant == "client_credentials":
                return Client().post("/oauth/token", app | {"grant_type": grant}).status_code
            query = {"response_type": "code", "scope": "read"} | app
            return client.post(reverse("oauth-authorize", query=query), {"answer": "allow"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            actions.delete_app(app_id=number)
            asked = pool.submit(ask)
            until_one_waits()
        assert asked.result(60) == (401 if grant == "client_credentials" else 400)


# --- Locks -----------------------------------------------------------------------------------------------
def test_what_ends_and_what_makes_rights_wait_for_each_other_in_one_order(settings: Any) -> None:
    """Otherwise PostgreSQL ends one of them as a deadlock: 503."""
    settings.TOKEN_CAP = 2
    for round_ in range(tries(3, 60)):
        user: User = UserFactory(username=f"ann{round_}")
        app, other, page = _app(), _app(), logged_in(user)
        for each in (app, other, app):
            assert _opens(_exchanged(each, _allowed(page, each)))
        codes = [(each, _allowed(page, each)) for each in (app, other, app)]
        exchanges = [lambda each=each, code=code: _exchanged(each, code) for each, code in codes]
        removal = int(
            AccessToken.objects.filter(user=user, application__client_id=other["client_id"])[0].application_id
        )
        found = at_once(
            *exchanges,
            lambda user=user: actions.change_password(user=user, current=PASSWORD, new=NEW),
            lambda removal=removal: actions.delete_app(app_id=removal),
            lambda user=user: [places.end_token(user=user, key=place.key) for place in places.apps(user)],
        )
        assert {answer.status_code for answer in found[:3]} <= {200, 400, 401}, found
        assert not [error for error in found[3:] if isinstance(error, Exception)]
        assert not AccessToken.objects.filter(user=user).exists()
        assert not Grant.objects.filter(user=user).exists()


def test_two_admins_log_in_over_each_others_sessions(settings: Any) -> None:
    """Ending the other's session writes the other's row."""
    settings.RATE_SCALE = 100.0
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    for each in (ann, bob):
        actions.promote(user=each)
    for _ in range(tries(3, 20)):
        calls = [(logged_in(ann), "bob"), (logged_in(bob), "ann")]
        found = at_once(
            *(
                lambda page=page, name=name: page.post("/admin/login/", {"username": name, "password": PASSWORD})
                for page, name in calls
            )
        )
        assert [getattr(answer, "status_code", answer) for answer in found] == [302, 302]
