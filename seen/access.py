"""Who may act for whom: services ask and report for other users, everybody else for themselves."""

from accounts.models import User

ACT_FOR_OTHERS = "seen.act_for_others"


def may_act_for(caller: User, user_id: int) -> bool:
    """Whether `caller` may report and ask what this user has seen."""
    return caller.pk == user_id or caller.has_perm(ACT_FOR_OTHERS)
