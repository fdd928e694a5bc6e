from accounts import addresses, purge, recounting
from accounts.joining import applications
from accounts.levels import actions as levels
from accounts.levels import policy
from accounts.signing_in import recovery  # noqa: F401 (it has tasks of its own)
from accounts.signing_in.sessions import SessionStore
from storage.queue import only_if_rows, task


@task("accounts.lower_levels")
def lower_levels() -> None:
    """Periodic: lower levels of users not seen for long."""
    levels.lower_levels()


@task("accounts.follow_timeline")
@only_if_rows("accounts.follow_timeline", policy.NOT_FOLLOWED)
def follow_timeline() -> None:
    """Periodic: notice a failover of PostgreSQL, so that windows are used again."""
    policy.renew_after_failover()


@task("accounts.sweep_deletions")
@only_if_rows("accounts.sweep_deletions", purge.LEFT, work="deletions of accounts")
def sweep_deletions() -> None:
    """Periodic: continue deletions."""
    purge.sweep()


@task("accounts.sweep_recounts")
@only_if_rows(
    "accounts.sweep_recounts",
    "SELECT coalesce(tried_at, created_at) FROM accounts_recount",
    work="counts of suspended accounts",
)
def sweep_recounts() -> None:
    """Periodic: continue recounts of users who were hidden or shown."""
    recounting.sweep()


@task("accounts.forget_applications")
def forget_applications() -> None:
    """Periodic: remove old applications."""
    applications.forget_old()


@task("accounts.clear_sessions")
def clear_sessions() -> None:
    """Periodic: remove expired sessions, which Django keeps."""
    SessionStore.clear_expired()
    addresses.forget_checks()
