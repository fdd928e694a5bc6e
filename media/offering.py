"""Media that are to be kept or used are offered to the rooms above, whose rules may block them.

The offer is made in the transaction that would keep or use them, so that no rule and no medium pass each other; that
transaction is rolled back where they are blocked, and the attempt is told after it.

See docs/decisions.md: Blocked pictures are compared by 64 bits.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.utils.translation import gettext as _

from media.models import MediaFile
from media.signals import media_blocked, media_offered

P = ParamSpec("P")
T = TypeVar("T")


class BlockedMediaError(Exception):
    """Rules block the media of an owner; the cause of the error that people are told. `rules`: their ids."""

    def __init__(self, owner_id: int, rules: Sequence[int]) -> None:
        super().__init__(_("The rules of this site do not allow this picture or video."))
        self.owner_id, self.rules = owner_id, rules


def offer(media: Sequence[MediaFile], *, owner_id: int, is_face: bool = False) -> None:
    """Ask whether these media may be kept or used; `is_face`: as an avatar, banner or cover.
    Raises BlockedMediaError.
    """
    answers: list[tuple[Any, Any]] = media_offered.send(sender=MediaFile, media=media, is_face=is_face)
    if rules := [rule for _receiver, found in answers for rule in found or ()]:
        raise BlockedMediaError(owner_id, rules)


def telling(verb: Callable[P, T]) -> Callable[P, T]:
    """A verb whose error has BlockedMediaError as its cause: that is told, after its transaction was rolled back."""

    @wraps(verb)
    def tells(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return verb(*args, **kwargs)
        except Exception as error:
            if isinstance(cause := error.__cause__, BlockedMediaError):
                media_blocked.send(sender=MediaFile, owner_id=cause.owner_id, rules=cause.rules)
            raise

    return tells
