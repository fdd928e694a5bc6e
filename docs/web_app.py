"""Log in to a running site with Phanpy, a web app for Mastodon, and check that it shows the home timeline.

    python docs/web_app.py http://localhost:8105 https://feeds.example USERNAME PASSWORD [PICTURE.png]

The first address serves the built app (`npm ci && npm run build` in its sources makes `dist/`). The second is the site
by HTTPS, behind a proxy as in deploy/, because Phanpy uses no HTTP. Needs the development environment and Chromium.
Prints the app's errors, and exits with 1 unless statuses and their pictures are shown.
"""

import argparse
import shutil
import sys

from playwright.sync_api import Page, sync_playwright

LOADED = "Array.from(document.querySelectorAll('.status img')).filter((one) => one.naturalWidth > 0).length"
SETTLING_MS = 2_000
"""Time for the app to report more errors."""
NO_WINDOWS = "window.open = () => null"
"""Makes the app open the site in its own window, which this script follows."""


def log_in(page: Page, app: str, site: str, username: str, password: str) -> None:
    """Let the app in, as its user does."""
    page.goto(f"{app}/#/login?instance={site.removeprefix('https://')}&submit=1")
    page.wait_for_url(f"{site}/login*")
    page.fill("input[name=username]", username)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(f"{site}/oauth/authorize*")
    page.click("button[value=allow]")
    page.wait_for_url(f"{app}/**")


def main() -> int:
    """Run the app and report what it showed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("app", "site", "username", "password"):
        parser.add_argument(name)
    parser.add_argument("picture", nargs="?")
    asked = parser.parse_args()
    with sync_playwright() as playwright:
        options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox"]}
        page = playwright.chromium.launch(**options).new_page(ignore_https_errors=True)
        page.add_init_script(NO_WINDOWS)
        page.on("console", lambda message: print(message.text) if message.type == "error" else None)
        log_in(page, asked.app, asked.site, asked.username, asked.password)
        page.wait_for_selector(".status")
        page.wait_for_function(f"{LOADED} > 1")
        page.wait_for_timeout(SETTLING_MS)
        statuses, pictures = page.locator(".status").count(), page.evaluate(LOADED)
        if asked.picture:
            page.screenshot(path=asked.picture)
    print(f"{statuses} statuses, {pictures} pictures")
    return 0 if statuses and pictures else 1


if __name__ == "__main__":
    sys.exit(main())
