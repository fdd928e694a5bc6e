from collections.abc import Mapping

from storage.connections import Command, FeedsUnavailableError, feeds_errors, feeds_for_tasks, pipelined
from storage.window import PIPELINE_LENGTH
from timeline.inbox import Inbox, cap_of
from timeline.reading import set_hint
from timeline.truth import followed_big_vs


def shorten(user_ids_by_level: Mapping[int, list[int]]) -> None:
    """Trim inboxes to the new level, and write hints of the outboxes to merge.

    Without Redis the next delivery trims them.
    """
    commands: list[Command] = []
    for level, user_ids in user_ids_by_level.items():
        cap = cap_of(level)
        commands += [Inbox(user_id).trim(cap) if cap else Inbox(user_id).drop() for user_id in user_ids]
        if cap:
            commands += [set_hint(user_id, big_vs) for user_id, big_vs in followed_big_vs(user_ids)]
    try:
        with feeds_errors():
            for first in range(0, len(commands), PIPELINE_LENGTH):
                pipelined(feeds_for_tasks(), commands[first : first + PIPELINE_LENGTH])
    except FeedsUnavailableError:
        return
