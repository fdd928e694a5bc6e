"""Pages use what browsers have had for 30 months (README.md#browsers)."""

import re
from pathlib import Path

import pytest
from django.conf import settings

FOLDER = Path(settings.BASE_DIR, "web", "static", "feedsite")
NEWER = {
    # Scripts. A call after `?.` asks first.
    ".js": [
        r"(?<!\?)\.(?:canParse|checkVisibility|showPopover|hidePopover|togglePopover|requestClose|moveBefore|setHTML)\(",
        r"(?<!\?)\.(?:startViewTransition|requestIdleCallback|isSubsetOf|isSupersetOf|isDisjointFrom|symmetricDifference)\(",
        r"\b(?:Promise\.try|RegExp\.escape|Iterator\.from|Error\.isError|Math\.sumPrecise|Array\.fromAsync)\(",
        r"\b(?:Temporal|Float16Array|DurationFormat|URLPattern|cookieStore|scheduler|navigation)\.",
        r"\b(?:toBase64|fromBase64|toHex|fromHex|rawJSON)\(",
        r"\.(?:values|keys|entries)\(\)\.(?:map|filter|take|drop|flatMap|reduce|toArray|some|every|find)\(",
        r"\"scrollend\"|\(\?[ims]+(?:-[ims]+)?:|^\s*using |\bwith \{ type:",
    ],
    ".css": [
        r"@(?:starting-style|scope|property|view-transition|position-try|function)\b",
        r"\b(?:anchor-name|position-anchor|interpolate-size|text-box|animation-timeline|scroll-timeline|view-timeline)\b",
        r"\b(?:view-transition-name|transition-behavior|content-visibility|scrollbar-gutter|reading-flow|corner-shape):",
        r"\b(?:calc-size|contrast-color|sibling-index|if)\(|text-wrap: pretty|:open\b",
    ],
}
"""What came later to one of Chrome, Firefox and Safari. What only makes a page nicer is not named here."""


@pytest.mark.parametrize("kind", NEWER)
def test_scripts_and_styles_use_nothing_newer(kind: str) -> None:
    files = sorted(FOLDER.glob(f"*{kind}"))
    assert files
    patterns = [re.compile(pattern, re.MULTILINE) for pattern in NEWER[kind]]
    found = [
        f"{path.name}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for pattern in patterns
        for match in pattern.finditer(line)
    ]
    assert not found
