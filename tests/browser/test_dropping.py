"""Fields for a file: dropped, shown, sent with a progress; plain fields without JavaScript."""

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from live.models import LiveSession
from relations.models import CsvImport
from tests.support.browsers import Visit
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg
from tests.support.sites import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DROP = """([data, name]) => {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    const files = new DataTransfer();
    files.items.add(new File([bytes], name, { type: "image/jpeg" }));
    const zone = document.querySelector("[data-drop]:has([name=picture], [name=avatar])");
    zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: files }));
}"""


def test_a_cover_is_dropped_shown_and_sent(visit: Visit, reader: User, media_folder: Path) -> None:
    visitor = visit()
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/live/new")
    page = visitor.page
    page.evaluate(DROP, [base64.b64encode(jpeg(160, 90)).decode(), "cover.jpg"])
    expect(page.locator(".drop-shown canvas")).to_be_visible()
    expect(page.locator(".drop-shown")).to_contain_text("cover.jpg")
    page.get_by_role("button", name="Schedule").click()  # it has no title yet
    page.get_by_label("Title").fill("with a cover")
    visitor.go(page.get_by_role("button", name="Schedule"))
    expect(page.get_by_role("status").get_by_text("Scheduled.")).to_be_visible()
    assert LiveSession.objects.get().cover


def test_a_list_is_imported(visit: Visit, reader: User, javascript: bool, tolerated: Any) -> None:
    tolerated("422")
    friend = UserFactory.create(username="friend")
    visitor = visit(java_script_enabled=javascript)
    visitor.enter(reader)
    visitor.goto("/settings/import-export")
    field = visitor.page.get_by_label("File", exact=True)
    for data in (b"\xff", f"Account address\n{friend.username}\n".encode()):
        field.set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": data})
        visitor.page.get_by_role("button", name="Import").click()
        if data == b"\xff":
            expect(visitor.page.get_by_text("Save the file as UTF-8 text.")).to_be_visible()
    until(lambda: CsvImport.objects.filter(user=reader).exists(), 20)


def test_a_profile_picture_is_dropped(visit: Visit, reader: User) -> None:
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/settings/profile")
    visitor.page.evaluate(DROP, [base64.b64encode(jpeg(200, 200)).decode(), "face.jpg"])
    expect(visitor.page.get_by_role("dialog", name="Profile picture")).to_be_visible()


def test_saving_covers_no_field(visit: Visit, reader: User) -> None:
    """At 200 % of a small laptop."""
    visitor = visit(viewport={"width": 683, "height": 384})
    visitor.enter(reader)
    visitor.goto("/settings/profile")
    save: Any = visitor.page.get_by_role("main").get_by_role("button", name="Save").bounding_box()
    rows = "#profile .field, #profile .pair-of"
    bottoms = visitor.page.evaluate(
        f"Array.from(document.querySelectorAll('{rows}'), (one) => one.getBoundingClientRect().bottom)"
    )
    assert max(bottoms) <= save["y"]
