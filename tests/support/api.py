from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User

API = "/api/v1"


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=user)}")
    return client
