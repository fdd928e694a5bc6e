"""The user of the tests of media, and a folder of its own for the files of each test."""

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from tests.support.api import client_of


@pytest.fixture(autouse=True)
def _files_of_its_own(media_folder: object) -> None:
    """Every test of this folder has one."""


@pytest.fixture
def client(ann: User) -> APIClient:
    """The user's client of the API."""
    return client_of(ann)
