"""Error messages repeat no secret."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from runtime.environment import OptionsError
from runtime.mail_address import parse, site_url
from tests.support.environments import given, refusal


def test_its_parts() -> None:
    found = parse("smtp+tls://site%40example.org:s3%2Fcret@mail.example.org")
    assert (found.host, found.port, found.user, found.password) == (
        "mail.example.org",
        587,
        "site@example.org",
        "s3/cret",
    )
    assert "s3" not in repr(found)
    assert parse("smtps://a:b@mail.example.org").port == 465
    assert parse("smtp://relay.internal:2525").port == 2525
    assert parse("filemail:///srv/feedsite/letters").folder == "/srv/feedsite/letters"
    assert parse("console://").backend == "accounts.mail.console.EmailBackend"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("smtp+tls://site:s3/cret@mail.example.org", "%2F"),
        ("smtp://site:s3cret@mail.example.org:port", "not valid"),
        ("smtp://site:s3cret#@mail.example.org", "%23"),
        ("smtp://site@mail.example.org", "without a password"),
        ("smtp://site:s3cret@mail.example.org/path", "text after the host"),
        ("smtp://", "has no host"),
        ("smtp://site:s3cret@mail.example.org:465", "smtps://"),
        ("smtp+tls://site:s3cret@mail.example.org:465", "smtps://"),
        ("filemail://letters", "three slashes"),
        ("filemail:///", "three slashes"),
        ("pigeon://mail.example.org", "begins with pigeon"),
        ("mail.example.org", "no scheme"),
    ],
)
def test_errors_repeat_no_secret(url: str, reason: str) -> None:
    line = refusal(FEEDSITE_EMAIL_URL=url)
    assert reason in line
    assert "s3" not in line


@pytest.mark.parametrize(
    "sender", ["Feeds <a@example.org>\nBcc: b@example.org", "Feeds", "a@example.org, b@example.org"]
)
def test_a_sender_is_one_address(sender: str) -> None:
    with pytest.raises(OptionsError):
        given({"FEEDSITE_EMAIL_FROM": sender})


def test_the_address_of_a_site_that_is_told_none() -> None:
    assert site_url(["*"], False, 8000) == "http://localhost:8000"
    assert site_url(["localhost", "127.0.0.1"], False, 8010) == "http://localhost:8010"
    assert site_url(["*", ".example.org"], True, 8000) == "https://example.org"
    assert site_url(["feeds.example.org"], False, 8000) == "http://feeds.example.org"


def test_the_example_of_the_documents_is_taken() -> None:
    text = (Path(settings.BASE_DIR) / "docs" / "runbook.md").read_text()
    (lines,) = re.findall(r"```\n(FEEDSITE_URL=.*?)```", text, re.DOTALL)
    found = given(dict(line.split("=", 1) for line in lines.splitlines()))
    assert parse(found.email_url).user == "feeds@example.org"
    assert found.url == "https://feeds.example.org"
