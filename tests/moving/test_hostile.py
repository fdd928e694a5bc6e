"""Archives that are no archives, or meant to do harm: a reason each, bounded in time, memory and disk."""

import gzip
import io
import json
import os
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from community.archives import actions, archive, importing, outbox
from community.archives.archive import ArchiveError, unpack
from community.archives.models import ArchiveImport, State
from items.models import Item
from tests.support.archives import collection, files_of, note, tarred, zipped
from tests.support.effort import tries
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

GOOD = collection("outbox.json", [note(1)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any, media_folder: Path) -> Path:
    settings.IMPORTS_DIR = tmp_path / "imports"
    settings.ARCHIVE_BYTES = 4 << 20
    return tmp_path / "imports"


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "JSON_BYTES", 8 << 20)


def ended(user: User, data: bytes) -> ArchiveImport:
    made = actions.begin(user=user, file=io.BytesIO(data))
    for _ in range(200):
        if importing.run(made.pk):
            break
        ArchiveImport.objects.update(tried_at=None)
    made.refresh_from_db()
    assert made.finished_at
    return made


def packed(*members: tuple[str, bytes, dict[str, Any]]) -> bytes:
    """A tar.gz of members with any facts."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, data, facts in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for fact, value in facts.items():
                setattr(info, fact, value)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def linked(name: str, target: str) -> bytes:
    """A zip with a symbolic link."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as pack:
        info = zipfile.ZipInfo(name)
        info.external_attr = 0o120777 << 16
        pack.writestr(info, target)
    return file.getvalue()


def encrypted() -> bytes:
    data = bytearray(zipped({"outbox.json": GOOD}).getvalue())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    return bytes(data)


def wrong_crc() -> bytes:
    data = bytearray(zipped({"outbox.json": GOOD}).getvalue())
    for mark, place in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        data[data.index(mark) + place] ^= 0xFF
    return bytes(data)


def endless_directory() -> bytes:
    data = bytearray(zipped({"outbox.json": GOOD}).getvalue())
    struct.pack_into("<L", data, data.rindex(b"PK\x05\x06") + 12, 1 << 31)
    return bytes(data)


def many(count: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as pack:
        for number in range(count):
            pack.writestr(f"{number}{'x' * 200}", b"")
    return file.getvalue()


def boxed(text: bytes) -> bytes:
    return zipped({"outbox.json": text}).getvalue()


SHORT: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "format"),
    "words": (lambda: b"words" * 100, "format"),
    "a picture": (lambda: b"\xff\xd8\xff" * 300, "format"),
    "PK alone": (lambda: b"PK\x03\x04", "damaged"),
    "half a zip": (lambda: boxed(GOOD)[:-40], "damaged"),
    "half a tar.gz": (lambda: tarred({"outbox.json": GOOD}).getvalue()[:-30], "damaged"),
    "gzip of words": (lambda: gzip.compress(b"words" * 1000), "damaged"),
    "empty zip": (lambda: zipped({}).getvalue(), "outbox"),
    "encrypted": (encrypted, "outbox"),
    "wrong checksum": (wrong_crc, "damaged"),
    "a directory of 2 GB": (endless_directory, "large"),
    "20 MB of names": (lambda: many(70_000), "large"),
    "link": (lambda: linked("outbox.json", "/etc/passwd"), "outbox"),
    "up": (lambda: zipped({"../outbox.json": GOOD, "a/../outbox.json": GOOD}).getvalue(), "outbox"),
    "absolute": (lambda: zipped({"/etc/outbox.json": GOOD}).getvalue(), "outbox"),
    "tar with a link": (
        lambda: packed(("outbox.json", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})),
        "outbox",
    ),
    "tar with a hard link": (
        lambda: packed(("outbox.json", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})),
        "outbox",
    ),
    "tar with a device": (lambda: packed(("outbox.json", b"", {"type": tarfile.CHRTYPE})), "outbox"),
    "tar that goes up": (lambda: packed(("../../outbox.json", GOOD, {})), "outbox"),
    "a long name in a tar": (lambda: packed(("x" * 100_000, b"", {}), ("outbox.json", GOOD, {})), "large"),
    "a long header in a tar": (lambda: packed(("a", b"", {"pax_headers": {"comment": "x" * 100_000}})), "large"),
    "zip bomb": (lambda: boxed(b" " * (9 << 20)), "large"),
    "tar bomb": (lambda: packed(("a", b"\0" * (100 << 20), {})), "large"),
    "many media that are one": (
        lambda: zipped({f"media_attachments/files/{n}": b"\0" * (4 << 20) for n in range(4)}).getvalue(),
        "large",
    ),
    "no JSON": (lambda: boxed(b"words"), "outbox"),
    "no list": (lambda: boxed(b'{"orderedItems": 7}'), "outbox"),
    "empty outbox": (lambda: boxed(b""), "outbox"),
    "half an outbox": (lambda: boxed(GOOD[:-10]), "outbox"),
    "deep": (lambda: boxed(b'{"orderedItems": [' + b"[" * 100_000), "deep"),
    "a string without end": (lambda: boxed(b'{"orderedItems": [' + b'"\\"' * 1_000_000), "outbox"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHORT)
def test_a_file_that_is_no_archive_ends_with_a_reason(user: User, folder: Path, kind: str) -> None:
    make, failure = SHORT[kind]
    done = ended(user, make())
    assert (done.state, done.failure, done.brought) == (State.FAILED, failure, 0)
    assert str(done.failure_words)
    assert list(folder.iterdir()) == []
    assert not Item.objects.exists()


STRANGE: dict[str, Callable[[], bytes]] = {
    "in a folder": lambda: zipped({"archive-2020/outbox.json": GOOD}).getvalue(),
    "twice": lambda: zipped({"outbox.json": GOOD, "x/outbox.json": b"words"}).getvalue(),
    "members that are not taken": lambda: zipped(
        {"a.exe": b"MZ", "../x": b"", "media_attachments/../../../etc/x": b"", "outbox.json": GOOD}
    ).getvalue(),
    "a long picture": lambda: zipped(
        {"media_attachments/files/long": os.urandom(41 << 10) * 1024 * 0 + b"x" * (3 << 20), "outbox.json": GOOD}
    ).getvalue(),
    "sparse": lambda: packed(
        ("media_attachments/files/a", b"", {"type": tarfile.GNUTYPE_SPARSE}), ("outbox.json", GOOD, {})
    ),
    "other files are no JSON": lambda: zipped(
        files_of([note(1)], actor_json=b"\xff\xfe[", bookmarks_json=b"[" * 100_000)
    ).getvalue(),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_files_besides_the_posts_are_passed_over(user: User, folder: Path, kind: str) -> None:
    made = actions.begin(user=user, file=io.BytesIO(STRANGE[kind]()), takes_profile=True)
    while not importing.run(made.pk):
        ArchiveImport.objects.update(tried_at=None)
    made.refresh_from_db()
    assert (made.state, made.brought) == (State.DONE, 1)
    assert [path.name for path in folder.parent.iterdir() if path.name != "media"] == ["imports"]


def test_names_of_files_of_ours_are_not_those_of_the_archive(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    place.mkdir()
    source.write_bytes(
        zipped(files_of([note(1)], {"../../x": b"up", "a/b.jpg": b"one"}, archive=b"", lock=b"")).getvalue()
    )
    unpack(source, place)
    assert sorted(path.name[:7] for path in place.iterdir()) == ["medium-", "outbox."]
    assert archive.medium(place, "https://x.example/media_attachments/files/a/b.jpg")
    for url in (
        "",
        "a/b.jpg",
        "media_attachments/",
        "xmedia_attachments/files/a/b.jpg",
        "media_attachments/../outbox.json",
    ):
        assert archive.medium(place, url) is None


ENTRIES: dict[str, Any] = {
    "deep": b'{"type":"Create","object":' + b"[" * 60 + b"]" * 60 + b"}",
    "not UTF-8": b'{"type":"Create","object":{"type":"Note","content":"\xff"}}',
    "half a pair": b'{"type":"Create","object":{"type":"Note","content":"\\ud800"}}',
    "numbers": b'{"type":"Create","object":{"type":"Note","content":1e400}}',
    "long": b'{"type":"Create","object":"' + b"x" * (2 << 20) + b'"}',
    "NUL": json.dumps(note(1, "<p>a\0b</p>")).encode(),
    "wrong kinds": json.dumps(note(1, to=7, cc={"a": 1}, attachment={"url": 1}, contentMap=[1], oneOf=["x"])).encode(),
    "wrong media": json.dumps(
        note(1, attachment=[7, {"url": ["x"]}, {"url": "\0", "focalPoint": ["a", None]}] * 50)
    ).encode(),
    "address of a megabyte": json.dumps(note(1, id="x" * 1_000_000)).encode(),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENTRIES)
def test_a_strange_entry_is_left_out_or_read(user: User, kind: str) -> None:
    text = b'{"orderedItems": [' + ENTRIES[kind] + b"," + json.dumps(note(2)).encode() + b"]}"
    done = ended(user, boxed(text))
    assert (done.state, done.total, done.done) == (State.DONE, 2, 2)
    assert "post 2" in {item.text for item in Item.objects.all()}
    assert done.brought + sum(done.left_out.get(why, 0) for why in ("unreadable", "size", "direct", "text")) == 2


@pytest.mark.long
def test_very_many_entries_take_little_memory(tmp_path: Path) -> None:
    count = tries(100_000, 1_000_000)
    path = tmp_path / "outbox.json"
    path.write_bytes(b'{"orderedItems":[' + b"{}," * count + b"{}]}")
    tracemalloc.start()
    try:
        assert outbox.index(path) == count + 1
        assert tracemalloc.get_traced_memory()[1] < 2_000_000 + 20 * count
    finally:
        tracemalloc.stop()
    assert len(outbox.opened(path)) == outbox.ITEMS


def test_more_posts_than_an_archive_may_bring_are_told(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "ITEMS", 3)
    monkeypatch.setattr(importing, "ITEMS", 3)
    done = ended(user, zipped(files_of(note(n) for n in range(5))).getvalue())
    assert (done.brought, done.left_out) == (3, {"many": 2})


def test_a_bound_holds_whatever_a_zip_says_of_its_sizes(tmp_path: Path) -> None:
    """Its table says one byte."""
    data = bytearray(boxed(b" " * (9 << 20)))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<L", data, data.index(mark) + place, 1)
    source = tmp_path / "source"
    source.write_bytes(data)
    with pytest.raises(ArchiveError):
        unpack(source, tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 20 << 20
