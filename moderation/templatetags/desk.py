from typing import Any, NamedTuple

from django import template
from django.contrib.admin import site
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils.text import capfirst

from accounts.joining_models import Application
from accounts.models import User
from accounts.people import badge_of, full_name_of
from items.pages.reading import excerpt
from moderation.appeals import waiting_appeals
from moderation.case_admin import in_queue
from moderation.reading import cases_for

register = template.Library()
register.simple_tag(full_name_of)
register.simple_tag(badge_of)
register.filter(excerpt)

COUNTED = 100
"""More rows are shown as `100+`."""


class WaitingList(NamedTuple):
    """A list where something waits."""

    title: str
    number: str
    """Such as `3` or `100+`."""
    address: str


@register.simple_tag(takes_context=True)
def queues(context: Context) -> list[WaitingList]:
    """The user's non-empty queues. A tag, because the front page's view is in a package below."""
    request: HttpRequest = context["request"]
    by: User = request.user  # type: ignore[assignment]  # the admin lets no strangers in
    rows: list[QuerySet[Any]] = [in_queue(cases_for(by)), waiting_appeals(by), Application.objects.all()]
    shown = [each for each in rows if site.get_model_admin(each.model).has_view_permission(request)]
    return [queue for queue in map(_queue, shown) if queue.number != "0"]


def _queue(rows: QuerySet[Any]) -> WaitingList:
    count = rows.order_by("pk")[: COUNTED + 1].count()
    return WaitingList(
        capfirst(rows.model._meta.verbose_name_plural),
        str(count) if count <= COUNTED else f"{COUNTED}+",
        reverse(f"admin:{rows.model._meta.app_label}_{rows.model._meta.model_name}_changelist"),
    )
