from collections.abc import Iterable

from accounts.levels import policy
from storage.connections import fetch


def epochs(user_ids: Iterable[int]) -> dict[int, int]:
    query = f"SELECT u.id, {policy.EPOCH} FROM accounts_user u WHERE u.id = ANY(%s)"
    return dict(fetch(query, [list(user_ids)]))


def epoch_of(user_id: int) -> int:
    return epochs([user_id])[user_id]


def generation() -> int:
    found = policy.current().generation
    assert found is not None
    return found
