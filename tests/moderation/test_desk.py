"""The site's own pages lead moderators to their work."""

import pytest

from accounts.models import User
from moderation import appeals, senders
from moderation.decisions import decisions_about
from moderation.models import Case, WordRule
from tests.support.cases import Say
from tests.support.pages import logged_in
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_staff_find_what_waits(moderator: User, reader: User, sender: User, spam: WordRule, say: Say) -> None:
    desk, other = logged_in(moderator), logged_in(reader)
    assert "Moderation</span></a>" in desk.get("/settings").content.decode()
    held, open_post = say("spam"), say("words")
    say("spam by themselves", by=moderator)
    senders.limit(user=sender, by=moderator)
    appeals.appeal(user=sender, decision_id=decisions_about(sender).get().pk, text="No")
    page = desk.get("/settings").content.decode()
    assert "2 wait for moderators" in page, "the case and the appeal, not their own"
    for address in ("/settings", f"/items/{open_post.pk}/menu", "/@sender"):
        assert "oderat" not in other.get(address).content.decode().replace("Moderators", "").replace("moderators", "")
    for address, find in (
        (f"/items/{open_post.pk}/menu", f"items={open_post.pk}"),
        ("/@sender", f"users={sender.pk}"),
    ):
        assert f"/admin/moderation/case/find/?{find}" in desk.get(address).content.decode()
        assert desk.get(f"/admin/moderation/case/find/?{find}")["Location"] == f"/admin/moderation/case/act/?{find}"
    case = Case.objects.get(item=held)
    found = desk.get(f"/admin/moderation/case/find/?items={held.pk}")["Location"]
    assert found == f"/admin/moderation/case/{case.pk}/change/"
    assert desk.get("/admin/moderation/case/find/?items=x")["Location"] == "/admin/moderation/case/"
    assert other.get("/admin/moderation/case/find/?items=1").status_code == 302


def test_the_count_costs_staff_no_further_query(moderator: User, reader: User) -> None:
    def asked(user: User) -> int:
        browser = logged_in(user)
        browser.get("/settings/password")
        with statements() as seen:
            browser.get("/settings/password")
        return len(seen)

    assert asked(moderator) == asked(reader)
