"""Every text is a payload, which pages show as text."""

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from items import actions as items
from items.filters import filters
from live import actions as live
from media import actions as media
from relations import actions as relations
from relations import lists
from tests.support.factories import UserFactory, say
from tests.support.pictures import jpeg, upload
from tests.support.texts import PAYLOADS

pytestmark = pytest.mark.django_db

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SHAPES = {"svg", "use", "symbol", "path", "rect", "circle", "polyline", "g", "line", "polygon", "ellipse"}


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID | SHAPES:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID | SHAPES:
            assert self.open.pop() == tag, tag


def is_harmless(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert "rendered" not in html
    for tag, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
        assert tag != "script" or attributes.get("nonce"), attributes
        assert tag != "img" or attributes["src"] != "x"
        for name in ("href", "src", "action", "formaction", "hx-get", "hx-post"):
            assert not (attributes.get(name) or "").strip().lower().startswith(("javascript:", "data:text")), attributes


def community(payload: str) -> dict[str, Any]:
    one = UserFactory.create(username="one", display_name=payload[:50], bio=f"{payload} @two #tea")
    two = UserFactory.create(username="two", display_name=payload[:50])
    relations.follow(follower=one, followee=two)
    relations.follow(follower=two, followee=one)
    text = f"{payload} @two #tea #茶 https://example.org/{payload.replace(' ', '+')}"
    post = say(one, text)
    article = items.publish(
        sender=one,
        type="article",
        title=payload[:200],
        content={"text": text * 20, "warning": payload[:200], "sensitive": True},
    )
    picture = media.upload(owner_id=one.pk, file=upload(jpeg()), description=payload)
    pictured = items.publish(sender=one, type="image", content={"text": text, "media": [str(picture.pk)]})
    reply = say(two, text, reply_to=post)
    items.repost(sender=two, item=article)
    items.like(user=two, item=post)
    filters.create(owner=two, phrase=payload[:40], action="warn", whole_word=False)
    titled = lists.create(owner=two, title=payload[:50])
    lists.add(owner=two, list_id=titled.pk, member=one)
    now = timezone.now()
    session = live.create(host=one, title=payload[:100], starts_at=now + timedelta(hours=1), now=now)
    return {"one": one, "two": two, "items": [post, article, pictured, reply], "list": titled, "session": session}


@pytest.mark.long
@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_no_text_of_a_hostile_community_becomes_markup(language: str, media_folder: Any) -> None:
    made = community(" ".join(PAYLOADS))
    shared = ["/@one", "/@one/media", "/@one/replies", "/tags/tea", "/tags/茶", f"/live/{made['session'].pk}"]
    shared += [f"/items/{item.pk}" for item in made["items"]]
    own = ["/", "/discover", "/live", "/notifications", "/notifications/mentions", "/lists"]
    own += ["/settings", "/settings/filters", "/beside", "/bookmarks", "/likes", "/history"]
    own += [f"/search?q={part}" for part in ("tea", "one", "%22%3E%3Cimg+src%3Dx+onerror%3Dalert(1)%3E")]
    own += [f"/items/{made['items'][0].pk}/{page}" for page in ("menu", "report", "edits")]
    theirs = [f"/lists/{made['list'].pk}", f"/lists/{made['list'].pk}/edit", "/@one/lists"]
    for reader in (made["one"], made["two"], None):
        client = Client(headers={"accept-language": language})
        if isinstance(reader, User):
            client.force_login(reader)
        for address in shared + (own if reader else []) + (theirs if reader == made["two"] else []):
            answer = client.get(address, follow=True)
            assert answer.status_code == 200, address
            is_harmless(answer.content.decode())
