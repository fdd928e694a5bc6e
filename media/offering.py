"""Asks packages above whether their rules block media, in the transaction that uses them, so a new rule is not missed.
After its rollback the attempt is reported.
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
    """Rules block an owner's media."""

    def __init__(self, owner_id: int, rules: Sequence[int]) -> None:
        super().__init__(_("This site's rules don't allow this picture or video."))
        self.owner_id, self.rules = owner_id, rules


def check_allowed(media: Sequence[MediaFile], *, owner_id: int, is_face: bool = False) -> None:
    """Raise BlockedMediaError unless media may be used. `is_face`: as avatar, banner or cover."""
    answers: list[tuple[Any, Any]] = media_offered.send(sender=MediaFile, media=media, is_face=is_face)
    if rules := [rule for _receiver, found in answers for rule in found or ()]:
        raise BlockedMediaError(owner_id, rules)


def reports_blocked_media(verb: Callable[P, T]) -> Callable[P, T]:
    """Decorate an action: send `media_blocked` after a rollback by BlockedMediaError."""

    @wraps(verb)
    def tells(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return verb(*args, **kwargs)
        except Exception as error:
            if isinstance(cause := error.__cause__, BlockedMediaError):
                media_blocked.send(sender=MediaFile, owner_id=cause.owner_id, rules=cause.rules)
            raise

    return tells
