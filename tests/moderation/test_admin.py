import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from accounts import site as admin_site
from accounts.joining_models import Application
from accounts.models import User
from items import actions as items
from items.models import Item, Status
from moderation import actions, reports, senders
from moderation.models import Case, CaseState, Decision, Report, SenderKind, SenderRule, WordRule
from tests.support.admin import act, text
from tests.support.cases import Say
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

CASES = "/admin/moderation/case/"
WORDS = "/admin/moderation/wordrule/"
SENDERS = "/admin/moderation/senderrule/"
LOG = "/admin/moderation/decision/"
REPORTS = "/admin/moderation/report/"


def page_of(case: Case) -> str:
    return f"{CASES}{case.pk}/change/"


def listed(desk: Client, **query: str) -> list[Case]:
    response = desk.get(CASES, query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


def fields(desk: Client, case: Case) -> dict[str, str]:
    """The hidden fields of a case's buttons."""
    page = text(desk.get(page_of(case)))
    found = dict(re.findall(r'<input type="hidden" name="(state|modified_at)" value="([^"]*)"', page))
    assert set(found) == {"state", "modified_at"}
    return found


def decide(desk: Client, case: Case, verb: str, **more: str) -> str:
    return text(desk.post(page_of(case), fields(desk, case) | {"verb": verb} | more, follow=True))


def now() -> str:
    return timezone.now().isoformat()


# --- The front page --------------------------------------------------------------------------------------
def waiting(desk: Client) -> dict[str, str]:
    """The front page's counts, by list."""
    page = text(desk.get("/admin/"))
    return dict(re.findall(r'<a href="([^"]+)" class="waiting">(\S+) waiting</a>', page))


def test_the_front_page_says_what_waits(
    desk: Client, admin_client: Client, spam: WordRule, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waiting(desk) == waiting(admin_client) == {}
    for number in range(3):
        say(f"spam {number}")
    for name in ("ann", "bob"):
        Application.objects.create(username=name, email="", password="x", reason="")
    assert waiting(desk) == {CASES: "3"}, "a moderator may not see applications"
    with statements() as asked:
        assert waiting(admin_client) == {CASES: "3", "/admin/accounts/application/": "2"}
    assert sum("LIMIT 101" in one for one in asked) == 6, "also letters and deliveries that were given up"
    deciding = User.objects.create(username="deciding", is_staff=True)
    deciding.user_permissions.add(Permission.objects.get(codename="decide_case"))
    by_them = logged_in(deciding)
    assert waiting(by_them) == {CASES: "3"}, "the queue is theirs, too"
    monkeypatch.setattr(admin_site, "COUNTED", 2)
    assert waiting(admin_client) == {CASES: "2+", "/admin/accounts/application/": "2"}


def test_areas_are_in_the_order_of_the_work(desk: Client, admin_client: Client) -> None:
    sections = re.compile(r'class="section">([^<]+)<')
    assert sections.findall(text(admin_client.get("/admin/"))) == ["Moderation", "People", "Site", "System"]
    assert sections.findall(text(desk.get("/admin/")))[0] == "Moderation"
    lists = [each["name"] for each in admin_client.get("/admin/moderation/").context["app_list"][0]["models"]]
    assert lists[:5] == ["Cases", "Appeals", "Reports", "Decisions", "Posts"]
    assert admin_client.get("/admin/items/").status_code == 404
    page = text(admin_client.get(f"{CASES}"))
    assert sections.findall(page) == ["Moderation", "People", "Site", "System"], "the sidebar"


def test_the_path_above_a_page_names_its_area_and_list(admin_client: Client) -> None:
    user = UserFactory.create(username="ann")
    page = f"/admin/accounts/user/{user.pk}"
    people = [("/admin/", "Admin"), ("/admin/people/", "People")]
    users = [*people, ("/admin/accounts/user/", "Users")]
    for address, above, last in (
        ("/admin/people/", people[:1], "People"),
        ("/admin/accounts/user/", people, "Users"),
        (f"{page}/change/", users, "ann"),
        (f"{page}/history/", [*users, (f"{page}/change/", "ann")], "Log"),
        (f"{page}/home/", [*users, (f"{page}/change/", "ann")], "The home timeline of @ann"),
        (f"{page}/password/", [*users, (f"{page}/change/", "ann")], "Change password: ann"),
    ):
        found = re.search(r'<div class="breadcrumbs">(.*?)</div>', text(admin_client.get(address)), re.DOTALL)
        assert found is not None
        assert re.findall(r'<a href="([^"]+)">([^<]+)</a>', found[1]) == above, address
        assert found[1].rpartition("&rsaquo;")[2].strip() == last


def test_big_accounts_are_a_list_of_accounts(admin_client: Client) -> None:
    UserFactory.create(username="small")
    UserFactory.create(username="star", is_big_v=True)
    found = re.search(r'<a href="([^"]+)">Big accounts</a>', text(admin_client.get("/admin/people/")))
    assert found is not None
    listed_users = admin_client.get(found[1]).context["cl"].result_list
    assert [user.username for user in listed_users] == ["star"]


# --- The queue -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_queue_is_what_waits_oldest_first(desk: Client, moderator: User, spam: WordRule, say: Say) -> None:
    other = UserFactory.create(username="other")
    sent = [say(f"spam {number}", by=other if number == 3 else None) for number in range(5)]
    first, second, rejected, of_other, deleted = [Case.objects.get(item=item) for item in sent]
    actions.reject(case=rejected, by=moderator)
    items.delete(item=deleted.item)
    assert listed(desk) == [first, second, of_other]
    assert listed(desk, state="open") == [first, second, of_other, deleted]
    assert listed(desk, state="rejected") == [rejected]
    assert listed(desk, state="approved") == []
    assert listed(desk, state="all") == [first, second, rejected, of_other, deleted]
    assert listed(desk, q="@OTHER") == [of_other]
    assert listed(desk, q=str(sent[1].pk)) == [second]
    assert listed(desk, q="nobody") == []
    assert listed(desk, q="9" * 40) == []
    senders.ban(user=other, by=moderator)
    assert listed(desk) == [first, second]
    senders.unban(user=other, by=moderator)
    assert listed(desk) == [first, second, of_other]


@pytest.mark.slow
def test_the_list_asks_the_same_however_long_it_is(desk: Client, say: Say, spam: WordRule) -> None:
    def asked() -> int:
        with statements() as seen:
            assert "spam 0" in text(desk.get(CASES))
        return len(seen)

    for number in range(2):
        reports.report(item=say(f"spam {number}"), reporter=UserFactory.create(), reason="spam")
    few = asked()
    for number in range(2, 8):
        reports.report(item=say(f"spam {number}"), reporter=UserFactory.create(), reason="spam")
    assert asked() == few


@pytest.mark.slow
def test_the_page_of_a_case_shows_what_a_decision_needs(
    desk: Client, moderator: User, sender: User, say: Say, spam: WordRule, reader: User
) -> None:
    actions.reject(case=Case.objects.get(item=say("spam before")), by=moderator)
    root = say("root")
    item = say("<b>Buy</b> SPAM", title="a title", reply_to=root)
    reporter = UserFactory.create(username="reporter")
    case = Case.objects.get(item=item)
    items.approve(item=item)
    reports.report(item=item, reporter=reporter, reason="abuse", text="<i>rude</i>")
    senders.list_sender(user=sender, kind=SenderKind.BLACK, by=moderator, reason="known")
    page = text(desk.get(page_of(case)))
    assert "&lt;b&gt;Buy&lt;/b&gt; <mark>SPAM</mark>" in page
    assert "a title" in page
    assert "words: spam" in page
    assert "Harassment or hate: “&lt;i&gt;rude&lt;/i&gt;”" in page
    assert "reporter</a>" in page
    assert "1 follower" in page
    assert "earlier cases: 1 rejected, 0 approved, 0 open" in page
    assert "always review: every post waits for a moderator</strong> (known)" in page
    assert f"in reply to {root.pk}" in page
    assert "It stays. The reports are closed." in page


@pytest.mark.slow
def test_the_page_asks_the_same_however_much_there_is(desk: Client, held: Case) -> None:
    def asked() -> int:
        with statements() as seen:
            text(desk.get(page_of(held)))
        return len(seen)

    few = asked()
    for reporter in UserFactory.create_batch(5):
        reports.report(item=held.item, reporter=reporter, reason="spam")
    assert asked() == few


@pytest.mark.slow
def test_a_case_that_never_was(desk: Client) -> None:
    for number in ("7", "abc", "9" * 30):
        assert "Perhaps it was deleted?" in text(desk.get(f"{CASES}{number}/change/", follow=True))


# --- One decision ----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_approve_and_go_on_to_the_next(desk: Client, moderator: User, held: Case, say: Say) -> None:
    following = Case.objects.get(item=say("more spam"))
    page = decide(desk, held, "approve", note="fine")
    assert "Approved. Here&#x27;s the next one." in page
    assert f"Case {following.pk}" in page
    held.refresh_from_db()
    assert (held.state, held.decided_by, held.note) == (CaseState.APPROVED, moderator, "fine")
    assert Item.objects.get(pk=held.item_id).status == Status.PUBLISHED
    assert "Removed." in decide(desk, following, "reject")
    assert Item.objects.get(pk=following.item_id).status == Status.REJECTED


@pytest.mark.slow
def test_a_rejection_can_be_undone_and_an_approval_too(desk: Client, held: Case) -> None:
    decide(desk, held, "reject")
    assert "Publish again" in text(desk.get(page_of(held)))
    assert "Approved." in decide(desk, held, "approve")
    assert Item.objects.get(pk=held.item_id).status == Status.PUBLISHED
    assert "Only the author sees it, and reads why." in text(desk.get(page_of(held)))
    assert "Removed." in decide(desk, held, "reject")
    assert Item.objects.get(pk=held.item_id).status == Status.REJECTED


@pytest.mark.slow
def test_a_ban_asks_first_and_can_be_undone(desk: Client, held: Case, sender: User) -> None:
    asked = decide(desk, held, "ban", note="enough")
    assert "and suspends 1 author. They&#x27;re logged out" in asked
    assert "(@sender)" in asked
    sender.refresh_from_db()
    assert sender.is_active
    sent = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked))
    assert "Removed. @sender is suspended." in text(desk.post(page_of(held), sent, follow=True))
    sender.refresh_from_db()
    assert not sender.is_active
    assert SenderRule.objects.get(user=sender).reason == "enough"
    assert "@sender is no longer suspended." in decide(desk, held, "unban")
    sender.refresh_from_db()
    assert sender.is_active
    assert Item.objects.get(pk=held.item_id).status == Status.REJECTED


@pytest.mark.slow
def test_the_second_of_two_is_told(desk: Client, held: Case) -> None:
    seen = fields(desk, held)
    other = UserFactory.create(username="colleague")
    actions.reject(case=held, by=other)
    page = text(desk.post(page_of(held), seen | {"verb": "approve"}, follow=True))
    assert "Already decided by colleague: rejected." in page
    assert Item.objects.get(pk=held.item_id).status == Status.REJECTED


@pytest.mark.slow
def test_what_was_edited_meanwhile_is_looked_at_again(desk: Client, held: Case) -> None:
    seen = fields(desk, held)
    items.edit(item=held.item, content={"text": "worse spam"})
    page = text(desk.post(page_of(held), seen | {"verb": "approve"}, follow=True))
    assert "The author edited the text." in page
    assert "worse <mark>spam</mark>" in page
    assert Item.objects.get(pk=held.item_id).status == Status.IN_REVIEW


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"verb": "approve"},
        {"verb": "praise"},
        {"verb": "appr\0ove"},
        *({"verb": "approve", "modified_at": at} for at in ("x", "2026-13-45T00:00:00Z", "2026-01-01T00:00:00")),
    ],
)
def test_what_no_page_sends_changes_nothing(desk: Client, held: Case, sent: dict[str, str]) -> None:
    text(desk.post(page_of(held), sent, follow=True))
    held.refresh_from_db()
    assert held.state == CaseState.OPEN


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", [{"note": "no\0t here"}, {"rule": "7"}, {"until": "2001-01-01T00:00"}, {"text": "x" * 501}]
)
def test_a_decision_with_wrong_fields_is_shown_again(desk: Client, held: Case, wrong: dict[str, str]) -> None:
    assert 'class="errorlist"' in decide(desk, held, "reject", **wrong)
    held.refresh_from_db()
    assert held.state == CaseState.OPEN


# --- Many at once ----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_many_at_once(desk: Client, spam: WordRule, say: Say) -> None:
    cases = [Case.objects.get(item=say(f"spam {number}")) for number in range(4)]
    page = text(act(desk, CASES, "approve", *cases[:2], seen=now()))
    assert "2 cases approved." in page
    assert "1 case rejected." in text(act(desk, CASES, "reject", cases[2], seen=now()))
    statuses = [Item.objects.get(pk=case.item_id).status for case in cases]
    assert statuses == [Status.PUBLISHED, Status.PUBLISHED, Status.REJECTED, Status.IN_REVIEW]


@pytest.mark.slow
def test_of_many_what_was_edited_or_decided_meanwhile_is_left(desk: Client, spam: WordRule, say: Say) -> None:
    one, two, three = [Case.objects.get(item=say(f"spam {number}")) for number in range(3)]
    seen = now()
    items.edit(item=one.item, content={"text": "worse spam"})
    actions.reject(case=two, by=UserFactory.create())
    page = text(desk.post(f"{CASES}?state=all", {
        "action": "approve", "_selected_action": [one.pk, two.pk, three.pk], "seen": seen,
    }, follow=True))  # fmt: skip
    assert "1 case approved." in page
    assert "1 case was already decided." in page
    assert "1 case not approved: edited since you opened the list." in page
    assert Item.objects.get(pk=one.item_id).status == Status.IN_REVIEW
    assert Item.objects.get(pk=two.item_id).status == Status.REJECTED


def test_the_list_says_when_it_was_made(desk: Client, held: Case) -> None:
    assert re.search(r'<input type="hidden" name="seen" value="20[^"]+"', text(desk.get(CASES)))


@pytest.mark.slow
def test_bans_of_many_ask_first(desk: Client, spam: WordRule, say: Say, moderator: User) -> None:
    others = UserFactory.create_batch(2)
    staff = UserFactory.create(is_staff=True)
    cases = [Case.objects.get(item=say("spam", by=other)) for other in others]
    item = Item.objects.create(sender=staff, content={"text": "x"})
    reports.report(item=item, reporter=others[0], reason="spam")
    cases.append(Case.objects.get(item=item))
    asked = text(act(desk, CASES, "ban", *cases, seen=now()))
    assert "This rejects 2 cases and suspends 2 authors" in asked
    assert "1 case not decided: the author is staff." in asked
    assert "confirmed" not in text(act(desk, CASES, "ban", cases[-1], seen=now()))
    assert User.objects.filter(is_active=False).count() == 0
    page = text(act(desk, CASES, "ban", *cases, seen=now(), confirmed="yes"))
    assert "2 cases rejected, the authors suspended." in page
    assert "1 case not decided: the author is staff." in page
    assert set(User.objects.filter(is_active=False)) == set(others)


@pytest.mark.slow
def test_too_many_at_once(desk: Client, spam: WordRule, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moderation.case_admin.AT_ONCE", 1)
    cases = [Case.objects.get(item=say(f"spam {number}")) for number in range(2)]
    assert "Nothing changed: choose 1 at most." in text(act(desk, CASES, "approve", *cases, seen=now()))
    assert Case.objects.filter(state=CaseState.OPEN).count() == 2


# --- Permissions -----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_staff_without_the_permission_sees_nothing(client: Client, held: Case) -> None:
    client.force_login(UserFactory.create(is_staff=True))
    for address in (CASES, page_of(held), WORDS, f"{WORDS}many/", SENDERS, LOG, REPORTS):
        assert client.get(address).status_code == 403
    assert client.post(page_of(held), {"verb": "approve"}).status_code == 403
    assert "Cases" not in text(client.get("/admin/"))


@pytest.mark.slow
def test_staff_who_may_only_look_cannot_decide(client: Client, held: Case) -> None:
    looker = UserFactory.create(is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_case"))
    client.force_login(looker)
    page = text(client.get(page_of(held)))
    assert 'value="approve"' not in page
    assert 'value="approve"' not in text(client.get(CASES))
    sent = {"verb": "approve", "state": "open", "modified_at": now()}
    assert client.post(page_of(held), sent).status_code == 403
    act(client, CASES, "approve", held, seen=now())
    held.refresh_from_db()
    assert held.state == CaseState.OPEN


def test_moderators_need_to_be_staff(client: Client, held: Case, moderator: User) -> None:
    User.objects.filter(pk=moderator.pk).update(is_staff=False)
    client.force_login(moderator)
    assert client.get(CASES)["Location"].startswith("/admin/login/")


@pytest.mark.slow
def test_cases_reports_and_the_log_cannot_be_changed(admin_client: Client, held: Case) -> None:
    line = Decision.objects.get()
    for address, row in ((CASES, held), (LOG, line)):
        assert admin_client.get(f"{address}add/").status_code == 403
        assert admin_client.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code == 403
        act(admin_client, address, "delete_selected", row, post="yes")
    assert admin_client.post(f"{LOG}{line.pk}/change/", {"note": "x"}).status_code == 403
    assert admin_client.get(f"{REPORTS}add/").status_code == 403
    assert (Case.objects.count(), Decision.objects.get().note) == (1, "words: spam")


# --- The lists -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_words_are_added_changed_and_removed(desk: Client, say: Say) -> None:
    text(desk.post(f"{WORDS}add/", {"text": "spam", "whole": "on", "is_enabled": "on"}, follow=True))
    rule = WordRule.objects.get()
    assert say("spam").status == Status.IN_REVIEW
    assert '<td class="field-hits">1</td>' in text(desk.get(WORDS))
    text(desk.post(f"{WORDS}{rule.pk}/change/", {"text": "eggs", "whole": "on", "is_enabled": "on"}, follow=True))
    assert (say("spam").status, say("eggs").status) == (Status.PUBLISHED, Status.IN_REVIEW)
    listed = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": rule.pk, "_save": "Save"}
    text(desk.post(WORDS, listed, follow=True))
    assert say("eggs!").status == Status.PUBLISHED
    text(desk.post(WORDS, listed | {"form-0-is_enabled": "on"}, follow=True))
    text(desk.post(f"{WORDS}{rule.pk}/delete/", {"post": "yes"}, follow=True))
    assert not WordRule.objects.exists()
    verbs = [line.verb for line in Decision.objects.exclude(verb="hold").order_by("pk")]
    assert verbs == ["word", "word", "word", "word", "unword"]
    assert Case.objects.count() == 2


@pytest.mark.parametrize("word", ["", "\u200b", " ", "x" * 101])
def test_words_that_are_none(desk: Client, word: str) -> None:
    assert "errorlist" in text(desk.post(f"{WORDS}add/", {"text": word, "is_enabled": "on"}))
    assert not WordRule.objects.exists()


def test_many_words(desk: Client, spam: WordRule) -> None:
    assert "One per line." in text(desk.get(f"{WORDS}many/"))
    page = text(desk.post(f"{WORDS}many/", {"words": "spam\r\n eggs \r\n\r\n彩票", "note": "list"}, follow=True))
    assert "2 words added." in page
    assert "1 word was already listed." in page
    assert set(WordRule.objects.filter(whole=False).values_list("text", flat=True)) == {"eggs", "彩票"}
    page = text(desk.post(f"{WORDS}many/", {"words": "ham\n\u200b"}))
    assert "Type something visible." in page
    assert WordRule.objects.count() == 3


@pytest.mark.slow
@pytest.mark.parametrize("text_", ["SPAM", "\uff33\uff30\uff21\uff2d", "s\u200bpam"])
def test_one_word_has_one_rule(desk: Client, spam: WordRule, text_: str) -> None:
    """In any case and width, with invisible characters."""
    page = text(desk.post(f"{WORDS}add/", {"text": text_, "whole": "on", "is_enabled": "on"}))
    assert "The rule “spam” already covers this." in page
    assert "1 word was already listed." in text(desk.post(f"{WORDS}many/", {"words": text_}, follow=True))
    assert "1 word added." in text(desk.post(f"{WORDS}many/", {"words": "Ham\nHAM"}, follow=True))
    assert sorted(WordRule.objects.values_list("text", flat=True)) == ["Ham", "spam"]
    changed = {"text": "Spam", "whole": "on", "is_enabled": "on"}
    text(desk.post(f"{WORDS}{spam.pk}/change/", changed, follow=True))
    assert WordRule.objects.get(pk=spam.pk).text == "Spam"


def test_the_log_reads_as_sentences(desk: Client, moderator: User, sender: User, held: Case) -> None:
    actions.reject(case=held, by=moderator, note="rude")
    actions.save_word_rule(rule=WordRule(text="ham"), by=moderator)
    page = re.sub(r"<[^>]+>", "", text(desk.get(LOG)))
    assert f"The site held post {held.item_id} by @sender for review" in page
    assert f"@moderator rejected post {held.item_id} by @sender" in page
    assert "@moderator added the word rule “ham”" in page
    desk.cookies["language"] = "zh-hans"
    page = re.sub(r"<[^>]+>", "", text(desk.get(LOG)))
    assert f"系统将 @sender 的帖子 {held.item_id} 转入审核" in page
    desk.cookies["language"] = "en"
    line = Decision.objects.get(verb="reject")
    page = text(desk.get(f"{LOG}{line.pk}/change/"))
    assert "status: in review → rejected" in page
    assert "rude" in page
    assert "{" not in re.sub(r"<(script|style|svg).*?</\1>", "", page, flags=re.DOTALL)


@pytest.mark.slow
def test_senders_are_listed_and_unlisted(desk: Client, moderator: User, sender: User, say: Say) -> None:
    text(desk.post(f"{SENDERS}add/", {"user": sender.pk, "kind": "black", "reason": "r"}, follow=True))
    rule = SenderRule.objects.get()
    assert (rule.user, rule.kind, rule.reason, rule.by) == (sender, "black", "r", moderator)
    assert say().status == Status.IN_REVIEW
    text(desk.post(f"{SENDERS}{rule.pk}/change/", {"kind": "white", "reason": ""}, follow=True))
    assert say().status == Status.PUBLISHED
    text(act(desk, SENDERS, "delete_selected", rule, post="yes"))
    assert not SenderRule.objects.exists()
    verbs = [line.verb for line in Decision.objects.exclude(verb="hold").order_by("pk")]
    assert verbs == ["list", "list", "unlist"]


@pytest.mark.slow
def test_reports_and_the_log_are_found(desk: Client, say: Say, moderator: User) -> None:
    item, other = say("one"), say("two")
    for one in (item, other):
        reports.report(item=one, reporter=UserFactory.create(username=f"r{one.pk % 1000}x"), reason="spam")
        actions.reject(case=Case.objects.get(item=one), by=moderator)
    assert desk.get(REPORTS, {"q": str(item.pk)}).context["cl"].result_count == 1
    assert desk.get(REPORTS).context["cl"].result_count == 2
    assert desk.get(LOG, {"q": str(item.pk)}).context["cl"].result_count == 1
    assert desk.get(LOG, {"q": "moderator"}).context["cl"].result_count == 2
    line = Decision.objects.first()
    assert line is not None
    assert "rejected" in text(desk.get(f"{LOG}{line.pk}/change/"))


# --- Pictures --------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("content", [{}, {"sensitive": True}])
def test_cases_and_reports_show_pictures(
    desk: Client, sender: User, spam: WordRule, media_folder: object, content: dict[str, bool]
) -> None:
    media = [sent(sender, description="a red square"), sent(sender)]
    item = posted(sender, *media, text="buy spam now", **content)
    reports.report(item=item, reporter=UserFactory.create(), reason="spam")
    case, report = Case.objects.get(item=item), Report.objects.get(item=item)
    for address in (CASES, page_of(case), REPORTS, f"{REPORTS}{report.pk}/change/"):
        page = text(desk.get(address))
        assert re.findall(r"/staff/media/([0-9]+)/preview", page) == media, address
        assert page.count("shot-veil") == (2 if content else 0)
        assert 'alt="a red square"' in page
    desk.get(seen := f"/staff/media/{media[0]}/preview").close()
    assert desk.head(seen).status_code == 200
    items.delete(item=item)
    assert re.findall(r"/staff/media/([0-9]+)/preview", text(desk.get(page_of(case)))) == media
