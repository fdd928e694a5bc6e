"""The state of the played history, in the parts that seen.status finds out."""

from datetime import datetime
from enum import StrEnum

import msgspec

from seen.migration.old import Phase


class NodeState(StrEnum):
    """The states of a node of the time ring."""

    CURRENT = "current"
    """Plays of this hour are marked here."""
    MERGING = "merging"
    """A node whose hour is over, and on which the tasks of this hour work."""
    LEFT = "left"
    """No task works on it: users who are left here were missed twice, and are merged one lap later."""


class Node(msgspec.Struct):
    """A node of the time ring. `hour`: the begin of the last hour whose plays are marked on it."""

    number: int
    state: NodeState
    hour: datetime
    users: int


class Run(msgspec.Struct):
    """The work of a task."""

    started_at: datetime
    seconds: float
    users: int
    plays: int
    error: str


class TaskShard(msgspec.Struct):
    """A part of the ring that one task merges.

    `first` and `second` are its last merges of the first and the second half of an hour: the second pass compensates
    the first. A pass that finds no user leaves none.
    """

    number: int
    current: int
    merging: int
    left: int
    fullest: int
    """Users in the fullest of its shards' sets."""
    first: Run | None = None
    second: Run | None = None

    @property
    def users(self) -> int:
        """Users that wait in the shard."""
        return self.current + self.merging + self.left


class Hour(msgspec.Struct):
    """The merges within an hour, of plays of the hour before it as a rule."""

    hour: datetime
    users: int = 0
    plays: int = 0
    seconds: float = 0.0
    failures: int = 0


class Failure(msgspec.Struct):
    """A merge that failed."""

    at: datetime
    node: int
    task_shard: int
    error: str


class Server(msgspec.Struct):
    """The Redis of the plays. `memory` in bytes."""

    memory: int
    is_logged: bool
    """Whether it keeps an AOF."""
    evicts: bool


class Month(msgspec.Struct):
    """Filters of a month. `size` in bytes."""

    month: str
    age: int
    """Months ago."""
    filters: int
    size: int

    @property
    def each(self) -> int:
        """Bytes of a filter of the month, on average."""
        return self.size // self.filters


class Room(msgspec.Struct):
    """The file of the LMDB store, how large it may become, and what its disk has left; in bytes."""

    used: int
    most: int
    free: int


class Moving(msgspec.Struct):
    """How far the migration of old histories is (seen.migration.migrate)."""

    phase: Phase
    users: int
    """In what was read of the files."""
    merged: int
    left: int
    files: int
    unread: int
    """Files that are not read to their end."""


class Problem(msgspec.Struct):
    """A problem of the played history: its name for machines, and a sentence for people."""

    name: str
    text: str


class Status(msgspec.Struct):
    """The state of the played history at a moment."""

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
    """None where there never was one."""

    @property
    def users(self) -> int:
        """The number of users who wait."""
        return sum(node.users for node in self.nodes)
