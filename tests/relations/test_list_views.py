import pytest
from django.test import Client

from accounts.models import User
from relations import actions, lists
from relations.models import List, ListMember
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> User:
    reader = UserFactory(username="reader")
    client.force_login(reader)
    return reader


@pytest.fixture
def friend(reader: User) -> User:
    friend = UserFactory(username="friend")
    actions.follow(follower=reader, followee=friend)
    return friend


def make(owner: User, title: str = "Friends", **fields: bool) -> List:
    return lists.create(owner=owner, title=title, **fields)


@pytest.mark.slow
def test_a_list_is_made_changed_and_deleted(client: Client, reader: User) -> None:
    assert "Create your first one." in client.get("/lists").content.decode()
    made = client.post("/lists", {"title": " Friends ", "exclusive": "on"})
    there = List.objects.get()
    assert made["Location"] == f"/lists/{there.pk}"
    assert (there.title, there.is_exclusive) == ("Friends", True)
    shown = client.get("/lists").content.decode()
    assert f'href="/lists/{there.pk}"' in shown
    assert "not in home" in shown
    assert 'value="Friends"' in client.get(f"/lists/{there.pk}/edit").content.decode()
    assert client.post(f"/lists/{there.pk}/edit", {"title": "Loud"})["Location"] == f"/lists/{there.pk}"
    there.refresh_from_db()
    assert (there.title, there.is_exclusive) == ("Loud", False)
    assert "Loud" in client.get(f"/lists/{there.pk}/delete").content.decode()
    assert List.objects.exists()
    assert client.post(f"/lists/{there.pk}/delete")["Location"] == "/lists"
    assert not List.objects.exists()


@pytest.mark.slow
def test_bad_titles_and_the_limit_are_told(client: Client, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for title in ("", "  ", "x" * 101, "a\x00b"):
        assert client.post("/lists", {"title": title}).status_code == 422
    there = make(reader)
    assert client.post(f"/lists/{there.pk}/edit", {"title": ""}).status_code == 422
    monkeypatch.setattr(lists, "LISTS", 1)
    refused = client.post("/lists", {"title": "More"})
    assert refused.status_code == 422
    assert "the limit of lists" in refused.content.decode()


@pytest.mark.slow
def test_people_are_put_into_lists_and_taken_out(client: Client, reader: User, friend: User) -> None:
    one, two = make(reader, "One"), make(reader, "Two")
    assert f'href="/@{friend.username}/lists"' in client.get("/@friend").content.decode()
    assert client.post("/@friend/lists", {"lists": [one.pk, two.pk]})["Location"] == "/@friend"
    assert ListMember.objects.count() == 2
    page = client.get("/@friend/lists").content.decode()
    assert page.count("checked") == 2
    client.post("/@friend/lists", {"lists": [two.pk]})
    assert ListMember.objects.get().list == two
    assert "@friend" in client.get(f"/lists/{two.pk}/edit").content.decode()
    assert client.post(f"/lists/{two.pk}/remove", {"username": "friend"})["Location"] == f"/lists/{two.pk}/edit"
    assert not ListMember.objects.exists()
    assert client.post(f"/lists/{two.pk}/remove", {"username": "nobody"}).status_code == 404


@pytest.mark.slow
def test_members_are_named_on_the_page_of_the_list(client: Client, reader: User, friend: User) -> None:
    made = lists.create(owner=reader, title="Close").pk
    UserFactory(username="far")
    actions.block(blocker=UserFactory(username="hater"), blocked=reader)
    for name, said in (
        (" @Friend ", ""),
        ("far", "Follow them first"),
        ("reader", "do this to yourself."),
        ("hater", "Nobody here has this username."),
        ("n\0", "Nobody here has this username."),
        ("", "Nobody here has this username."),
    ):
        page = client.post(f"/lists/{made}/add", {"username": name}, follow=True).content.decode()
        assert said in page
    assert [member.member for member in ListMember.objects.all()] == [friend]
    client.force_login(friend)
    assert client.post(f"/lists/{made}/add", {"username": "far"}).status_code == 404


@pytest.mark.slow
def test_people_who_are_refused(client: Client, reader: User, friend: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "You have no lists yet." in client.get("/@friend/lists").content.decode()
    there, other = make(reader), make(friend)
    UserFactory(username="stranger")
    assert "Follow them first" in client.get("/@stranger/lists").content.decode()
    assert client.get("/@nobody/lists").status_code == 404
    assert client.post("/@stranger/lists", {"lists": [there.pk]}).status_code == 422
    assert client.post("/@reader/lists", {"lists": [there.pk]}).status_code == 422
    assert client.post("/@friend/lists", {"lists": [other.pk]}).status_code == 422, "another's"
    monkeypatch.setattr(lists, "MEMBERS", 0)
    refused = client.post("/@friend/lists", {"lists": [there.pk]})
    assert "A list is full" in refused.content.decode()
    assert not ListMember.objects.exists()
    assert "/@stranger/lists" not in client.get("/@stranger").content.decode()


@pytest.mark.slow
def test_others_and_strangers_meet_no_list(client: Client, reader: User, friend: User) -> None:
    there = make(friend, "Secret")
    lists_pages = [f"/lists/{number}{page}" for number in (there.pk, 2**62, 10**30) for page in ("/edit", "/delete")]
    for address in lists_pages:
        assert client.get(address).status_code == 404
        assert client.post(address, {"title": "Mine"}).status_code == 404
    assert client.post(f"/lists/{there.pk}/remove", {"username": "reader"}).status_code == 404
    assert "Secret" not in client.get("/lists").content.decode()
    client.logout()
    for address in ("/lists", f"/lists/{there.pk}/edit", "/@friend/lists"):
        assert client.get(address)["Location"].startswith("/login")
    there.refresh_from_db()
    assert there.title == "Secret"


@pytest.mark.slow
def test_members_are_paged(client: Client, reader: User) -> None:
    there = make(reader)
    for number in range(21):
        member = UserFactory(username=f"member{number}")
        actions.follow(follower=reader, followee=member)
        lists.add(owner=reader, list_id=there.pk, member=member)
    first = client.get(f"/lists/{there.pk}/edit")
    assert first.context["page"].has_more
    rest = client.get(f"/lists/{there.pk}/edit?last_id={first.context['page'].last_id}")
    assert [person.username for person in rest.context["page"].people] == ["member0"]
    assert client.get(f"/lists/{there.pk}/edit?last_id=x").status_code == 400


def test_a_list_is_filled_from_a_search_among_followees(client: Client, reader: User, friend: User) -> None:
    there = make(reader)
    named, gone = UserFactory(username="bob", display_name="Ünal Öz"), UserFactory(username="unalgone")
    UserFactory(username="unalstranger")
    for user in (named, gone):
        actions.follow(follower=reader, followee=user)
    actions.block(blocker=gone, blocked=reader)
    address = f"/lists/{there.pk}/edit"

    def found(q: str) -> list[tuple[str, bool]]:
        context = client.get(address, {"q": q}).context
        return [(one.person.username, one.is_member) for one in context["found"]]

    assert found("unal") == found("@bob") == found("OZ bo") == [("bob", False)]
    assert found("") == found("%") == found("nobody") == []
    assert "Nobody you follow has this name." in client.get(address, {"q": "nobody"}).content.decode()
    back = f"{address}?q=unal"
    assert client.post(f"/lists/{there.pk}/add", {"username": "bob", "next": back})["Location"] == back
    assert found("unal") == [("bob", True)]
    for odd in ("a\0b", "x" * 5000, "' OR 1"):
        assert client.get(address, {"q": odd}).status_code in (200, 400)
    assert client.get(f"{address}?q=a&q=b").status_code == 400
