"""Moderators read what is not for all by a case alone, with an entry in the log. They judge neither superusers nor
themselves.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.review import JudgeError
from items import actions as items
from items.models import Item, Status, Visibility
from live import actions as live
from media.models import MediaFile
from moderation import actions, pictures, reports, senders
from moderation.decisions import Grounds
from moderation.models import Case, CaseState, Decision, Report, SenderKind, SenderRule, Verb
from relations.actions import follow
from tests.support.admin import act, text
from tests.support.cases import Say
from tests.support.effort import some
from tests.support.factories import UserFactory, say
from tests.support.pages import logged_in
from tests.support.picture_posts import sent

pytestmark = pytest.mark.django_db

ITEMS, CASES, LOG = "/admin/items/item/", "/admin/moderation/case/", "/admin/moderation/decision/"
REPORTS, SENDERS, MEDIA = "/admin/moderation/report/", "/admin/moderation/senderrule/", "/admin/media/mediafile/"
ACT, RULES = f"{CASES}act/", "/admin/moderation/picturerule/"
SECRET, PICTURED = "quokka", "a bilby"


@pytest.fixture
def desk(desk: Client, moderator: User) -> Client:
    """A moderator with every permission on posts and media."""
    codes = ("view_mediafile", "view_item", "change_item", "change_livesession")
    moderator.user_permissions.set(Permission.objects.filter(codename__in=codes))
    return desk


@pytest.fixture
def boss() -> User:
    return UserFactory.create(username="boss", is_staff=True, is_superuser=True)


@pytest.fixture(params=some(2, ["mutuals", "thread", "self", "followers"]))
def hidden(request: pytest.FixtureRequest, sender: User, media_folder: object) -> Item:
    """A post that is not for all, with a picture."""
    narrow = Visibility.FOLLOWERS if request.param == "thread" else Visibility(request.param)
    root = say(sender, "the root", visibility=narrow) if request.param == "thread" else None
    medium = sent(sender, description=PICTURED)
    return items.publish(
        sender=sender,
        type="image",
        content={"text": SECRET, "media": [medium]},
        visibility=Visibility.PUBLIC if root else narrow,
        reply_to=root,
    )


def medium_of(item: Item) -> MediaFile:
    return MediaFile.objects.get(item_id=item.pk)


def pages(item: Item) -> Iterator[str]:
    yield from (ITEMS, f"{ITEMS}?q={SECRET}", f"{ITEMS}?q={item.pk}", f"{ITEMS}?q=@sender", f"{ITEMS}?_facets=True")
    yield from (f"{ITEMS}?visibility__exact={item.visibility}", f"{ITEMS}?all=")
    yield from (f"{ITEMS}{item.pk}/{page}/" for page in ("change", "history", "delete"))
    yield from (f"{ACT}?items={item.pk}", CASES, f"{CASES}?state=all", f"{CASES}?q={item.pk}", REPORTS, LOG)
    yield from (f"{REPORTS}{report}/change/" for report in Report.objects.values_list("pk", flat=True))
    medium = medium_of(item)
    yield from (MEDIA, f"{MEDIA}?q={medium.pk}", f"{MEDIA}{medium.pk}/change/", f"{RULES}add/?medium={medium.pk}")
    yield from ("/admin/", f"/admin/accounts/user/{item.sender_id}/change/")


def holds_nothing(desk: Client, item: Item, skipped: str = "") -> None:
    for page in pages(item):
        if page == skipped:
            continue
        answer = desk.get(page, follow=True)
        assert answer.status_code in (200, 403, 404), page
        html = re.sub(rf'(?:value="|q=){SECRET}', "", answer.content.decode())
        for secret in (SECRET, PICTURED, f"/staff/media/{medium_of(item).pk}/"):
            assert secret not in html, (page, secret)


def readings() -> list[tuple[str, int | None, str]]:
    lines = Decision.objects.filter(verb=Verb.READ).order_by("pk")
    return [(line.by.username if line.by else "", line.item_id, line.note) for line in lines.select_related("by")]


@pytest.mark.slow
def test_no_page_shows_what_is_not_for_all_without_a_case(desk: Client, hidden: Item, boss: User) -> None:
    holds_nothing(desk, hidden)
    for size in ("whole", "preview"):
        assert desk.get(f"/staff/media/{medium_of(hidden).pk}/{size}").status_code == 404
    for action in ("delete", "hide_versions", "moderate"):
        act(desk, ITEMS, action, hidden, confirmed="yes")
    desk.post(f"{ACT}?items={hidden.pk}", {"verb": "reject"})
    fields = {"action": "reject", "distance": "6", "note": "n", "medium": str(medium_of(hidden).pk)}
    assert "This picture is gone." in desk.post(f"{RULES}add/", fields).content.decode()
    hidden.refresh_from_db()
    assert hidden.status == Status.PUBLISHED
    assert readings() == []
    client = logged_in(boss)
    assert SECRET in text(client.get(ITEMS))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_case_opens_it_and_each_reading_is_logged(
    desk: Client, sender: User, moderator: User, hidden: Item, boss: User
) -> None:
    reports.report(item=hidden, reporter=UserFactory.create(), reason="abuse")
    case = Case.objects.get(item=hidden)
    page = f"{CASES}{case.pk}/change/"
    holds_nothing(desk, hidden, skipped=f"{ACT}?items={hidden.pk}")
    picture = f"/staff/media/{medium_of(hidden).pk}/preview"
    assert desk.get(picture).status_code == 404, "not before the page, which logs it"
    assert readings() == []
    for times in (1, 2):
        html = text(desk.get(page))
        assert SECRET in html
        assert picture in html
        assert readings() == [("moderator", hidden.pk, str(case.pk))] * times
    desk.get(picture).close()
    assert "read post" not in html, "the case's page has its decisions alone"
    assert SECRET in text(desk.get(f"{ACT}?items={hidden.pk}"))
    assert len(readings()) == 3
    other = UserFactory.create(is_staff=True)
    other.user_permissions.set(Permission.objects.filter(codename__in=("view_case", "decide_case")))
    client = logged_in(other)
    assert client.get(picture).status_code == 404, "each reads for themselves"
    client.force_login(boss)
    log = text(client.get(LOG))
    assert "@moderator read " in re.sub(r"<[^>]+>", "", log)
    assert f"Case {case.pk}" in log


def test_what_is_for_all_is_read_without_an_entry(desk: Client, say: Say) -> None:
    item = say("words for all")
    reports.report(item=item, reporter=UserFactory.create(), reason="spam")
    assert "words for all" in text(desk.get(CASES))
    assert "words for all" in text(desk.get(f"{CASES}{Case.objects.get().pk}/change/"))
    assert "words for all" in text(desk.get(f"{ACT}?items={item.pk}"))
    assert readings() == []


def test_a_quoted_post_that_was_narrowed_is_not_on_the_case(desk: Client, sender: User) -> None:
    quoted = say(UserFactory.create(), SECRET)
    item = say(sender, "look", quote_of=quoted)
    reports.report(item=item, reporter=UserFactory.create(), reason="spam")
    page = f"{CASES}{Case.objects.get().pk}/change/"
    assert SECRET in text(desk.get(page))
    items.change_visibility(item=quoted, visibility=Visibility.SELF)
    assert SECRET not in text(desk.get(page))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_unused_pictures_are_for_superusers(desk: Client, sender: User, boss: User, media_folder: object) -> None:
    medium = sent(sender, description=PICTURED)
    assert desk.get(f"/staff/media/{medium}/whole").status_code == 404
    assert PICTURED not in text(desk.get(MEDIA))
    client = logged_in(boss)
    client.get(f"/staff/media/{medium}/whole").close()
    assert PICTURED in text(client.get(MEDIA))


# --- Judging ---------------------------------------------------------------------------------------------
def by_hand(author: User, by: User) -> list[Any]:
    """Every verb about an author, each as a call."""
    item, now = say(author, "words"), timezone.now()
    session = live.create(host=author, title="A show", starts_at=now + timedelta(hours=2), now=now)
    reports.report(item=item, reporter=UserFactory.create(), reason="spam")
    case = Case.objects.get(item=item)
    return [
        lambda: actions.approve(case=case, by=by),
        lambda: actions.reject(case=case, by=by),
        lambda: actions.hold_by_hand(by=by, item_id=item.pk),
        lambda: actions.reject_by_hand(by=by, item_id=item.pk),
        lambda: actions.open_by_hand(by=by, session_id=session.pk),
        lambda: actions.hold_by_hand(by=by, session_id=session.pk),
        lambda: actions.end_session(by=by, session_id=session.pk),
        lambda: actions.warn(user=author, by=by, grounds=Grounds("n")),
        lambda: pictures.hide(item=item, by=by),
        lambda: pictures.show(item=item, by=by),
        lambda: senders.list_sender(user=author, kind=SenderKind.WHITE, by=by),
        lambda: senders.list_sender(user=author, kind=SenderKind.BLACK, by=by),
        lambda: senders.unlist_sender(user=author, by=by),
    ]


@pytest.mark.parametrize("whose", ["a superuser's", "one's own"])
def test_no_verb_of_a_moderator_judges_a_superuser_or_themselves(moderator: User, boss: User, whose: str) -> None:
    author = boss if whose == "a superuser's" else moderator
    for verb in by_hand(author, moderator):
        with pytest.raises(JudgeError):
            verb()
    assert not Decision.objects.exists()
    assert not SenderRule.objects.exists()


def test_superusers_judge_all(moderator: User, boss: User) -> None:
    for author in (moderator, boss):
        reports.report(item=say(author), reporter=UserFactory.create(), reason="spam")
        case = Case.objects.get(state=CaseState.OPEN)
        assert actions.approve(case=case, by=boss).state == CaseState.APPROVED
        assert senders.list_sender(user=author, kind=SenderKind.WHITE, by=boss).kind == SenderKind.WHITE


@pytest.mark.slow
def test_the_pages_refuse_in_words(desk: Client, moderator: User, boss: User) -> None:
    item = say(boss, "from the boss")
    reports.report(item=item, reporter=UserFactory.create(), reason="spam")
    case = Case.objects.get()
    page = f"{CASES}{case.pk}/change/"
    assert 'name="verb"' not in text(desk.get(page))
    answer = desk.post(
        page, {"verb": "reject", "state": "open", "modified_at": timezone.now().isoformat()}, follow=True
    )
    assert "Ask a superuser to do it." in text(answer)
    assert "decide about yourself or a superuser." in text(act(desk, CASES, "reject", case))
    assert "decide about yourself or a superuser." in text(act(desk, ITEMS, "delete", item, confirmed="yes"))
    assert "1 not changed" in text(desk.post(f"{ACT}?items={item.pk}", {"verb": "reject", "note": ""}, follow=True))
    for user in (moderator, boss):
        answer = desk.post(f"{SENDERS}add/", {"user": user.pk, "kind": "white", "reason": ""})
        assert "Ask a superuser to do it." in text(answer)
    case.refresh_from_db()
    item.refresh_from_db()
    assert (case.state, item.status) == (CaseState.OPEN, Status.PUBLISHED)
    assert not SenderRule.objects.exists()


@pytest.mark.slow
def test_a_moderator_takes_no_rule_off_themselves(desk: Client, moderator: User, boss: User) -> None:
    rule = senders.list_sender(user=moderator, kind=SenderKind.BLACK, by=boss)
    other = senders.list_sender(user=UserFactory.create(), kind=SenderKind.BLACK, by=boss)
    assert desk.post(f"{SENDERS}{rule.pk}/delete/", {"post": "yes"}).status_code == 403
    desk.post(f"{SENDERS}{rule.pk}/change/", {"kind": "white", "reason": ""})
    act(desk, SENDERS, "delete_selected", rule, other, post="yes")
    rule.refresh_from_db()
    assert rule.kind == SenderKind.BLACK
    assert desk.post(f"{SENDERS}{other.pk}/delete/", {"post": "yes"}).status_code == 302


@pytest.mark.slow
def test_who_is_reported_does_not_learn_by_whom(desk: Client, moderator: User, say: Say) -> None:
    reporter = UserFactory.create(username="whistle")
    follow(follower=reporter, followee=moderator)
    mine, theirs = say("mine", by=moderator), say("theirs")
    for item in (mine, theirs):
        reports.report(item=item, reporter=reporter, reason="abuse")
    reports.report_account(account=moderator, reporter=reporter, reason="abuse")
    own = Case.objects.filter(host=moderator)
    assert own.count() == 2
    assert [case.item for case in desk.get(CASES).context["cl"].result_list] == [theirs]
    assert [row.item for row in desk.get(REPORTS).context["cl"].result_list] == [theirs]
    for case in own:
        assert desk.get(f"{CASES}{case.pk}/change/").status_code == 302
    for report in Report.objects.filter(case__in=own):
        assert desk.get(f"{REPORTS}{report.pk}/change/").status_code == 302
    following = Case.objects.get(item=theirs)
    page = text(desk.get(f"{CASES}{following.pk}/change/"))
    assert not [case for case in own if f"{CASES}{case.pk}/" in page]
    assert re.findall(rf'"{CASES}" class="waiting">(\S+) waiting<', text(desk.get("/admin/"))) == ["1"]
