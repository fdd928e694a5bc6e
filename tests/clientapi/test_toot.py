"""The unmodified toot program against a running site."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounts.models import User
from items import actions as items
from items.models import Item, Like
from relations import actions as relations
from relations.models import Follow
from tests.support.clients import ClientSite
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

TOOT = Path(sys.executable).parent / "toot"


class Toot:
    def __init__(self, folder: Path) -> None:
        home = {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "TOOT_VERSION_CHECK": "0",
            "PATH": os.environ["PATH"],
        }
        self.environ = home | {"LANG": "C.UTF-8", "COLUMNS": "200"}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [str(TOOT), "--no-color", *words],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environ,
        )

    def log_in(self, site: ClientSite, user: User) -> None:
        program = self.start("login", "--instance", site.address)
        assert program.stdin is not None
        assert program.stdout is not None
        said, address = "", None
        while address is None:
            line = program.stdout.readline()
            assert line, said
            said += line
            address = re.search(r"http://\S+/oauth/authorize\S*", line)
        said, _ = program.communicate(f"n\n{site.let_in(address[0], user)}\n", timeout=60)
        assert "Successfully logged in" in said, said

    def say(self, *words: str, given: str = "") -> str:
        program = self.start(*words)
        said, _ = program.communicate(given, timeout=60)
        assert program.returncode == 0, (words, said)
        return said


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ClientSite]:
    site = ClientSite(tmp_path)
    site.start()
    yield site
    site.end()


def test_the_first_day(site: ClientSite, tmp_path: Path) -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob", display_name="Bob B.")
    toot = Toot(tmp_path)
    toot.log_in(site, ann)
    assert "@ann" in toot.say("whoami")
    assert "feedsite" in toot.say("instance")
    assert "Bob B." in toot.say("whois", "bob")

    toot.say("follow", "bob")
    assert Follow.objects.filter(follower=ann, followee=bob).exists()
    assert "@bob" in toot.say("following", "ann")
    said = [items.publish(sender=bob, content={"text": f"number{one}"}).pk for one in range(1, 26)]
    home = toot.say("timeline", "--once", "--count", "10")
    assert ("number25" in home, "number16" in home, "number15" in home) == (True, True, False)

    toot.say("post", "from a program", "--visibility", "private", "--spoiler-text", "careful", "--sensitive")
    mine = Item.objects.filter(sender=ann).latest("pk")
    assert (mine.text, mine.visibility, mine.content["warning"]) == ("from a program", "followers", "careful")
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(jpeg(200, 100))
    toot.say("post", "a picture", "--media", str(picture), "--description", "a square")
    pictured = Item.objects.filter(sender=ann).latest("pk")
    assert [entry["description"] for entry in pictured.media] == ["a square"]
    toot.say("post", "an answer", "--reply-to", str(said[0]))
    assert "an answer" in toot.say("thread", str(said[0]))

    toot.say("favourite", str(said[1]))
    assert Like.objects.filter(user=ann, item=said[1]).exists()
    toot.say("unfavourite", str(said[1]))
    assert not Like.objects.filter(user=ann).exists()
    toot.say("bookmark", str(said[2]))
    assert "number3" in toot.say("bookmarks", "--once")
    toot.say("reblog", str(said[3]))
    assert "ann" in toot.say("reblogged-by", str(said[3]))
    toot.say("unreblog", str(said[3]))
    toot.say("delete", str(pictured.pk))
    assert Item.objects.get(pk=pictured.pk).status == "deleted"

    toot.say("lists", "create", "Friends")
    toot.say("lists", "add", "Friends", "bob")
    assert "@bob" in toot.say("lists", "accounts", "Friends")
    toot.say("lists", "delete", "Friends")
    toot.say("mute", "bob")
    assert "@bob" in toot.say("muted")
    toot.say("unmute", "bob")
    toot.say("block", "bob")
    assert "@bob" in toot.say("blocked")
    toot.say("unblock", "bob")

    relations.follow(follower=bob, followee=ann)
    items.publish(sender=bob, content={"text": "hello @ann"})
    told = toot.say("notifications")
    assert "hello @ann" in told
    assert "Bob B." in toot.say("search", "bob")
    toot.say("update-account", "--display-name", "Ann from a program", "--note", "words")
    assert User.objects.get(pk=ann.pk).display_name == "Ann from a program"
    toot.say("logout", f"ann@{site.address.removeprefix('http://')}")
