"""The shell of what a member owns and manages over HTTP, in pages and in the API: lists and filters."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404

from accounts.models import User
from web.rest import parse_id


class Owned(Protocol):
    """Something that a member owns."""

    @property
    def id(self) -> int:
        """Its id."""


Found = TypeVar("Found", bound=Owned)


def own_or_404(find: Callable[[User, int], Found | None], owner: User, number: str | int) -> Found:
    """What the owner has under this id. Raises Http404, the same for another's id and for no id at all."""
    known = parse_id(str(number))
    found = find(owner, known) if known else None
    if found is None:
        raise Http404
    return found


@contextmanager
def missing_as_404() -> Iterator[None]:
    """Turn the DoesNotExist of a verb into Http404."""
    try:
        yield
    except ObjectDoesNotExist as error:
        raise Http404 from error
