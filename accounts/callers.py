from django.contrib.auth.models import AnonymousUser
from rest_framework import exceptions
from rest_framework.request import Request

from accounts.models import User


def authenticated_user(request: Request) -> User:
    """The caller. Raises NotAuthenticated."""
    if not isinstance(request.user, User):
        raise exceptions.NotAuthenticated
    return request.user


def reader_of(request: Request) -> User | AnonymousUser:
    """The caller, signed in or not."""
    return request.user if isinstance(request.user, User) else AnonymousUser()
