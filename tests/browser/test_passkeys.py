from typing import Any

import pytest
from playwright.sync_api import CDPSession, expect

from accounts.models import Authenticator, User
from accounts.signing_in import second_factors
from tests.support.browsers import Visit, Visitor
from tests.support.factories import PASSWORD

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def visitor(visit: Visit, settings: Any) -> Visitor:
    """Passkeys accept localhost, but no IP address."""
    visitor = visit()
    visitor.site = settings.SITE_URL = visitor.site.replace("127.0.0.1", "localhost")
    return visitor


def authenticator(visitor: Visitor) -> tuple[CDPSession, str]:
    session = visitor.page.context.new_cdp_session(visitor.page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    return session, session.send("WebAuthn.addVirtualAuthenticator", {"options": options})["authenticatorId"]


def add_passkey(visitor: Visitor, name: str = "this laptop") -> None:
    visitor.goto("/settings/factors")
    visitor.go(visitor.page.get_by_role("link", name="Add a passkey"))
    visitor.page.get_by_label("Name").fill(name)
    visitor.go(visitor.page.get_by_role("button", name="Add", exact=True))
    expect(visitor.page.get_by_text("Passkey added.")).to_be_visible()


def log_out(visitor: Visitor) -> None:
    visitor.page.goto("about:blank")  # stops all requests of the page
    visitor.page.context.clear_cookies()


def test_a_passkey_is_made_and_signs_in_alone_and_after_the_password(visitor: Visitor, reader: User) -> None:
    authenticator(visitor)
    visitor.enter(reader)
    add_passkey(visitor)
    expect(visitor.page.get_by_text("this laptop")).to_be_visible()
    assert Authenticator.objects.filter(user=reader, type="webauthn").count() == 1

    log_out(visitor)
    visitor.goto("/login?next=/settings")
    visitor.go(visitor.page.get_by_role("button", name="Log in with a passkey"))
    expect(visitor.page).to_have_url(f"{visitor.site}/settings")

    log_out(visitor)
    visitor.goto("/login")
    visitor.page.get_by_label("Username").fill("reader")
    visitor.page.get_by_label("Password").fill(PASSWORD)
    visitor.go(visitor.page.get_by_role("main").get_by_role("button", name="Log in", exact=True))
    expect(visitor.page.get_by_role("heading", name="Two-step login")).to_be_visible()
    visitor.go(visitor.page.get_by_role("button", name="Use a passkey"))
    expect(visitor.page.get_by_role("heading", name="Home")).to_be_visible()


def test_a_passkey_proves_who_one_is_again(visitor: Visitor, reader: User) -> None:
    authenticator(visitor)
    visitor.enter(reader)
    add_passkey(visitor)
    visitor.goto("/settings/confirm?next=/settings/email")
    visitor.go(visitor.page.get_by_role("button", name="Use a passkey"))
    expect(visitor.page).to_have_url(f"{visitor.site}/settings/email")


def test_a_passkey_that_was_removed_signs_in_nobody(visitor: Visitor, reader: User) -> None:
    authenticator(visitor)
    visitor.enter(reader)
    add_passkey(visitor)
    visitor.go(visitor.page.get_by_role("button", name="Remove this laptop"))
    assert not Authenticator.objects.exists()
    log_out(visitor)
    visitor.goto("/login")
    visitor.go(visitor.page.get_by_role("button", name="Log in with a passkey"))
    expect(visitor.page.get_by_text("This passkey isn't registered here. Try another way to log in.")).to_be_visible()


def test_a_browser_without_passkeys_says_so(visitor: Visitor, reader: User) -> None:
    session, number = authenticator(visitor)
    session.send("WebAuthn.setUserVerified", {"authenticatorId": number, "isUserVerified": False})
    visitor.enter(reader)
    visitor.goto("/settings/factors/passkey")
    visitor.page.get_by_label("Name").fill("x")
    visitor.page.get_by_role("button", name="Add", exact=True).click()
    expect(visitor.page.get_by_role("alert").filter(has_text="No passkey created. Try again.")).to_be_visible()
    assert not Authenticator.objects.exists()


def test_the_login_by_keys_alone(visitor: Visitor, reader: User) -> None:
    visitor.goto("/login")
    keyboard = visitor.page.keyboard
    expect(visitor.page.get_by_label("Username")).to_be_focused()
    keyboard.type("reader")
    keyboard.press("Tab")
    keyboard.type(PASSWORD)
    with visitor.page.expect_navigation():
        keyboard.press("Enter")
    expect(visitor.page.get_by_role("heading", name="Home")).to_be_visible()


def test_a_passkey_of_an_account_that_may_not_sign_in(visitor: Visitor, reader: User) -> None:
    authenticator(visitor)
    visitor.enter(reader)
    add_passkey(visitor)
    log_out(visitor)
    User.objects.filter(pk=reader.pk).update(is_active=False)
    visitor.goto("/login")
    visitor.go(visitor.page.get_by_role("button", name="Log in with a passkey"))
    expect(visitor.page.get_by_text("This passkey isn't registered here. Try another way to log in.")).to_be_visible()


def test_a_user_has_so_many_passkeys(
    visitor: Visitor, reader: User, tolerated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tolerated("with a status of 422")
    monkeypatch.setattr(second_factors, "PASSKEYS", 0)
    authenticator(visitor)
    visitor.enter(reader)
    visitor.goto("/settings/factors/passkey")
    visitor.page.get_by_label("Name").fill("x")
    visitor.page.get_by_role("button", name="Add", exact=True).click()
    expect(visitor.page.get_by_text("Remove one first.")).to_be_visible()
    assert not Authenticator.objects.exists()
