import csv
import io
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import Client

from accounts.models import User
from notifications.models import Notification
from relations import actions, csv_files, csv_views, importing, tags
from relations import lists as own_lists
from relations.csv_files import CsvError, CsvKind, CsvLine, read
from relations.models import Block, CsvImport, Follow, FollowRequest, List, ListMember, Mute
from relations.tags import follow_tag, followed_tags_page, unfollow_tag
from storage import claims
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db
PAGE = "/settings/import-export"
HOST = "testserver"


@pytest.fixture
def client(reader: User) -> Client:
    return logged_in(reader)


def lines(text: str, kind: CsvKind = CsvKind.FOLLOWS) -> list[CsvLine]:
    return read(io.BytesIO(text.encode()), kind, HOST)


def done(user: User, kind: CsvKind, text: str) -> CsvImport:
    made = importing.begin(user=user, kind=kind, lines=lines(text, kind))
    importing.run(made.pk)
    return CsvImport.objects.get(pk=made.pk)


def upload(client: Client, data: bytes, kind: str = "follows") -> Any:
    return client.post(PAGE, {"kind": kind, "file": SimpleUploadedFile("x.csv", data)})


# --- Reading ---------------------------------------------------------------------------------------------
def test_the_columns_of_mastodon() -> None:
    text = (
        "Account address,Show boosts,Notify on new posts,Languages\r\nann@TestServer,false,true,en\r\n@bob,true,,\r\n"
    )
    assert lines(text) == [CsvLine("ann", True, False, bell=True), CsvLine("bob", True, True)]
    text = "Account address,Hide notifications\nann,false\nbob\n"
    assert lines(text, CsvKind.MUTES) == [CsvLine("ann", True, False), CsvLine("bob", True, True)]
    assert lines("ann\nANN\n\n  \nbob@elsewhere.example\n", CsvKind.BLOCKS) == [
        CsvLine("ann", True, True),
        CsvLine("bob@elsewhere.example", False, True),
    ]
    assert lines("﻿'-ann\n") == [CsvLine("-ann", True, True)]


HEADER = "Account address,Show boosts,Notify on new posts,Languages\n"
TWO = [CsvLine("tomas", True, True), CsvLine("mira", True, False)]
WRITTEN = {
    "by semicolons": "Account address;Show boosts;Notify on new posts;Languages\n"
    "tomas@localhost:8531;true;;\nmira@localhost:8531;false;;en\n",
    "by tabs": "Account address\tShow boosts\ntomas@localhost:8531\ttrue\nmira@localhost:8531\tfalse\n",
    "as Excel says": "sep=;\r\nAccount address;Show boosts\r\ntomas;1\r\nmira;0\r\n",
    "in another order": "Show boosts,Account address\ntrue,tomas@localhost:8531\nfalse,mira@localhost:8531\n",
    "with numbers": "Account address,Show boosts\ntomas@localhost:8531,1\nmira@localhost:8531,0\n",
    "in German": "Account address;Show boosts\ntomas;WAHR\nmira;FALSCH\n",
    "without a header": "tomas;true\nmira;false\n",
    "quoted": '"Account address";"Show boosts"\n"tomas";"true"\n"mira";"no"\n',
    "with blank rows": ";;\n\n;;\nAccount address;Show boosts\ntomas;true\nmira;false\n",
    "with lines of old Macs": "Account address;Show boosts\rtomas;true\rmira;false\r",
    "a blank first cell": "Languages,Account address,Show boosts\n,tomas,\n,mira,False\n",
}


@pytest.mark.parametrize(
    "text",
    [
        "Followed hashtag\n#Tea\n茶\n#12\n",
        "tea\n#TEA\n\n#茶\n#12",
        "Followed hashtag;Since\n#tea;1\n茶;2\n#12;3\n",
    ],
)
def test_a_file_of_hashtags(text: str) -> None:
    assert lines(text, CsvKind.TAGS) == [
        CsvLine("tea", True, True),
        CsvLine("茶", True, True),
        CsvLine("#12", False, True),
    ]


def test_followed_hashtags_go_out_and_come_in(client: Client, reader: User) -> None:
    for tag in ("tea", "茶", "followed_hashtag"):
        follow_tag(user=reader, tag=tag)
    answer = client.get("/settings/export/hashtags.csv")
    text = b"".join(answer).decode()
    assert text.split() == ["Followed", "hashtag", "#tea", "#茶", "#followed_hashtag"]
    for tag in ("tea", "茶"):
        unfollow_tag(user=reader, tag=tag)
    made = done(reader, CsvKind.TAGS, text + "#12\n")
    assert (made.total, made.done, made.changed, made.refused) == (4, 4, 2, [["#12", "no_hashtag"]])
    assert {tag.name for tag in followed_tags_page(reader).tags} == {"tea", "茶", "followed_hashtag"}


def test_hashtags_beyond_the_cap_are_told(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "TAGS", 2)
    made = done(reader, CsvKind.TAGS, "#a\n#b\n#c\n#a\n")
    assert (made.changed, made.refused) == (2, [["c", "hashtags"]])
    (refusal,) = made.reasons
    assert str(refusal.why) == "you reached the limit of followed hashtags"


@pytest.mark.parametrize("how", WRITTEN)
def test_files_as_programs_write_them(how: str) -> None:
    assert read(io.BytesIO(WRITTEN[how].encode()), CsvKind.FOLLOWS, "localhost") == TWO


def test_a_separator_in_a_title_separates_nothing() -> None:
    assert lines("a;b;c,ann\n", CsvKind.LISTS) == [CsvLine("ann", True, True, "a;b;c")]
    assert lines("List name;Account address\na,b;ann\n", CsvKind.LISTS) == [CsvLine("ann", True, True, "a,b")]


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (HEADER + "ann,true,false,\n", CsvKind.BLOCKS, "follows"),
        (HEADER + "ann,true,false,\n", CsvKind.MUTES, "follows"),
        (HEADER.replace(",", ";") + "ann;true;false;\n", CsvKind.BLOCKS, "follows"),
        ("Languages,Account address\n,ann\n", CsvKind.LISTS, "follows"),
        ("Account address,Hide notifications\nann,true\n", CsvKind.BLOCKS, "mutes"),
        ("Hide notifications,Account address\ntrue,ann\n", CsvKind.FOLLOWS, "mutes"),
        ("List name,Account address\nclose,ann\n", CsvKind.BLOCKS, "lists"),
        ("Account address,List name\nann,close\n", CsvKind.FOLLOWS, "lists"),
        ("Account address\nann\n", CsvKind.LISTS, "columns"),
        ("List name\nclose\n", CsvKind.LISTS, "columns"),
        ("Followed hashtag\n#tea\n", CsvKind.FOLLOWS, "hashtags"),
        (HEADER + "ann,true,false,\n", CsvKind.TAGS, "follows"),
        ("ann@x.example\n12\n", CsvKind.TAGS, "no_hashtags"),
        ("Account address\nann\n", CsvKind.TAGS, "columns"),
        ("Show boosts,Languages\ntrue,en\n", CsvKind.FOLLOWS, "columns"),
        ("#domain,#severity\nbad.example,suspend\n", CsvKind.BLOCKS, "names"),
        ("bad.example\nworse.example\n", CsvKind.BLOCKS, "names"),
        ("https://x.example/@ann/1\nhttps://x.example/users/ann/statuses/2\n", CsvKind.FOLLOWS, "names"),
        ("ann|true\nbob|false\n", CsvKind.FOLLOWS, "names"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_its_name(client: Client, text: str, kind: CsvKind, why: str) -> None:
    UserFactory(username="ann")
    with pytest.raises(CsvError) as refused:
        lines(text, kind)
    assert refused.value.why == why
    answer = upload(client, text.encode(), kind)
    assert (answer.status_code, CsvImport.objects.count()) == (422, 0)
    assert str(refused.value) in answer.content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"Account address\n",
        b"\xff\xfea\x00n\x00",
        b"ann\x00\n",
        b"\xe9t\xe9\n",
        b'"ann\n',
        b'"ann"x"\n',
        b"x" * 200_000,
        b"a" * (csv_files.BYTES + 1),
        "".join(f"name{number}\n" for number in range(csv_files.ROWS + 1)).encode(),
    ],
)
def test_hostile_files_are_refused_with_a_sentence(client: Client, data: bytes) -> None:
    with pytest.raises(CsvError, match=r"\.$"):
        read(io.BytesIO(data), CsvKind.FOLLOWS, HOST)
    answer = upload(client, data)
    assert (answer.status_code, CsvImport.objects.count()) == (422, 0)


@pytest.mark.slow
def test_odd_forms_are_refused(client: Client) -> None:
    assert upload(client, b"ann\n", "likes").status_code == 422
    assert client.post(PAGE, {"kind": "follows"}).status_code == 422
    assert client.post(PAGE, {"kind": "follows", "file": "text"}).status_code == 422
    assert Client().post(PAGE).headers["Location"].startswith("/login")
    assert client.get("/settings/export/likes.csv").status_code == 404


# --- Importing -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_every_line_has_its_outcome(reader: User, settings: LazySettings) -> None:
    settings.FOLLOW_CAP = 3
    for name in ("ann", "bob", "full", "old"):
        UserFactory(username=name)
    actions.follow(follower=reader, followee=User.objects.get(username="old"))
    UserFactory(username="lea", is_locked=True)
    actions.block(blocker=reader, blocked=UserFactory(username="foe"))
    actions.block(blocker=UserFactory(username="hater"), blocked=reader)
    UserFactory(username="gone", is_active=False)
    text = "old\nann\nbob,false\nlea\nfoe\nhater\ngone\nnobody\nx@else.example\n<b>\nreader\nfull\n"
    found = done(reader, CsvKind.FOLLOWS, text)
    assert (found.done, found.total, found.changed, found.requested) == (12, 12, 2, 1)
    assert dict(found.refused) == {
        "foe": "blocked",
        "hater": "unknown",
        "gone": "unknown",
        "nobody": "unknown",
        "x@else.example": "elsewhere",
        "<b>": "unknown",
        "reader": "self",
        "full": "cap",
    }
    assert found.finished_at
    assert found.lines == []
    follows = dict(Follow.objects.filter(follower=reader).values_list("followee__username", "reposts"))
    assert follows == {"old": True, "ann": True, "bob": False}
    assert FollowRequest.objects.get().followee.username == "lea"


def test_blocks_and_mutes(reader: User) -> None:
    UserFactory(username="ann")
    assert done(reader, CsvKind.BLOCKS, "ann\n").changed == 1
    assert done(reader, CsvKind.MUTES, "Account address,Hide notifications\nann,false\n").changed == 1
    assert (Block.objects.count(), Mute.objects.get().notifications) == (1, False)
    again = done(reader, CsvKind.MUTES, "ann,false\n")
    assert (again.changed, again.refused) == (0, [])


@pytest.mark.slow
def test_lists(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ann", "bob", "far"):
        UserFactory(username=name)
    for name in ("ann", "bob"):
        actions.follow(follower=reader, followee=User.objects.get(username=name))
    known = own_lists.create(owner=reader, title="Close")
    own_lists.create(owner=reader, title="Close")
    text = f"Close,ann@{HOST}\nClose,ann\n'=Sum,bob\nFar,far\nFar,nobody\n{'x' * 101},ann\n"
    found = done(reader, CsvKind.LISTS, text)
    assert (found.total, found.changed, found.requested) == (5, 2, 0)
    assert found.refused == [["ann", "title", "x" * 101], ["far", "unfollowed", "Far"], ["nobody", "unknown", "Far"]]
    members = ListMember.objects.order_by("pk").values_list("list__title", "member__username")
    assert list(members) == [("Close", "ann"), ("=Sum", "bob")]
    assert ListMember.objects.earliest("pk").list_id == known.pk
    assert List.objects.count() == 3, "no list is made for members who are refused"
    monkeypatch.setattr(own_lists, "LISTS", 3)
    monkeypatch.setattr(own_lists, "MEMBERS", 1)
    full = done(reader, CsvKind.LISTS, "List name,Account address\nNew,ann\nClose,bob\n")
    assert full.refused == [["ann", "lists", "New"], ["bob", "members", "Close"]]


def test_rows_of_the_version_before_are_read(reader: User) -> None:
    """The previous version knew no lists."""
    UserFactory(username="ann")
    made = importing.begin(user=reader, kind=CsvKind.BLOCKS, lines=lines("ann\nnobody\n"))
    CsvImport.objects.update(lines=[line[:3] for line in CsvImport.objects.get().lines])
    assert importing.run(made.pk)
    row = CsvImport.objects.get()
    row.refused = [one[:2] for one in row.refused]
    assert [(one.name, one.title) for one in row.reasons] == [("nobody", "")]


@pytest.mark.slow
def test_all_that_was_not_done_is_a_file(client: Client, reader: User) -> None:
    names = "\n".join(f"x{number},=nobody{number}" for number in range(csv_views.REFUSED_SHOWN + 1))
    found = done(reader, CsvKind.LISTS, f"{names}\nx,nobody")
    page = client.get(PAGE).content.decode()
    assert page.count("user not found") == csv_views.REFUSED_SHOWN
    address = f"/settings/import/{found.pk}/not-done.csv"
    assert address in page
    written = b"".join(client.get(address).streaming_content)  # type: ignore[attr-defined]
    assert written.splitlines()[100] == b"x100,'=nobody100,user not found"
    assert len(read(io.BytesIO(written), CsvKind.LISTS, HOST)) == csv_views.REFUSED_SHOWN + 2
    other = logged_in(UserFactory())
    for number in (found.pk, 0, 10**18, 10**30):
        assert other.get(f"/settings/import/{number}/not-done.csv").status_code == 404


@pytest.mark.slow
def test_a_killed_worker_leaves_whole_parts(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PART", 2)
    names = [UserFactory(username=f"user{number}").username for number in range(7)]
    made = importing.begin(user=reader, kind=CsvKind.FOLLOWS, lines=lines("\n".join(names)))
    act = importing._apply_line
    calls = 0

    def killed(*args: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return act(*args)

    with patch.object(importing, "_apply_line", killed), pytest.raises(KeyboardInterrupt):
        importing.run(made.pk)
    row = CsvImport.objects.get()
    assert (row.done, row.changed, Follow.objects.count()) == (2, 2, 2)
    assert importing.run(made.pk) is False, "a living worker may be at it"
    CsvImport.objects.update(tried_at=Now() - claims.CLAIM_LIFE * 2, created_at=Now() - claims.CLAIM_LIFE)
    assert importing.sweep() == 1
    assert importing.run(made.pk) is True
    assert importing.run(made.pk) is False
    row = CsvImport.objects.get()
    assert (row.done, row.changed, Follow.objects.count()) == (7, 7, 7)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_imports_of_the_same_people_do_not_deadlock() -> None:
    """Both notify the same people in opposite order."""
    names = [UserFactory(username=f"user{number}").username for number in range(importing.PART)]
    done(UserFactory(), CsvKind.FOLLOWS, "\n".join(names))
    for _ in range(3):
        Notification.objects.update(position=1)  # each act moves its notification and locks it
        made = [
            importing.begin(user=UserFactory(), kind=CsvKind.FOLLOWS, lines=lines("\n".join(order)))
            for order in (names, names[::-1])
        ]
        assert at_once(*(partial(importing.run, one.pk) for one in made)) == [True, True]


@pytest.mark.slow
def test_a_long_list_takes_turns(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PART", 1)
    monkeypatch.setattr(importing, "PARTS", 2)
    text = "\n".join(UserFactory(username=f"user{number}").username for number in range(5))
    made = importing.begin(user=reader, kind=CsvKind.BLOCKS, lines=lines(text))
    assert [importing.run(made.pk) for _ in range(3)] == [False, False, True]
    assert Block.objects.count() == 5


@pytest.mark.slow
def test_one_import_at_a_time_and_the_page_tells_of_it(client: Client, reader: User) -> None:
    UserFactory(username="ann")
    assert upload(client, b"ann\n=cmd|' /C calc'!A0\n<script>\n").status_code == 302
    answer = upload(client, b"ann\n")
    assert (answer.status_code, CsvImport.objects.count()) == (422, 1)
    assert "0 of 3 rows read" in client.get(PAGE).content.decode()
    part = client.get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" in part
    importing.run(CsvImport.objects.get().pk)
    page = client.get(PAGE).content.decode()
    assert "<p>3 of 3 rows read: 1 added, 2 failed.</p>" in page
    assert "&lt;script&gt;" in page
    assert "every 2s" not in page
    assert upload(client, b"ann\n").status_code == 302


def test_an_import_that_fails_again_and_again_ends(reader: User) -> None:
    made = importing.begin(user=reader, kind=CsvKind.BLOCKS, lines=lines("ann\n"))
    CsvImport.objects.update(attempts=importing.ATTEMPTS)
    assert importing.run(made.pk) is False
    assert CsvImport.objects.get().finished_at


def test_a_user_keeps_so_many_reports(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "REPORTS", 2)
    for _ in range(4):
        last = done(reader, CsvKind.BLOCKS, "ann\n")
    assert list(CsvImport.objects.order_by("pk").values_list("pk", flat=True)) == [last.pk - 1, last.pk]


def test_old_reports_are_forgotten(reader: User) -> None:
    done(reader, CsvKind.BLOCKS, "ann\n")
    CsvImport.objects.update(finished_at=Now() - claims.KEPT * 2)
    importing.sweep()
    assert not CsvImport.objects.exists()


# --- Exporting -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_export_is_read_again(client: Client, reader: User) -> None:
    people = [UserFactory(username=name) for name in ("ann", "-bob", "lea")]
    for one in people:
        actions.follow(follower=reader, followee=one, reposts=one.username != "ann")
        actions.mute(muter=reader, muted=one, notifications=one.username == "ann")
        own_lists.add_by_title(owner=reader, title="@home" if one.username == "ann" else "Friends, old", member=one)
        actions.block(blocker=reader, blocked=one)
    follow_tag(user=reader, tag="tea")
    files = {}
    for kind in CsvKind:
        answer = client.get(f"/settings/export/{kind}.csv")
        data = files[kind] = b"".join(answer)  # type: ignore[call-overload]
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{kind}.csv"'
        assert answer.headers["Cache-Control"] == "no-store"
        cells = [cell for row in csv.reader(io.StringIO(data.decode())) for cell in row]
        assert not [cell for cell in cells if cell.startswith(csv_files.FORMULAS)]
        found = {line.name: line.flag for line in read(io.BytesIO(data), kind, HOST)}
        expected = {
            CsvKind.FOLLOWS: {"ann": False, "-bob": True, "lea": True},
            CsvKind.MUTES: {"ann": True, "-bob": False, "lea": False},
            CsvKind.BLOCKS: {"ann": True, "-bob": True, "lea": True},
            CsvKind.LISTS: {"ann": True, "-bob": True, "lea": True},
            CsvKind.TAGS: {"tea": True},
        }
        assert found == expected[kind]
    titles = [line.title for line in read(io.BytesIO(files[CsvKind.LISTS]), CsvKind.LISTS, HOST)]
    assert titles == ["@home", "Friends, old", "Friends, old"]
