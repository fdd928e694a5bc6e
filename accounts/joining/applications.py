from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse

from accounts import passwords
from accounts.joining.actions import admit
from accounts.joining_models import Application
from accounts.mail import actions as mail
from accounts.models import User

FORGOTTEN = 1_000
"""Applications deleted per statement."""


@transaction.atomic
def approve(*, application_id: int) -> User | None:
    """Create the account. None if already decided. Raises ValidationError."""
    application = _pop_application(application_id)
    if application is None:
        return None
    user = admit(application)
    _send_letter(application, "application_approved", user)
    return user


@transaction.atomic
def reject(*, application_id: int) -> bool:
    """Refuse the account. False if already decided."""
    application = _pop_application(application_id)
    if application is None:
        return False
    _send_letter(application, "application_rejected")
    return True


def _send_letter(application: Application, kind: str, user: User | None = None) -> None:
    if application.email:
        mail.send(
            kind=kind,
            to=application.email,
            language=application.language,
            context={"name": application.username, "link": f"{settings.SITE_URL}{reverse('login')}"},
            user_id=user.pk if user else None,
        )


def _pop_application(application_id: int) -> Application | None:
    application = Application.objects.select_for_update().filter(pk=application_id).first()
    if application is not None:
        Application.objects.filter(pk=application_id).delete()
    return application


def is_waiting(username: str, password: str) -> bool:
    """Whether an application with this name and password waits."""
    application = Application.objects.named(username).first()
    return application is not None and passwords.compare(password, application.password).is_right


def forget_old() -> int:
    """Delete up to `FORGOTTEN` old applications."""
    before = Now() - timedelta(days=settings.APPLICATION_DAYS)
    rows = Application.objects.filter(created_at__lt=before).order_by("created_at").values_list("pk", flat=True)
    return Application.objects.filter(pk__in=list(rows[:FORGOTTEN])).delete()[0]
