"""Replays: an ended session never changes, so it is pushed to followers.

A big-V's replay is not pushed: `pulled` says so from its end on, so a replay is always either in windows or pulled. New
epochs for all followers at a demotion would cost a write each.
"""

from typing import NamedTuple

from django.conf import settings

from accounts.levels import policy
from live.models import LiveSession, ReplayDelivery
from live.pull import pull_entries
from relations.followers import follower_parts
from storage import construction, keys
from storage.connections import (
    LAZILY,
    feeds_for_tasks,
    fetch,
)
from storage.construction import BuiltWindow, WindowSnapshot
from storage.deliveries import Attempt
from storage.ids import NO_BOUND
from storage.queue import task
from storage.window import WindowEntry, deliver

EPOCH_TRIES = 3
STANDING = f"SELECT u.level, {policy.EPOCH} FROM accounts_user u WHERE u.id = %s"

# A big-V's replay is pulled, and one pulled before stays so.
PULL = """
    WITH pulled AS (
        UPDATE live_livesession l SET pulled = true FROM accounts_user h
        WHERE l.id = %(session)s AND h.id = l.host_id AND (l.pulled OR h.is_big_v) RETURNING l.host_id)
    UPDATE live_host SET has_pulled = true FROM pulled WHERE user_id = pulled.host_id RETURNING user_id
"""
INSERT = """
    INSERT INTO live_replaydelivery (session_id, host_id, position, attempts, enqueued, sweep_at, last_error)
    VALUES (%(session)s, %(host)s, %(position)s, 0, 0, now() + %(retry)s::interval, '')
    ON CONFLICT (session_id) DO UPDATE SET revision = DEFAULT, attempts = 0, enqueued = 0, sweep_at = excluded.sweep_at,
        parked_at = NULL, last_error = ''
    RETURNING session_id
"""
CLAIM = f"""
    UPDATE live_replaydelivery d SET attempts = d.attempts + 1,
        sweep_at = now() + %(retry)s::interval * 2 ^ least(d.attempts, 10)
    WHERE d.session_id = %(session)s AND d.parked_at IS NULL AND (SELECT {LAZILY})
    RETURNING d.position, d.host_id, d.revision, d.attempts
"""
FINISH = f"""
    DELETE FROM live_replaydelivery WHERE session_id = %(session)s AND revision = %(revision)s AND (SELECT {LAZILY})
    RETURNING session_id
"""


class Replays(BuiltWindow):
    """A reader's inbox of replays, with epoch policy.EPOCH."""

    __slots__ = ()

    def __init__(self, user_id: int) -> None:
        super().__init__(user_id, keys.replays(user_id))

    def build_later(self, token: str) -> bool:
        """Have a worker build it."""
        return bool(materialise.delay(self.owner, token))


@task("live.materialise_replays")
def materialise(user_id: int, token: str) -> bool:
    """Fill the inbox for construction `token`. True if in use."""
    window = Replays(user_id)
    if not construction.is_under_way(window, token):
        return False
    for _ in range(EPOCH_TRIES):
        level, epoch = fetch(STANDING, [user_id])[0]
        if not level or epoch is None:
            return False
        cap = settings.LIVE_REPLAYS_CAP
        snapshot_epoch, entries, floor = pull_entries(user_id, cap)
        if snapshot_epoch != epoch:
            continue
        return construction.finish(window, token, WindowSnapshot(epoch, floor, entries, cap))
    return False


# --- The end of a session --------------------------------------------------------------------------------
def create_delivery(*, session: LiveSession) -> None:
    """Insert the delivery and start the fan-out, or mark a big-V's replay as pulled."""
    if fetch(PULL, {"session": session.pk}):
        return
    params = {
        "session": session.pk,
        "host": session.host_id,
        "position": session.position,
        "retry": settings.FAN_OUT_RETRY_AFTER,
    }
    fetch(INSERT, params)
    fan_out.delay_on_commit(session.pk)


# --- Fan-out ---------------------------------------------------------------------------------------------
class _Claim(NamedTuple):
    position: int
    host_id: int
    revision: int
    attempts: int


@task("live.fan_out")
def fan_out(session_id: int) -> bool:
    """Deliver to every inbox. True if complete."""
    rows = fetch(CLAIM, {"session": session_id, "retry": settings.FAN_OUT_RETRY_AFTER}, into=_Claim._make)
    if not rows:
        return False
    claim = rows[0]
    attempt = Attempt(
        f"replay {session_id}",
        lambda: ReplayDelivery.objects.filter(pk=session_id, revision=claim.revision),
        claim.attempts,
    )
    if claim.attempts > settings.FAN_OUT_ATTEMPTS:
        attempt.park()
        return False
    return attempt.run(lambda: _fan_out(session_id, claim.revision, WindowEntry(claim.position, claim.host_id)))


def _fan_out(session_id: int, revision: int, entry: WindowEntry) -> bool:
    for followers, _ in follower_parts(entry.sender_id, 0, NO_BOUND, 1, with_inbox=False):
        caps = [settings.LIVE_REPLAYS_CAP] * len(followers)
        deliver(feeds_for_tasks(), entry, map(keys.replays, followers), caps)
    fetch(FINISH, {"session": session_id, "revision": revision})
    return True
