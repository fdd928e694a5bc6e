"""Every page in languages that nobody speaks: one from right to left, and one with longer texts in brackets."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tests.browser.test_accessibility import TOO_WIDE, shown, violations
from tests.support.browsers import Visit
from tests.support.languages import offer_arabic, offer_brackets

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("media_folder"),
]

CUT = """
    () => [...document.querySelectorAll("main *, .side *, .aside *, dialog[open] *")].filter((element) => {
        const style = getComputedStyle(element);
        const isCut = style.overflowX === "hidden" && style.textOverflow !== "ellipsis"
            && style.webkitLineClamp === "none" && style.visibility === "visible" && element.clientWidth > 1
            && element.scrollWidth > element.clientWidth + 1;
        return isCut && element.textContent.includes("⟦") && !element.closest(".hidden, .hidden *");
    }).map((element) => `${element.tagName}.${element.className}`)
"""
OF_PEOPLE = (
    "bdi, .text, .title, .name, .excerpt, .bio, .brief, .facts dd, .quoted, .link, .warned-of, .handle,"
    " .announcement p, .warning-text, .hints, .exactly,"
    " .light-words, .brand, .code, time, code, kbd, svg, script, style, option, textarea, body [lang], body [dir]"
)
"""What people or other programs wrote, and names of things."""
OF_OTHERS = (
    "Books, slowly.",
    "Be kind.",
    "post@example.org",
    "https://",
    "feedsite",
    "API",
    "Ĉi tiu kampo estas deviga.",
)
"""Texts of the site's owner and of Django."""
NOT_TRANSLATED = """
    (ofPeople) => {
        const groups = new Map();
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const at = walker.currentNode.parentElement;
            if (at.closest(ofPeople) || !at.checkVisibility()) continue;
            let block = at;
            while (getComputedStyle(block).display === "inline") block = block.parentElement;
            groups.set(block, (groups.get(block) ?? "") + walker.currentNode.data);
        }
        const plain = (text) => {
            for (let before = ""; before !== text; ) [before, text] = [text, text.replace(/⟦[^⟦⟧]*⟧/gu, "")];
            return /\\p{L}{2,}/u.test(text) ? text.trim() : "";
        };
        const labels = [...document.querySelectorAll("body [title], body [placeholder], body [aria-label]")]
            .filter((one) => !one.closest(ofPeople))
            .flatMap((one) => [one.title, one.placeholder, one.ariaLabel].filter(Boolean));
        return [...groups.values(), ...labels].map(plain).filter(Boolean);
    }
"""


@pytest.mark.parametrize(("pixels", "parity"), [(390, 0), (1366, 1)])
def test_longer_texts_fit_and_every_text_is_translated(
    visit: Visit, settings: Any, tolerated: Any, tmp_path: Path, pixels: int, parity: int
) -> None:
    settings.HOME_POLL_SECONDS = 1000
    offer_brackets(settings, tmp_path)
    tolerated("with a status of 4")
    wrong: list[str] = []
    for at, page in shown(visit, "eo", pixels, parity=parity):
        if not at.startswith("admin"):
            texts = page.evaluate(NOT_TRANSLATED, OF_PEOPLE)
            wrong += [f"{at}: not translated: {text}" for text in texts if text not in OF_OTHERS]
        wrong += [f"{at}: cut: {element}" for element in page.evaluate(CUT)]
        wrong += [f"{at}: wider: {element}" for element in page.evaluate(TOO_WIDE, pixels)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("pixels", "parity"), [(390, 1), (1366, 0)])
def test_pages_from_right_to_left_stand_in_nobodys_way(
    visit: Visit, settings: Any, tolerated: Any, tmp_path: Path, pixels: int, parity: int
) -> None:
    settings.HOME_POLL_SECONDS = 1000
    offer_arabic(settings, tmp_path)
    tolerated("with a status of 4")
    wrong: list[str] = []
    for at, page in shown(visit, "ar", pixels, parity=parity):
        page.evaluate(AXE_SCRIPT)
        wrong += [f"{at}: {found}" for found in violations(page)]
        wrong += [f"{at}: wider: {element}" for element in page.evaluate(TOO_WIDE, pixels)]
    assert not wrong, "\n".join(wrong)
