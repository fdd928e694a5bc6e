import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts.about import site
from accounts.actions import issue_token
from accounts.models import SessionOrigin, User
from discover.history import viewed_page
from discover.models import IssuedPage
from items.actions import publish
from items.models import Item
from notifications.models import ReadMark
from operation.doctor import postgresql
from relations.actions import follow
from tests.support.clients import token_of
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from timeline.models import ReadingPosition

pytestmark = pytest.mark.django_db

WHY = "We move to another server until 9 o'clock <b>UTC</b>."


def readonly(*args: str) -> str:
    out = io.StringIO()
    call_command("readonly", *args, stdout=out)
    site.site_copy.set(site.read())
    return out.getvalue()


def test_pages_go_on_and_say_why(client: Client) -> None:
    item = ItemFactory()
    assert "is not read-only" in readonly()
    assert WHY in readonly("on", "--why", WHY)
    client.force_login(UserFactory())
    for path in ("/", f"/items/{item.pk}", "/search?q=word", "/about"):
        page = client.get(path)
        assert page.status_code == 200
        assert "until 9 o&#x27;clock &lt;b&gt;" in page.content.decode().replace("&#39;", "&#x27;"), path


def test_forms_are_refused_with_the_reason(client: Client, ann: User) -> None:
    client.force_login(ann)
    readonly("on", "--why", WHY)
    refused = client.post("/items/new", {"text": "too late"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "60")
    page = refused.content.decode()
    assert "not post or change anything: We move to another server" in page
    assert page.count("We move to another server") == 2, "in both languages"
    assert "<b>" not in page
    assert client.post("/login", {"username": "ann", "password": "x"}).status_code == 503
    assert client.post("/announcement/dismiss").status_code == 302, "a cookie alone"
    assert "is not read-only" in readonly("off")
    assert client.post("/login", {"username": "ann", "password": "x"}).status_code != 503


def test_both_apis_refuse_with_the_reason(ann: User) -> None:
    own, apps = APIClient(), APIClient()
    own.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=ann)}")
    apps.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(ann)}")
    readonly("on", "--why", WHY)
    said = f"The site can be read, and takes no changes for now: {WHY}"
    for method in ("post", "patch", "put", "delete"):
        answer = getattr(own, method)("/api/v1/items/1", {}, format="json")
        assert (answer.status_code, answer.json(), answer.headers["Retry-After"]) == (503, {"detail": said}, "60")
    answer = own.post("/api/v1/items", {"text": "too late"}, format="json")
    assert answer.status_code == 503
    answer = apps.post("/api/v1/statuses", {"status": "too late"}, format="json")
    assert (answer.status_code, answer.json()) == (503, {"error": said})
    assert not Item.objects.exists()
    assert own.get("/api/v1/timeline/home").status_code == 200
    assert apps.get("/api/v1/timelines/home").status_code == 200
    assert own.post("/api/v1/seen/filter", {"ids": ["1"]}, format="json").status_code == 200, "it only asks"
    assert own.post("/api/v1/discover/feed", {"action": "refresh"}, format="json").status_code == 200, "likewise"
    readonly("off")
    assert apps.post("/api/v1/statuses", {"status": "in time"}, format="json").status_code == 200


PAGES = (
    "/",
    "/notifications",
    "/items/{item}",
    "/discover",
    "/history",
    "/live",
    "/@{sender}",
)
OWN = ("timeline/home", "me/notifications", "items/{item}", "users/me")
OF_APPS = ("timelines/home", "notifications", "statuses/{item}/context", "markers")


def test_reading_leaves_no_notes(client: Client, ann: User) -> None:
    """A refused note would fail everything after it in the test."""
    item = publish(sender=UserFactory(), content={"text": "words"})
    follow(follower=ann, followee=item.sender)
    follow(follower=item.sender, followee=ann)
    client.force_login(ann)
    own, apps = APIClient(), APIClient()
    own.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=ann)}")
    apps.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(ann)}")
    AccessToken.objects.update(updated=timezone.now() - timedelta(days=1))
    User.objects.update(last_seen_at=None)
    SessionOrigin.objects.all().delete()

    def read_all() -> None:
        for asked, root, paths in ((client, "", PAGES), (own, "/api/v1/", OWN), (apps, "/api/v1/", OF_APPS)):
            for path in paths:
                answer = asked.get(root + path.format(item=item.pk, sender=item.sender.username))
                assert answer.status_code == 200, path
        assert client.post("/discover", {"walk": "x" * 22, "page": "2"}, **PART).status_code == 200

    def notes() -> list[bool]:
        ann.refresh_from_db()
        viewed = viewed_page(ann, now=timezone.now())
        kept: tuple[Any, ...] = (ReadMark, ReadingPosition, IssuedPage, SessionOrigin)
        was_used = AccessToken.objects.filter(updated__gt=timezone.now() - timedelta(hours=1)).exists()
        rows = [model.objects.exists() for model in kept]
        return [*rows, was_used, ann.last_seen_at is not None, viewed is not None and bool(viewed.page.items)]

    readonly("on", "--why", WHY)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        read_all()
        transaction.set_rollback(True)
    assert not any(notes())
    readonly("off")
    cache.clear()  # forget the cached session
    read_all()
    assert all(notes()), "there is something that they might have noted"


def test_it_wants_a_reason_of_one_line() -> None:
    for wrong in ((), ("--why", " "), ("--why", "x" * 201), ("--why", "two\nlines")):
        with pytest.raises(CommandError):
            readonly("on", *wrong)
    assert site.read().read_only_why == ""


def test_the_doctor_says_so() -> None:
    def state() -> Any:
        return next(each for each in postgresql.key_and_read_only_mode() if each.name == "read-only mode").state

    assert state() == "ok"
    readonly("on", "--why", WHY)
    assert state() == "warning"
