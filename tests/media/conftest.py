"""A folder of its own for the files of each test."""

from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from tests.support.factories import UserFactory


@pytest.fixture(autouse=True)
def media_folder(tmp_path: Path, settings: Any) -> Path:
    """Where this test's files are."""
    settings.MEDIA_DIR = tmp_path / "media"
    settings.MEDIA_INCOMING = settings.MEDIA_DIR / "incoming"
    settings.MEDIA_WAIT_SECONDS = 60.0
    settings.MEDIA_SECONDS = 60.0
    return tmp_path / "media"


@pytest.fixture
def ann() -> User:
    """A user."""
    return UserFactory.create(username="ann")


@pytest.fixture
def client(ann: User) -> APIClient:
    """The user's client of the API."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=ann)}")
    return client
