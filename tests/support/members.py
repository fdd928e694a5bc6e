"""A test that needs another has a fixture of the same name."""

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from tests.support.api import client_of
from tests.support.factories import UserFactory


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def api(ann: User) -> APIClient:
    return client_of(ann)


@pytest.fixture
def author() -> User:
    return UserFactory(username="author")


@pytest.fixture
def bob() -> User:
    return UserFactory(username="bob")


@pytest.fixture
def other() -> User:
    return UserFactory(username="other")


@pytest.fixture
def owner() -> User:
    return UserFactory(username="owner")


@pytest.fixture
def reader() -> User:
    return UserFactory(username="reader")
