"""Who may act for whom: services ask and report for other users, everybody else for themselves."""

from accounts.models import User
from feedsite.connections import fetch

ACT_FOR_OTHERS = "seen.act_for_others"


def may_act_for(caller: User, user_id: int) -> bool:
    """Whether `caller` may report and ask what this user has seen."""
    return caller.pk == user_id or caller.has_perm(ACT_FOR_OTHERS)


def is_there(user_id: int) -> bool:
    """Whether there is such a user, who is neither deleted nor hidden."""
    return bool(fetch("SELECT FROM accounts_user WHERE id = %(user)s AND is_active", {"user": user_id}))
