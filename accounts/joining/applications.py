"""Applications: accounts that wait for an admin. A decision removes the application with all that it says."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse

from accounts.actions import PASSWORD_LENGTH
from accounts.joining.actions import admit
from accounts.joining.models import Application
from accounts.mail import actions as mail
from accounts.models import User

FORGOTTEN = 1_000
"""Applications that one statement forgets."""


@transaction.atomic
def approve(*, application_id: int) -> User | None:
    """Make the account; None if another decided before. Raises ValidationError where the name was taken meanwhile."""
    application = _taken(application_id)
    if application is None:
        return None
    user = admit(application)
    _tell(application, "application_approved", user)
    return user


@transaction.atomic
def reject(*, application_id: int) -> bool:
    """Refuse the account; True if no other decided before. The application goes, and its data with it."""
    application = _taken(application_id)
    if application is None:
        return False
    _tell(application, "application_rejected")
    return True


def _tell(application: Application, kind: str, user: User | None = None) -> None:
    """Write a letter with the decision, where an address was given."""
    if application.email:
        mail.send(
            kind=kind,
            to=application.email,
            language=application.language,
            context={"name": application.username, "link": f"{settings.SITE_URL}{reverse('login')}"},
            user_id=user.pk if user else None,
        )


def _taken(application_id: int) -> Application | None:
    """The application, whose row is removed."""
    application = Application.objects.select_for_update().filter(pk=application_id).first()
    if application is not None:
        Application.objects.filter(pk=application_id).delete()
    return application


def is_waiting(username: str, password: str) -> bool:
    """Whether an application of this name and password waits. Its owner alone is told."""
    application = Application.objects.named(username).first()
    return (
        application is not None and len(password) <= PASSWORD_LENGTH and check_password(password, application.password)
    )


def forget_old() -> int:
    """Remove applications on which no admin decided in time, at most `FORGOTTEN`; how many."""
    before = Now() - timedelta(days=settings.APPLICATION_DAYS)
    rows = Application.objects.filter(created_at__lt=before).order_by("created_at").values_list("pk", flat=True)
    return Application.objects.filter(pk__in=list(rows[:FORGOTTEN])).delete()[0]
