"""Take the screenshots of the README from a running site.

    python docs/screenshots.py http://127.0.0.1:8000 USERNAME PASSWORD

Needs the development environment and Chromium (Debian's package `chromium`). The site should hold the demo community
that the first `python3 manage.py up` makes, and USERNAME be one of its logins. Writes docs/images/*.png.
"""

import argparse
import re
import shutil
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).resolve().parent / "images"
WIDE = {"width": 1280, "height": 860}
NARROW = {"width": 390, "height": 844}
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Every page twice: wide and light, narrow and dark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", help="the address of the running site")
    parser.add_argument("username")
    parser.add_argument("password")
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        parser.exit(1, "screenshots: Chromium is not installed (Debian's package chromium)\n")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        take(browser, asked.site.rstrip("/"), asked.username, asked.password, "wide")
        take(browser, asked.site.rstrip("/"), asked.username, asked.password, "narrow")
        browser.close()


def take(browser: Browser, site: str, username: str, password: str, shape: str) -> None:
    """Log in, and walk through the pages as a reader does."""
    context = browser.new_context(
        viewport=WIDE if shape == "wide" else NARROW,  # type: ignore[arg-type]
        color_scheme="light" if shape == "wide" else "dark",
        device_scale_factor=1 if shape == "wide" else 2,
    )
    page = context.new_page()
    page.goto(f"{site}/login")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Home").wait_for()
    keep(page, f"home-{shape}")
    # Somebody whom the reader follows: whoever stands in their home first.
    others = page.locator(f'[role=feed] .name:not([href="/@{username}"])')
    others.first.click()
    page.locator("#standing").wait_for()
    keep(page, f"profile-{shape}")
    answered = page.locator("[role=feed] article").filter(has_text=re.compile(r"\d repl(y|ies)"))
    (answered.first if answered.count() else page.locator("[role=feed] article").first).locator(".time").click()
    page.get_by_role("heading", name="Replies").wait_for()
    keep(page, f"item-{shape}")
    context.close()


def keep(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")


if __name__ == "__main__":
    main()
