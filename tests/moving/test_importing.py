import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from community.archives import actions, importing, tasks
from community.archives.models import ArchiveImport, BroughtItem, ImportState
from discover.models import ItemChange
from items import actions as items
from items.models import Item, Visibility
from media.models import MediaFile
from moderation.models import WordRule
from notifications.models import Notification
from relations import actions as relations
from storage import claims, ids
from storage.queue import QUESTIONS
from storage.quiet import has_work
from tests.support.archives import HOST, actor, address, attachment, boost, files_of, note, tarred, zipped
from tests.support.bringing import brought, posts_of
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg, mp4
from tests.support.timelines import read, seen
from tests.support.workers import Workers
from timeline.check import differences
from timeline.models import Delivery

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann", display_name="")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_posts_come_in_at_their_times(user: User, folder: Path, pack: Callable[..., io.BytesIO]) -> None:
    done = brought(user, files_of([note(2, "<p>second</p>"), note(1, "<p>first</p>")]), pack)
    assert (done.state, done.total, done.done, done.brought, done.left_out) == (ImportState.DONE, 2, 2, 2, {})
    first, second = posts_of(user)
    assert (first.text, second.text) == ("first", "second")
    assert first.created_at == first.modified_at == datetime(2020, 1, 1, 0, 1, tzinfo=UTC)
    assert first.pk == ids.compose(first.created_at, 0)
    assert first.extra_info == {"imported": True, "language": "en"}
    assert list(folder.iterdir()) == []


def test_audiences_are_never_wider(user: User) -> None:
    done = brought(
        user, files_of(note(n, audience=name) for n, name in enumerate(["public", "unlisted", "private", "direct"]))
    )
    assert [item.visibility for item in posts_of(user)] == ["public", "followers", "followers"]
    assert done.left_out == {"direct": 1}
    assert done.notes == []


def test_posts_may_be_for_oneself(user: User) -> None:
    brought(user, files_of([note(1), note(2, audience="private")]), is_for_self=True)
    assert {item.visibility for item in posts_of(user)} == {Visibility.SELF}


@committed
def test_no_user_is_told(user: User, workers: Workers) -> None:
    other, follower = UserFactory(username="ben"), seen()
    relations.follow(follower=follower, followee=user)
    Notification.objects.all().delete()
    html = '<p><a href="https://x.example/@ben" class="u-url mention">@<span>ben</span></a> and @ben</p>'
    brought(user, files_of([note(1, html), note(2, inReplyTo=address(1))]))
    assert posts_of(user)[0].text == "@ben@x.example and @ben"
    assert not Notification.objects.exists()
    assert {name for name, _ in workers.queue} <= {"moving.run_import", "timeline.fan_out"}
    assert other.pk


@pytest.mark.slow
@committed
def test_homes_have_the_posts_where_they_were_said(user: User, workers: Workers) -> None:
    """Before and after the fan-out, in a window built earlier."""
    workers.drops_others = True
    reader = seen()
    relations.follow(follower=reader, followee=user)
    now = items.publish(sender=user, content={"text": "now"})
    workers.work()
    assert read(reader) == [now.pk]
    workers.work()
    brought(user, files_of([note(1), note(2), note(3, audience="private")]))
    expected = [now.pk, *reversed([item.pk for item in posts_of(user)[:3]])]
    assert Delivery.objects.count() == 3
    assert read(reader) == expected
    workers.work()
    assert not Delivery.objects.exists()
    assert read(reader) == expected
    assert list(differences([reader.pk])) == []


def test_discover_hears_of_public_posts(user: User, settings: Any) -> None:
    settings.OPENSEARCH_URL = "http://search.example"
    brought(user, files_of([note(1), note(2, audience="private")]))
    assert list(ItemChange.objects.values_list("item_id", flat=True)) == [posts_of(user)[0].pk]


def test_own_threads_stay_and_replies_to_others_stay_behind(user: User) -> None:
    posts = [
        note(1, "<p>root</p>"),
        note(2, "<p>more</p>", inReplyTo=address(1)),
        note(3, "<p>still more</p>", inReplyTo=address(2)),
        note(4, inReplyTo=f"{HOST}/users/zed/statuses/9"),
        note(5, inReplyTo=address(4)),
        note(6, audience="direct"),
        note(7, inReplyTo=address(6)),
    ]
    done = brought(user, files_of(posts))
    root, more, still = posts_of(user)
    assert (more.reply_to_id, more.root_id, still.reply_to_id, still.root_id) == (root.pk, root.pk, more.pk, root.pk)
    assert done.left_out == {"reply": 3, "direct": 1}
    assert [why for _address, why in done.notes] == ["reply"] * 3


def test_quotes_of_own_posts_come_with_them(user: User) -> None:
    posts = [note(1), note(2, quote=address(1)), note(3, quote=f"{HOST}/users/zed/statuses/9")]
    brought(user, files_of(posts))
    first, second, third = posts_of(user)
    assert (first.quote_of_id, second.quote_of_id, third.quote_of_id) == (None, first.pk, None)


def test_a_quote_of_a_post_that_fewer_people_see_comes_without_it(user: User) -> None:
    few = note(1, audience="private")
    done = brought(user, files_of([few, note(2, quote=address(1)), note(3, quote=address(1), audience="private")]))
    first, second, third = posts_of(user)
    assert (second.quote_of_id, third.quote_of_id) == (None, first.pk)
    assert (done.left_out, done.notes) == ({"quote": 1}, [[address(2), "quote"]])


def test_a_reply_to_a_post_that_was_deleted_here_stays_behind(user: User) -> None:
    brought(user, files_of([note(1)]))
    items.delete(item=posts_of(user)[0])
    done = brought(user, files_of([note(1), note(2, inReplyTo=address(1))]))
    assert done.left_out == {"before": 1, "parent": 1}


@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.slow
def test_pictures_come_with_their_words(user: User, pack: Callable[..., io.BytesIO]) -> None:
    media = {f"{n}/original/{n}.jpg": jpeg(60 + n, 50) for n in range(6)} | {"film.mp4": mp4(), "text.jpg": b"words"}
    many = [attachment(f"{n}/original/{n}.jpg", f"picture {n}", focalPoint=[0.5, -0.25]) for n in range(5)]
    posts = [
        note(1, attachment=many),
        note(2, attachment=[attachment("film.mp4"), many[0]]),
        note(3, attachment=[attachment("text.jpg"), attachment("none.jpg")]),
        note(4, "<p></p>", attachment=[attachment("none.jpg")]),
        note(
            5,
            "<p></p>",
            attachment=[attachment("5/original/5.jpg", url=f"{HOST}/system/media_attachments/files/5/original/5.jpg")],
        ),
    ]
    done = brought(user, files_of(posts, media), pack)
    first, second, third, fifth = posts_of(user)
    rows = MediaFile.objects.filter(item_id=first.pk).order_by("position")
    assert [(row.description, row.focus_x, row.focus_y) for row in rows] == [
        (f"picture {n}", 0.5, -0.25) for n in range(4)
    ]
    assert (first.type, second.type, third.type, fifth.type) == ("image", "video", "text", "image")
    assert [len(item.media) for item in (first, second, third, fifth)] == [4, 1, 0, 1]
    assert done.left_out == {"more": 2, "refused": 1, "missing": 2, "text": 1}
    assert (done.brought, done.media) == (4, 6)
    assert MediaFile.objects.filter(use="").count() == 0


def test_warnings_polls_edits_and_texts(user: User) -> None:
    posts = [
        note(1, summary="careful", sensitive=True),
        note(
            2, type="Question", oneOf=[{"type": "Note", "name": "yes"}, {"type": "Note", "name": "no"}], endTime="2020"
        ),
        note(3, updated="2020-02-02T00:00:00Z"),
        note(4, f"<p>{'x' * 5_001}</p>"),
        note(5, "<p> </p>"),
    ]
    done = brought(user, files_of(posts))
    warned, poll, edited = posts_of(user)
    assert warned.content == {"text": "post 1", "warning": "careful", "sensitive": True}
    assert poll.text == "post 2\n\n- yes\n- no"
    assert edited.modified_at == datetime(2020, 2, 2, tzinfo=UTC)
    assert done.left_out == {"text": 2}


def test_a_key_that_cannot_be_read_costs_no_post(user: User) -> None:
    posts = [
        note(1, updated="yesterday"),
        note(2, updated={"a": 1}),
        note(3, published="2020-01-01T00:03:60Z", updated="2020-01-01T00:04:60.5+00:00"),
        note(4, id=None),
        note(5, sensitive="true", summary=7, contentMap=7, type=["Note"]),
        note(6, content=None, contentMap={"en": "<p>by its language</p>"}),
        note(7, type="Article", name="A &amp; title", content="<p>words</p>"),
        note(8, published="never") | {"published": "2020-01-01T00:08:00Z"},
        note(9, updated="2020-01-01T00:09:30Z"),
        note(10, type="Question", content="<p>poll</p>", oneOf=[{"name": "yes"}, {"name": None}, 7], anyOf=None),
        note(11, inReplyTo={"id": address(1), "type": "Note"}),
        note(12, inReplyTo=["https://x.example/1", "https://x.example/2"]),
    ]
    done = brought(user, files_of(posts))
    found = {item.text: item for item in posts_of(user)}
    assert set(found) == {
        *(f"post {number}" for number in (1, 2, 3, 4, 5, 8, 9, 11)),
        "by its language",
        "poll\n\n- yes",
        "A & title\n\nwords",
    }
    assert (done.brought, done.left_out) == (11, {"updated": 2, "id": 1, "reply": 1})
    assert sorted(done.notes) == [
        [address(1), "updated"],
        [address(12), "reply"],
        [address(2), "updated"],
        [f"{address(4)}/activity", "id"],
    ]
    assert all(one.why for one in done.noted)
    assert found["post 3"].created_at == datetime(2020, 1, 1, 0, 4, tzinfo=UTC)
    assert found["post 3"].modified_at == datetime(2020, 1, 1, 0, 5, 0, 500_000, tzinfo=UTC)
    assert found["post 5"].content["sensitive"] is True
    assert found["post 11"].reply_to_id == found["post 1"].pk
    assert found["post 1"].modified_at == found["post 1"].created_at
    again = brought(user, files_of(posts))
    assert (again.brought, again.left_out) == (0, {"before": 11, "reply": 1})


@pytest.mark.slow
def test_media_are_found_however_their_addresses_are_written(user: User) -> None:
    names = ["a b.jpg", "ü.jpg", "c%20d.jpg", "e.jpg", "f.jpg", "g#h.jpg"]
    media = {name: jpeg(60 + place, 50) for place, name in enumerate(names)}
    link = {"type": "Link", "mediaType": "image/jpeg", "href": "/media_attachments/files/f.jpg"}
    gone = {"type": "Link", "href": "https://x.example/other.jpg"}
    posts = [
        note(1, attachment=attachment("a%20b.jpg", "one")),
        note(2, attachment=[attachment("u%CC%88.jpg")]),
        note(3, attachment=[attachment("c%20d.jpg")]),
        note(4, attachment=[attachment("e.jpg?1600000000&x=/y#z")]),
        note(5, attachment=[attachment("", url=[gone, link])]),
        note(6, attachment=[attachment("", url=link)]),
        note(7, attachment={"type": "Image", "href": "/media_attachments/files/g%23h.jpg"}),
    ]
    done = brought(user, files_of(posts, media))
    assert (done.brought, done.media, done.left_out) == (7, 7, {})
    assert MediaFile.objects.get(item_id=posts_of(user)[0].pk).description == "one"


@pytest.mark.slow
def test_no_post_comes_in_twice(user: User) -> None:
    """The same archive again, a later one, repeated posts, and posts deleted here."""
    posts = [note(1), note(2)]
    brought(user, files_of(posts))
    again = brought(user, files_of(posts))
    assert (again.brought, again.left_out) == (0, {"before": 2})
    items.delete(item=posts_of(user)[0])
    later = brought(user, files_of([*posts, note(3), note(3)]))
    assert (later.brought, later.left_out) == (1, {"before": 3})
    assert Item.objects.filter(sender=user).count() == 3
    other = UserFactory()
    assert brought(other, files_of(posts)).brought == 2


@pytest.mark.slow
def test_posts_of_one_second_stand_in_their_order(user: User) -> None:
    posts = [note(n, published="2020-01-01T00:00:00Z") for n in range(50)]
    brought(user, files_of(posts))
    assert [item.text for item in posts_of(user)] == [f"post {n}" for n in range(50)]


def test_posts_that_a_rule_would_hold_stay_behind(user: User, settings: Any) -> None:
    WordRule.objects.create(text="forbidden")
    done = brought(user, files_of([note(1, "<p>forbidden fruit</p>"), note(2)]))
    assert (done.brought, done.left_out) == (1, {"rules": 1})
    assert not Item.objects.exclude(status="published").exists()


def test_boosts_and_other_entries_are_counted(user: User) -> None:
    strange = [
        boost(1),
        {"type": "Like"},
        {"type": "Create", "object": "x"},
        [1],
        "word",
        note(2, type="Event"),
        note(3),
    ]
    done = brought(user, files_of(strange))
    assert done.total == 7
    assert (done.brought, done.left_out) == (1, {"boost": 1, "kind": 2, "unreadable": 3})


@pytest.mark.slow
@pytest.mark.parametrize(
    "published", ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2020-01-01T00:00:00", "0001-01-01T00:00:00+14:00"]
)
def test_times_that_cannot_be(user: User, published: str) -> None:
    done = brought(user, files_of([note(1, published=published)]))
    assert (done.brought, done.left_out) == (0, {"time": 1})


@pytest.mark.slow
def test_the_profile_is_filled_where_it_is_empty(user: User) -> None:
    said = actor(name="Ann Other", summary="<p>Hello <b>you</b></p>")
    files = files_of([], actor_json=said, avatar_jpg=jpeg(60, 60), header_png=jpeg(90, 30))
    brought(user, files)
    user.refresh_from_db()
    assert (user.display_name, user.bio, user.avatar) == ("", "", None)
    done = brought(user, files, takes_profile=True)
    user.refresh_from_db()
    assert (user.display_name, user.bio) == ("Ann Other", "Hello you")
    assert user.avatar
    assert user.banner
    assert done.left_out == {}
    before = user.avatar
    changed = brought(user, files_of([], actor_json=actor(name="Else"), avatar_jpg=b"no picture"), takes_profile=True)
    user.refresh_from_db()
    assert (user.display_name, user.avatar, changed.left_out) == ("Ann Other", before, {})


def test_a_profile_that_this_site_does_not_take(user: User) -> None:
    files = files_of([], actor_json=actor(name="Admin", summary=7), avatar_jpg=b"no picture")
    assert brought(user, files, takes_profile=True).left_out == {"profile": 2}


@pytest.mark.slow
def test_a_long_archive_is_brought_by_several_tasks(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PART", 3)
    monkeypatch.setattr(importing, "PARTS", 2)
    made = actions.begin(user=user, file=zipped(files_of(note(n) for n in range(10))))
    assert not importing.run(made.pk)
    assert ArchiveImport.objects.get().done == 6
    assert not importing.run(made.pk)
    assert importing.run(made.pk)
    assert [item.text for item in posts_of(user)] == [f"post {n}" for n in range(10)]


def test_an_import_that_is_stopped_keeps_what_came(user: User, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PART", 3)
    monkeypatch.setattr(importing, "PARTS", 1)
    made = actions.begin(user=user, file=zipped(files_of(note(n) for n in range(10))))
    importing.run(made.pk)
    assert actions.cancel(user=user, import_id=made.pk)
    assert not actions.cancel(user=user, import_id=made.pk)
    assert not importing.run(made.pk)
    assert len(posts_of(user)) == 3
    tasks.sweep()
    assert list(folder.iterdir()) == []
    assert ArchiveImport.objects.get().state == ImportState.CANCELLED


@pytest.mark.slow
def test_a_worker_that_dies_loses_and_repeats_nothing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between pictures and posts, and while unpacking."""
    monkeypatch.setattr(importing, "PART", 2)
    media = {"a.jpg": jpeg(60, 50)}
    posts = [note(n, attachment=[attachment("a.jpg")] if n in (1, 4) else []) for n in range(6)]
    made = actions.begin(user=user, file=tarred(files_of(posts, media)))
    for place in ("reader.read", "_record_progress", "_import_post", "_record_progress"):
        with monkeypatch.context() as patch:
            patch.setattr(f"community.archives.importing.{place}", died)
            with pytest.raises(KeyboardInterrupt):
                importing.run(made.pk)
        ArchiveImport.objects.update(tried_at=None, attempts=0)
    assert importing.run(made.pk)
    assert [(item.text, len(item.media)) for item in posts_of(user)] == [
        (f"post {n}", int(n in (1, 4))) for n in range(6)
    ]
    assert MediaFile.objects.count() == 2
    assert BroughtItem.objects.count() == 6
    made.refresh_from_db()
    assert (made.brought, made.media, made.left_out) == (6, 2, {})


def died(*_args: object) -> None:
    raise KeyboardInterrupt


def test_two_workers_are_not_at_one_import(user: User, folder: Path) -> None:
    made = actions.begin(user=user, file=zipped(files_of([note(1)])))
    with importing._folder_lock(folder / made.folder):
        assert not importing.run(made.pk)
    assert ArchiveImport.objects.get().attempts == 0
    assert importing.run(made.pk)


def test_an_import_whose_file_is_gone_ends(user: User, folder: Path) -> None:
    made = actions.begin(user=user, file=zipped(files_of([note(1)])))
    (folder / made.folder / "archive").unlink()
    (folder / made.folder).rmdir()
    for _ in range(importing.ATTEMPTS + 1):
        importing.run(made.pk)
        ArchiveImport.objects.update(tried_at=None)
    made.refresh_from_db()
    assert (made.state, made.failure) == (ImportState.FAILED, "gone")


def test_a_user_who_left_ends_their_import(user: User) -> None:
    made = actions.begin(user=user, file=zipped(files_of([note(1)])))
    User.objects.filter(pk=user.pk).update(is_active=False)
    importing.run(made.pk)
    assert posts_of(user) == []


def test_the_sweeper_sends_what_no_worker_is_at_and_removes_files(user: User, folder: Path, workers: Workers) -> None:
    made = actions.begin(user=user, file=zipped(files_of([note(1)])))
    (folder / "upload").mkdir()
    workers.queue.clear()
    assert importing.sweep() == 0
    ArchiveImport.objects.update(created_at=timezone.now() - claims.CLAIM_LIFE)
    assert importing.sweep() == 1
    assert workers.queue == [("moving.run_import", (made.pk, ""))]
    assert {path.name for path in folder.iterdir()} == {made.folder, "upload"}
    importing.ORPHAN_SECONDS = 0
    try:
        importing.sweep()
    finally:
        importing.ORPHAN_SECONDS = 3600
    assert {path.name for path in folder.iterdir()} == {made.folder}
    ArchiveImport.objects.update(finished_at=timezone.now() - claims.KEPT * 2)
    importing.sweep()
    assert not ArchiveImport.objects.exists()


def test_files_whose_row_comes_while_a_sweep_looks_stay(user: User, folder: Path) -> None:
    """A folder exists before its row. The row comes after the sweep's query."""
    made = actions.begin(user=user, file=zipped(files_of([note(1)])))
    row = ArchiveImport.objects.filter(pk=made.pk).values().get()
    made.delete()
    asked: list[str] = []

    def comes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found = execute(sql, params, many, context)
        if not asked and sql.startswith("SELECT") and "finished_at" in sql:
            asked.append(sql)
            ArchiveImport.objects.create(**row)
        return found

    with connection.execute_wrapper(comes):
        importing._delete_old_folders()
    assert asked
    assert [path.name for path in folder.iterdir()] == [made.folder]


def test_beat_sends_the_sweeper_while_it_may_find_something(user: User) -> None:
    question = QUESTIONS["moving.sweep"]
    assert not has_work(question)
    made = actions.begin(user=user, file=zipped(files_of([note(1)])))
    assert has_work(question)
    assert actions.cancel(user=user, import_id=made.pk)
    assert has_work(question), "its files are there"
    ArchiveImport.objects.update(finished_at=timezone.now() - timedelta(minutes=3))
    assert not has_work(question)


def test_one_archive_at_a_time_and_five_a_day(user: User, folder: Path) -> None:
    made = actions.begin(user=user, file=zipped(files_of([])))
    with pytest.raises(actions.ImportRunningError):
        actions.begin(user=user, file=zipped(files_of([])))
    assert [path.name for path in folder.iterdir()] == [made.folder]
    for _ in range(4):
        ArchiveImport.objects.update(finished_at=timezone.now())
        actions.begin(user=user, file=zipped(files_of([])))
    ArchiveImport.objects.update(finished_at=timezone.now())
    with pytest.raises(actions.CapError):
        actions.begin(user=user, file=zipped(files_of([])))


def test_an_account_that_goes_takes_its_imports_along(user: User) -> None:
    brought(user, files_of([note(1)]))
    assert actions.purge(user=user, limit=10) == 2
    assert actions.purge(user=user, limit=10) == 0


def test_the_export_has_the_imports(user: User) -> None:
    from community.archives.export import files

    brought(user, files_of([note(1), boost(2)]))
    ((row,),) = [list(file.rows) for file in files(user)]
    assert (row.state, row.posts, row.left_out) == ("done", 1, {"boost": 1})
    assert json.dumps(row.notes) == "[]"


def test_a_task_begins_no_part_after_its_seconds(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PART", 1)
    made = actions.begin(user=user, file=zipped(files_of(note(n) for n in range(3))))
    with monkeypatch.context() as patch:
        patch.setattr(importing, "SECONDS", -1.0)
        assert not importing.run(made.pk)
    assert ArchiveImport.objects.get().done == 0
    assert importing.run(made.pk)


@committed
def test_an_import_has_one_task_after_another(
    user: User, folder: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a lane that is late the sweep found the released row each time, and each of its tasks went on by itself."""
    monkeypatch.setattr(importing, "PART", 1)
    monkeypatch.setattr(importing, "PARTS", 1)
    workers.queue.clear()
    actions.begin(user=user, file=zipped(files_of(note(n) for n in range(9))), is_for_self=True)
    ArchiveImport.objects.update(created_at=timezone.now() - claims.CLAIM_LIFE)
    for done in range(1, 5):
        for _ in range(3):
            importing.sweep()
        waiting = [args for name, args in workers.queue if name == "moving.run_import"]
        workers.queue.clear()
        assert len(waiting) == 4
        for args in waiting:
            importing.run(*args)
        assert ArchiveImport.objects.get().done == done


@committed
def test_an_archive_rests_when_its_member_has_spent_the_hour(
    user: User, folder: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.RATES = settings.RATES | {"outside_archives": "2/hour"}
    monkeypatch.setattr(importing, "PART", 3)
    monkeypatch.setattr(importing, "PARTS", 1)
    made = actions.begin(user=user, file=zipped(files_of(note(n) for n in range(6))))
    ArchiveImport.objects.update(created_at=timezone.now() - claims.CLAIM_LIFE)
    workers.queue.clear()
    assert not importing.run(made.pk)
    assert not importing.run(made.pk), "it rests"
    importing.sweep()
    assert "moving.run_import" not in dict(workers.queue)
    row = ArchiveImport.objects.get()
    assert row.done == 3
    assert row.tried_at is not None
    assert timedelta(minutes=55) < row.tried_at + claims.CLAIM_LIFE - timezone.now() <= timedelta(hours=1)
    ArchiveImport.objects.update(tried_at=timezone.now() - claims.CLAIM_LIFE - timedelta(seconds=1))
    importing.sweep()
    assert "moving.run_import" in dict(workers.queue)
    assert not importing.run(made.pk)
    assert ArchiveImport.objects.get().done == 6


@pytest.mark.slow
def test_a_task_begins_no_media_after_its_seconds(
    user: User, folder: Path, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One slow picture of many posts held a process of the lane for minutes."""
    monkeypatch.setattr(importing, "SECONDS", 0.2)
    pictures = [attachment("1/a.jpg"), attachment("gone.jpg")]
    posts = [boost(n) if n in (2, 7) else note(n, attachment=pictures) for n in range(10)]
    files = files_of(posts, {"1/a.jpg": jpeg(4000, 3000)})
    made = actions.begin(user=user, file=zipped(files))
    turns, done = 0, 0
    while ArchiveImport.objects.filter(finished_at=None).exists():
        importing.run(made.pk)
        row = ArchiveImport.objects.get()
        assert row.done > done or row.finished_at
        turns, done = turns + 1, row.done
    assert turns > 4
    row = ArchiveImport.objects.get()
    assert (row.state, row.done, row.brought, row.media) == (ImportState.DONE, 10, 8, 8)
    assert row.left_out == {"boost": 2, "missing": 8}
    assert [item.text for item in posts_of(user)] == [f"post {n}" for n in range(10) if n not in (2, 7)]
