"""The signed link that creates the site's first administrator, while there is none."""

from datetime import timedelta

from django.core import signing

from accounts.models import User

LIFE = timedelta(hours=24)

_signer = signing.TimestampSigner(salt="accounts.first_admin")


def is_missing() -> bool:
    """Whether no superuser can sign in."""
    return not User.objects.active().filter(is_superuser=True).exists()


def token() -> str:
    """The link's secret part."""
    return _signer.sign("first")


def is_valid(token: str) -> bool:
    """Whether the token is ours and fresh."""
    try:
        _signer.unsign(token, max_age=LIFE)
    except signing.BadSignature:
        return False
    return True
