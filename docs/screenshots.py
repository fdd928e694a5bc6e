"""Take the screenshots of the README from a running site.

    python docs/screenshots.py http://127.0.0.1:8000 USERNAME PASSWORD

Needs the development environment and Chromium (Debian: `chromium`, and `fonts-wqy-microhei` for Chinese). The site
should hold the demo community of the first `python3 manage.py up`, with USERNAME in it. Writes WebP files to
docs/images, or to the folder `--to`.
"""

import argparse
import io
import shutil
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).resolve().parent / "images"
SHAPES = {"wide": {"width": 1280, "height": 860}, "narrow": {"width": 390, "height": 844}}
SCALE = 2
"""Pixels of a CSS pixel: sharp on dense screens."""
QUALITIES = (90, 85, 80, 70, 60)
MOST_BYTES = 300_000
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
NEIGHBOUR = "tomas"
"""A demo member with a banner, pictures, and a conversation with `mira`."""
CHINESE = "lin-wei"
"""A demo member who writes in Chinese."""
ANSWERED = "Sixty kilometres"
"""How their post with pictures and replies begins."""
LOADED = """
    !document.querySelector("[aria-busy=true], .htmx-request")
    && Array.from(document.images).every((one) => one.complete || !one.checkVisibility()
        || one.getBoundingClientRect().top > innerHeight)
"""
PICTURED = "[role=feed] article:has(.pictures):not(:has(.veil))"
# Name, shape, colours, language, and what is shown.
PICTURES = [
    ("home", "wide", "light", "en-US", "home"),
    ("thread", "wide", "light", "en-US", "thread"),
    ("messages", "wide", "light", "en-US", "messages"),
    ("live", "wide", "dark", "en-US", "live"),
    ("discover", "narrow", "light", "en-US", "discover"),
    ("profile", "narrow", "light", "en-US", "profile"),
    ("chinese", "narrow", "dark", "zh-CN", "chinese"),
]


def main() -> None:
    """Take each picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", help="the address of the running site")
    parser.add_argument("username")
    parser.add_argument("password")
    parser.add_argument("names", nargs="*", help="the pictures to take; all without any")
    parser.add_argument("--to", type=Path, default=IMAGES, help="the folder of the pictures")
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        parser.exit(1, "screenshots: Chromium is not installed (Debian's package chromium)\n")
    asked.to.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for name, shape, colours, language, what in PICTURES:
            if asked.names and name not in asked.names:
                continue
            page = enter(browser, asked, shape, colours, language)
            lead(page, asked.site.rstrip("/"), what)
            settle(page)
            write(page.screenshot(animations="disabled"), asked.to / f"{name}.webp")
            page.context.close()
        browser.close()


def write(shot: bytes, path: Path) -> None:
    """Write a picture in the best quality that has at most `MOST_BYTES`."""
    with Image.open(io.BytesIO(shot)) as image:
        for quality in QUALITIES:
            image.convert("RGB").save(path, "WEBP", quality=quality, method=6)
            if path.stat().st_size <= MOST_BYTES:
                return


def enter(browser: Browser, asked: argparse.Namespace, shape: str, colours: str, language: str) -> Page:
    """Log in. Fields are found by name, in any language."""
    context = browser.new_context(
        viewport=SHAPES[shape],  # type: ignore[arg-type]
        color_scheme=colours,  # type: ignore[arg-type]
        locale=language,
        device_scale_factor=SCALE,
    )
    page = context.new_page()
    site = asked.site.rstrip("/")
    page.goto(f"{site}/login")
    page.locator("[name=username]").fill(asked.username)
    page.locator("[name=password]").fill(asked.password)
    page.locator("[name=password]").press("Enter")
    page.locator("#timeline").wait_for()
    return page


def settle(page: Page) -> None:
    """Wait until everything in sight is loaded. The network is never idle: an open page hears news."""
    until = time.monotonic() + 20
    while not page.evaluate(LOADED) and time.monotonic() < until:
        page.wait_for_timeout(100)
    page.wait_for_timeout(500)  # the page still draws


def lead(page: Page, site: str, what: str) -> None:
    """Bring the page to the state of this picture."""
    if what == "messages":
        page.goto(f"{site}/conversations")
        page.locator(f".talk:has-text('@{NEIGHBOUR}') .covers").click()
        page.locator("#messages").wait_for()
    elif what == "discover":
        page.goto(f"{site}/discover")
        seen = page.locator(PICTURED).first  # below people and hashtags, perhaps on a later page
        for _ in range(6):
            if seen.count():
                break
            page.mouse.wheel(0, 20_000)
            page.wait_for_timeout(700)
        seen.evaluate("(article) => scrollBy(0, article.getBoundingClientRect().top - 60)")
    elif what == "live":
        page.goto(f"{site}/live")
        page.locator("#live article").first.wait_for()
    elif what == "profile":
        page.goto(f"{site}/@{NEIGHBOUR}")
        page.locator("#standing").wait_for()
    elif what == "chinese":
        page.goto(f"{site}/@{CHINESE}")
        page.locator("#standing").wait_for()
    elif what == "thread":
        page.goto(f"{site}/@{NEIGHBOUR}")
        page.locator(f"[role=feed] article:has-text('{ANSWERED}') .byline .time").first.click()
        page.locator("#replies").wait_for()
        settle(page)
        page.mouse.wheel(0, 107)  # some replies come into sight


if __name__ == "__main__":
    main()
