"""The acts that a case's page offers, with what they do."""

from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy as _

from accounts.review import ReviewStatus, Subject
from moderation.models import Case, CaseState

VERBS = ("approve", "warn", "reject", "limit", "ban")
"""What a case's page decides."""


class CaseAct(NamedTuple):
    """An act that a case's page offers: its letter there, its words and what it does."""

    verb: str
    key: str
    label: Any
    meaning: Any


WARN = CaseAct(
    "warn",
    "w",
    _("Warn"),
    _("It stays. The author gets a warning with your text, and can appeal. The reports are closed."),
)
REMOVE = CaseAct("reject", "r", _("Remove"), _("Only the author sees it, and reads why. They can appeal."))
LIMIT = CaseAct(
    "limit",
    "l",
    _("Remove and limit"),
    _("As “Remove”, and each later post waits for a moderator before others see it."),
)
BAN = CaseAct(
    "ban",
    "s",
    _("Remove and suspend …"),
    _("As “Remove”. The author is logged out and hidden until the time above, gets an email, and can appeal."),
)
LIMIT_ACCOUNT = LIMIT._replace(
    label=_("Limit"), meaning=_("Each later post waits for a moderator before others see it. They can appeal.")
)
BAN_ACCOUNT = BAN._replace(
    label=_("Suspend …"),
    meaning=_("The user is logged out and hidden until the time above, gets an email, and can appeal."),
)


def _keep_act(case: Case, *, is_shown: bool) -> CaseAct:
    if case.state == CaseState.REJECTED:
        return CaseAct("approve", "a", _("Publish again"), _("Everyone who could see it before can see it again."))
    if case.is_of_account:
        return CaseAct("approve", "a", _("Keep account"), _("Nothing changes. The reports are closed."))
    if is_shown:
        return CaseAct("approve", "a", _("Keep"), _("It stays. The reports are closed."))
    return CaseAct("approve", "a", _("Publish"), _("Others see it from now on."))


def acts_of(case: Case, subject: Subject | None) -> list[CaseAct]:
    """The acts that a case's page offers."""
    is_shown = subject is not None and subject.status == ReviewStatus.PUBLISHED
    offered = []
    if case.state != CaseState.APPROVED:
        offered.append(_keep_act(case, is_shown=is_shown))
    if case.state == CaseState.OPEN:
        offered.append(WARN)
    if case.state != CaseState.REJECTED:
        offered += [LIMIT_ACCOUNT, BAN_ACCOUNT] if case.is_of_account else [REMOVE, LIMIT, BAN]
    return [act for act in offered if not (act.verb == "ban" and case.sender.is_staff)]
