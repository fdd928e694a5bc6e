"""Each signal names its receivers beside it, all in higher layers or in its own room's receivers, a storey above."""

import importlib
import re
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.dispatch import Signal

SIGNAL = re.compile(r"((?:^#[^\n]*\n)+)^(\w+) = Signal\(\)$", re.MULTILINE)


def signals() -> Iterator[tuple[str, str, str]]:
    for path in sorted(Path(settings.BASE_DIR).glob("*/signals.py")):
        text = path.read_text()
        found = SIGNAL.findall(text)
        assert len(found) == text.count("Signal()"), f"{path}: a signal has no comment"
        for comment, name in found:
            yield f"{path.parent.name}.signals", name, comment


@pytest.mark.parametrize(("module", "name", "comment"), list(signals()))
def test_receivers_stand_beside_their_signal(module: str, name: str, comment: str) -> None:
    signal: Signal = getattr(importlib.import_module(module), name)
    connected = set()
    for _, reference, *_ in signal.receivers or []:
        receiver = reference() if isinstance(reference, weakref.ref) else reference
        if receiver is not None and not receiver.__module__.startswith("tests."):
            connected.add(f"{receiver.__module__}.{receiver.__name__}")
    text = comment.replace("\n#", "").replace("  ", " ")
    said = re.search(r"Receivers: ([\w., ]+?)\.$", text.strip())
    assert said, f"{module}.{name} names no receivers; they are {', '.join(sorted(connected))}"
    assert sorted(said[1].split(", ")) == sorted(connected)
    assert connected
    room = module.removesuffix("signals")
    own = {one for one in connected if one.startswith(room) and not one.startswith(f"{room}receivers.")}
    assert not own, "a room calls its own code"
