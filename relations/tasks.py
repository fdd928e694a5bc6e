from accounts.levels.big_v import upgrade_big_vs
from relations import actions, importing
from storage.queue import only_if_rows, task


@task("relations.fold_follower_counts")
@only_if_rows("relations.fold_follower_counts", "SELECT FROM relations_followercountchange")
def fold_follower_counts() -> None:
    """Periodic: fold counts, and promote users at the big-V threshold."""
    upgrade_big_vs(actions.fold_follower_counts())


@task("relations.end_mutes")
@only_if_rows(
    "relations.end_mutes", "SELECT expires_at FROM relations_mute WHERE expires_at <= now()", work="timed mutes"
)
def end_mutes() -> None:
    """Periodic: delete expired mutes."""
    actions.end_mutes()


@task("relations.sweep_imports")
@only_if_rows(
    "relations.sweep_imports",
    "SELECT coalesce(tried_at, created_at) FROM relations_csvimport WHERE finished_at IS NULL",
    work="imports of lists",
)
def sweep_imports() -> None:
    """Periodic: send lost imports to the workers."""
    importing.sweep()
