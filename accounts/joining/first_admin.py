"""The link by which the first administrator of a site is made, for a site whose operator has no account yet.

The link is signed and dated. It works for `LIFE`, and only while the site has no superuser: so it makes one, once,
however many links were printed and wherever they were kept.
"""

from datetime import timedelta

from django.core import signing

from accounts.models import User

LIFE = timedelta(hours=24)

_signer = signing.TimestampSigner(salt="accounts.first_admin")


def is_wanted() -> bool:
    """Whether the site has no superuser who could sign in."""
    return not User.objects.active().filter(is_superuser=True).exists()


def token() -> str:
    """The secret part of a link."""
    return _signer.sign("first")


def is_good(token: str) -> bool:
    """Whether the site made this token, less than `LIFE` ago."""
    try:
        _signer.unsign(token, max_age=LIFE)
    except signing.BadSignature:
        return False
    return True
