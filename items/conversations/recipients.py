"""The people of private mentions: who is in a conversation.

These are its first sender, and those mentioned then or addressed by name. Nobody joins later.

A mute keeps a message from listing the conversation. A stranger's first message goes to the recipient's requests. A
message by somebody else or the recipient takes it out of them, and so does accepting it. A recipient who takes no
requests by then hears no more of one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from accounts.models import User
from items.models import Item, Participant
from items.text import ContentError, mentions
from relations.rules import follows, is_wanted, mutes, unblocked
from storage.connections import fetch, id_array
from web import rates

MOST = 20
"""Most people in one private mention."""
ADDRESSED_MOST = 8
"""Most people to whom a message is addressed."""
SENDER = "%(sender)s"


def _is_stranger(sender: str, recipient: str) -> str:
    wrote = f"SELECT FROM items_correspondent c WHERE c.writer_id = {recipient} AND c.reader_id = {sender} OFFSET 0"
    return f"(NOT {follows(recipient, sender)} AND NOT EXISTS ({wrote}))"


ADDRESSED = f"""
    SELECT u.id, u.username, u.takes_requests, {_is_stranger(SENDER, "u.id")}
    FROM accounts_user u
    WHERE lower(u.username) = ANY(%(names)s::text[]) AND u.is_active AND u.id <> {SENDER}
        AND {unblocked(SENDER, "u.id")}
"""
# Whether a participant `p`, a user `u`, has not accepted the conversation, and takes no requests by now.
REFUSES = f"(p.is_request AND NOT u.takes_requests AND {_is_stranger(SENDER, 'u.id')})"
OTHERS = f"""
    SELECT u.username, {REFUSES} FROM items_participant p JOIN accounts_user u ON u.id = p.user_id
    WHERE p.conversation_id = %(conversation)s AND u.id <> {SENDER} AND u.is_active AND {unblocked(SENDER, "u.id")}
"""
BEGIN = f"""
    INSERT INTO items_participant (conversation_id, user_id, last, read, is_request)
    SELECT %(item)s, u.id, CASE WHEN NOT {mutes("u.id", SENDER)} THEN %(item)s::bigint END,
        CASE WHEN u.id = {SENDER} THEN %(item)s::bigint ELSE 0 END,
        u.id <> {SENDER} AND {_is_stranger(SENDER, "u.id")}
    FROM unnest(%(people)s::bigint[]) AS u (id) RETURNING user_id
"""
# One lock order for concurrent messages.
CONTINUE = f"""
    WITH there AS MATERIALIZED (
        SELECT p.user_id, {REFUSES} AS refuses FROM items_participant p JOIN accounts_user u ON u.id = p.user_id
        WHERE p.conversation_id = %(conversation)s ORDER BY p.user_id FOR NO KEY UPDATE OF p
    )
    UPDATE items_participant p SET
        last = CASE WHEN p.user_id = {SENDER} OR (NOT there.refuses AND {is_wanted("p.user_id", SENDER)})
            THEN greatest(p.last, %(item)s) ELSE p.last END,
        read = CASE WHEN p.user_id = {SENDER} THEN greatest(p.read, %(item)s) ELSE p.read END,
        is_request = p.is_request AND p.user_id <> {SENDER} AND {_is_stranger(SENDER, "p.user_id")}
    FROM there WHERE p.conversation_id = %(conversation)s AND p.user_id = there.user_id
    RETURNING p.user_id
"""
NAMED = f"""
    SELECT coalesce(bool_and((p.user_id IS NOT NULL) = (lower(u.username) = ANY(%(names)s::text[]))), true)
    FROM accounts_user u LEFT JOIN items_participant p ON p.conversation_id = %(conversation)s AND p.user_id = u.id
    WHERE u.is_active AND u.id <> {SENDER} AND {unblocked(SENDER, "u.id")} AND (u.id = ANY(ARRAY(
        SELECT there.user_id FROM items_participant there WHERE there.conversation_id = %(conversation)s
        UNION SELECT named.id FROM accounts_user named WHERE lower(named.username) = ANY(%(names)s::text[]))))
"""
CORRESPOND = """
    INSERT INTO items_correspondent (writer_id, reader_id)
    SELECT p.user_id, other.user_id FROM items_participant p JOIN items_participant other USING (conversation_id)
    WHERE p.conversation_id = %(conversation)s AND p.user_id = %(sender)s AND other.user_id <> p.user_id
    ORDER BY other.user_id ON CONFLICT DO NOTHING RETURNING reader_id
"""


IS_KNOWN = f"SELECT NOT {_is_stranger(SENDER, '%(recipient)s')}"


class StrangersError(ContentError):
    """The sender has written to too many strangers. `wait`: seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(_("You messaged many new people. Try again later."))
        self.wait = wait


class _Addressed(NamedTuple):
    id: int
    username: str
    takes_requests: bool
    is_stranger: bool


def recipients_of(item: Item, answered: Item | None, addressed: Sequence[str] = ()) -> Sequence[int]:
    """The users whom a new private mention mentions, or only those `addressed`. For a reply it sets `conversation` and
    returns none.

    Raises StrangersError, and ContentError if nobody would see it, the sender is not in it, somebody addressed cannot
    be written to, or a recipient takes no requests.
    """
    if answered and answered.is_private:
        item.conversation_id = answered.conversation_id or answered.pk
        if not Participant.objects.filter(conversation=item.conversation_id, user=item.sender_id).exists():
            raise ContentError(_("You're not in this conversation."), field="reply_to")
        others = fetch(OTHERS, {"conversation": item.conversation_id, "sender": item.sender_id})
        if others and all(refuses for _name, refuses in others):
            raise _requests_refused_error(others[0][0])
        return []
    names = [name.lower() for name in addressed or mentions(item.text)]
    if len(names) > MOST:
        words = ngettext("You can mention at most %(count)d person.", "You can mention at most %(count)d people.", MOST)
        raise ContentError(words % {"count": MOST})
    found = _find(names, item.sender_id)
    if addressed:
        _check_all_found(addressed, found)
    if not found:
        raise ContentError(_("Mention someone by @name. Only the people you mention can see it."), field="visibility")
    strangers = [one for one in found if one.is_stranger]
    for one in strangers:
        if not one.takes_requests:
            raise _requests_refused_error(one.username)
    if strangers and (wait := rates.hit("strangers", str(item.sender_id), len(strangers))) is not None:
        raise StrangersError(wait)
    return [one.id for one in found]


def _find(names: Sequence[str], sender_id: int) -> list[_Addressed]:
    return fetch(ADDRESSED, {"names": [*names], "sender": sender_id}, into=_Addressed._make) if names else []


def addressees(names: Sequence[str], *, sender: User) -> list[int]:
    """The ids of people by name, in any case. None if one of them cannot be written to."""
    lowered = {name.lower() for name in names}
    found = _find([*lowered], sender.pk)
    return [one.id for one in found] if len(found) == len(lowered) else []


def _check_all_found(addressed: Sequence[str], found: Sequence[_Addressed]) -> None:
    known = {one.username.lower() for one in found}
    for name in addressed:
        if name.lower() not in known:  # a block looks like an unknown name
            raise ContentError(_("You can't message @%(name)s. Check the name.") % {"name": name}, field="usernames")


def _requests_refused_error(username: str) -> ContentError:
    words = _("@%(name)s only accepts private mentions from people they follow or have messaged.")
    return ContentError(words % {"name": username})


def may_message(sender: User, recipient: User) -> bool:
    """Whether somebody takes the sender's messages, at least as a request. Ignores blocks."""
    params = {"sender": sender.pk, "recipient": recipient.pk}
    return recipient.takes_requests or bool(fetch(IS_KNOWN, params)[0][0])


def write_participants(item: Item, people: Sequence[int]) -> None:
    """Write the people of a new private mention."""
    params: dict[str, Any] = {"item": item.pk, "sender": item.sender_id}
    params["conversation"] = item.conversation_id or item.pk
    if item.conversation_id:
        fetch(CONTINUE, params)
    else:
        fetch(BEGIN, params | {"people": id_array([item.sender_id, *people])})
    fetch(CORRESPOND, params)


def requests_sentence(item_id: int) -> str:
    """Who gets a conversation's first message under requests. "" if nobody does, and for later messages.

    A mute and a block change nothing in it, and neither does accepting: it is said once.
    """
    asked = Participant.objects.filter(conversation=item_id, is_request=True).order_by("user_id")
    names = [f"@{name}" for name in asked.values_list("user__username", flat=True)]
    if not names:
        return ""
    return _("%(names)s will see this under message requests.") % {"names": pgettext("between names", ", ").join(names)}


def reaches_exactly(names: Iterable[str], *, sender: User, answered: Item) -> bool:
    """Whether a reply reaches exactly these lower-case names."""
    conversation = answered.conversation_id or answered.pk
    rows = fetch(NAMED, {"names": list(names), "conversation": conversation, "sender": sender.pk})
    return bool(rows[0][0])
