"""Apps in browsers, which open the site in a window and wait there for their code."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.support.browsers import Visit
from tests.support.clients import app_of
from tests.support.factories import PASSWORD, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

OPENS = """<!doctype html><script>
onmessage = event => { document.title = event.data.code ? "Logged in" : "Failed"; };
document.onclick = () => {
  const opened = open("%s");
  setInterval(() => { if (opened.closed && !document.title) document.title = "Failed"; }, 50);
};
</script><button>Log in</button>"""
TELLS = """<!doctype html><script>
opener.postMessage({code: new URLSearchParams(location.search).get("code")}, "*"); close();
</script>"""


class Pages(BaseHTTPRequestHandler):
    """The app: a page that opens the site, and one to which the site leads back."""

    site_address = ""

    def do_GET(self) -> None:
        body = (TELLS if self.path.startswith("/back") else OPENS % self.site_address).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def app_address() -> Iterator[str]:
    """Another origin than the site's, which the browser trusts as it trusts https."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


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
    window.press("[name=password]", "Enter")
    window.locator("button[value=allow]").click()
    expect(page).to_have_title("Logged in")
