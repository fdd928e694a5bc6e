from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host


def is_own(domain: str) -> bool:
    """Whether a domain is in SITE_URL or ALLOWED_HOSTS."""
    host = split_domain_port(domain)[0]
    named = [name for name in settings.ALLOWED_HOSTS if name != "*"]
    return bool(host) and (host == urlsplit(settings.SITE_URL).hostname or validate_host(host, named))
