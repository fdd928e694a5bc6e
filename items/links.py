"""The rule of a link, for texts, items and live sessions."""

import ipaddress
import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from web.letters import INVISIBLE, LETTER, SHAPING, UNSPACED, compiled

# A label of a host. It may begin in an unspaced script (例子.中国). One that began otherwise ends before such a script.
_WIDE = f"[{LETTER}--\\p{{Default_Ignorable_Code_Point}}]"
_LETTER = f"[{_WIDE}--{UNSPACED}]"
_BEGIN = f"[{_LETTER}--\\p{{M}}]"
_LABEL = f"(?:{UNSPACED}[{_WIDE}\\-]{{0,62}}+|{_BEGIN}[{_LETTER}\\-]{{0,62}}+)"
HOST = compiled(f"{_LABEL}(?:\\.{_LABEL})*+|\\[[0-9A-Fa-f:.]{{2,45}}\\]")
PORT = compiled(r":[0-9]{1,5}(?![0-9])")
HOST_LENGTH = 253
_SCHEME = re.compile("https?://", re.ASCII | re.IGNORECASE)
# Browsers read a backslash as a slash. Invisible characters are allowed only where they shape emoji and letters.
_NEVER = compiled(rf"[[\\{INVISIBLE}]--{SHAPING}]")


def is_host(name: str) -> bool:
    """Whether a link may lead here: with a dot, `localhost`, or IPv6 in brackets."""
    if name.startswith("["):
        try:
            ipaddress.IPv6Address(name[1:-1])
        except ValueError:
            return False
        return True
    return len(name) <= HOST_LENGTH and ("." in name or name.lower() == "localhost")


def is_link(address: str, *, is_secure: bool = True) -> bool:
    """Whether it is a complete web address without user name, spaces, controls, backslashes, or invisible characters in
    the host.
    """
    scheme = _SCHEME.match(address)
    if scheme is None or (is_secure and scheme[0].lower() != "https://") or _NEVER.search(address):
        return False
    host = HOST.match(address, scheme.end())
    if host is None or not is_host(host[0]):
        return False
    end = host.end()
    if port := PORT.match(address, end):
        if int(port[0][1:]) > 65_535:
            return False
        end = port.end()
    return end == len(address) or address[end] in "/?#"


def check_link(address: str) -> None:
    """Raise ValidationError unless `address` is an https link."""
    if not is_link(address):
        raise ValidationError(_("Enter a web address that starts with https://, without spaces."), code="invalid")
