"""What the workers do for what was seen: each task calls one function."""

from celery import shared_task
from django.utils import timezone

from seen import impressions


@shared_task(name="seen.check_impressions")
def check_impressions() -> None:
    impressions.check(timezone.now().date())
