import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import pytest

from accounts.models import User
from community.archives import actions, archive, importing, listed
from community.archives.listed import FILES, ArchiveLists
from community.archives.models import NOTES, ArchiveImport, ImportState, ListKind
from items import actions as items
from items.models import Bookmark, Item, Like, Pin
from items.profiles.pins import pin
from notifications.models import Notification
from relations import actions as relations
from relations import csv_files
from relations import importing as csv_importing
from relations.models import Block, Follow, ListMember, Mute
from tests.support.archives import address, collection, files_of, note, tarred, zipped
from tests.support.bringing import brought, posts_of
from tests.support.effort import tries
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

SITE = "https://here.example"


@pytest.fixture(autouse=True)
def _at(settings: Any) -> None:
    settings.SITE_URL = SITE


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann", display_name="")


def named(kind: str, *entries: Any) -> bytes:
    return collection(f"{kind}.json", entries)


def here(item: Item) -> str:
    return f"{SITE}/items/{item.pk}"


# --- Bookmarks and likes ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "model"), [("bookmarks", Bookmark), ("likes", Like)])
def test_likes_and_bookmarks_of_posts_that_are_here(user: User, kind: str, model: Any) -> None:
    """The user's own posts and any that they may see. Others are counted."""
    friend, hater = UserFactory(), UserFactory()
    seen, hidden = (
        items.publish(sender=friend, content={"text": "x"}, visibility=visibility) for visibility in ("public", "self")
    )
    blocked = items.publish(sender=hater, content={"text": "x"})
    relations.block(blocker=hater, blocked=user)
    deleted = items.publish(sender=friend, content={"text": "x"})
    items.delete(item=deleted)
    there = [
        address(2),
        "https://other.example/1",
        here(seen),
        here(hidden),
        here(blocked),
        here(deleted),
        f"{SITE}/items/{2**52}",
        f"{SITE}/items/{10**40}",
        f"{SITE}.evil.example/items/{seen.pk}",
        f"{SITE}/@ann",
        address(1),
        address(1),
        {"id": address(3), "type": "Note"},
        {"no": "address"},
        {"id": 7},
        7,
    ]
    done = brought(user, files_of([note(1), note(2), note(3)], **{f"{kind}_json": named(kind, *there)}))
    first, second, third = posts_of(user)
    kept = model.objects.filter(user=user).order_by("pk").values_list("item_id", flat=True)
    assert list(kept) == [second.pk, seen.pk, first.pk, third.pk]
    progress = done.progress()[ListKind(kind)]
    assert (progress.total, progress.done, progress.brought) == (14, 14, 4)
    assert progress.left_out == {"foreign": 4, "hidden": 4, "unreadable": 2}
    assert done.left_out == {}
    assert sorted(done.notes) == sorted(
        [where, "hidden"] for where in (here(hidden), here(blocked), here(deleted), f"{SITE}/items/{2**52}")
    )


def test_no_user_hears_of_a_like_that_an_archive_brings(user: User) -> None:
    """The likes count. Unliking and liking again does notify."""
    item = items.publish(sender=UserFactory(), content={"text": "x"})
    files = files_of([], likes_json=named("likes", here(item)))
    brought(user, files)
    assert not Notification.objects.exists()
    assert items.unlike(user=user, item=item)
    assert items.like(user=user, item=item)
    assert Notification.objects.count() == 1
    assert brought(user, files).progress()[ListKind.LIKES].left_out == {"already": 1}


def test_addresses_that_others_brought_draw_no_likes(user: User) -> None:
    """Any archive can claim a well-known post as its own."""
    thief = UserFactory()
    brought(thief, files_of([note(1)]))
    done = brought(user, files_of([], likes_json=named("likes", address(1))))
    assert done.progress()[ListKind.LIKES].left_out == {"foreign": 1}
    assert not Like.objects.exists()


def test_a_like_of_a_repost_is_one_of_its_original(user: User) -> None:
    original = items.publish(sender=UserFactory(), content={"text": "x"})
    repost, _ = items.repost(sender=UserFactory(), item=original)
    done = brought(user, files_of([], likes_json=named("likes", here(repost), here(original))))
    assert Like.objects.get().item_id == original.pk
    progress = done.progress()[ListKind.LIKES]
    assert (progress.brought, progress.left_out) == (1, {"already": 1})


# --- Pins ------------------------------------------------------------------------------------------------
def test_pins_stand_in_their_order_up_to_five(user: User) -> None:
    """The file's first comes first. Replies, posts for followers and other people's posts are left out."""
    other = items.publish(sender=UserFactory(), content={"text": "x"})
    posts = [*(note(n) for n in range(1, 8)), note(8, inReplyTo=address(1)), note(9, audience="private")]
    there = [address(8), address(9), here(other), "https://other.example/1"]
    featured = named("featured", *there, note(7)["object"], *(address(n) for n in (1, 6, 2, 5, 3, 4)))
    files = files_of(posts, featured_json=featured)
    done = brought(user, files)
    pinned = [one.item.text for one in Pin.objects.filter(sender=user).select_related("item").order_by("-pk")]
    assert pinned == ["post 7", "post 1", "post 6", "post 2", "post 5"]
    progress = done.progress()[ListKind.PINS]
    assert (progress.total, progress.brought) == (11, 5)
    assert progress.left_out == {"unpinnable": 3, "foreign": 1, "pins": 2}
    assert [address(3), "pins"] in done.notes
    again = brought(user, files).progress()[ListKind.PINS]
    assert (again.brought, again.left_out) == (0, {"already": 5, "unpinnable": 3, "foreign": 1, "pins": 2})
    assert Pin.objects.count() == 5


def test_pins_that_are_here_keep_their_places(user: User) -> None:
    own = [items.publish(sender=user, content={"text": f"own {n}"}) for n in range(4)]
    for item in own:
        pin(item=item)
    done = brought(user, files_of([note(1), note(2)], featured_json=named("featured", address(1), address(2))))
    assert done.progress()[ListKind.PINS].left_out == {"pins": 1}
    newest = Pin.objects.filter(sender=user).latest("pk").item
    assert (newest.text, Pin.objects.count()) == ("post 1", 5)


def test_posts_for_oneself_are_not_pinned(user: User) -> None:
    files = files_of([note(1)], featured_json=named("featured", address(1)), likes_json=named("likes", address(1)))
    done = brought(user, files, is_for_self=True)
    assert done.progress()[ListKind.PINS].left_out == {"unpinnable": 1}
    assert done.progress()[ListKind.LIKES].brought == 1
    assert not Pin.objects.exists()


# --- Lists of people -------------------------------------------------------------------------------------
def people_files() -> dict[str, bytes]:
    follows = "Account address,Show boosts,Notify on new posts,Languages\n"
    follows += "ben@here.example,false,false,\nlea@here.example,true,false,\nfoe@here.example,true,false,\n"
    follows += "zed@other.example,true,false,\nnowhere@here.example,true,false,\nann@here.example,true,false,\n"
    return {
        "following_accounts.csv": follows.encode(),
        "blocked_accounts.csv": b"foe@here.example\nzed@other.example\n",
        "muted_accounts.csv": b"Account address,Hide notifications\nben@here.example,false\n",
        "lists.csv": b"Friends,ben@here.example\nFriends,foe@here.example\nFriends,zed@other.example\n",
    }


@pytest.mark.slow
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_csv_files_of_people_are_read_along(user: User, pack: Callable[..., io.BytesIO]) -> None:
    """Blocks come first and follows before lists, in any order of the archive."""
    for name in ("ben", "foe"):
        UserFactory(username=name)
    UserFactory(username="lea", is_locked=True)
    done = brought(user, files_of([]) | people_files(), pack)
    assert done.state == ImportState.DONE
    found = {kind: (one.brought, one.requested, one.left_out) for kind, one in done.progress().items()}
    assert found == {
        ListKind.BLOCKS: (1, 0, {"elsewhere": 1}),
        ListKind.MUTES: (1, 0, {}),
        ListKind.FOLLOWS: (1, 1, {"blocked": 1, "elsewhere": 1, "self": 1, "unknown": 1}),
        ListKind.LISTS: (1, 0, {"elsewhere": 1, "unfollowed": 1}),
    }
    assert (Block.objects.get().blocked.username, Mute.objects.get().notifications) == ("foe", False)
    assert [(one.followee.username, one.reposts) for one in Follow.objects.filter(follower=user)] == [("ben", False)]
    assert ListMember.objects.get().member.username == "ben"
    assert sorted(done.notes) == [
        ["Friends: foe", "unfollowed"],
        ["ann", "self"],
        ["foe", "blocked"],
        ["nowhere", "unknown"],
    ]
    again = brought(user, files_of([]) | people_files(), pack)
    assert all(one.brought == 0 for one in again.progress().values())


@pytest.mark.slow
def test_one_rule_serves_archives_and_uploaded_lists() -> None:
    for name in ("ben", "foe"):
        UserFactory(username=name)
    UserFactory(username="lea", is_locked=True)
    one, two = UserFactory(username="one"), UserFactory(username="two")
    for kind, name in ((ListKind.BLOCKS, "blocked_accounts.csv"), (ListKind.FOLLOWS, "following_accounts.csv")):
        data = people_files()[name]
        lines = csv_files.read(io.BytesIO(data), csv_files.CsvKind(kind), "here.example")
        row = csv_importing.begin(user=one, kind=csv_files.CsvKind(kind), lines=lines)
        csv_importing.run(row.pk)
        row.refresh_from_db()
        progress = brought(two, files_of([]) | {name: data}).progress()[kind]
        assert (progress.brought, progress.requested) == (row.changed, row.requested)
        assert progress.left_out == Counter(why for _name, why in row.refused)


def test_posts_of_people_whom_the_archive_blocks_are_not_liked(user: User) -> None:
    foe = UserFactory(username="foe")
    item = items.publish(sender=foe, content={"text": "x"})
    files = files_of([], likes_json=named("likes", here(item))) | {"blocked_accounts.csv": b"foe\n"}
    done = brought(user, files)
    assert done.progress()[ListKind.LIKES].left_out == {"hidden": 1}
    assert not Like.objects.exists()


# --- Bounds ----------------------------------------------------------------------------------------------
HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "no list": ("likes.json", lambda: b'{"orderedItems": 7}', "unread"),
    "no JSON": ("likes.json", lambda: b"\xff\xfe", "unread"),
    "nothing": ("bookmarks.json", lambda: b"", "unread"),
    "half": ("bookmarks.json", lambda: b'{"orderedItems": ["a"', "unread"),
    "deep": ("likes.json", lambda: b'{"orderedItems": [' + b"[" * 100_000, "unread"),
    "long": ("featured.json", lambda: b" " * (17 << 20), "long"),
    "long CSV": ("following_accounts.csv", lambda: b"a" * (csv_files.BYTES + 1), "large"),
    "a CSV bomb": ("following_accounts.csv", lambda: b"\n" * (17 << 20), "long"),
    "many rows": ("blocked_accounts.csv", lambda: b"".join(b"x%d\n" % n for n in range(5_001)), "rows"),
    "not UTF-8": ("muted_accounts.csv", lambda: b"\xe9t\xe9\n", "text"),
    "NUL": ("lists.csv", lambda: b"a,b\0\n", "text"),
    "no CSV": ("lists.csv", lambda: b'"a,b\n', "format"),
    "a long cell": ("lists.csv", lambda: b"x" * 200_000, "format"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_list_that_cannot_be_read_is_told_and_holds_up_nothing(user: User, kind: str) -> None:
    name, make, failure = HOSTILE[kind]
    done = brought(user, files_of([note(1)]) | {name: make()})
    assert (done.state, done.brought) == (ImportState.DONE, 1)
    ((which, progress),) = done.progress().items()
    assert (FILES[which], progress.failure, progress.total) == (name, failure, 0)
    assert progress.failure_words.endswith(".")


def test_a_damaged_list_is_told(user: User) -> None:
    """Its checksum is wrong."""
    for name, failure in (("likes.json", "unread"), ("following_accounts.csv", "text")):
        data = bytearray(zipped(files_of([]) | {name: b"{}"}).getvalue())
        for mark, place in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
            data[data.rindex(mark) + place] ^= 0xFF
        made = actions.begin(user=user, file=io.BytesIO(data))
        assert importing.run(made.pk)
        made.refresh_from_db()
        assert [one.failure for one in made.progress().values()] == [failure]


@pytest.mark.parametrize("name", ["following_accounts.csv", "blocked_accounts.csv"])
def test_an_empty_list_is_none(user: User, name: str) -> None:
    assert brought(user, files_of([]) | {name: b"Account address\n"}).lists == {}


def test_so_many_entries_are_read(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "ENTRIES", 3)
    likes = named("likes", *(address(n) for n in (1, 1, 2, 3, 4)))
    progress = brought(user, files_of([note(n) for n in range(5)], likes_json=likes)).progress()[ListKind.LIKES]
    assert (progress.total, progress.brought, progress.left_out) == (2, 2, {"many": 2})


def largest_list(folder: Path, entry: bytes) -> Any:
    path, most = folder / "likes.json", archive.LIST_BYTES - 100
    path.write_bytes(b'{"orderedItems":[' + b",".join([entry] * (most // (len(entry) + 1))) + b"]}")
    (kept,) = ArchiveLists(folder).found().values()
    return kept


@pytest.mark.slow
def test_very_many_entries_take_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest accepted file, read again for each part."""
    monkeypatch.setattr(listed, "ENTRIES", tries(1_000, 100_000))
    monkeypatch.setattr(listed, "COUNTED", tries(5_000, 500_000))
    kept = largest_list(tmp_path, b'""')
    assert kept == {"total": listed.ENTRIES, "left_out": {"many": listed.COUNTED - listed.ENTRIES}}
    assert set(ArchiveLists(tmp_path).entries(ListKind.LIKES)) == {""}


@pytest.mark.slow
def test_very_many_brackets_are_too_long(tmp_path: Path) -> None:
    assert largest_list(tmp_path, b'{"id":{}}') == {"total": 0, "failure": "long"}


def test_words_of_lists_can_be_kept(user: User) -> None:
    """NUL, a lone surrogate, and addresses of a megabyte."""
    ids = ["\0", "x" * 1_000_000, f"{SITE}/items/5", f"{SITE}/items/5\0", "http://[", f"{SITE}/items/\u0665"]
    text = b'{"orderedItems": ["\\ud800", ' + b",".join(json.dumps(one).encode() for one in ids) + b"]}"
    done = brought(user, files_of([], likes_json=text))
    progress = done.progress()[ListKind.LIKES]
    assert (progress.done, progress.brought, sum(progress.left_out.values())) == (7, 0, 7)


@pytest.mark.slow
def test_notes_are_bounded(user: User) -> None:
    rows = "".join(f"absent{n}\n" for n in range(NOTES + 1)).encode()
    done = brought(user, files_of([]) | {"following_accounts.csv": rows})
    assert (len(done.notes), done.progress()[ListKind.FOLLOWS].left_out) == (NOTES, {"unknown": NOTES + 1})


# --- Workers ---------------------------------------------------------------------------------------------
def full_archive() -> dict[str, bytes]:
    likes = named("likes", "https://other.example/1", *(address(n) for n in range(6)))
    files = files_of([note(n) for n in range(6)], likes_json=likes, bookmarks_json=likes)
    files["featured.json"] = named("featured", *(address(n) for n in range(3)))
    names = [f"user{n}\n" for n in range(7)]
    files["following_accounts.csv"] = "".join(names).encode()
    files["blocked_accounts.csv"] = b"user7\nuser8\nuser9\n"
    files["lists.csv"] = "".join(f"Friends,{name}" for name in names).encode()
    return files


@pytest.mark.slow
def test_a_worker_that_dies_anywhere_loses_and_repeats_nothing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each part: before and after its first act, and before and after the part is recorded."""
    for n in range(10):
        UserFactory(username=f"user{n}")
    monkeypatch.setattr(csv_importing, "PART", 3)
    monkeypatch.setattr(listed, "TOGETHER", 2)
    monkeypatch.setattr(importing, "PARTS", 1)
    made = actions.begin(user=user, file=zipped(full_archive()))
    kills(made.pk, "community.archives.importing.ArchiveLists.found")
    assert not importing.run(made.pk)
    while True:
        ArchiveImport.objects.update(tried_at=None, attempts=0)
        kind = importing._next_list(ArchiveImport.objects.get())
        if kind is None:
            break
        kills(made.pk, ACTS.get(kind, "relations.importing._apply_line"))
        kills(made.pk, "community.archives.listed.import_names")
        kills(made.pk, "community.archives.importing._list_part")  # the second time after the part
    kills(made.pk, "community.archives.importing.extras.import_extras")
    assert importing.run(made.pk)
    made.refresh_from_db()
    found = {kind: (one.total, one.done, one.brought, one.left_out) for kind, one in made.progress().items()}
    assert found == {
        ListKind.BLOCKS: (3, 3, 3, {}),
        ListKind.FOLLOWS: (7, 7, 7, {}),
        ListKind.LISTS: (7, 7, 7, {}),
        ListKind.PINS: (3, 3, 3, {}),
        ListKind.LIKES: (7, 7, 6, {"foreign": 1}),
        ListKind.BOOKMARKS: (7, 7, 6, {"foreign": 1}),
    }
    counts = [model.objects.count() for model in (Block, Follow, ListMember, Pin, Like, Bookmark, Item)]
    assert counts == [3, 7, 7, 3, 6, 6, 6]


ACTS = {
    ListKind.PINS: "community.archives.listed.pin",
    ListKind.LIKES: "community.archives.listed.items.like",
    ListKind.BOOKMARKS: "community.archives.listed.items.bookmark",
}


def kills(import_id: int, place: str) -> None:
    """Two workers die at this call: one before it acts, one after."""
    for is_late in (False, True):
        ArchiveImport.objects.update(tried_at=None, attempts=0)
        with dying(place, is_late), pytest.raises(KeyboardInterrupt):
            importing.run(import_id)
    ArchiveImport.objects.update(tried_at=None, attempts=0)


@contextmanager
def dying(place: str, is_late: bool) -> Iterator[None]:
    """The first call fails, before it acts or after."""
    module, _, name = place.rpartition(".")
    owner = resolve_name(module)
    real = getattr(owner, name)

    def call(*args: Any, **named: Any) -> None:
        if is_late:
            real(*args, **named)
        raise KeyboardInterrupt

    with patch.object(owner, name, call):
        yield
