from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from items import actions
from items.completing import completions
from relations import actions as relations
from tests.support.factories import UserFactory, say
from tests.support.servers import Valkey, dead, frozen, full
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def texts(typed: str, reader: User) -> list[str]:
    return [one.text for one in completions(typed, reader)]


def test_names(reader: Any) -> None:
    followed, other, hidden, gone = (
        UserFactory.create(username=name) for name in ("marlene", "Marcus", "margit", "marvin")
    )
    shown = UserFactory.create(username="zz9", display_name="Mary Z")
    relations.follow(follower=reader, followee=followed)
    relations.block(blocker=hidden, blocked=reader)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert texts("@mar", reader) == ["@marlene", f"@{other.username}", f"@{shown.username}"]
    assert texts("\uff20MARC", reader) == ["@Marcus"]
    assert texts("@marcos", reader) == [], "a similar name does not begin so"


def test_hashtags(reader: Any) -> None:
    for number in range(3):
        say(UserFactory.create(), f"{number} #tram")
    say(reader, "#travel")
    say(reader, "#train", visibility="followers")
    say(reader, "#trick", reply_to=say(reader, "root", visibility="self"))
    actions.delete(item=say(reader, "#tree"))
    say(reader, "#other")
    assert texts("#tr", reader) == ["#tram", "#travel"]
    assert texts("\uff03TRAV", reader) == ["#travel"]
    assert texts("#travel", reader) == ["#travel"]


def test_hashtags_of_any_script(reader: Any) -> None:
    say(reader, "#小事 #小提琴 #大事")
    assert texts("#小", reader) == ["#小事", "#小提琴"]


@pytest.mark.slow
def test_many_hashtags(reader: Any) -> None:
    for number in range(40):
        say(reader, f"#tag{number:02}")
    assert texts("#tag", reader) == [f"#tag{number:02}" for number in range(6)]


def test_one_sender_crowds_no_hashtag_out(reader: Any) -> None:
    for _ in range(2):
        say(UserFactory.create(), "#tram and #tra")
    say(reader, " ".join(f"#tr0{number:02}" for number in range(30)))
    for number in range(3):
        say(reader, f"{number} #tr029")
    assert texts("#tr", reader)[:2] == ["#tra", "#tram"]
    assert texts("#tra", reader) == ["#tra", "#tram"]
    assert len(texts("#tr0", reader)) == 6


@pytest.mark.slow
@pytest.mark.parametrize("fault", [frozen, dead, full])
def test_without_the_cache_nothing_is_counted_with_each_letter(reader: Any, feeds_server: Valkey, fault: Any) -> None:
    for _ in range(2):
        say(UserFactory.create(), "#tram")
    with fault(feeds_server), statements() as asked:
        assert texts("#tr", reader) == ["#tram"]
    assert ["WITH RECURSIVE walk" in statement for statement in asked] == [True]


LONG = [f"#{'x' * 101}", f"@{'x' * 31}"]


@pytest.mark.parametrize("typed", ["", "@", "#", "#!", "@!", "@@", "##", "word", "#%", "@_", "#_", "@%", "#7", *LONG])
def test_any_other_text_has_no_completion(client: Client, reader: Any, typed: str) -> None:
    client.force_login(reader)
    response = client.get("/complete", {"q": typed}, headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "<li" not in response.content.decode()


def test_hostile_queries(client: Client, reader: Any) -> None:
    assert client.get("/complete?q=@r")["Location"].startswith("/login")
    client.force_login(reader)
    for query in ("q=%00", "q=@a&q=@b"):
        assert client.get(f"/complete?{query}").status_code == 400
    assert client.get("/complete").status_code == 200
    shown = client.get("/complete?q=@READ").content.decode()
    assert 'data-text="@reader"' in shown


@pytest.mark.slow
def test_names_of_nobody_are_no_links(client: Client, reader: Any, django_assert_max_num_queries: Any) -> None:
    hidden = UserFactory.create(username="hidden")
    relations.block(blocker=hidden, blocked=reader)
    say(reader, "@reader and @nobody and @hidden")
    say(reader, "@READER and @nobody2")
    client.force_login(reader)
    with django_assert_max_num_queries(20):
        page = client.get("/@reader").content.decode()
    assert '<a href="/@reader">@reader</a> and @nobody and @hidden' in page
    assert '<a href="/@READER">@READER</a> and @nobody2' in page
    client.logout()
    assert 'and <a href="/@hidden">@hidden</a>' in client.get("/@reader").content.decode()
