"""Tokens of an app, for benchmarks that ask as apps of Mastodon's world do."""

import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.utils import timezone
from oauth2_provider.models import AccessToken, set_token_value

from accounts.models import User
from clientapi.actions import OUT_OF_BAND, register


def app_tokens(users: Iterable[User]) -> list[str]:
    """A token for each, with which one app reads all that they see."""
    app = register(name="bench", addresses=[OUT_OF_BAND], asked="read").app
    tokens, rows = [], []
    for user in users:
        tokens.append(secrets.token_urlsafe(24))
        ends = timezone.now() + timedelta(days=1)
        rows.append(AccessToken(user=user, application=app, scope="read", expires=ends, resource=[]))
        set_token_value(rows[-1], tokens[-1])
    AccessToken.objects.bulk_create(rows)
    return tokens
