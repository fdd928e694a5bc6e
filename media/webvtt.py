"""Parses WebVTT strictly and rewrites it with times and plain words only. Unknown tags are refused."""

import html
import re
from typing import NamedTuple

BYTES = 256 * 1024
"""Largest file."""
CUES = 5_000
LETTERS = 1_000
"""Most characters of one cue."""
HEAD = re.compile(rb"(?:\xef\xbb\xbf)?WEBVTT(?:[ \t\r\n]|\Z)")
TIMING = re.compile(r"(?:(\d{2,3}):)?([0-5]\d):([0-5]\d)\.(\d{3})", re.ASCII)
LINE = re.compile(rf"({TIMING.pattern})[ \t]+-->[ \t]+({TIMING.pattern})(?:[ \t].*)?", re.ASCII)
LEFT_OUT = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t]|$)")
VOICE = re.compile(r"<v(?:\.[\w.-]*)?[ \t]+([^<>&\n]{1,100})>")
TAG = re.compile(rf"</?(?:c|i|b|u|v|ruby|rt|lang)(?:\.[\w.-]*)?(?:[ \t][^<>\n]*)?>|<{TIMING.pattern}>", re.ASCII)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class CaptionsError(ValueError):
    """The file is refused. The message is a one-word reason."""


class Cue(NamedTuple):
    """Words with begin and end in milliseconds."""

    begin: int
    end: int
    text: str


def rewritten(data: bytes) -> str:
    """Captions as they are stored. Raises CaptionsError."""
    cues = sorted(parsed(data), key=lambda cue: (cue.begin, cue.end))
    return "WEBVTT\n\n" + "\n\n".join(map(_format_cue, cues)) + "\n"


def caption_words(kept: str) -> str:
    """The words of rewritten captions."""
    lines = kept.removeprefix("WEBVTT").split("\n")
    return html.unescape("\n".join(line for line in lines if line and "-->" not in line))


def parsed(data: bytes) -> list[Cue]:
    """The cues in file order. Raises CaptionsError."""
    if len(data) > BYTES:
        raise CaptionsError("large")
    if not HEAD.match(data):
        raise CaptionsError("kind")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CaptionsError("encoding") from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if CONTROL.search(text.replace("\r", "")):
        raise CaptionsError("characters")
    cues = [cue for block in _blocks(lines)[1:] if (cue := _cue(block))]
    if not cues:
        raise CaptionsError("empty")
    if len(cues) > CUES:
        raise CaptionsError("large")
    return cues


def _blocks(lines: list[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _cue(block: list[str]) -> Cue | None:
    """The cue of a block. None for comments and cues without words. Raises CaptionsError."""
    if LEFT_OUT.match(block[0]) and not any("-->" in line for line in block):
        return None
    at = 0 if "-->" in block[0] else 1
    match = LINE.fullmatch(block[at]) if at < len(block) else None
    if match is None or any("-->" in line for line in block[at + 1 :]):
        raise CaptionsError("times")
    begin, end = _milliseconds(*match.groups()[1:5]), _milliseconds(*match.groups()[6:10])
    if begin >= end:
        raise CaptionsError("times")
    lines = _plain_text("\n".join(block[at + 1 :])).split("\n")
    text = "\n".join(filter(None, map(str.strip, lines)))
    if len(text) > LETTERS:
        raise CaptionsError("large")
    return Cue(begin, end, text) if text else None


def _milliseconds(hours: str | None, minutes: str, seconds: str, thousandths: str) -> int:
    return ((int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(thousandths)


def _plain_text(text: str) -> str:
    bare = TAG.sub("", VOICE.sub(r"\1: ", text))
    if "<" in bare:
        raise CaptionsError("tags")
    plain = html.unescape(bare)
    if CONTROL.search(plain):
        raise CaptionsError("characters")
    return plain


def _format_cue(cue: Cue) -> str:
    return f"{_time(cue.begin)} --> {_time(cue.end)}\n{html.escape(cue.text, quote=False)}"


def _time(milliseconds: int) -> str:
    seconds, thousandths = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{thousandths:03}"
