"""Checks a whole data set before anything is written."""

from community.dataset import Dataset
from community.importing_media import Pictures
from community.naming import Named, Naming
from community.problems import RefusedError, Report


def check(dataset: Dataset, naming: Naming, report: Report) -> list[Named]:
    """Check every line, name and file. Pictures are decoded later. Raises RefusedError with all wrong lines."""
    dataset.tell = report.add
    users = list(dataset.users())
    named = naming.name(dataset, users)
    pictures = Pictures(dataset)
    for user in users:
        if user.avatar:
            pictures.look_at_face(user)
    for _follow in dataset.follows():
        pass
    for post in dataset.posts():
        if post.media:
            pictures.look_at_media(post)
    if report:
        raise RefusedError(report)
    naming.remember(named)
    return named
