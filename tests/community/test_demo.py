"""The demo must leave the state of real publishing."""

import io
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone

from accounts.levels import actions as levels
from accounts.models import User
from items.models import CountChange, Item, ItemCounts, Like
from notifications.feed import notifications_page
from relations.models import Follow, FollowerCountChange
from tests.support.workers import Workers
from timeline.explain import explain_home
from timeline.home import home_page
from timeline.models import Delivery

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_dir(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def demo(*args: str) -> str:
    out = io.StringIO()
    call_command("demo", "--no-pictures", *args, stdout=out)
    return out.getvalue()


def logins(text: str) -> dict[str, str]:
    lines = [line.split() for line in text.splitlines() if line.startswith("demo login: ")]
    return {line[2]: line[4] for line in lines}


@pytest.mark.slow
def test_a_community_with_exact_counts_and_nothing_to_fan_out() -> None:
    said = demo("--yes").splitlines()
    assert said[:3] == ["making 60 people ...", "writing posts ...", "adding likes and notifications ..."]
    assert User.objects.count() == 60
    for relation, column in (("follows", "following_count"), ("followed_by", "follower_count")):
        assert not User.objects.alias(real=Count(relation)).exclude(**{column: F("real")}).exists()
    assert not FollowerCountChange.objects.exists()
    assert not Delivery.objects.exists()


def test_a_public_site_is_asked_first(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.HTTPS = True
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CommandError, match="is public"):
        demo()
    leader, follower = os.openpty()
    with os.fdopen(leader, "w") as typed, os.fdopen(follower) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        typed.write("no\n")
        typed.flush()
        with pytest.raises(CommandError, match="Nothing was made"):
            demo()
    assert not User.objects.exists()


@pytest.mark.slow
def test_it_looks_like_a_community() -> None:
    demo()
    assert set(User.objects.filter(is_big_v=True).values_list("username", flat=True)) == {
        "harbor-news",
        "weather-desk",
    }
    assert min(User.objects.filter(is_big_v=True).values_list("follower_count", flat=True)) > 40
    assert set(Item.objects.values_list("visibility", flat=True)) == {"public", "followers", "mutuals", "mentioned"}
    assert 300 < Item.objects.count() < 600
    assert Item.objects.exclude(reply_to=None).count() > 50
    assert not Item.objects.filter(reply_to__created_at__gte=F("created_at")).exists()
    own = Item.objects.exclude(visibility="mentioned").filter(reply_to__sender=F("sender"))
    assert not own.exists(), "a member answers themselves"
    replies = Item.objects.exclude(reply_to=None).values_list("root", "content__text")
    assert len(set(replies)) == len(replies), "the same is said twice in a thread"
    assert not Item.objects.filter(created_at__gt=timezone.now()).exists()
    assert any("。" in item.text for item in Item.objects.all())
    for user in User.objects.all():
        user.full_clean()


@pytest.mark.slow
def test_counts_are_what_the_verbs_would_have_counted() -> None:
    demo()
    likes = Counter(Like.objects.values_list("item", flat=True))
    reposts = Counter(Item.objects.exclude(repost_of=None).values_list("repost_of", flat=True))
    replies: Counter[int] = Counter()
    for reply in Item.objects.exclude(reply_to=None).exclude(visibility="mentioned"):
        replies.update({reply.reply_to_id, reply.root_id})
    assert not CountChange.objects.exists()
    counted = {counts.pk: (counts.likes, counts.replies, counts.reposts) for counts in ItemCounts.objects.all()}
    truth = {pk: (likes[pk], replies[pk], reposts[pk]) for pk in {*likes, *replies, *reposts}}
    assert counted == truth


@pytest.mark.slow
def test_people_answer_each_other_and_agree() -> None:
    demo()
    assert Item.objects.filter(reply_to__reply_to__isnull=False).count() > 10
    assert not Item.objects.filter(reply_to__isnull=False).exclude(root__reply_to=None).exists()
    assert not Item.objects.filter(repost_of__sender=F("sender")).exists()
    assert not Like.objects.filter(created_at__lt=F("item__created_at")).exists()
    home = home_page(User.objects.get(username="mira"), limit=100)
    assert max(home.others.values()) > 0
    assert sum(bool(item.repost_of) for item in home.items) > 3


@pytest.mark.slow
def test_people_were_told_what_others_did() -> None:
    demo()
    for username in ("mira", "tomas", "lin-wei"):
        user = User.objects.get(username=username)
        page = notifications_page(user, limit=100)
        assert {"like", "reply", "mention", "follow"} <= {str(entry.kind) for entry in page.items}
        assert 0 < sum(entry.unread for entry in page.items) < len(page.items)
        moments = [entry.created_at for entry in page.items]
        assert moments == sorted(moments, reverse=True)
        assert max(moments) <= timezone.now()


@pytest.mark.slow
def test_the_logins_work_and_are_for_their_owner_only(data_dir: Path) -> None:
    out = demo()
    path = data_dir / "demo.txt"
    assert str(path) in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert logins(path.read_text()) == logins(out)
    by_name = logins(out)
    assert set(by_name) == {"site-admin", "mira", "tomas", "lin-wei", "oriel", "bastian", "wanda"}
    for name, password in by_name.items():
        user = authenticate(username=name, password=password)
        assert isinstance(user, User)
        assert user.is_superuser == user.is_staff == (name == "site-admin")
        assert user.following_count > 5
    assert not any(user.has_usable_password() for user in User.objects.exclude(username__in=by_name))


@pytest.mark.long
def test_two_sites_have_the_same_people_and_other_passwords() -> None:
    first, second = site(), site()
    assert first["said"] == second["said"]
    assert first["followed"] == second["followed"]
    assert not set(first["passwords"]) & set(second["passwords"])


def site() -> dict[str, list[Any]]:
    """The content of a demo site, rolled back."""
    with transaction.atomic():
        passwords = list(logins(demo()).values())
        said = list(Item.objects.order_by("id").values_list("sender__username", "content"))
        followed = list(Follow.objects.order_by("id").values_list("follower__username", "followee__username"))
        transaction.set_rollback(True)
    assert not User.objects.exists()
    return {"passwords": passwords, "said": said, "followed": followed}


def test_if_empty_leaves_a_site_with_users_alone(data_dir: Path) -> None:
    User.objects.create(username="somebody")
    assert demo("--if-empty") == ""
    with pytest.raises(CommandError, match="already has users"):
        demo()
    assert User.objects.count() == 1
    assert not (data_dir / "demo.txt").exists()


@pytest.mark.long
def test_the_size_is_a_choice() -> None:
    demo("--users", "200")
    assert User.objects.count() == 200
    assert Item.objects.count() == pytest.approx(1200, abs=20)


@pytest.mark.parametrize("size", ["0", "-1", "20001"])
def test_wrong_sizes(size: str) -> None:
    with pytest.raises(CommandError, match="--users must be"):
        demo("--users", size)


@pytest.mark.long
def test_no_users_without_their_passwords(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "missing"
    with pytest.raises(CommandError, match="cannot be written"):
        demo()
    assert not User.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_tour_meets_every_source(workers: Workers) -> None:
    """The README's tour: a returning user reads kept items, and their level rises in the background."""
    demo()
    workers.work()
    firsts = dict.fromkeys(("mira", "tomas", "lin-wei"), ("inbox",))
    firsts |= {"oriel": ("inbox", "outbox"), "bastian": ("inbox", "outbox"), "wanda": ("sql",)}
    levels_before = {"oriel": 2, "bastian": 1, "wanda": 0}
    found, explained = {}, {}
    for name in firsts:
        user = User.objects.get(username=name)
        assert user.level == levels_before.get(name, 3)
        explained[name] = tuple(explain_home(user)["next_page"].facts["sources"].split(","))
        found[name] = tuple(home_page(user).sources)
        levels.touch([user.pk])
    assert found == explained == firsts
    workers.work()
    for name in levels_before:
        user = User.objects.get(username=name)
        assert (user.level, home_page(user).sources) == (3, ["inbox"])
