from collections.abc import Iterable

from accounts.models import User
from storage.connections import fetch, id_array

ACT_FOR_OTHERS = "seen.act_for_others"


def may_act_for(caller: User, user_id: int) -> bool:
    """Whether `caller` may report and ask about a user."""
    return caller.pk == user_id or caller.has_perm(ACT_FOR_OTHERS)


def is_active_user(user_id: int) -> bool:
    """Whether the user exists and is active."""
    return bool(active_user_ids([user_id]))


def active_user_ids(user_ids: Iterable[int]) -> set[int]:
    """The existing, active users. One query."""
    found = fetch("SELECT id FROM accounts_user WHERE id = ANY(%(users)s) AND is_active", {"users": id_array(user_ids)})
    return {row[0] for row in found}
