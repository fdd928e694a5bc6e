"""Whether a caller is known, before a large body is read."""

from django.conf import settings
from django.db.models.functions import Now
from django.http import parse_cookie

from accounts.models import Session, User
from accounts.signing_in.tokens import find_token
from accounts.signing_in_models import OWN_APP

KINDS = ("token", "bearer")


def has_valid_credentials(authorization: str, cookie: str) -> bool:
    """Whether a header has an active user's token or session."""
    kind, _separator, text = authorization.strip().partition(" ")
    if kind.lower() in KINDS:
        token = find_token(text.strip())
        is_of_site = token is not None and token.app_id == OWN_APP
        return token is not None and token.user is not None and is_of_site == (kind.lower() == "token")
    key = parse_cookie(cookie).get(settings.SESSION_COOKIE_NAME, "")
    if not key or "\0" in key:
        return False
    active = User.objects.active().values("pk")
    return bool(Session.objects.filter(session_key=key, expire_date__gt=Now(), user_id__in=active).exists())
