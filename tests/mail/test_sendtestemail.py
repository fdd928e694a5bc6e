from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.support.mail_servers import MailServer, closed_port, post, words

__all__ = ["post"]

pytestmark = pytest.mark.django_db


def test_the_server_takes_a_letter_as_the_site_writes_them(post: MailServer, settings: Any) -> None:
    settings.EMAIL_HOST_PASSWORD = "not-to-be-shown"
    out = StringIO()
    call_command("sendtestemail", "you@example.org", stdout=out)
    (taken,) = post.letters
    assert taken["To"] == "you@example.org"
    assert "sendtestemail asked for this email" in words(taken)
    assert f"through {settings.EMAIL_HOST}:{settings.EMAIL_PORT}" in out.getvalue()
    assert "not-to-be-shown" not in out.getvalue()


@pytest.mark.parametrize(("mode", "said"), [("unknown", "no such mailbox"), ("suspicious", "554"), ("locked", "535")])
def test_a_refusal_is_one_line(post: MailServer, settings: Any, mode: str, said: str) -> None:
    post.mode = mode
    if mode == "locked":
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "user", "wrong"
    with pytest.raises(CommandError, match=said) as error:
        call_command("sendtestemail", "you@example.org")
    assert str(error.value).startswith("The letter to you@example.org was not sent: SMTP")


def test_a_server_that_is_not_there(post: MailServer, settings: Any) -> None:
    settings.EMAIL_PORT = closed_port()
    with pytest.raises(CommandError, match="ConnectionRefusedError"):
        call_command("sendtestemail", "you@example.org")


def test_without_a_mail_server_it_says_what_to_set(settings: Any) -> None:
    settings.EMAIL_BACKEND = "accounts.mail.console.EmailBackend"
    with pytest.raises(CommandError, match=r"^No mail server is set \(FEEDSITE_EMAIL_URL\), so .*Mail does not go out"):
        call_command("sendtestemail", "you@example.org")


def test_an_address_that_is_none() -> None:
    with pytest.raises(CommandError, match="is not an e-mail address"):
        call_command("sendtestemail", "you@example.org\nBcc: all@example.org")
