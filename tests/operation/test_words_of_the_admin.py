"""Only names and users' texts stay English."""

import json
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import polib
import pytest
from django.contrib import admin
from django.test import Client
from django.utils import timezone

from accounts.actions import issue_token
from accounts.models import Deletion, User
from items import actions as items
from live import actions as live
from live.models import ReplayDelivery
from moderation import actions as moderation
from moderation import hashes, reports, senders
from moderation.decisions import Grounds
from moderation.models import Case, PictureRule, SenderKind, WordRule
from relations import actions as relations
from seen.models import MergeRun
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from timeline.models import Backfill, Delivery

pytestmark = pytest.mark.django_db

HIDDEN = re.compile(r"<(script|style|svg|head)\b.*?</\1>|[0-9a-f]{64,}|[^\s<>]*\*{3,}", re.DOTALL)
WORD = re.compile(r"[A-Za-z]{2,}")
NAMES = {
    *("IANA", "Asia", "Shanghai"),  # a time zone as an example
    *("feedsite", "admin", "wu", "li", "API", "ID", "UTC", "Redis", "AOF", "LMDB", "PostgreSQL", "SQL", "Bloom", "id"),
    *("https", "pbkdf", "argon", "sha", "md", "PBKDF", "SHA", "Argon"),
    *("inbox", "outbox", "sql", "pending"),  # values of the header X-Feed-Source
    *("manage", "py", "timeline", "check", "repair"),
    *("cat", "category"),  # an example of whole words
    *("English", "espa", "ol"),  # languages in themselves
    *("Cookie", "IP", "Enter"),  # Chinese writes them so, too
    *("KB", "MB", "GB", "TB", "ms"),
    *("Moderators", "beat", "worker", "LDAP", "Control", "Command", "Mac"),
    "Logo",  # Chinese writes it so, too
}
"""Names of things and of this test's users."""


def words(page: str) -> set[str]:
    """The words, including tool tips and buttons."""
    shown = HIDDEN.sub(" ", page)
    told = re.findall(r'(?:placeholder|title|aria-label|alt|value)="([^"]*[^\W\d_\x00-\x7f][^"]*)"', shown)
    text = unescape(re.sub(r"<[^>]+>", " ", shown) + " ".join(told))
    return set(WORD.findall(text)) - NAMES


@pytest.fixture
def desk(client: Client) -> Client:
    root = User.objects.create_superuser("admin", "a long enough passphrase", language="zh-hans")
    client.force_login(root)
    return client


@pytest.fixture
def rows(desk: Client, media_folder: Path) -> None:
    root = User.objects.get(username="admin")
    wu, li = UserFactory(username="wu", is_big_v=True, email=""), UserFactory(username="li", email="")
    now = timezone.now()
    relations.follow(follower=wu, followee=li)
    relations.block(blocker=wu, blocked=root)
    relations.mute(muter=wu, muted=li)
    moderation.save_word_rule(rule=WordRule(text="广告"), by=root)
    item = items.publish(sender=wu, content={"text": "这是广告"})
    items.publish(sender=li, content={"text": "早上好"}, reply_to=items.publish(sender=li, content={"text": "你好"}))
    session = live.create(host=li, title="广告", starts_at=now + timedelta(hours=1), now=now)
    over = live.create(host=li, title="看星星", starts_at=now + timedelta(hours=1), now=now)
    live.start(session=over, now=now)
    live.end(session=over, now=now)
    reports.report(item=items.publish(sender=li, content={"text": "请看"}), reporter=wu, reason="spam")
    moderation.reject(case=Case.objects.get(item=item), by=root, note="不行")
    senders.list_sender(user=li, kind=SenderKind.BLACK, by=root)
    moderation.warn(user=li, by=root, grounds=Grounds("请注意"))
    moderation.end_session(session_id=session.pk, by=root)
    moderation.open_by_hand(item_id=Delivery.objects.latest("pk").pk, by=root)
    issue_token(user=li)
    Backfill.objects.create(sender=wu, followers=3, done=1)
    Deletion.objects.create(user=wu)
    MergeRun.objects.create(node=1, task_shard=1, started_at=now, seconds=1, users=1, plays=1)
    posted(li, sent(li))
    sent(wu)
    hashes.block(rule=PictureRule(sha256="0", action="hold", note="广告"), by=root)
    assert ReplayDelivery.objects.exists()


@pytest.mark.long
def test_no_english_is_left_in_the_lists_and_pages(desk: Client, rows: None) -> None:
    left: dict[str, set[str]] = {}
    addresses = ["/admin/", "/admin/moderation/wordrule/many/", "/admin/moderation/case/?state=all"]
    for name in ("wu", "li"):
        home = f"/admin/accounts/user/{User.objects.get(username=name).pk}/home/"
        addresses += [home, f"{home}?item=x", f"{home}?item={Delivery.objects.latest('pk').pk}"]
    for model, shown in admin.site._registry.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        addresses.append(base)
        request: Any = desk.get(base).wsgi_request
        if shown.has_add_permission(request):
            addresses.append(f"{base}add/")
        newest = None if model._meta.proxy else model._default_manager.order_by("-pk").first()
        if newest is not None:
            addresses += [f"{base}{newest.pk}/change/", f"{base}{newest.pk}/history/"]
    for address in addresses:
        answer = desk.get(address, follow=True)
        assert answer.status_code == 200, address
        if found := words(answer.content.decode()):
            left[address] = found
    assert not left, "\n".join(f"{address}: {sorted(found)}" for address, found in left.items())


def test_the_scripts_of_the_admin_speak_chinese(desk: Client) -> None:
    """They make the boxes for groups and permissions."""
    texts = polib.pofile(str(Path(admin.__file__).parent / "locale/en/LC_MESSAGES/djangojs.po"))
    told = desk.get("/admin/jsi18n/").content.decode()
    catalogue: dict[str, Any] = json.loads(told.split("const newcatalog = ")[1].split(";\n")[0])
    assert len(texts) > 50
    assert [entry.msgid for entry in texts if not entry.msgctxt and entry.msgid not in catalogue] == []


@pytest.mark.slow
def test_a_page_without_an_answer_says_no_none(desk: Client, rows: None) -> None:
    """Missing values are a dash."""
    for name in ("admin", "wu", "li"):
        page = desk.get(f"/admin/accounts/user/{User.objects.get(username=name).pk}/change/").content.decode()
        assert "None" not in words(page), name


@pytest.mark.slow
def test_the_search_has_a_name_and_tells_no_estimate(desk: Client, rows: None) -> None:
    page = desk.get("/admin/accounts/user/").content.decode()
    assert 'alt="搜索"' in page
    assert "条结果" not in page
    assert "显示全部" in desk.get("/admin/accounts/user/?q=li").content.decode()


@pytest.mark.slow
def test_words_of_the_site_do_not_replace_those_of_the_admin(desk: Client, rows: None) -> None:
    """The site's history lists opened items, the admin's changes."""
    li = User.objects.get(username="li")
    assert ">操作日志<" in desk.get(f"/admin/accounts/user/{li.pk}/change/").content.decode()
    assert "浏览记录" in desk.get("/history").content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "action", "which"),
    [
        ("accounts/user", "deactivate", {"username": "li"}),
        ("accounts/user", "reactivate", {"username": "li"}),
        ("accounts/user", "moderate", {"username": "li"}),
        ("items/item", "delete", {}),
        ("items/item", "restore", {}),
        ("items/item", "moderate", {}),
        ("live/livesession", "show_again", {}),
        ("live/livesession", "moderate", {}),
        ("live/replaydelivery", "retry", {}),
        ("timeline/delivery", "retry", {}),
        ("moderation/case", "approve", {"state": "open"}),
        ("moderation/case", "reject", {"state": "open"}),
        ("moderation/case", "ban", {"state": "open"}),
        ("moderation/wordrule", "delete_selected", {}),
        ("accounts/apptoken", "delete_selected", {}),
    ],
)
@pytest.mark.long
def test_no_english_is_left_in_what_actions_ask_and_tell(
    desk: Client, rows: None, address: str, action: str, which: dict[str, str]
) -> None:
    model = next(one for one in admin.site._registry if f"{one._meta.app_label}/{one._meta.model_name}" == address)
    keys = list(model._default_manager.filter(**which).values_list("pk", flat=True))
    data = {"action": action, "_selected_action": keys, "seen": timezone.now().isoformat()}
    for more in ({}, {"confirmed": "yes"}, {"confirmed": "yes"}):
        answer = desk.post(f"/admin/{address}/", data | more, follow=True)
        assert answer.status_code == 200
        assert not words(answer.content.decode()), more
