"""Mastodon's AccountWarning: decisions of moderators in notifications."""

from collections.abc import Iterable

import msgspec

from accounts.models import User
from clientapi.accounts.people import accounts_of
from clientapi.entities import Account, time_text
from moderation.decisions import appeal_of, decisions_about, rule_text
from moderation.models import Verb

ACTIONS = {Verb.REJECT: "delete_statuses", Verb.HIDE: "mark_statuses_as_sensitive", Verb.LIST: "silence"}
ACTIONS |= {Verb.BAN: "suspend", Verb.WARN: "none", Verb.END: "none"}
"""Mastodon's names of what moderators do, or the nearest."""
STATES = {"waiting": "pending", "accepted": "approved", "rejected": "rejected"}


class Appeal(msgspec.Struct):
    """Mastodon's Appeal."""

    text: str
    state: str


class AccountWarning(msgspec.Struct):
    """Mastodon's AccountWarning. Apps open `/disputes/strikes/ID`, where the reader appeals."""

    id: str
    action: str
    text: str
    status_ids: list[str] | None
    target_account: Account
    appeal: Appeal | None
    created_at: str


def warnings_of(reader: User, ids: Iterable[int]) -> dict[int, AccountWarning]:
    """The reader's decisions with these ids."""
    wanted = list(ids)
    if not wanted:
        return {}
    (account,) = accounts_of([reader])
    found = {}
    for row in decisions_about(reader).filter(pk__in=wanted):
        appeal = appeal_of(row)
        found[row.pk] = AccountWarning(
            str(row.pk),
            ACTIONS[Verb(row.verb)],
            "\n".join(filter(None, (rule_text(row), row.text))),
            [str(row.item_id)] if row.item_id else None,
            account,
            Appeal(appeal.text, STATES[appeal.state]) if appeal else None,
            time_text(row.at),
        )
    return found
