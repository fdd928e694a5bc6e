"""Acts of moderators without a report, and what a ban and its end do."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from accounts.deactivation import deactivate
from accounts.models import User
from items.models import Item, Status
from live import actions as live
from live.models import LiveSession
from live.models import State as LiveState
from moderation import actions, senders
from moderation.decisions import Grounds
from moderation.models import Case, CaseSource, CaseState, Decision, SenderKind, SenderRule, Verb, WordRule
from notifications.feed import notifications_page, unread_count
from tests.support.admin import act, text
from tests.support.cases import Say
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

ACT = "/admin/moderation/case/act/"
ITEMS, USERS, SESSIONS = "/admin/items/item/", "/admin/accounts/user/", "/admin/live/livesession/"
SENDERS = "/admin/moderation/senderrule/"


@pytest.fixture
def session(sender: User) -> LiveSession:
    now = timezone.now()
    return live.create(host=sender, title="A show", starts_at=now + timedelta(hours=2), now=now)


def do(desk: Client, verb: str, note: str = "", **chosen: str) -> str:
    kind, ids = next(iter(chosen.items()))
    return text(desk.post(f"{ACT}?{kind}={ids}", {"verb": verb, "note": note, "text": note}, follow=True))


def verbs() -> list[str]:
    return list(Decision.objects.order_by("pk").values_list("verb", flat=True))


# --- Links to the page -----------------------------------------------------------------------------------
@pytest.mark.slow
def test_lists_and_pages_lead_to_it(desk: Client, sender: User, say: Say, session: LiveSession) -> None:
    item = say("rude words")
    for address, row, kind in ((ITEMS, item, "items"), (USERS, sender, "users"), (SESSIONS, session, "sessions")):
        asked = act(desk, address, "moderate", row)
        assert asked.redirect_chain == [(f"{ACT}?{kind}={row.pk}", 302)]
        assert "(@sender)" in text(asked)
        assert f'href="{ACT}?{kind}={row.pk}"' in text(desk.get(f"{address}{row.pk}/change/"))


def test_it_says_how_many_and_what_it_means(desk: Client, say: Say, session: LiveSession) -> None:
    others = UserFactory.create_batch(2)
    chosen = ",".join(str(say(f"words {number}", by=one).pk) for number, one in enumerate([*others, others[0]]))
    page = text(desk.get(f"{ACT}?items={chosen}"))
    assert "<strong>3 posts</strong> selected" in page
    assert "by 2 users:" in page
    assert "words 2" in page
    assert "until you lift the suspension" in page
    page = text(desk.get(f"{ACT}?sessions={session.pk}"))
    assert "An upcoming one is cancelled. This can&#x27;t be undone." in page
    assert 'value="unban"' not in text(desk.get(f"{ACT}?users={others[0].pk}"))


@pytest.mark.slow
def test_it_asks_the_same_however_much_was_chosen(desk: Client, say: Say) -> None:
    def asked(count: int) -> int:
        chosen = ",".join(str(item.pk) for item in Item.objects.order_by("pk")[:count])
        with statements() as seen:
            assert "words 0" in text(desk.get(f"{ACT}?items={chosen}"))
        return len(seen)

    for number in range(9):
        say(f"words {number}", by=UserFactory.create())
    assert asked(2) == asked(9)


def test_too_many_are_refused_in_words(desk: Client, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.admin.ModeratedAdmin.moderated_at_once", 1)
    page = text(act(desk, ITEMS, "moderate", say("one"), say("two")))
    assert "Nothing changed: choose 1" in page


@pytest.mark.parametrize("address", ["", "?items=", "?items=x,7", "?users=99999999"])
def test_missing_targets(desk: Client, address: str) -> None:
    answer = desk.get(ACT + address, follow=True)
    assert answer.status_code == 403 if not address else "Nothing changed: what you selected is gone." in text(answer)


# --- Items and sessions ----------------------------------------------------------------------------------
@pytest.mark.slow
def test_items_are_rejected(desk: Client, moderator: User, say: Say) -> None:
    first, second = say("rude"), say("ruder")
    page = do(desk, "reject", "insults", items=f"{first.pk},{second.pk}")
    assert "2 removed." in page
    assert set(Item.objects.filter(status=Status.REJECTED)) == {first, second}
    case = Case.objects.get(item=first)
    assert (case.source, case.state, case.decided_by, case.note) == (
        CaseSource.MODERATOR,
        CaseState.REJECTED,
        moderator,
        "insults",
    )
    assert "opened by @moderator: insults" in text(desk.get(f"/admin/moderation/case/{case.pk}/change/"))
    assert "2 not changed: already removed or deleted." in do(desk, "reject", items=f"{first.pk},{second.pk}")
    assert verbs() == ["reject", "reject"]
    actions.approve(case=case, by=moderator, state=CaseState.REJECTED)
    assert Item.objects.get(pk=first.pk).status == Status.PUBLISHED


@pytest.mark.slow
def test_an_open_case_is_the_one_that_is_decided(desk: Client, say: Say, held: Case) -> None:
    assert "1 removed." in do(desk, "reject", items=str(held.item_id))
    held.refresh_from_db()
    assert held.state == CaseState.REJECTED
    assert Case.objects.count() == 1


@pytest.mark.slow
def test_items_and_sessions_are_held(desk: Client, moderator: User, say: Say, session: LiveSession) -> None:
    """Hidden at once and queued. Approving brings them back."""
    item = say("odd")
    assert "1 held for review." in do(desk, "hold", "look first", items=str(item.pk))
    assert "1 held for review." in do(desk, "hold", sessions=str(session.pk))
    assert "1 not changed: others can&#x27;t see it anyway." in do(desk, "hold", items=str(item.pk))
    item.refresh_from_db()
    session.refresh_from_db()
    assert (item.status, session.review) == (Status.IN_REVIEW, Status.IN_REVIEW)
    case = Case.objects.get(item=item)
    assert (case.state, case.source) == (CaseState.OPEN, CaseSource.MODERATOR)
    assert "opened by @moderator: look first" in text(desk.get("/admin/moderation/case/"))
    page = text(desk.get("/admin/moderation/decision/"))
    assert "@moderator held " in page
    assert ">look first<" in page
    assert verbs() == ["hold", "hold"]
    for held in Case.objects.all():
        actions.approve(case=held, by=moderator)
    item.refresh_from_db()
    session.refresh_from_db()
    assert (item.status, session.review, session.hidden_at) == (Status.PUBLISHED, "", None)


@pytest.mark.slow
def test_items_held_by_hand_join_the_case_that_is_open(desk: Client, say: Say) -> None:
    item = say("odd")
    do(desk, "open", items=str(item.pk))
    assert "1 held for review." in do(desk, "hold", items=str(item.pk))
    assert Case.objects.count() == 1


def test_a_page_that_is_refused_says_so(desk: Client) -> None:
    refused = desk.get("/admin/auth/group/")
    assert refused.status_code == 403
    assert "your account doesn't have permission" in refused.content.decode()


@pytest.mark.slow
def test_cases_are_opened(desk: Client, say: Say, session: LiveSession) -> None:
    item = say("odd")
    assert "1 case opened." in do(desk, "open", "look, please", items=str(item.pk))
    assert "1 not changed: deleted, or there&#x27;s already an open case." in do(desk, "open", items=str(item.pk))
    assert "1 case opened." in do(desk, "open", sessions=str(session.pk))
    assert Item.objects.get(pk=item.pk).status == Status.PUBLISHED
    assert set(Case.objects.filter(state=CaseState.OPEN).values_list("item", "session_id")) == {
        (item.pk, None),
        (None, session.pk),
    }
    page = text(desk.get("/admin/moderation/case/"))
    assert "opened by @moderator: look, please" in page


@pytest.mark.slow
def test_sessions_are_ended_and_rejected(desk: Client, sender: User, session: LiveSession) -> None:
    now = timezone.now()
    running = live.create(host=sender, title="On air", starts_at=now + timedelta(minutes=1), now=now)
    live.start(session=running, now=now)
    assert "2 live sessions ended." in do(desk, "end", "loud", sessions=f"{session.pk},{running.pk}")
    states = [LiveSession.objects.get(pk=one.pk).state for one in (session, running)]
    assert states == [LiveState.CANCELLED, LiveState.REPLAY]
    assert "1 was already over." in do(desk, "end", sessions=str(running.pk))
    assert "1 removed." in do(desk, "reject", sessions=str(running.pk))
    assert LiveSession.objects.get(pk=running.pk).review == "rejected"
    assert verbs() == ["end", "end", "reject"]


# --- Users -----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_warning_is_read_by_the_user(desk: Client, sender: User, say: Say) -> None:
    item = say("rude words")
    assert "Write what to tell the user." in do(desk, "warn", items=str(item.pk))
    assert "1 user warned." in do(desk, "warn", "Be kind.", items=str(item.pk))
    entry = notifications_page(sender).items[0]
    assert (entry.kind, entry.text, entry.actors, entry.count) == ("warning", "Be kind.\n“rude words”", [], 0)
    assert unread_count(sender).unread == 1
    own = logged_in(sender)
    page = text(own.get("/notifications"))
    assert "moderators sent you a warning" in page
    assert "Be kind.<br>“rude words”" in page
    deactivate(user=sender)
    assert "1 user not warned: their account is inactive" in do(desk, "warn", "Again.", users=str(sender.pk))
    assert verbs() == ["warn"]


@pytest.mark.slow
def test_a_ban_from_an_item(desk: Client, sender: User, moderator: User, say: Say) -> None:
    """Each sender once, with the chosen items. Staff and their items stay."""
    first, second, of_staff = say("rude"), say("ruder"), say("fine", by=moderator)
    page = do(desk, "ban", "enough", items=f"{first.pk},{second.pk},{of_staff.pk}")
    assert "1 user suspended." in page
    assert "1 user not suspended: staff, or yourself." in page
    assert SenderRule.objects.get().kind == SenderKind.BAN
    assert not User.objects.get(pk=sender.pk).is_active
    assert set(Item.objects.filter(status=Status.REJECTED)) == {first, second}
    assert verbs() == ["ban", "reject", "reject"]


@pytest.mark.slow
def test_a_ban_is_lifted_where_the_user_is(desk: Client, sender: User, moderator: User) -> None:
    assert "1 user suspended." in do(desk, "ban", "enough", users=str(sender.pk))
    assert "1 user was already suspended." in do(desk, "ban", users=str(sender.pk))
    assert "suspended" in text(desk.get(f"{USERS}{sender.pk}/change/"))
    assert "Suspension lifted for 1 user." in do(desk, "unban", "a mistake", users=str(sender.pk))
    assert User.objects.get(pk=sender.pk).is_active
    assert not SenderRule.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["delete", "delete_many", "change", "reactivate", "unlist"])
def test_no_way_strands_an_account(admin_client: Client, sender: User, moderator: User, way: str) -> None:
    """A ban and its rule end together, whichever is removed."""
    senders.ban(user=sender, by=moderator)
    rule = SenderRule.objects.get()
    match way:
        case "delete":
            assert "Deleting a suspension lifts it" in text(admin_client.get(f"{SENDERS}{rule.pk}/delete/"))
            text(admin_client.post(f"{SENDERS}{rule.pk}/delete/", {"post": "yes"}, follow=True))
        case "delete_many":
            assert "Deleting a suspension lifts it" in text(act(admin_client, SENDERS, "delete_selected", rule))
            text(act(admin_client, SENDERS, "delete_selected", rule, post="yes"))
        case "change":
            text(admin_client.post(f"{SENDERS}{rule.pk}/change/", {"kind": "black", "reason": ""}, follow=True))
        case "reactivate":
            text(act(admin_client, USERS, "reactivate", sender))
        case "unlist":
            senders.unlist_sender(user=sender, by=moderator)
    assert User.objects.get(pk=sender.pk).is_active
    assert list(SenderRule.objects.values_list("kind", flat=True)) == (["black"] if way == "change" else [])
    assert Verb.UNBAN in verbs()


@pytest.mark.slow
def test_the_list_of_rules_bans_too(desk: Client, sender: User, moderator: User) -> None:
    text(desk.post(f"{SENDERS}add/", {"user": sender.pk, "kind": "ban", "reason": "r"}, follow=True))
    assert not User.objects.get(pk=sender.pk).is_active
    page = text(desk.post(f"{SENDERS}add/", {"user": moderator.pk, "kind": "ban", "reason": ""}, follow=True))
    assert "You can&#39;t suspend staff or yourself." in page
    assert User.objects.get(pk=moderator.pk).is_active


def test_the_cases_of_a_sender_are_listed(desk: Client, held: Case, sender: User) -> None:
    shown = desk.get("/admin/moderation/case/", {"host__id__exact": sender.pk, "state": "all"})
    assert list(shown.context["cl"].result_list) == [held]


# --- Pages -----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_moderators_see_no_password_and_no_powers(desk: Client, admin_client: Client, sender: User) -> None:
    page = text(desk.get(f"{USERS}{sender.pk}/change/"))
    for hidden in ("pbkdf2", "argon2", "field-password", "field-user_permissions", "field-is_superuser"):
        assert hidden not in page
    assert str(sender.pk) in page
    assert "field-password" in text(admin_client.get(f"{USERS}{sender.pk}/change/"))


@pytest.mark.slow
def test_a_case_shows_every_decision(desk: Client, moderator: User, held: Case, sender: User, say: Say) -> None:
    """Also bans, unbans, warnings and lists of its sender."""
    actions.reject_and_ban(case=held, by=moderator, note="enough")
    senders.unban(user=sender, by=moderator, reason="sorry")
    senders.list_sender(user=sender, kind=SenderKind.BLACK, by=moderator)
    actions.warn(user=sender, by=moderator, grounds=Grounds("mind the rules"))
    actions.reject_by_hand(item_id=say("other").pk, by=moderator, note="of another item")
    page = text(desk.get(f"/admin/moderation/case/{held.pk}/change/"))
    for line in (
        "The site held <a",
        "@moderator rejected <a",
        "@moderator suspended <a",
        "enough",
        "@moderator lifted the suspension of <a",
        "sorry",
        "@moderator set <a",
        "to always review",
        "@moderator warned <a",
        "mind the rules",
    ):
        assert line in page
    assert "of another item" not in page


@pytest.mark.slow
def test_the_queue_asks_the_same_however_many_sessions_wait(desk: Client, sender: User, spam: WordRule) -> None:
    def asked() -> int:
        with statements() as seen:
            assert "Live: spam 0" in text(desk.get("/admin/moderation/case/"))
        return len(seen)

    def hold(number: int) -> None:
        host, now = UserFactory.create(), timezone.now()
        live.create(host=host, title=f"spam {number}", starts_at=now + timedelta(hours=2), now=now)

    for number in range(2):
        hold(number)
    few = asked()
    for number in range(2, 9):
        hold(number)
    assert Case.objects.count() == 9
    assert asked() == few


# --- Permissions -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("held_permission", ["view_item", "decide_case"])
def test_both_rights_are_needed(client: Client, say: Say, held_permission: str) -> None:
    """To view the object and to decide."""
    item = say("words")
    staff = UserFactory.create(is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename=held_permission))
    client.force_login(staff)
    assert client.get(f"{ACT}?items={item.pk}").status_code == 403
    assert client.post(f"{ACT}?items={item.pk}", {"verb": "reject"}).status_code == 403
    if held_permission == "view_item":
        assert 'value="moderate"' not in text(client.get(ITEMS))
    assert Item.objects.get(pk=item.pk).status == Status.PUBLISHED


@pytest.mark.slow
def test_a_clerk_lifts_no_ban(client: Client, sender: User, moderator: User) -> None:
    senders.ban(user=sender, by=moderator)
    clerk = UserFactory.create(is_staff=True)
    clerk.user_permissions.set(Permission.objects.exclude(codename="decide_case"))
    client.force_login(clerk)
    assert "or suspended. Lifting a suspension needs a moderator." in text(act(client, USERS, "reactivate", sender))
    rule = SenderRule.objects.get()
    assert client.post(f"{SENDERS}{rule.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.post(f"{SENDERS}{rule.pk}/change/", {"kind": "black"}).status_code == 403
    other = UserFactory.create()
    page = text(client.post(f"{SENDERS}add/", {"user": other.pk, "kind": "ban"}))
    assert "errorlist" in page
    assert not User.objects.get(pk=sender.pk).is_active
    assert User.objects.get(pk=other.pk).is_active


def test_the_queue_is_counted_to_its_end_and_says_so(
    desk: Client, spam: WordRule, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        say(f"spam {number}")
    assert "4 cases" in text(desk.get("/admin/moderation/case/"))
    monkeypatch.setattr("moderation.case_admin.QueuePaginator.exact_up_to", 2)
    with statements() as seen:
        page = text(desk.get("/admin/moderation/case/"))
    assert "Showing the first 2 cases." in page
    assert any("COUNT(*)" in statement and "LIMIT 3" in statement for statement in seen)
