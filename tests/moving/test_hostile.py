"""Bad archives get a reason each, within bounds of time, memory and disk."""

import gzip
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from accounts.models import User
from community.archives import actions, archive, finding, importing, reader
from community.archives.archive import ArchiveError, unpack
from community.archives.finding import OutboxError
from community.archives.models import ArchiveImport, ImportState
from items.models import Item
from relations import importing as relation_importing
from tests.support.archives import collection, files_of, note, tarred, zipped
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

GOOD = collection("outbox.json", [note(1)])


@pytest.fixture(autouse=True)
def _bounded(settings: Any) -> None:
    settings.ARCHIVE_BYTES = 4 << 20


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


def sparse(blocks: int) -> bytes:
    """A sparse file with a map of many blocks."""
    header = bytearray(tarfile.TarInfo("outbox.json").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    header[482] = 1
    header[483:495] = b"00000001000\0"
    block = (b"77777777777\0" * 42).ljust(504, b"\0") + b"\1" + b"\0" * 7
    return gzip.compress(summed(header) + block * 2048 * blocks + block[:504] + b"\0" * 1_032)


def summed(header: bytearray) -> bytes:
    """A tar header with its checksum."""
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def headers(kind: bytes, count: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 9
    return gzip.compress((info.tobuf() + b"9 a=bcd\n\0".ljust(512, b"\0")) * count)


def negative() -> bytes:
    """The first header states a length of -1."""
    header = bytearray(tarfile.TarInfo("outbox.json").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 12
    return gzip.compress(summed(header) + b"\0" * 1_024)


def pax(data: bytes) -> bytes:
    """The first file has this extended header."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(data)
    return gzip.compress(info.tobuf() + data.ljust(-(-len(data) // 512) * 512, b"\0") + tarfile.TarInfo("a").tobuf())


def decoy(size: int) -> bytes:
    """A zip with a long directory in its ZIP64 record. A second record in its comment names none."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 0, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, *[0] * 6) + b"x"
    count = size // len(entry)
    wide = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, count * len(entry), 0x06064B50)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 0, 0, 0)
    return b"PK\3\4" + b"\0" * 60 + entry * count + wide + locator + end


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
    "a sparse file": (lambda: sparse(1), "large"),
    "a sparse file of no data": (
        lambda: packed(("a", b"", {"type": tarfile.GNUTYPE_SPARSE}), ("outbox.json", GOOD, {})),
        "large",
    ),
    "a sparse map 0.0": (
        lambda: packed(("a", b"", {"pax_headers": {"GNU.sparse.size": "9"}}), ("outbox.json", GOOD, {})),
        "large",
    ),
    "a sparse map 0.1": (lambda: packed(("a", b"", {"pax_headers": {"GNU.sparse.map": "0,1"}})), "large"),
    "a sparse map 1.0": (
        lambda: packed(
            (
                "a",
                b"9999999\n" + b"1\n" * 1_000_000,
                {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}},
            )
        ),
        "large",
    ),
    "very many headers of one file": (lambda: headers(tarfile.GNUTYPE_LONGNAME, 5_000), "large"),
    "very many headers of the whole tar": (lambda: headers(tarfile.XGLTYPE, 5_000), "large"),
    "a header of a negative length": (lambda: negative(), "damaged"),
    "digits without end in a header": (lambda: pax(b"9" * 16_000 + b" a=b\n"), "damaged"),
    "a header that is not text": (lambda: pax(b"9 size=\xff\n"), "outbox"),
    "a directory behind a decoy": (lambda: decoy(24 << 20), "large"),
    "100,000 entries behind a decoy": (lambda: decoy(5 << 20), "large"),
    "many media that are one": (
        lambda: zipped({f"media_attachments/files/{n}": b"\0" * (4 << 20) for n in range(4)}).getvalue(),
        "large",
    ),
    "no JSON": (lambda: boxed(b"words"), "outbox"),
    "no list": (lambda: boxed(b'{"orderedItems": 7}'), "outbox"),
    "empty outbox": (lambda: boxed(b""), "outbox"),
    "half an outbox": (lambda: boxed(GOOD[:-10]), "outbox"),
    "deep": (lambda: boxed(b'{"orderedItems": [' + b"[" * 100_000), "deep"),
    "a string without end": (lambda: boxed(b'{"orderedItems": [' + b'"\\"' * 50_000), "outbox"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHORT)
def test_a_file_that_is_no_archive_ends_with_a_reason(user: User, folder: Path, kind: str) -> None:
    make, failure = SHORT[kind]
    done = ended(user, make())
    assert (done.state, done.failure, done.brought) == (ImportState.FAILED, failure, 0)
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
    "headers for the whole tar": lambda: packed(
        ("a", b"9 a=bcd\n", {"type": tarfile.XGLTYPE}), ("outbox.json", GOOD, {})
    ),
    "other files are no JSON": lambda: zipped(
        files_of([note(1)], actor_json=b"\xff\xfe[", bookmarks_json=b"[" * 100_000)
    ).getvalue(),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_files_besides_the_posts_are_passed_over(user: User, folder: Path, kind: str) -> None:
    made = actions.begin(user=user, file=io.BytesIO(STRANGE[kind]()), takes_profile=True)
    for _ in range(10):
        if importing.run(made.pk):
            break
        ArchiveImport.objects.update(tried_at=None)
    made.refresh_from_db()
    assert (made.state, made.brought) == (ImportState.DONE, 1)
    assert [path.name for path in folder.parent.iterdir() if path.name != "media"] == ["imports"]


def test_names_of_files_of_ours_are_not_those_of_the_archive(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    place.mkdir()
    source.write_bytes(
        zipped(files_of([note(1)], {"../../x": b"up", "a/b.jpg": b"one"}, archive=b"", lock=b"")).getvalue()
    )
    unpack(source, place, reader.bounds())
    assert sorted(path.name[:7] for path in place.iterdir()) == ["medium-", "outbox."]
    assert archive.find_medium(place, "https://x.example/media_attachments/files/a/b.jpg")
    for url in (
        "",
        "a/b.jpg",
        "media_attachments/",
        "xmedia_attachments/files/a/b.jpg",
        "media_attachments/../outbox.json",
    ):
        assert archive.find_medium(place, url) is None


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
    assert (done.state, done.total, done.done) == (ImportState.DONE, 2, 2)
    assert "post 2" in {item.text for item in Item.objects.all()}
    assert done.brought + sum(done.left_out.get(why, 0) for why in ("unreadable", "size", "direct", "text")) == 2


def text(tmp_path: Path, start: bytes, part: bytes, size: int) -> Path:
    path = tmp_path / "outbox.json"
    path.write_bytes(b'{"orderedItems":[' + start + part * (size // len(part)))
    return path


@pytest.mark.long
def test_very_many_entries_take_little_time_and_memory(tmp_path: Path) -> None:
    path = text(tmp_path, b"", b"{},", 21 << 20)
    begin = time.process_time()
    tracemalloc.start()
    try:
        assert finding.write_index(path) == finding.COUNTED
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - begin < 5
    assert len(finding.open_outbox(path)) == finding.ITEMS


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "part", "failure"),
    [
        (b"[", b"[],", "large"),
        (b"{", b'"a":{},', "large"),
        (b"{", b'"a":"[",', "outbox"),
        (b"", b" ", "outbox"),
        (b"[", b'"\\"', "outbox"),
        (b"[", b"1,", "outbox"),
    ],
)
def test_the_search_for_posts_ends(tmp_path: Path, start: bytes, part: bytes, failure: str) -> None:
    path = text(tmp_path, start, part, 40 << 20)
    begin = time.process_time()
    with pytest.raises(OutboxError, match=failure):
        finding.write_index(path)
    assert time.process_time() - begin < 15


@pytest.mark.slow
def test_a_program_that_takes_too_long_is_ended(
    user: User, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ARCHIVE_BYTES = 400 << 20
    monkeypatch.setattr(reader, "WAIT_FACTOR", 0.001)
    done = ended(user, packed(("media_attachments/files/a", b"\0" * (100 << 20), {})))
    assert (done.state, done.failure, done.attempts) == (ImportState.FAILED, "large", 1)


@pytest.mark.slow
def test_a_program_that_computes_too_long_is_ended() -> None:
    job = {"bounds": list(reader.bounds()), "seconds": 1, "wall": 60}
    program = f"from community.archives import reading\nreading.limit_process({job!r})\nwhile True: pass"
    done = subprocess.run([sys.executable, "-c", program], cwd=settings.BASE_DIR, check=False)
    assert done.returncode == -signal.SIGXCPU


@pytest.mark.slow
def test_an_archive_that_no_program_survives_is_tried_three_times(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def read(*_args: object) -> int:
        calls.append(1)
        raise reader.ReaderError("it ended")

    monkeypatch.setattr(reader, "read", read)
    made = actions.begin(user=user, file=io.BytesIO(boxed(GOOD)))
    for _ in range(5):
        with suppress(reader.ReaderError):
            importing.run(made.pk)
        ArchiveImport.objects.update(tried_at=None)
    made.refresh_from_db()
    assert (made.state, made.failure, len(calls)) == (ImportState.FAILED, "failed", 3)


def test_no_other_worker_begins_while_the_program_of_a_dead_one_runs(tmp_path: Path) -> None:
    """The program waits because it reads from a pipe."""
    os.mkfifo(tmp_path / "source")
    with ThreadPoolExecutor(1) as pool:
        with importing._folder_lock(tmp_path) as lock:
            answer = pool.submit(reader.read, tmp_path / "source", tmp_path, lock)
            pipe = (tmp_path / "source").open("wb")  # waits for the reading program
        with pipe, pytest.raises(importing.ImportTakenError), importing._folder_lock(tmp_path):
            pass
        with pytest.raises(ArchiveError):
            answer.result(30)
    with importing._folder_lock(tmp_path):
        pass


def test_each_import_has_a_time_limit() -> None:
    for task in (importing.run, relation_importing.run):
        assert 0 < task.soft_time_limit < task.time_limit < 3_600


def test_more_posts_than_an_archive_may_bring_are_told(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "ITEMS", 3)
    done = ended(user, zipped(files_of(note(n) for n in range(5))).getvalue())
    assert (done.brought, done.left_out) == (3, {"many": 2})


def test_a_bound_holds_whatever_a_zip_says_of_its_sizes(tmp_path: Path) -> None:
    data = bytearray(boxed(b" " * (9 << 20)))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<L", data, data.index(mark) + place, 1)
    source = tmp_path / "source"
    source.write_bytes(data)
    with pytest.raises(ArchiveError):
        unpack(source, tmp_path, reader.bounds())
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 20 << 20
