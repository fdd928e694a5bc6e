"""Hides or shows single pictures.

See docs/decisions.md: Hidden files lose their name.
"""

from collections.abc import Sequence

from django.db import transaction
from django.utils import translation
from django.utils.translation import gettext as _

from accounts import review
from accounts.models import User
from items.attachments import hiding
from items.models import Item
from moderation.log import log_decision
from moderation.models import Verb
from notifications import actions as notifications


@transaction.atomic
def hide(*, item: Item, by: User, ids: Sequence[int] | None = None, note: str = "") -> int:
    """Hide pictures (None: all), and tell the sender why. Raises JudgeError."""
    review.check_judge(item.sender, by)
    hidden = hiding.hide_media(item=item, ids=ids)
    if hidden:
        log_decision(by, Verb.HIDE, item=item, note=note, after={"pictures": [str(number) for number in hidden]})
        if item.sender.is_active:
            notifications.notify_of_pictures(item=item, text=note)
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
def uncover(*, session_id: int, medium_id: int, by: User, note: str = "") -> bool:
    """Remove a session's cover for good, and tell the host why. False if it is not shown. Raises JudgeError."""
    subject = review.sessions.lock(session_id)
    review.check_judge(subject and subject.author, by)
    if subject is None or not review.sessions.uncover(session_id, medium_id):
        return False
    host = subject.author
    log_decision(by, Verb.HIDE, session_id=session_id, user=host, note=note, after={"pictures": [str(medium_id)]})
    if host.is_active:
        with translation.override(host.language or translation.get_language()):
            told = _("Moderators removed the cover of your live session “%(title)s”.") % {"title": subject.title}
        notifications.warn(user=host, text=f"{told}\n{note}" if note else told)
    return True
