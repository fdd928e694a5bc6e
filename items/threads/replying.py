"""Who may reply in a thread. The root's sender chooses, for the whole thread.

See docs/decisions.md: The first post decides who may reply.
"""

from http import HTTPStatus

from django.utils.translation import gettext as _

from accounts.models import RepliableBy, User
from items.models import Item, Visibility
from items.text import ContentError, mentions
from items.visibility import may_reply
from storage.connections import fetch
from web.refusals import RefusalError

# The lock makes a change of the choice wait for the reply. The next reply reads the new choice.
MAY_REPLY = f"""
    SELECT {may_reply("root")}, root.repliable_by FROM items_item root WHERE root.id = %(root)s FOR SHARE OF root
"""
NAMED = "SELECT u.id FROM accounts_user u WHERE lower(u.username) = ANY(%(names)s::text[]) ORDER BY u.id"


class NotRepliableError(RefusalError):
    """The sender of the thread does not allow the reply. The message is for people."""

    status = HTTPStatus.FORBIDDEN
    code = "not_repliable"
    sentence = "You can't reply to that item."


def check_reply(answered: Item, user: User, repliable_by: str | None = None) -> int:
    """Raise NotRepliableError if the user may not reply to an item that is no repost, and ContentError if the reply
    wants others to reply than the root. Locks the root. Returns its id. A private mention is for its people to answer,
    whatever the root says.
    """
    root_id = answered.root_id or answered.pk
    ((may, chosen),) = fetch(MAY_REPLY, {"root": root_id, "reader": user.pk})
    if not (may or answered.is_private):
        raise NotRepliableError(not_repliable_text())
    if repliable_by and repliable_by != chosen:
        raise of_reply_error()
    return int(root_id)


def check_choice(visibility: str, repliable_by: str | None) -> None:
    """Raise ContentError if a private mention limits who of its people may reply."""
    if visibility == Visibility.MENTIONED and repliable_by not in (None, RepliableBy.EVERYONE):
        raise ContentError(_("All people of a private mention can reply to it."), field="repliable_by")


def of_reply_error() -> ContentError:
    """A reply chose who may reply."""
    return ContentError(_("The first post of a thread decides who can reply."), field="repliable_by")


def not_repliable_text() -> str:
    """Why somebody may not reply."""
    return _("The author doesn't allow you to reply to this post.")


def repliers_of(item: Item) -> list[int] | None:
    """Whom the item mentions, if only they may reply."""
    if item.repliable_by != RepliableBy.MENTIONED:
        return None
    names = [name.lower() for name in mentions(item.text)]
    return [user_id for (user_id,) in fetch(NAMED, {"names": names})] if names else []
