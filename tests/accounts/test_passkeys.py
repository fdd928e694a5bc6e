from typing import Any

import pytest
from django.test import Client

from accounts.models import Authenticator, User
from accounts.signing_in import second_factors
from tests.support.at_once import at_once
from tests.support.pages import logged_in
from tests.support.passkeys import HOST, ORIGIN, Passkey

pytestmark = pytest.mark.django_db

FOREIGN: list[dict[str, Any]] = [
    {"origin": "http://localhost"},
    {"origin": "http://localhost:8001"},
    {"origin": "https://localhost:8000"},
    {"origin": "https://evil.localhost:8000"},
    {"origin": f"{ORIGIN}/"},
    {"origin": f"{ORIGIN}@evil.example"},
    {"origin": "http://127.0.0.1:8000"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": None},
    {"crossOrigin": True},
]


@pytest.fixture
def inside(ann: User) -> Client:
    return logged_in(ann)


def test_a_passkey_lets_its_user_in(ann: User, inside: Client) -> None:
    key = Passkey()
    assert key.add_to(inside).status_code == 302
    assert key.log_in(Client(), ann)
    assert not Passkey().log_in(Client(), ann)
    assert Authenticator.objects.get(type="webauthn").last_used_at is not None


@pytest.mark.parametrize("said", FOREIGN)
def test_a_page_of_another_origin_neither_adds_nor_uses_a_passkey(
    ann: User, inside: Client, said: dict[str, Any]
) -> None:
    """Another port, a subdomain or a frame may be somebody else's."""
    key = Passkey()
    assert key.add_to(inside, **said).status_code == 422
    assert key.add_to(inside).status_code == 302
    assert not key.log_in(Client(), ann, **said)
    answer = key.answer(inside, ann, path="/settings/confirm/passkey", **said)
    inside.post("/settings/confirm/passkey?next=/settings/data", {"answer": answer}, **HOST)
    assert Authenticator.objects.get(type="webauthn").last_used_at is None
    assert key.log_in(Client(), ann)


def test_a_site_at_its_usual_port(ann: User, inside: Client, settings: Any) -> None:
    for address, origin in (("https://localhost", "https://localhost"), ("https://localhost:443", "https://localhost")):
        settings.SITE_URL = address
        key = Passkey()
        Authenticator.objects.all().delete()
        assert key.add_to(inside, origin=origin).status_code == 302
        assert key.log_in(Client(), ann, origin=origin)
        assert not key.log_in(Client(), ann, origin="https://localhost:8443")


@pytest.mark.parametrize(
    ("counters", "are_let_in"),
    [
        ((0, 0, 0), (True, True)),
        ((5, 6, 9), (True, True)),
        ((5, 5, 6), (False, True)),
        ((5, 4, 6), (False, True)),
        ((5, 0, 6), (False, True)),
        ((0, 1, 1), (True, False)),
        ((0, 2, 1), (True, False)),
        ((0, 2, 0), (True, False)),
        ((2**32 - 1, 1, 0), (False, False)),
    ],
)
def test_a_counter_that_does_not_grow_is_of_a_copy(
    ann: User, inside: Client, counters: tuple[int, ...], are_let_in: tuple[bool, ...]
) -> None:
    key = Passkey()
    assert key.add_to(inside, counter=counters[0]).status_code == 302
    assert tuple(key.log_in(Client(), ann, counter=counter) for counter in counters[1:]) == are_let_in


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_a_passkey_and_its_copy_at_once_one_is_let_in(ann: User, inside: Client) -> None:
    key = Passkey()
    key.add_to(inside, counter=1)
    clients = [Client() for _ in range(4)]
    answers = [key.answer(client, ann, counter=2) for client in clients]

    def enter(client: Client, answer: str) -> bool:
        client.post("/login/passkey", {"answer": answer}, **HOST)
        return "_auth_user_id" in client.session

    found = at_once(*(lambda pair=pair: enter(*pair) for pair in zip(clients, answers, strict=True)))  # type: ignore[misc]
    assert sorted(found) == [False, False, False, True]
    assert Authenticator.objects.get(type="webauthn").data[second_factors.COUNTER] == 2
