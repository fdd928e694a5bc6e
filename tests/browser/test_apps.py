from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
from oauth2_provider.models import Grant
from playwright.sync_api import expect

from tests.support.browsers import Visit
from tests.support.clients import app_of
from tests.support.factories import PASSWORD, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

LOOK_MS = 1_000
"""Twice the page's delay before the button acts."""
OPENS = """<!doctype html><script>
onmessage = event => { document.title = event.data.code ? "Logged in" : "Failed"; };
document.onclick = () => {
  const opened = open("%s");
  setInterval(() => { if (opened.closed && !document.title) document.title = "Failed"; }, 50);
};
</script><button>Log in</button>"""
TELLS = """<!doctype html><script>
opener?.postMessage({code: new URLSearchParams(location.search).get("code")}, "*"); close();
</script>"""
CLICKED_AFTER = """(button, event) => {
    dispatchEvent(new Event(event));
    return button.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
}"""
"""Clicks a button right after an event. Returns whether the page allowed the click."""


class Pages(BaseHTTPRequestHandler):
    """The app: a page that opens the site, and its redirect address."""

    site_address = ""

    def do_GET(self) -> None:
        body = (TELLS if self.path.startswith("/back") else OPENS % self.site_address).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def app_address() -> Iterator[str]:
    """A second, trusted origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.long
def test_an_app_that_opens_a_window_gets_its_code(visit: Visit, app_address: str) -> None:
    visitor, user, back = visit(), UserFactory(), f"{app_address}/back"
    app = app_of("read", back)
    asked = f"client_id={app.client_id}&redirect_uri={quote(back)}&response_type=code&scope=read"
    Pages.site_address = f"{visitor.site}/oauth/authorize?{asked}"
    page = visitor.page
    page.goto(app_address)
    with page.expect_popup() as opening:
        page.get_by_role("button").click()
    window = opening.value
    window.fill("[name=username]", user.username)
    window.fill("[name=password]", PASSWORD)
    with window.expect_navigation():
        window.press("[name=password]", "Enter")
    window.wait_for_timeout(LOOK_MS)
    window.locator("button[value=allow]").click()
    expect(page).to_have_title("Logged in")


def test_a_page_that_has_just_come_into_view_lets_no_app_in(visit: Visit, app_address: str) -> None:
    """The first of two quick clicks may close a window above. The second must not confirm."""
    visitor, user = visit(), UserFactory()
    app = app_of("read", f"{app_address}/back")
    visitor.log_in(user)
    page = visitor.page
    asked = f"client_id={app.client_id}&redirect_uri={quote(app.redirect_uris)}&response_type=code&scope=read"
    page.goto(f"{visitor.site}/oauth/authorize?{asked}")
    allow = page.locator("button[value=allow]")
    for event in ("focus", "pageshow"):
        page.wait_for_timeout(LOOK_MS)
        assert allow.evaluate(CLICKED_AFTER, event) is False, "the click is taken"
        expect(allow).to_be_visible()
        assert not Grant.objects.exists()
    page.wait_for_timeout(LOOK_MS)
    with page.expect_navigation(url="**/back?*"):
        allow.click()
    assert Grant.objects.count() == 1
