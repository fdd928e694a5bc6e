"""The first reading of a data set, before anything is written: every line, every name, every file that a line names."""

from community.dataset import Dataset
from community.importing_media import Pictures
from community.naming import Named, Naming
from community.problems import RefusedError, Report


def check(dataset: Dataset, naming: Naming, report: Report) -> list[Named]:
    """The users of a data set that can be loaded, named. Raises RefusedError, whose report has every line that cannot.

    Pictures are opened here, and decoded when they are loaded.
    """
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
