"""Secrets of second factors are sealed in the database and survive a change of SECRET_KEY."""

import time
from io import StringIO
from typing import Any

import pyotp
import pytest
import time_machine
from django.core.management import CommandError, call_command

from accounts.models import Authenticator, User
from accounts.signing_in import sealing, second_factors
from accounts.signing_in.second_factors import SecondFactorRefusedError, Type
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
NEW_KEY = "another-key-" * 5


def code_of_now() -> str:
    return pyotp.TOTP(SECRET).generate_otp(int(time.time()) // 30)


@pytest.fixture
def ann() -> User:
    """Set up 5 minutes ago, so current codes are unused."""
    user: User = UserFactory(username="ann")
    with time_machine.travel(time.time() - 300, tick=False):
        second_factors.set_up_app(user=user, secret=SECRET, code=code_of_now())
    return user


def stored(user: User) -> list[str]:
    rows = Authenticator.objects.filter(user=user).order_by("pk")
    return [row.data[second_factors.SECRETS[row.type]] for row in rows]


def test_no_secret_stands_in_the_database(ann: User) -> None:
    assert all(each.startswith(sealing.PREFIX) for each in stored(ann))
    assert SECRET not in str(list(Authenticator.objects.values()))
    assert sealing.unseal(stored(ann)[0]) == SECRET
    assert sealing.seal("x") != sealing.seal("x")


def test_a_row_of_before_counts_and_is_sealed_by_its_use(ann: User) -> None:
    Authenticator.objects.filter(user=ann, type=Type.TOTP).update(data={"secret": SECRET})
    code = code_of_now()
    second_factors.use_code(user=ann, code=code)
    assert stored(ann)[0].startswith(sealing.PREFIX)
    with pytest.raises(SecondFactorRefusedError):
        second_factors.use_code(user=ann, code=code)  # in the next half minute there would be another


def test_recovery_codes_that_allauth_made_count(ann: User) -> None:
    old = {"seed": sealing.seal("ab" * 40), "used_mask": 0b101}
    Authenticator.objects.filter(user=ann, type=Type.RECOVERY_CODES).update(data=old)
    assert second_factors.recovery_codes(ann)[:2] == ["17884826", "20809454"]
    assert len(second_factors.recovery_codes(ann)) == 8
    for used in ("30590342", "43708695"):
        with pytest.raises(SecondFactorRefusedError):
            second_factors.use_code(user=ann, code=used)
    second_factors.use_code(user=ann, code=" 1788-4826")
    assert second_factors.recovery_codes(ann)[0] == "20809454"
    second_factors.use_code(user=ann, code="07729351")
    with pytest.raises(SecondFactorRefusedError):
        second_factors.use_code(user=ann, code="07729351")


def test_another_key_opens_what_one_of_before_sealed(ann: User, settings: Any) -> None:
    codes = second_factors.recovery_codes(ann)
    second_factors.use_code(user=ann, code=codes[0])
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], NEW_KEY
    second_factors.use_code(user=ann, code=code_of_now())
    assert second_factors.recovery_codes(ann) == codes[1:]

    out = StringIO()
    call_command("seal_factors", stdout=out)
    assert out.getvalue() == "Re-encrypted: 1.\n", "the app's was, by its use"
    settings.SECRET_KEY_FALLBACKS = []
    assert second_factors.recovery_codes(ann) == codes[1:]
    with pytest.raises(SecondFactorRefusedError):
        second_factors.use_code(user=ann, code=codes[0])
    assert second_factors.reencrypt_secrets() == (0, 0)


def test_a_lost_key_lets_nobody_in_and_breaks_no_page(ann: User, settings: Any) -> None:
    codes, before = second_factors.recovery_codes(ann), stored(ann)
    settings.SECRET_KEY = NEW_KEY
    for code in (code_of_now(), codes[0]):
        with pytest.raises(SecondFactorRefusedError):
            second_factors.use_code(user=ann, code=code)
    assert second_factors.recovery_codes(ann) == []
    with pytest.raises(CommandError, match="2 cannot be decrypted: their key is not known here"):
        call_command("seal_factors", stdout=StringIO())
    assert stored(ann) == before


def test_all_rows_are_met(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_factors, "AT_ONCE", 2)
    users = UserFactory.create_batch(3)
    for user in users:
        Authenticator.objects.create(user=user, type=Type.TOTP, data={"secret": SECRET, "last_step": 7})
        Authenticator.objects.create(user=user, type=Type.WEBAUTHN, data={"name": "key"})
    assert second_factors.reencrypt_secrets() == (3, 0)
    assert set(Authenticator.objects.filter(type=Type.TOTP).values_list("data__last_step", flat=True)) == {7}


@pytest.mark.parametrize("text", ["", "sealed:", "sealed:x", f"sealed:{'A' * 200}", "sealed:é"])
def test_what_no_key_sealed(text: str) -> None:
    if not text:
        assert sealing.unseal(text) == ""
        return
    with pytest.raises(sealing.SealError):
        sealing.unseal(text)
    with pytest.raises(sealing.SealError):
        sealing.reencrypt(text)
