import pytest
from rest_framework.test import APIClient

from accounts.models import User
from tests.support.api import client_of


@pytest.fixture(autouse=True)
def _files_of_its_own(media_folder: object) -> None:
    pass


@pytest.fixture
def client(ann: User) -> APIClient:
    return client_of(ann)
