"""The rules of follows, blocks and mutes stand in one place."""

import re
from pathlib import Path

import pytest
from django.conf import settings

TABLES = re.compile(r"\b(FROM|JOIN|INTO|UPDATE)\s+relations_(follow|block|mute)\b")
OWN_TEXTS = {"timeline/oracle.py", "live/oracle.py"}
"""The oracles, on purpose: a rule that is wrong shall not agree with itself."""
ROOMS = (
    "accounts",
    "discover",
    "feedsite",
    "items",
    "live",
    "moderation",
    "notifications",
    "operation",
    "seen",
    "timeline",
)


@pytest.mark.parametrize("room", ROOMS)
def test_no_other_room_names_the_tables(room: str) -> None:
    naming = {
        str(path.relative_to(settings.BASE_DIR))
        for path in (Path(settings.BASE_DIR) / room).rglob("*.py")
        if "migrations" not in path.parts and TABLES.search(path.read_text())
    }
    assert naming <= OWN_TEXTS
