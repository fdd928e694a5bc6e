import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.template import TemplateDoesNotExist, engines
from django.test import Client
from django.utils import timezone
from jinja2.meta import find_undeclared_variables

from accounts.mail import sending
from accounts.mail.actions import send
from accounts.mail.letters import compose
from accounts.mail.models import Letter, LetterState
from operation.doctor import work
from runtime.addresses import parse_mail
from storage import keys
from tests.support.factories import UserFactory
from tests.support.mail_servers import read, words

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh() -> None:
    cache.delete(keys.mail_pause())
    cache.delete(keys.mail_turn())


def write(language: str = "en") -> Letter:
    send(kind="test", to="ann@example.org", language=language, context={"name": "ann"})
    return Letter.objects.latest("pk")


def test_both_forms_in_both_languages() -> None:
    english, chinese = read(compose(write())), read(compose(write("zh-hans")))
    assert "asked for this email" in words(english)
    assert "asked for this email" not in words(chinese)
    html = words(chinese, "html")
    assert 'lang="zh-hans"' in html
    assert "<img" not in html
    assert "<style" not in html
    assert 'name="color-scheme" content="light dark"' in html


@pytest.mark.parametrize(
    "path", sorted((settings.BASE_DIR / "templates" / "mail").glob("*.txt")), ids=lambda path: path.stem
)
def test_a_letter_has_the_paragraphs_of_its_template(path: Path) -> None:
    """HTML letters make links and large codes only from separate paragraphs."""
    pages = engines["jinja2"].env
    source = path.read_text()
    names = find_undeclared_variables(pages.parse(source)) - pages.globals.keys()
    letter = Letter(
        kind=path.stem, address="ann@example.org", context=dict.fromkeys(names, "x"), created_at=timezone.now()
    )
    for letter.language in ("en", "zh-hans"):
        message = compose(letter)
        assert len(message.body.split("\n\n")) == len(source.strip().split("\n\n")) - 1  # the first is the subject


def test_a_letter_of_an_unknown_kind_is_an_error_of_its_writer() -> None:
    with pytest.raises(TemplateDoesNotExist, match="nothing"):
        send(kind="nothing", to="ann@example.org", language="en", context={})


def test_the_sender_and_links_are_the_settings(settings: Any) -> None:
    settings.SITE_URL = "https://feeds.example.org"
    settings.DEFAULT_FROM_EMAIL = "Feeds <noreply@example.org>"
    message = read(compose(write()))
    assert message["From"] == "Feeds <noreply@example.org>"
    assert "https://feeds.example.org" in words(message, "html")


def test_the_terminal_shows_the_text(capsys: Any, settings: Any) -> None:
    settings.EMAIL_BACKEND = "accounts.mail.console.EmailBackend"
    write()
    assert sending.send_due() == 1
    shown = capsys.readouterr().out
    assert "mail | letter to ann@example.org: Test email from" in shown
    assert "mail | ann asked for this email." in shown


def test_a_folder_keeps_files_for_nobody_else(tmp_path: Path, settings: Any) -> None:
    address = parse_mail(f"filemail://{tmp_path}/new/letters")
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = address.backend, address.folder
    before = os.umask(0)
    try:
        for _ in range(2):
            write()
        assert sending.send_due() == 2
    finally:
        os.umask(before)
    folder = Path(address.folder)
    files = list(folder.iterdir())
    assert b"".join(file.read_bytes() for file in files).count(b"Subject: ") == 2
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@pytest.mark.slow
def test_the_admin_lists_letters_without_what_they_say_and_tries_again(client: Client) -> None:
    letter = write()
    Letter.objects.update(state=LetterState.FAILED, error="SMTPDataError: spam", context={"name": "s3cret-link"})
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True))

    assert "SMTPDataError: spam" in client.get("/admin/mail/letter/").content.decode()
    page = client.get(f"/admin/mail/letter/{letter.pk}/change/").content.decode()
    assert "ann@example.org" in page
    assert "s3cret-link" not in page
    client.post("/admin/mail/letter/", {"action": "retry", "_selected_action": [letter.pk]})
    letter.refresh_from_db()
    assert letter.state == LetterState.WAITING


def test_doctor_tells_of_letters_that_were_given_up() -> None:
    write()
    assert [finding.state for finding in work.letters()] == ["ok"]
    Letter.objects.update(state=LetterState.FAILED)
    assert [finding.state for finding in work.letters()] == ["warning"]
