"""Parses where letters go.

`smtp://` is unencrypted, `smtp+tls://` uses STARTTLS, `smtps://` TLS from the first byte. `filemail:///DIR` writes each
letter into a file, `console://` into the log. Standard library only, for settings.py.

See docs/decisions.md: Own code in place of a library.
"""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
FOLDER, LOG = "filemail", "console"


class MailAddress(NamedTuple):
    """Where letters go. A server has `host`, a folder `folder`, the log neither."""

    scheme: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    folder: str = ""

    def __repr__(self) -> str:
        return f"<mail by {self.scheme} {self.host}{self.folder}>"

    @property
    def backend(self) -> str:
        """The path of Django's class that sends letters there."""
        kinds = {FOLDER: "accounts.mail.folder.EmailBackend", LOG: "accounts.mail.console.EmailBackend"}
        return kinds.get(self.scheme, "django.core.mail.backends.smtp.EmailBackend")


def parse(url: str) -> MailAddress:
    """Parse the address. Raises ValueError, whose message has no secrets."""
    if "#" in url or "?" in url:
        raise ValueError("it contains a # or ? (write %23 or %3F)")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(
            "its host or port is not valid; an @, : or / in user or password is written as %40, %3A, %2F"
        ) from None
    if parts.scheme == LOG:
        return MailAddress(LOG)
    if parts.scheme == FOLDER:
        if parts.netloc or not parts.path.strip("/"):
            raise ValueError("it has no folder: write three slashes, as in filemail:///FOLDER")
        return MailAddress(FOLDER, folder=unquote(parts.path))
    if parts.scheme not in PORTS:
        raise ValueError("it has another scheme")
    if not parts.hostname or parts.path.strip("/"):
        raise ValueError("it has no host, or text after the host")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if port == PORTS["smtps"] and parts.scheme != "smtps":
        raise ValueError(f"port {port} needs smtps://")
    if bool(user) != bool(password):
        raise ValueError("it has a user without a password, or a password without a user")
    return MailAddress(parts.scheme, parts.hostname, port or PORTS[parts.scheme], user, password)


def site_url(hosts: list[str], is_https: bool, port: int) -> str:
    """The site's address from the first allowed host that is a name."""
    name = next((each.lstrip(".") for each in hosts if each != "*"), "localhost")
    if is_https:
        return f"https://{name}"
    return f"http://{name}:{port}" if name in ("localhost", "127.0.0.1", "[::1]") else f"http://{name}"
