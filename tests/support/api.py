import secrets
from datetime import timedelta

from django.utils import timezone
from oauth2_provider.models import AccessToken, set_token_value
from rest_framework.test import APIClient

from accounts.models import User
from accounts.signing_in_models import ClientApp

API = "/api/v1"


def client_of(user: User) -> APIClient:
    """Writes the token's row alone. `issue_token` asks seven statements more."""
    token = secrets.token_urlsafe(24)
    row = AccessToken(user=user, application=ClientApp.objects.own(), expires=timezone.now() + timedelta(days=1))
    set_token_value(row, token)
    row.save()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client
