"""Checks a whole data set before anything is written."""

from collections.abc import Iterator

from django.core.exceptions import ValidationError

from accounts.joining.actions import unavailable_names
from accounts.models import not_reserved, username_pattern
from community.dataset import Dataset, UserRow
from community.importing_media import Pictures
from community.problems import DatasetRefusedError, ProblemReport

CHUNK = 5_000
"""Names per query."""


def check(dataset: Dataset, report: ProblemReport) -> list[UserRow]:
    """Check every line, name and file. Raises DatasetRefusedError with all wrong lines."""
    dataset.tell = report.add
    users = list(_users_with_valid_names(dataset))
    pictures = Pictures(dataset)
    for user in users:
        if user.avatar:
            pictures.check_face(user)
    for _follow in dataset.follows():
        pass
    for post in dataset.posts():
        if post.media:
            pictures.check_media(post)
    if report:
        raise DatasetRefusedError(report)
    return users


def _users_with_valid_names(dataset: Dataset) -> Iterator[UserRow]:
    users = list(dataset.users())
    used: set[str] = set()
    for start in range(0, len(users), CHUNK):
        chunk = users[start : start + CHUNK]
        taken = unavailable_names([row.name for row in chunk if _is_permitted(row.name)])
        for row in chunk:
            if not _is_permitted(row.name):
                what, kind = f"the name {row.name[:50]!r} is not permitted", "not permitted"
            elif row.name.lower() in used:
                what, kind = f"the name {row.name} is also in an earlier line", "repeated"
            elif taken.get(row.name) == "unique":
                what, kind = f"another user has the name {row.name}", "taken"
            else:
                used.add(row.name.lower())
                yield row
                continue
            dataset.tell(dataset.wrong_user(row.line, what, kind, "name"))


def _is_permitted(name: str) -> bool:
    try:
        username_pattern(name)
        not_reserved(name)
    except ValidationError:
        return False
    return True
