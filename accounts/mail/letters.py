"""Texts of letters: one template per kind, for both plain text and HTML.

`templates/mail/<kind>.txt`: the first line is the subject, empty lines separate paragraphs. In HTML a lone address
becomes a link, a lone number large digits.
"""

import re
from email.utils import formataddr, parseaddr
from typing import Any, NamedTuple

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.crypto import salted_hmac
from django.utils.safestring import SafeString

import accounts.about.site
from accounts.about.logo import icon_url
from accounts.mail.models import Letter
from web.languages import direction, isolate

LINK = re.compile(r"https?://\S+")
CODE = re.compile(r"[0-9]{4,12}")
WRITTEN = ("answer", "device", "ip", "reason", "rule")
"""Facts in a language of their own."""


class Paragraph(NamedTuple):
    """A paragraph, and whether it is only an address or a code."""

    text: str
    is_link: bool
    is_code: bool


def template_of(kind: str) -> str:
    return f"mail/{kind}.txt"


def single_line(value: Any) -> Any:
    """A value as one line without control characters."""
    if not isinstance(value, str):
        return value
    return " ".join("".join(c if c.isprintable() else " " for c in value).split())


def compose(letter: Letter) -> EmailMultiAlternatives:
    """The letter in its reader's language. Its Message-ID is constant."""
    with translation.override(letter.language or settings.LANGUAGE_CODE):
        facts: dict[str, Any] = {
            "site": isolate(single_line(accounts.about.site.current().name)),
            "site_url": settings.SITE_URL,
        }
        # Plain text needs no escaping. The HTML template escapes.
        said = render_to_string(
            template_of(letter.kind), {name: _value(name, each) for name, each in (facts | letter.context).items()}
        )
        subject, _newline, text = said.strip().partition("\n")
        paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", text) if each.strip()]
        html = render_to_string(
            "mail/letter.html",
            facts
            | {
                "subject": subject,
                "logo": _logo(),
                "language": translation.get_language(),
                "direction": direction(),
                "paragraphs": [
                    Paragraph(each, bool(LINK.fullmatch(each)), bool(CODE.fullmatch(each))) for each in paragraphs
                ],
            },
        )
    message = EmailMultiAlternatives(
        subject,
        "\n\n".join(paragraphs) + "\n",
        _sender(),
        [letter.address],
        headers={"Message-ID": _message_id(letter), "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(html, "text/html")
    return message


def _logo() -> str:
    """The address of the uploaded logo as PNG, which mail programs show, or ""."""
    logo = accounts.about.site.current().logo
    return f"{settings.SITE_URL}{icon_url(logo, 'icon-192')}" if logo else ""


def _sender() -> str:
    name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    return formataddr((name or single_line(accounts.about.site.current().name), address))


def _value(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return SafeString(isolate(value) if name in WRITTEN else value)


def _message_id(letter: Letter) -> str:
    digest = salted_hmac("mail.letters", f"{letter.pk} {letter.created_at.timestamp()}", algorithm="sha256").hexdigest()
    return f"<{digest[:32]}@{settings.EMAIL_DOMAIN}>"
