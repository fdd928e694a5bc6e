import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import addresses, purge
from accounts.actions import change_password, delete_account, log_out_everywhere
from accounts.joining import actions as joining
from accounts.mail.models import Letter
from accounts.models import AddressCheck, EmailAddress, User
from accounts.signing_in import recovery
from accounts.user_admin import PasswordByAdminForm
from tests.support.at_once import at_once
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db


def last(kind: str = "verify_address") -> Letter:
    return Letter.objects.filter(kind=kind).latest("pk")


def path_of(letter: Letter) -> str:
    return re.sub(r"^https?://[^/]+", "", letter.context["link"])


def proven(name: str, address: str) -> User:
    user: User = UserFactory(username=name)
    addresses.add(user=user, address=address)
    addresses.prove_by_code(user=user, code=last().context["code"])
    return User.objects.get(pk=user.pk)


@pytest.mark.slow
def test_the_link_proves_in_any_browser_once_and_by_a_press() -> None:
    user: User = UserFactory(username="ann")
    addresses.add(user=user, address=" Ann@Example.ORG ")
    assert (addresses.confirmed_address(user), addresses.unconfirmed_address(user)) == ("", "ann@example.org")
    path = path_of(last())

    assert "@ann" in Client().get(path).content.decode()
    assert addresses.confirmed_address(user) == ""  # mail programs open links in advance
    assert Client().post(path).status_code == 302

    user.refresh_from_db()
    assert user.email == addresses.confirmed_address(user) == "ann@example.org"
    assert addresses.unconfirmed_address(user) == ""
    assert Client().get(path).status_code == 410
    assert Client().post(path).status_code == 410
    assert not AddressCheck.objects.exists()


def test_links_that_do_not_count() -> None:
    user: User = UserFactory()
    addresses.add(user=user, address="ann@example.org")
    path = path_of(last())
    for wrong in (path[:-1], path + "x", "/verify-email/1", "/verify-email/.x", "/verify-email/²." + "x" * 32):
        assert Client().get(wrong).status_code == 410
    AddressCheck.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().post(path).status_code == 410
    assert addresses.confirmed_address(user) == ""


def test_confirming_an_address_uses_up_no_password_reset(settings: Any) -> None:
    settings.RATES = settings.RATES | {"reset": "1/hour"}
    settings.RATE_SCALE = 1
    addresses.add(user=UserFactory(), address="ann@example.org")
    path = path_of(last())
    assert Client().get(path).status_code == 200
    assert Client().post(path).status_code == 302
    assert Client().post("/password-reset", {"username_or_email": "nobody"}).status_code == 302


def test_another_letter_makes_the_one_before_worthless() -> None:
    user: User = UserFactory()
    addresses.add(user=user, address="ann@example.org")
    before = last()
    assert addresses.send_again(user=user)
    assert Client().get(path_of(before)).status_code == 410
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=user, code=before.context["code"])
    addresses.prove_by_code(user=user, code=last().context["code"])


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["another password", "a forgotten password", "everywhere", "by an admin"])
def test_what_ends_the_sessions_ends_the_letter(ends: str) -> None:
    """An intruder adds an address in a session that the owner then ends."""
    user = proven("ann", "ann@example.org")
    addresses.add(user=user, address="mallory@example.org")
    path, code = path_of(last()), last().context["code"]
    match ends:
        case "another password":
            change_password(user=user, current=PASSWORD, new="another long password")
        case "a forgotten password":
            _empty, _name, number, token = recovery.reset_link(user).partition("//")[2].split("/")
            recovery.set_password(number=number, token=token, new="another long password")
        case "everywhere":
            log_out_everywhere(user=user)
        case "by an admin":
            form = PasswordByAdminForm(user, {"password1": "another long one", "password2": "another long one"})
            assert form.is_valid()
            form.save()
    assert Client().get(path).status_code == 410
    assert Client().post(path).status_code == 410
    user = User.objects.get(pk=user.pk)
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=user, code=code)
    assert addresses.confirmed_address(user) == "ann@example.org"

    addresses.send_again(user=user)  # the owner's own address, pending until now
    addresses.prove_by_code(user=user, code=last().context["code"])
    assert addresses.confirmed_address(user) == "mallory@example.org"


def test_wrong_codes_spend_a_code() -> None:
    user: User = UserFactory()
    addresses.add(user=user, address="ann@example.org")
    code = last().context["code"]
    wrong = "000000" if code != "000000" else "111111"
    for _ in range(addresses.TRIES):
        with pytest.raises(addresses.SpentLinkError):
            addresses.prove_by_code(user=user, code=wrong)
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=user, code=code)
    assert Client().post(path_of(last())).status_code == 302  # opening the link is not a guess


def test_a_code_is_of_its_own_user() -> None:
    ann, bob = UserFactory(), UserFactory()
    addresses.add(user=ann, address="ann@example.org")
    code = last().context["code"]
    addresses.add(user=bob, address="bob@example.org")
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=bob, code=code if code != last().context["code"] else "x")


@pytest.mark.slow
def test_a_change_is_told_to_the_old_address() -> None:
    user = proven("ann", "old@example.org")
    addresses.add(user=user, address="new@example.org")
    assert addresses.confirmed_address(user) == "old@example.org"
    addresses.prove_by_code(user=user, code=last().context["code"])
    assert last("address_changed").address == "old@example.org"
    assert list(EmailAddress.objects.values_list("email", "verified", "primary")) == [("new@example.org", True, True)]
    assert addresses.user_with_address("old@example.org") is None


@pytest.mark.slow
def test_an_address_that_another_has_gets_a_letter_that_says_so_and_nothing_else_shows_it() -> None:
    ann = proven("ann", "ann@example.org")
    answers, counts = set(), set()
    for address in ("ann@example.org", "free@example.org"):
        bob: User = UserFactory()
        client = logged_in(bob)
        with CaptureQueriesContext(connection) as statements:
            answer = client.post("/settings/email", {"email": address})
        answers.add((answer.status_code, answer["Location"], client.get("/settings/email").content.count(b"Confirm")))
        counts.add(sum(" feedsite_draw" not in each["sql"] for each in statements.captured_queries))
    assert len(answers) == 1
    assert max(counts) - min(counts) <= 1  # a free address costs one more look-up
    taken = last("address_taken")
    assert (taken.address, taken.context) == ("ann@example.org", {"name": "ann"})
    assert addresses.user_with_address("ann@example.org") == ann


def test_the_first_who_proves_an_address_has_it() -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    codes = {}
    for user in (ann, bob):
        addresses.add(user=user, address="both@example.org")
        codes[user] = last().context["code"]
    addresses.prove_by_code(user=ann, code=codes[ann])
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=bob, code=codes[bob])
    assert addresses.user_with_address("both@example.org") == ann


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_who_prove_an_address_at_once() -> None:
    users: list[User] = [UserFactory(), UserFactory()]
    calls = []
    for user in users:
        addresses.add(user=user, address="both@example.org")
        code = last().context["code"]
        calls.append(lambda user=user, code=code: addresses.prove_by_code(user=user, code=code))
    answers = at_once(*calls)
    assert sorted(type(answer).__name__ for answer in answers) == ["SpentLinkError", "User"]
    assert User.objects.with_email("both@example.org").count() == 1


@pytest.mark.parametrize(
    "address",
    [
        "", "ann", "a@b\nBcc: c@d.org", "ann@example.org, bob@example.org", "a@" + "b" * 300,
        "a@[127.0.0.1]", "a@[IPv6:::1]", "a@[::1]", "a@127.0.0.1", "a@", "@example.org",
    ],
)  # fmt: skip
def test_no_address(address: str) -> None:
    with pytest.raises(ValidationError):
        addresses.add(user=UserFactory(), address=address)
    assert not Letter.objects.exists()


def test_removing_is_told_and_refused_where_accounts_must_have_one(settings: Any) -> None:
    user = proven("ann", "ann@example.org")
    settings.EMAIL_REQUIRED = True
    with pytest.raises(ValidationError):
        addresses.remove(user=user)
    settings.EMAIL_REQUIRED = False
    assert addresses.remove(user=user)
    user.refresh_from_db()
    assert (user.email, addresses.confirmed_address(user)) == ("", "")
    assert last("address_removed").address == "ann@example.org"


def test_addresses_that_admins_entered_are_adopted() -> None:
    ann: User = UserFactory(username="ann", email="Ann@Example.org")
    twins = [UserFactory(email="twin@example.org"), UserFactory(email="TWIN@example.org")]
    assert addresses.user_with_address("ann@example.org") == ann
    assert EmailAddress.objects.get().verified
    assert addresses.user_with_address("twin@example.org") is None
    assert [addresses.confirmed_address(twin) for twin in twins] == ["", ""]


def test_a_deleted_account_leaves_no_address() -> None:
    user = proven("ann", "ann@example.org")
    delete_account(user=user)
    assert not EmailAddress.objects.exists()
    assert addresses.user_with_address("ann@example.org") is None


@pytest.mark.slow
def test_a_deletion_by_the_version_before_leaves_no_address_either() -> None:
    user = proven("ann", "ann@example.org")
    row = EmailAddress.objects.get()
    delete_account(user=user)
    EmailAddress.objects.bulk_create([row])
    purge.purge(user.pk)
    assert not EmailAddress.objects.exists()
    assert not Letter.objects.exists()


def test_by_the_api_with_the_password() -> None:
    user: User = UserFactory()
    client = APIClient()
    client.force_authenticate(user)
    for password in ({}, {"current_password": "wrong"}):
        assert client.patch("/api/v1/users/me", {"email": "ann@example.org"} | password).status_code == 400
    assert client.patch("/api/v1/users/me", {"email": "x", "current_password": PASSWORD}).json().keys() == {"email"}
    answer = client.patch("/api/v1/users/me", {"email": "ann@example.org", "current_password": PASSWORD})
    assert answer.status_code == 200
    assert last().address == "ann@example.org"


@pytest.mark.slow
def test_the_pages() -> None:
    user: User = UserFactory()
    client = logged_in(user)
    assert client.post("/settings/email", {"email": "nonsense"}).status_code == 422
    assert client.post("/settings/email", {"email": "ann@example.org"}).status_code == 302
    assert "ann@example.org" in client.get("/settings/email").content.decode()
    assert client.post("/settings/email/again").status_code == 302
    assert client.post("/settings/email/code", {"code": "x"}).status_code == 422
    assert client.post("/settings/email/code", {"code": f" {last().context['code']} "}).status_code == 302
    assert addresses.confirmed_address(user) == "ann@example.org"
    client.post("/settings/email/remove")
    assert addresses.confirmed_address(user) == ""


@pytest.mark.slow
def test_signing_up_with_an_address_proves_nothing(settings: Any) -> None:
    ann = proven("ann", "ann@example.org")
    for name, address in (("thief", "ann@example.org"), ("bob", "bob@example.org")):
        joined = joining.join(joining.SignUpInput(name, PASSWORD, email=address))
        assert joined is not None
        assert (joined.email, addresses.confirmed_address(joined), addresses.unconfirmed_address(joined)) == (
            "",
            "",
            address,
        )
    assert addresses.user_with_address("ann@example.org") == ann
    assert addresses.user_with_address("bob@example.org") is None
    assert last("address_taken").address == "ann@example.org"
    settings.EMAIL_REQUIRED = True
    with pytest.raises(ValidationError):
        joining.join(joining.SignUpInput("carl", PASSWORD))


def test_an_address_that_an_admin_gave_another_meanwhile_is_not_proven() -> None:
    ann: User = UserFactory(username="ann")
    addresses.add(user=ann, address="both@example.org")
    letter = last()
    bob: User = UserFactory(username="bob")
    User.objects.filter(pk=bob.pk).update(email="Both@example.org")  # as an older admin form does
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=ann, code=letter.context["code"])
    assert Client().post(path_of(letter)).status_code == 410
    assert addresses.user_with_address("both@example.org") == bob


def test_a_code_counts_for_a_day() -> None:
    user: User = UserFactory()
    addresses.add(user=user, address="ann@example.org")
    code = last().context["code"]
    assert last().expires_at <= timezone.now() + addresses.LIFE
    AddressCheck.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(addresses.SpentLinkError):
        addresses.prove_by_code(user=user, code=code)
    assert addresses.forget_checks() == 1
    assert addresses.unconfirmed_address(user) == "ann@example.org"
