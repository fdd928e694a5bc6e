"""Checks that all machines have the site's secret key, by its fingerprint in PostgreSQL.

A machine with another key signs everybody out and cannot read second factors.
"""

from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from django.utils.crypto import salted_hmac

from storage.models import SiteKey

QUESTION = "SELECT (SELECT fingerprint FROM feedsite_sitekey)"
ADVICE = (
    "Copy FEEDSITE_SECRET_KEY from another machine, or the file secret_key from its data folder. If you changed the "
    "key, add the old one to FEEDSITE_SECRET_KEY_FALLBACKS. If the old one is lost, run `manage.py seal_factors "
    "--new-key`: docs/runbook.md, Rotate keys."
)


class WrongKeyError(Exception):
    """This process's key is not the site's."""

    def __init__(self) -> None:
        super().__init__("differs from the site's")


def known_keys() -> list[str]:
    """The secret key, then the earlier ones."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def fingerprint(key: str) -> str:
    """A fingerprint that does not reveal the key."""
    return salted_hmac("storage.site_key", "fingerprint", secret=key, algorithm="sha256").hexdigest()


def check_fingerprint(noted: str | None) -> None:
    """Compare a stored fingerprint with this process's keys. Raises WrongKeyError. Fallback keys are accepted."""
    if noted not in (None, *_fingerprints(known_keys())):
        raise WrongKeyError


@transaction.atomic
def check() -> None:
    """Compare this process's key with the stored fingerprint. Raises WrongKeyError.

    The first start stores the fingerprint. After a change of the key, the first process that has the old one as
    fallback replaces it.
    """
    noted = SiteKey.objects.values_list("fingerprint", flat=True).first()
    if noted == fingerprint(settings.SECRET_KEY):
        return
    if noted is None:
        SiteKey.objects.bulk_create([SiteKey(fingerprint=fingerprint(settings.SECRET_KEY))], ignore_conflicts=True)
    else:
        earlier = SiteKey.objects.filter(fingerprint__in=_fingerprints(settings.SECRET_KEY_FALLBACKS))
        earlier.update(fingerprint=fingerprint(settings.SECRET_KEY))
    if not SiteKey.objects.filter(fingerprint=fingerprint(settings.SECRET_KEY)).exists():
        raise WrongKeyError


def delete_fingerprint() -> None:
    """Delete the stored fingerprint. The next start stores its own."""
    SiteKey.objects.all().delete()


def _fingerprints(keys: Iterable[str]) -> list[str]:
    return [fingerprint(key) for key in keys]
