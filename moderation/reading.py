"""What staff may read of what is not for all, and the log of it.

See docs/decisions.md: Staff read by a case.
"""

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import User
from accounts.review import may_judge
from items.models import LISTED, OPEN_TO_ALL, Item
from media.models import FACES, MediaFile
from moderation.log import log_decision
from moderation.models import Case, Decision, Report, Verb


def readable(items: QuerySet[Item], by: User) -> QuerySet[Item]:
    """Items that staff may read: what is for all, and others by a case. Private mentions need a report of a person in
    them. Superusers need no case.
    """
    listed, reported = Q(visibility__in=LISTED), Exists(Report.objects.filter(item=OuterRef("pk")))
    if by.is_superuser:
        return items.filter(listed | reported)
    with_case = listed & Q(Exists(Case.objects.filter(item=OuterRef("pk"))))
    return items.filter(OPEN_TO_ALL | with_case | reported)


def log_reading(item: Item, by: User) -> None:
    """Log that staff read an item, and by which case, unless it is for all."""
    if not item.is_open_to_all:
        case = Case.objects.filter(item=item).order_by("-pk").first()
        log_decision(by, Verb.READ, item=item, note=str(case.pk) if case else "")


def may_open(medium: MediaFile, by: User) -> bool:
    """Whether staff may see a medium. If its item is not for all, they must have read it (`log_reading`)."""
    if by.is_superuser:
        return True
    if medium.item_id is None:
        return medium.use in FACES or medium.session_id is not None
    is_for_all = Item.objects.filter(OPEN_TO_ALL, pk=medium.item_id).exists()
    return is_for_all or Decision.objects.filter(item=medium.item_id, by=by, verb=Verb.READ).exists()


def cases_for(by: User) -> QuerySet[Case]:
    """The cases that staff may see. Their own would tell them who reported them."""
    return Case.objects.all() if may_judge(by, by) else Case.objects.exclude(host=by)
