from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from community.archives import importing
from community.archives.models import ArchiveImport
from tests.support.archives import address, boost, collection, files_of, note, zipped
from tests.support.browsers import Visit
from tests.support.factories import PASSWORD, UserFactory

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_an_account_is_brought(visit: Visit, settings: Any, tmp_path: Path, javascript: bool) -> None:
    settings.IMPORTS_DIR = tmp_path / "imports"
    archive = tmp_path / "archive.zip"
    posts = [note(n, f"<p>from the old place {n}</p>") for n in range(30)]
    files = files_of([*posts, boost(31), note(32, audience="direct")])
    files["featured.json"] = collection("featured.json", [address(7)])
    files["likes.json"] = collection("likes.json", [address(3), *(f"https://far.example/{n}" for n in range(40))])
    files["following_accounts.csv"] = b"Account address,Show boosts\nfriend,true\nzed@far.example,true\n"
    files["lists.csv"] = b"\xff"
    archive.write_bytes(zipped(files).getvalue())
    user: User = UserFactory.create(username="mover", password=PASSWORD)
    UserFactory.create(username="friend")
    visitor = visit(java_script_enabled=javascript)
    visitor.enter(user)
    visitor.goto("/settings/import-export")
    page = visitor.page
    page.get_by_role("link", name="Move your account here").click()
    page.get_by_label("Archive", exact=True).set_input_files(archive)
    page.get_by_role("button", name="Upload and import").click()
    expect(page.get_by_text("Unpacking the archive.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    # A task ends after a few seconds. On a slow machine the next one goes on.
    assert any(importing.run(ArchiveImport.objects.get().pk) for _ in range(5))
    if not javascript:
        visitor.goto("/settings/import-archive")
    expect(page.get_by_text("32 of 32 entries read: 30 posts imported.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).not_to_be_visible()
    for words in (
        "People you follow: 2 of 2 entries read, 1 imported",
        "People in lists: Save the file as UTF-8 text.",
        "Pinned posts: 1 of 1 entry read, 1 imported",
        "Likes: 41 of 41 entries read, 1 imported",
    ):
        expect(page.get_by_text(words, exact=True)).to_be_visible()
    page.get_by_text("What we didn't import", exact=True).click()
    expect(page.get_by_text("Likes: 40 \u00d7 a post on another site", exact=True)).to_be_visible()
    expect(page.get_by_text("People you follow: 1 \u00d7 not on this site", exact=True)).to_be_visible()
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_text("a private mention", exact=False).last).to_be_visible()
    visitor.goto("/@mover")
    expect(page.get_by_text("from the old place 29")).to_be_visible()
    expect(page.get_by_text("from the old place 7").first).to_be_visible()
