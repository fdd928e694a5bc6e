"""Hides or shows single pictures.

See docs/decisions.md: Hidden files lose their name.
"""

from collections.abc import Sequence

from django.db import transaction

from accounts import review
from accounts.models import User
from items.attachments import hiding
from items.models import Item
from moderation.decisions import NONE, Grounds, log_for_subject
from moderation.log import log_decision
from moderation.models import Verb


@transaction.atomic
def hide(*, item: Item, by: User, ids: Sequence[int] | None = None, note: str = "", grounds: Grounds = NONE) -> int:
    """Hide pictures (None: all), and tell the sender why. Raises JudgeError."""
    review.check_judge(item.sender, by)
    hidden = hiding.hide_media(item=item, ids=ids)
    if hidden:
        after = {"pictures": [str(number) for number in hidden]}
        log_for_subject(by, Verb.HIDE, item=item, note=note, grounds=grounds, after=after)
    return len(hidden)


@transaction.atomic
def show(*, item: Item, by: User, ids: Sequence[int] | None = None, note: str = "") -> int:
    """Show hidden pictures (None: all) again. Raises JudgeError."""
    review.check_judge(item.sender, by)
    shown = hiding.show_media(item=item, ids=ids)
    if shown:
        log_decision(by, Verb.SHOW, item=item, note=note, after={"pictures": [str(number) for number in shown]})
    return len(shown)


@transaction.atomic
def uncover(*, session_id: int, medium_id: int, by: User, note: str = "", grounds: Grounds = NONE) -> bool:
    """Remove a session's cover for good, and tell the host why. False if it is not shown. Raises JudgeError."""
    subject = review.sessions.lock(session_id)
    review.check_judge(subject and subject.author, by)
    if subject is None or not review.sessions.uncover(session_id, medium_id):
        return False
    log_for_subject(
        by,
        Verb.HIDE,
        session_id=session_id,
        user=subject.author,
        note=note,
        grounds=grounds,
        about=subject.title,
        after={"pictures": [str(medium_id)]},
    )
    return True
