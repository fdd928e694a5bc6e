"""Written text never runs. Also checks the CSP of pages that test_accessibility.py leaves out."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect
from rest_framework.test import APIClient

from accounts.models import User
from items.models import Item
from moderation import actions as moderation
from moderation import senders
from moderation.models import Case
from tests.support.api import client_of
from tests.support.browsers import Visit
from tests.support.effort import tries
from tests.support.factories import PASSWORD, UserFactory

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SHORT = [
    "<script>ran(1)</script>",
    '"><img src=x onerror=ran(2)>',
    "'><svg/onload=ran(3)>",
    "</textarea><svg onload=ran(4)>",
    "</title><script>ran(5)</script>",
    "javascript:ran(6)",
    "<a href=javascript:ran(7)>a</a>",
    "{{ csrf_token }}${ran(8)}",
    "<!--<img src='--><img src=x onerror=ran(9)>",
    '<b hx-on::load="ran(10)">',
]
"""For display names, which have 50 characters."""
LONG = [
    *SHORT,
    "data:text/html,<script>ran(11)</script>",
    'https://a.example/"onmouseover="ran(12)',
    "https://a.example/'><img/src=x/onerror=ran(13)>",
    "www.a.example/?q=<script>ran(14)</script>",
    '@ann"><img src=x onerror=ran(15)>',
    '#tag"><img src=x onerror=ran(16)>',
    "http://javascript:ran(17)@a.example/",
    "JaVaScRiPt://a.example/%0aran(18)",
    "vbscript:ran(19)",
    "<iframe srcdoc='<script>parent.ran(20)</script>'></iframe>",
    "<div hx-get='/settings' hx-trigger=load hx-swap=outerHTML>",
    "<meta http-equiv=refresh content='0;url=javascript:ran(21)'>",
    "<base href=//a.example/>",
    "<form action=//a.example><input name=csrfmiddlewaretoken></form>",
    "\u2028\u2029</script><script>ran(22)</script>",
]
WORDS = "\n".join(LONG)

FOREIGN = """
    () => [...document.querySelectorAll(`[onerror], [onload], [onmouseover], [srcdoc], [href*="javascript:ran" i],
        [href^="data:" i], [href^="vbscript" i], base, iframe,
        main img:not([src^="/static/"], [src^="/avatars/"], [src^="/media/"], [src^="https://a.example/"]),
        main b[hx-on\\\\:\\\\:load]`)]
        .map(element => element.outerHTML)
"""
LINKS = """
    () => [...document.querySelectorAll("a[href]")].filter(link => link.origin !== location.origin)
        .map(link => [link.protocol, link.rel])
"""


@pytest.fixture
def said() -> dict[str, Any]:
    """A payload in every field that people can write, its writers and a reader."""
    reader = UserFactory.create(username="reader", is_staff=True, is_superuser=True)
    clients: list[APIClient] = []
    people: list[User] = []
    for number, payload in enumerate(SHORT):
        person = UserFactory.create(username=f"writer{number}")
        client = client_of(person)
        edit = {"display_name": payload[:50], "bio": WORDS[:500] if number % 2 else WORDS[-500:]}
        assert client.patch("/api/v1/users/me", edit).status_code == 200
        people.append(person)
        clients.append(client)
    own = client_of(reader)
    refused = own.post("/api/v1/users", {"username": SHORT[0], "password": PASSWORD})
    assert refused.status_code == 400
    mine = own.post("/api/v1/items", {"content": {"text": "mine"}}).json()["id"]
    assert own.patch("/api/v1/users/me", {"display_name": SHORT[1], "bio": WORDS[:500]}).status_code == 200

    first = clients[0]
    body = {"title": WORDS[:200], "content": {"text": f"{WORDS} #tag @reader", SHORT[0]: SHORT}}
    shown = first.post("/api/v1/items", {**body, "extra_info": {SHORT[0]: {SHORT[1]: WORDS}}}).json()["id"]
    for address in ["javascript:ran(30)", "data:text/html,x", "https:javascript:ran(31)", " https://a.example"]:
        link = {"type": "link", "content": {"text": "a", "url": address}}
        assert first.post("/api/v1/items", link).status_code == 400
    link = {"type": "link", "title": SHORT[0], "content": {"url": 'https://a.example/"><script>ran(32)</script>'}}
    assert first.post("/api/v1/items", link).status_code == 201
    answer = first.post("/api/v1/items", {"content": {"text": WORDS}, "reply_to": mine}).json()["id"]
    assert own.post("/api/v1/items", {"content": {"text": WORDS}, "reply_to": shown}).status_code == 201
    for person, client in zip(people, clients, strict=True):
        assert own.put(f"/api/v1/users/{person.username}/follow").status_code == 204
        assert client.put("/api/v1/users/reader/follow").status_code == 204
        assert client.put(f"/api/v1/items/{mine}/like").status_code == 204
        assert client.post(f"/api/v1/items/{mine}/repost").status_code == 201
    for client in [own, *clients[1:]]:
        report = {"reason": "other", "text": WORDS[:300]}
        assert client.post(f"/api/v1/items/{shown}/report", report).status_code == 204
        if Case.objects.exists():
            break
    show = {"title": WORDS[:100], "starts_at": (timezone.now() + timedelta(hours=1)).isoformat()}
    for name in ("url", "cover_url"):
        for address in ["javascript:ran(33)", "data:text/html,<script>ran(34)</script>", "//a.example"]:
            assert first.post("/api/v1/live/sessions", {**show, name: address}).status_code == 400
        show[name] = 'https://a.example/"onmouseover="ran(35)'
        if first.post("/api/v1/live/sessions", show).status_code != 201:
            del show[name]
    session = first.post("/api/v1/live/sessions", show).json()["id"]
    started = first.post(f"/api/v1/live/sessions/{session}/start")
    assert started.status_code == 200
    moderation.add_words(texts=SHORT[:3], whole=False, note=SHORT[0], by=reader)
    senders.list_sender(user=people[1], kind="white", by=reader, reason=SHORT[1])
    assert own.get(f"/api/v1/items/{shown}").status_code == 200
    assert own.get(f"/api/v1/items/{answer}").status_code == 200
    own.put(f"/api/v1/items/{answer}/not-interested")
    return {"reader": reader, "shown": shown, "answer": answer, "mine": mine, "session": session}


def pages(said: dict[str, Any]) -> list[str]:
    shown, mine, sought = said["shown"], said["mine"], quote(SHORT[1])
    addresses = ["/", "/discover", "/notifications", "/notifications/mentions", "/history", "/history/not-interested"]
    addresses += [f"/items/{number}" for number in (shown, said["answer"], mine)]
    addresses += [f"/items/{mine}/{verb}" for verb in ("edit", "delete")] + [f"/items/{shown}/report"]
    addresses += [f"/items/new?reply_to={shown}&next={sought}", "/settings", "/settings/delete", "/tags/tag"]
    addresses += ["/@writer0", "/@writer1/replies", "/@reader/followers", "/@reader/following", "/@reader"]
    addresses += ["/live", "/live/own", f"/live/{said['session']}", f"/live/new?next={sought}"]
    addresses += [f"/search?q={sought}", "/search?q=ran", "/search?q=onerror", f"/tags/{sought}", f"/@{sought}"]
    addresses += [f"/nothing/{sought}", f"/?last_id={sought}", f"/discover?walk={sought}&page={sought}"]
    addresses += [f"/api/v1/items/{shown}", f"/api/v1/users/{sought}", "/api/v1/users/writer0"]
    return addresses


def admin_pages(reader: User) -> list[str]:
    """Each model's list with a search, and its first row."""
    addresses = [reverse("admin:index"), reverse("admin:moderation_wordrule_many")]
    for model in admin.site._registry:
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        addresses.append(reverse(f"admin:{name}_changelist") + ("?q=ran" if "user" in name else "?q="))
        if (row := model._default_manager.order_by("pk").first()) is not None:
            addresses.append(reverse(f"admin:{name}_change", args=[row.pk]))
    addresses.append(reverse("admin:accounts_user_add"))
    addresses.append(reverse("admin:auth_user_password_change", args=[reader.pk]))
    return addresses


def test_what_people_write_never_runs(visit: Visit, settings: Any, tolerated: Any, said: dict[str, Any]) -> None:
    """Without a policy, so escaping alone must hold."""
    tolerated("with a status of 4")
    tolerated("ERR_NAME_NOT_RESOLVED")  # the cover's address does not exist
    settings.HOME_POLL_SECONDS = settings.DISCOVER_REFRESH_SECONDS = 1000
    visitor = visit(bypass_csp=True)
    visitor.enter(said["reader"])
    page: Page = visitor.page
    ran: list[str] = []
    page.expose_function("ran", lambda *what: ran.append(f"{page.url}: {what}"))
    page.on("dialog", lambda dialog: (ran.append(f"{page.url}: {dialog.message}"), dialog.dismiss()))
    marked = 0
    for path in [*pages(said), *admin_pages(said["reader"])[:: tries(4, 1)]]:
        answer = page.goto(visitor.site + path)
        assert answer is not None
        assert answer.status < 500, path
        assert page.evaluate(FOREIGN) == [], path
        for protocol, relation in page.evaluate(LINKS):
            assert protocol in ("https:", "http:"), path
            # Admin links need no rel: no search engine reads them and none opens a new window.
            assert "/admin/" in path or {"nofollow", "noopener", "ugc"} <= set(relation.split()), path
        marked += "ran(" in page.content()
    assert ran == []
    assert marked > 25  # the payloads were shown
    for path in ["/", f"/items/{said['shown']}", "/@writer0"]:  # parts that scripts swap in
        page.goto(visitor.site + path)
        page.locator("main article .opens").first.click()
        page.locator("main details.menu[open] a").first.wait_for()
        page.keyboard.press("Escape")
        page.locator("main a[data-act=reply], main [data-act=reply]").first.click()
        page.locator("textarea[placeholder='Your reply']").wait_for()  # in the card or below the item
        assert page.evaluate(FOREIGN) == [], path
    assert ran == []


def test_the_admin_and_the_documentation_keep_the_policy(visit: Visit, said: dict[str, Any]) -> None:
    visitor = visit()
    visitor.enter(said["reader"])
    page = visitor.page
    for path in [reverse("admin:login"), *admin_pages(said["reader"])[1 :: tries(4, 1)]]:
        answer = page.goto(visitor.site + path)
        assert answer is not None
        assert answer.status == 200, path
    page.goto(visitor.site + reverse("admin:accounts_user_changelist"))
    page.locator("#action-toggle").check()  # the admin's own scripts run
    expect(page.locator("tr.selected").nth(1)).to_be_attached()
    page.goto(f"{visitor.site}/api/docs")
    page.locator("#operations-users-read_me .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    page.locator(".live-responses-table").first.wait_for()


def test_nothing_but_the_sites_own_scripts_runs(visit: Visit, tolerated: Any) -> None:
    """The policy must stop a script that escaping missed."""
    reader: User = UserFactory.create(username="reader")
    visitor = visit()
    visitor.enter(reader)
    tolerated("Content Security Policy")
    tolerated("Content-Security-Policy")
    page = visitor.page
    page.goto(visitor.site)
    refused = page.evaluate(
        """async () => {
            const refused = [];
            document.addEventListener("securitypolicyviolation", event => refused.push(event.effectiveDirective));
            const add = (name, fields) => document.body.append(Object.assign(document.createElement(name), fields));
            add("script", { textContent: "window.ran = 1" });
            add("script", { src: "/static/feedsite/site.js" });
            add("iframe", { src: "/login" });
            add("base", { href: "https://a.example/" });
            add("i", { innerHTML: "<img src=/static/feedsite/icon.svg onload='window.ran = 2'>" });
            fetch("https://a.example/").catch(() => 0);
            const kinds = () => [...new Set(refused)].sort();
            for (let i = 0; i < 100 && kinds().length < 5; i++) await new Promise(done => setTimeout(done, 200));
            return kinds();
        }"""
    )
    assert page.evaluate("window.ran") is None
    assert refused == ["base-uri", "connect-src", "frame-src", "script-src-attr", "script-src-elem"]
    assert Item.objects.count() == 0
