import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse
from PIL import Image

from accounts.about import site
from accounts.about.logo import ICONS, render_icon, set_logo
from accounts.about.models import PublicAccess
from accounts.models import User
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg, upload

pytestmark = pytest.mark.django_db


def manifest(client: Client, **headers: str) -> Any:
    answer = client.get("/manifest.webmanifest", **headers)
    assert answer["Content-Type"] == "application/manifest+json"
    return json.loads(answer.content)


def size_of(client: Client, address: str) -> tuple[int, int]:
    if address.startswith("/static/"):
        with Image.open(str(finders.find(address.removeprefix("/static/")))) as icon:
            return icon.size
    answer = client.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/png"), address
    return Image.open(io.BytesIO(answer.content)).size


def test_the_manifest(client: Client) -> None:
    told = manifest(client)
    assert (told["id"], told["start_url"], told["scope"], told["display"]) == ("/", "/", "/", "standalone")
    assert [(icon["sizes"], icon["purpose"]) for icon in told["icons"]] == [
        ("192x192", "any"),
        ("512x512", "any"),
        ("512x512", "maskable"),
    ]
    for icon in told["icons"]:
        assert "{}x{}".format(*size_of(client, icon["src"])) == icon["sizes"]
    assert [shortcut["url"] for shortcut in told["shortcuts"]] == ["/items/new", "/notifications", "/search"]
    assert told["share_target"]["method"] == "GET"
    assert manifest(client, HTTP_ACCEPT_LANGUAGE="zh-hans")["shortcuts"][1]["name"] == "通知"


def test_icons_of_the_uploaded_logo(client: Client, media_folder: Path) -> None:
    red = io.BytesIO()
    Image.new("RGB", (800, 600), "red").save(red, "PNG")
    set_logo(file=red)
    site.site_copy.forget()
    told = manifest(client)
    for icon in told["icons"]:
        assert icon["src"].startswith("/about/icons/")
        assert "{}x{}".format(*size_of(client, icon["src"])) == icon["sizes"]
    logo = site.current().logo
    assert logo is not None
    answer = client.get(reverse("icon", args=[logo["id"], "maskable-512"]))
    assert "immutable" in answer["Cache-Control"]
    drawn = Image.open(io.BytesIO(answer.content)).convert("RGB")
    assert drawn.getpixel((5, 5)) == (255, 255, 255)  # a mask may cut this off
    assert drawn.getpixel((256, 256))[:2] > (200, 0)  # type: ignore[index]
    assert drawn.getpixel((256, 256))[1] < 60  # type: ignore[index]
    assert f"/about/icons/{logo['id']}/apple-touch-icon.png" in client.get("/login").content.decode()
    for wrong in (reverse("icon", args=[1, "icon-192"]), reverse("icon", args=[logo["id"], "icon-1000"])):
        assert client.get(wrong).status_code == 404
    set_logo(file=None)
    site.site_copy.forget()
    assert client.get(reverse("icon", args=[logo["id"], "icon-192"])).status_code == 404
    assert render_icon.cache_info().maxsize == 2 * len(ICONS)


def test_the_worker_may_fetch_from_the_site_alone(client: Client) -> None:
    answer = client.get("/worker.js")
    assert answer["Content-Type"].startswith("text/javascript")
    assert answer["Content-Security-Policy"] == "default-src 'none'; connect-src 'self'"
    assert answer["Cache-Control"] == "no-cache"
    assert not answer.cookies
    text = answer.content.decode()
    told = json.loads(re.match(r"const SITE = (.*);\n", text)[1])  # type: ignore[index]
    assert told["offline"] == "/offline"
    for file in told["files"]:
        assert finders.find(file.removeprefix("/static/")), file
    assert client.get("/worker.js").content == answer.content


def test_another_frame_is_another_worker(client: Client) -> None:
    before = client.get("/worker.js").content
    site.site_copy.set(site.Site(name="Another", accent="#aa0000"))
    after = client.get("/worker.js").content
    assert before.partition(b'"version":')[2][:14] != after.partition(b'"version":')[2][:14]
    assert b"/about/theme-" in after


def test_the_worker_keeps_the_logo_of_the_page_for_offline(client: Client, media_folder: Path) -> None:
    def kept() -> tuple[str, str, bool]:
        site.site_copy.forget()
        text, page = (client.get(path).content.decode() for path in ("/worker.js", "/offline"))
        told = json.loads(re.match(r"const SITE = (.*);\n", text)[1])  # type: ignore[index]
        logo = re.search(r'class="logo" src="([^"]+)"', page)
        assert logo is not None
        return told["version"], logo[1], logo[1] in told["files"]

    first = kept()
    set_logo(file=upload(jpeg(400, 400)))
    second = kept()
    set_logo(file=upload(jpeg(300, 300)))
    third = kept()
    assert len({first[0], second[0], third[0]}) == len({first[1], second[1], third[1]}) == 3
    assert (first[2], second[2], third[2]) == (True, True, True)
    assert client.get(third[1])["Content-Type"] == "image/png"


def test_a_name_breaks_out_of_no_script(client: Client) -> None:
    site.site_copy.set(site.Site(name='"};alert(1);</script>\u2028'))
    told = re.match(r"const SITE = (.*);\n", client.get("/worker.js").content.decode())
    assert told is not None
    assert json.loads(told[1])["name"] == '"};alert(1);</script>\u2028'


def test_the_page_for_offline_has_the_readers_language_and_nothing_else_of_theirs(client: Client) -> None:
    client.force_login(UserFactory(username="reader", language="zh-hans"))
    assert '<html lang="zh-Hans"' in client.get("/offline").content.decode()
    client.force_login(UserFactory(username="reader-two"))
    answer = client.get("/offline", headers={"Accept-Language": "en"})
    page = answer.content.decode()
    assert "re offline" in page
    assert "网络" not in page
    assert "reader" not in page
    assert "csrf" not in page.lower()
    assert page.count("<script") == 1
    assert not answer.cookies


def test_pages_may_have_this_worker_and_no_other(client: Client) -> None:
    assert "worker-src 'self'" in client.get("/login")["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/worker.js", "/offline", "/manifest.webmanifest"])
def test_a_site_for_members_has_them_too(client: Client, path: str) -> None:
    site.site_copy.set(site.Site(looking=PublicAccess.MEMBERS))
    assert client.get(path).status_code == 200


# --- Sharing ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shared", "text"),
    [
        ({"title": "A page", "text": "look", "url": "https://example.org/"}, "A page\nlook\nhttps://example.org/"),
        ({"text": "look https://example.org/", "url": "https://example.org/"}, "look https://example.org/"),
        ({"title": "Same", "text": "Same"}, "Same"),
        ({"text": "<b>&</b>"}, "&lt;b&gt;&amp;&lt;/b&gt;"),
        ({"text": "a" * 30_000}, "a" * 5_000),
    ],
)
def test_what_is_shared_stands_in_the_composer(client: Client, shared: dict[str, str], text: str) -> None:
    reader: User = UserFactory()
    client.force_login(reader)
    page = client.get("/items/new", {f"shared_{name}": value for name, value in shared.items()}).content.decode()
    area = re.search(r'<textarea name="text"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
    assert area is not None
    assert area[1].strip().replace("\r\n", "\n") == text


def test_nothing_is_published_by_sharing(client: Client) -> None:
    from items.models import Item

    client.force_login(UserFactory())
    client.get("/items/new", {"shared_text": "words"})
    assert not Item.objects.exists()
    assert client.get("/items/new?shared_text=a&shared_text=b").status_code == 400
    assert Client().get("/items/new?shared_text=a")["Location"] == "/login?next=%2Fitems%2Fnew%3Fshared_text%3Da"
