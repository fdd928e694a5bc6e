"""Looking up what a member owns."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from django.http import Http404

from accounts.models import User


class Owned(Protocol):
    """Something that a member owns."""

    @property
    def id(self) -> int:
        """Its id."""


Found = TypeVar("Found", bound=Owned)


def own_or_404(find: Callable[[User, int], Found | None], owner: User, number: int) -> Found:
    """The owner's object with this id. Raises Http404."""
    found = find(owner, number)
    if found is None:
        raise Http404
    return found
