"""A user may undo an act on a hidden item. Others learn nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from accounts import deactivation
from accounts.models import User
from discover import feedback
from discover.models import NotInterested
from items import actions
from items.models import Item, Like, Status, Visibility
from live import actions as live
from live.models import LiveSession, Reminder, State
from relations import actions as relations
from relations.models import Block, Follow, Mute
from tests.support.api import API, client_of
from tests.support.factories import UserFactory
from tests.support.pages import PART, composed, logged_in
from tests.support.sessions import session as plan

pytestmark = pytest.mark.django_db

HIDINGS: dict[str, Callable[[Item, User], object]] = {
    "deleted": lambda item, reader: actions.delete(item=item),
    "in review": lambda item, reader: actions.hold(item=item, reasons=["word"]),
    "for its sender": lambda item, reader: actions.change_visibility(item=item, visibility=Visibility.SELF),
    "blocked": lambda item, reader: relations.block(blocker=item.sender, blocked=reader),
    "suspended": lambda item, reader: deactivation.deactivate(user=item.sender),
}
NEVER_WAS = 5_000_000_000


@pytest.fixture
def stranger() -> User:
    return UserFactory.create(username="stranger")


@pytest.fixture
def item() -> Item:
    return actions.publish(sender=UserFactory.create(username="sender"), content={"text": "words"})


@pytest.mark.slow
@pytest.mark.parametrize("hiding", HIDINGS)
def test_over_the_api(reader: User, stranger: User, item: Item, hiding: str) -> None:
    actions.like(user=reader, item=item)
    feedback.not_interested(user=reader, item=item)
    repost, _ = actions.repost(sender=reader, item=item)
    HIDINGS[hiding](item, reader)
    HIDINGS[hiding](item, stranger)
    mine, theirs = client_of(reader), client_of(stranger)
    for path in (f"{API}/items/{{}}/like", f"{API}/items/{{}}/not-interested", f"{API}/items/{{}}"):
        at = path.format(repost.pk if path.endswith("items/{}") else item.pk)
        nothing = theirs.delete(path.format(NEVER_WAS))
        assert (theirs.delete(at).status_code, theirs.delete(at).content) == (404, nothing.content)
        assert mine.delete(at).status_code == 204, at
        assert (mine.delete(at).status_code, mine.delete(at).content) == (404, nothing.content)
    assert not Like.objects.exists()
    assert not NotInterested.objects.exists()
    assert Item.objects.get(pk=repost.pk).status == Status.DELETED


@pytest.mark.slow
@pytest.mark.parametrize("hiding", HIDINGS)
@pytest.mark.parametrize("headers", [{}, PART], ids=["page", "part"])
def test_on_pages(reader: User, stranger: User, item: Item, hiding: str, headers: Any) -> None:
    actions.like(user=reader, item=item)
    feedback.not_interested(user=reader, item=item)
    repost, _ = actions.repost(sender=reader, item=item)
    HIDINGS[hiding](item, reader)
    HIDINGS[hiding](item, stranger)
    mine, theirs = logged_in(reader), logged_in(stranger)
    for verb in ("unlike", "interested", "undo-repost"):
        at = f"/items/{item.pk}/{verb}"
        assert theirs.post(at, **headers).status_code == 404
        answer = mine.post(at, **headers)
        assert answer.status_code == (200 if headers else 302), verb
        assert b"words" not in answer.content
        assert mine.post(at, **headers).status_code == 404
    assert not Like.objects.exists()
    assert not NotInterested.objects.exists()
    assert Item.objects.get(pk=repost.pk).status == Status.DELETED


def test_a_repost_whose_original_is_hidden_is_deleted_on_its_page(reader: User, item: Item) -> None:
    repost, _ = actions.repost(sender=reader, item=item)
    actions.delete(item=item)
    assert logged_in(reader).post(f"/items/{repost.pk}/delete").status_code == 302
    assert Item.objects.get(pk=repost.pk).status == Status.DELETED


def test_visible_items_of_others_are_refused_as_before(reader: User, item: Item) -> None:
    assert client_of(reader).delete(f"{API}/items/{item.pk}").status_code == 403
    assert logged_in(reader).post(f"/items/{item.pk}/delete").status_code == 403
    assert client_of(reader).delete(f"{API}/items/{item.pk}/like").status_code == 204
    assert Item.objects.get(pk=item.pk).status == Status.PUBLISHED


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["follow", "block", "mute"])
@pytest.mark.parametrize("hiding", ["blocked", "suspended"])
@pytest.mark.parametrize("surface", ["api", "page", "part"])
def test_relations_to_whom_one_may_not_see(reader: User, item: Item, kind: str, hiding: str, surface: str) -> None:
    other = item.sender
    relations.follow(follower=reader, followee=other)
    relations.block(blocker=reader, blocked=other)
    relations.mute(muter=reader, muted=other)
    HIDINGS[hiding](item, reader)

    def end() -> int:
        if surface == "api":
            return client_of(reader).delete(f"{API}/users/{other.username}/{kind}").status_code
        headers: Any = PART if surface == "part" else {}
        return logged_in(reader).post(f"/@{other.username}/un{kind}", **headers).status_code

    assert end() == {"api": 204, "page": 302, "part": 200}[surface]
    own = {"follow": Follow.objects.filter(follower=reader), "block": Block.objects.filter(blocker=reader),
           "mute": Mute.objects.filter(muter=reader)}[kind]  # fmt: skip
    assert not own.exists()
    assert end() == 404


@pytest.mark.slow
@pytest.mark.parametrize("hide", ["hidden", "blocked", "suspended"])
@pytest.mark.parametrize("surface", ["api", "page", "part"])
def test_reminders_of_sessions_that_are_hidden(reader: User, stranger: User, hide: str, surface: str) -> None:
    session: LiveSession = plan(UserFactory.create(username="host"), State.UPCOMING)
    live.remind(user=reader, session=session)
    if hide == "hidden":
        live.hide(session=session, now=timezone.now())
    elif hide == "blocked":
        relations.block(blocker=session.host, blocked=reader)
        relations.block(blocker=session.host, blocked=stranger)
    else:
        deactivation.deactivate(user=session.host)

    def end(user: User, session_id: int = session.pk) -> tuple[int, bytes]:
        if surface == "api":
            answer = client_of(user).delete(f"{API}/live/sessions/{session_id}/reminder")
        else:
            headers: Any = PART if surface == "part" else {}
            answer = logged_in(user).post(f"/live/{session_id}/forget", **headers)
        return answer.status_code, answer.content if surface == "api" else b""

    assert end(stranger) == end(stranger, NEVER_WAS)
    assert end(stranger)[0] == 404
    assert end(reader)[0] == {"api": 204, "page": 302, "part": 200}[surface]
    assert not Reminder.objects.exists()
    assert end(reader) == end(stranger)


@pytest.mark.parametrize("status", [Status.IN_REVIEW, Status.REJECTED, Status.DELETED])
def test_a_key_used_again(reader: User, status: Status) -> None:
    api, key = client_of(reader), "once"

    def publish() -> Any:
        return api.post(f"{API}/items", {"content": {"text": "words"}}, headers={"Idempotency-Key": key})

    first = publish()
    item = Item.objects.get()
    if status == Status.IN_REVIEW:
        actions.hold(item=item, reasons=["word"])
    elif status == Status.REJECTED:
        actions.reject(item=item)
    else:
        actions.delete(item=item)
    again = publish()
    if status == Status.DELETED:
        assert again.status_code == 404
        assert again.content == api.get(f"{API}/items/{NEVER_WAS}").content
    else:
        assert (again.status_code, again.json()["id"], again.json()["status"]) == (201, first.json()["id"], status)
    assert Item.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, PART], ids=["page", "part"])
def test_a_form_sent_again_after_the_deletion(reader: User, headers: Any) -> None:
    client, form = logged_in(reader), composed()
    assert client.post("/items/new", form, **headers).status_code in (200, 302)
    actions.delete(item=Item.objects.get())
    assert client.post("/items/new", form, **headers).status_code == 404
    assert Item.objects.count() == 1
