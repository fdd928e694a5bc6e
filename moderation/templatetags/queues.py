"""The queues of the staff, on the front page of the admin."""

from typing import Any, NamedTuple

from django import template
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.text import capfirst

from accounts.joining_models import Application
from accounts.models import User
from moderation.case_admin import in_queue
from moderation.models import Case

register = template.Library()

COUNTED = 100
"""Rows of a queue that are counted; of more it is said that there are."""


class Queue(NamedTuple):
    """A list of the admin in which something waits."""

    title: str
    number: str
    """Such as `3`, or `100+`."""
    address: str


@register.simple_tag
def queues_of(user: User | AnonymousUser) -> list[Queue]:
    """The queues that the user may see and in which something waits; a statement each."""
    rows: list[QuerySet[Any]] = [in_queue(Case.objects.all()), Application.objects.all()]
    every = [_queue(each) for each in rows if user.has_perm(_named(each, "{0}.view_{1}"))]
    return [queue for queue in every if queue.number != "0"]


def _queue(rows: QuerySet[Any]) -> Queue:
    count = rows.order_by("pk")[: COUNTED + 1].count()
    return Queue(
        capfirst(rows.model._meta.verbose_name_plural),
        str(count) if count <= COUNTED else f"{COUNTED}+",
        reverse(_named(rows, "admin:{0}_{1}_changelist")),
    )


def _named(rows: QuerySet[Any], name: str) -> str:
    """A name of Django's, of a model's app and the model."""
    return name.format(rows.model._meta.app_label, rows.model._meta.model_name)
