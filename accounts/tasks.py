from celery import shared_task
from django.core.management import call_command

from accounts import actions, addresses, purge
from accounts.joining import applications
from accounts.levels import actions as levels
from accounts.levels import policy
from accounts.signing_in import places, recovery
from storage.queue import asks


@shared_task(name="accounts.lower_levels")
def lower_levels() -> None:
    """Periodic: lower levels of users not seen for long."""
    levels.lower_levels()


@shared_task(name="accounts.follow_timeline")
@asks("accounts.follow_timeline", policy.NOT_FOLLOWED)
def follow_timeline() -> None:
    """Periodic: notice a failover of PostgreSQL, so that windows are used again."""
    policy.follow_timeline()


@shared_task(name="accounts.purge")
def run_purge(user_id: int) -> None:
    """Do a part of a deletion."""
    purge.purge(user_id)


@shared_task(name="accounts.sweep_deletions")
@asks("accounts.sweep_deletions", purge.LEFT, work="deletions of accounts")
def sweep_deletions() -> None:
    """Periodic: continue deletions and release old names."""
    purge.sweep()
    actions.forget_held_names()


@shared_task(name="accounts.forget_applications")
def forget_applications() -> None:
    """Periodic: remove old applications."""
    applications.forget_old()


@shared_task(name="accounts.clear_sessions")
def clear_sessions() -> None:
    """Periodic: remove expired sessions, which Django keeps."""
    call_command("clearsessions")
    places.forget_ended()
    addresses.forget_checks()


@shared_task(name="accounts.send_resets")
@asks("accounts.send_resets", "SELECT created_at FROM accounts_resetrequest", work="password resets")
def send_resets() -> None:
    """Write password reset letters. Also periodic, for lost tasks."""
    recovery.work_off()
