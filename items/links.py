"""The rule of a link, for the addresses in texts, in an item's content.url, and of live sessions."""

import ipaddress
import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.naming import INVISIBLE

# Scripts that are written without spaces, so that what follows a link, or comes before a mention, may touch it.
UNSPACED = (
    "\u1100-\u11ff\u3005-\u3007\u3031-\u3035\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff"
    "\uff66-\uff9f\uffa1-\uffdc\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
# A label of a host: it may begin in an unspaced script (例子.中国), but one that began otherwise ends before it.
_LETTER = f"(?:(?![{UNSPACED}])\\w)"
_LABEL = f"(?:[{UNSPACED}][\\w-]{{0,62}}+|{_LETTER}(?:{_LETTER}|-){{0,62}}+)"
HOST = re.compile(f"{_LABEL}(?:\\.{_LABEL})*+|\\[[0-9A-Fa-f:.]{{2,45}}\\]")
PORT = re.compile(r":[0-9]{1,5}(?![0-9])")
HOST_LENGTH = 253
_SCHEME = re.compile("https?://", re.ASCII | re.IGNORECASE)
# A backslash is a slash to browsers, and what cannot be seen makes one host look like another.
_NEVER = re.compile(f"[\x00-\x1f\x7f-\x9f\\\\{INVISIBLE}]")


def is_host(name: str) -> bool:
    """Whether `name` is a host that a link may lead to: with a dot, `localhost`, or an IPv6 address in brackets."""
    if name.startswith("["):
        try:
            ipaddress.IPv6Address(name[1:-1])
        except ValueError:
            return False
        return True
    return len(name) <= HOST_LENGTH and ("." in name or name.lower() == "localhost")


def is_link(address: str, *, is_secure: bool = True) -> bool:
    """Whether `address` is a whole web address: https (else http too), a host without user name, perhaps a port, then
    /, ? or # and what follows. White space, controls, invisible characters and backslashes are nowhere in it.
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
        raise ValidationError(_("A web address that begins with https://, without spaces."), code="invalid")
