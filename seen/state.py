"""The state of the played history, as seen.status collects it."""

from datetime import datetime
from enum import StrEnum

import msgspec

from seen.migration.old import Phase


class NodeState(StrEnum):
    """The states of a node of the ring."""

    CURRENT = "current"
    """This hour's plays are marked here."""
    MERGING = "merging"
    """The last hour's node, which this hour's tasks merge."""
    LEFT = "left"
    """No task works here. Remaining users were missed twice, and wait one lap."""


class Node(msgspec.Struct):
    """A node of the ring. `hour`: of its last marks."""

    number: int
    state: NodeState
    hour: datetime
    users: int


class Run(msgspec.Struct):
    """One merge of a task."""

    started_at: datetime
    seconds: float
    users: int
    plays: int
    error: str


class TaskShard(msgspec.Struct):
    """A part of the ring that one task merges. `first` and `second`: its last merges in each half of an hour."""

    number: int
    current: int
    merging: int
    left: int
    fullest: int
    """Users in its fullest set."""
    first: Run | None = None
    second: Run | None = None

    @property
    def users(self) -> int:
        """Waiting users."""
        return self.current + self.merging + self.left


class Hour(msgspec.Struct):
    """The merges within an hour."""

    hour: datetime
    users: int = 0
    plays: int = 0
    seconds: float = 0.0
    failures: int = 0


class Failure(msgspec.Struct):
    """A failed merge."""

    at: datetime
    node: int
    task_shard: int
    error: str


class Server(msgspec.Struct):
    """The Redis of the plays. `memory` in bytes."""

    memory: int
    is_logged: bool
    """Whether it has an AOF."""
    evicts: bool


class Month(msgspec.Struct):
    """A month's filters. `size` in bytes."""

    month: str
    age: int
    """Months ago."""
    filters: int
    size: int

    @property
    def each(self) -> int:
        """Average bytes of a filter."""
        return self.size // self.filters


class Room(msgspec.Struct):
    """The LMDB file, its limit, and its disk's free space, in bytes."""

    used: int
    most: int
    free: int


class Moving(msgspec.Struct):
    """How far the migration is (seen.migration.migrate)."""

    phase: Phase
    users: int
    """In the parts of files that were read."""
    merged: int
    left: int
    files: int
    unread: int
    """Files not read to their end."""


class Problem(msgspec.Struct):
    """A name for machines, and a sentence for people."""

    name: str
    text: str


class Status(msgspec.Struct):
    """The state of the played history."""

    at: datetime
    problems: list[Problem]
    nodes: list[Node]
    task_shards: list[TaskShard]
    hours: list[Hour]
    failures: list[Failure]
    months: list[Month]
    server: Server | None
    room: Room | None
    last_merge: datetime | None
    migration: Moving | None
    """None if there was never one."""

    @property
    def users(self) -> int:
        """Waiting users."""
        return sum(node.users for node in self.nodes)
