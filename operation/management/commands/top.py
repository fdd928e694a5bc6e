"""`top`: rates, lags, memory and slow statements, drawn again and again."""

import json
import os
import select
import shutil
import sys
import termios
import time
import tty
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import translation

from operation import top
from runtime.arguments import seconds
from storage import postgresql

CLEAR, ASIDE, BACK = "\x1b[H\x1b[2J", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class Command(BaseCommand):
    """Look again and again until q or Ctrl-C."""

    help = "Show what the site is doing: rates, lags, memory, Redis and slow statements. It looks, and never writes."
    requires_system_checks: list[str] = []  # it tells of servers that do not answer

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How often, and for whom."""
        parser.add_argument("--once", action="store_true", help="Two looks and one page, for scripts.")
        parser.add_argument("--json", action="store_true", help="One object, for programs; once.")
        parser.add_argument(
            "--interval", type=seconds(0.2, 3600), default=2.0, metavar="SECONDS", help="Between two looks (2)."
        )

    def handle(self, *args: Any, once: bool, json: bool, interval: float, **options: Any) -> None:
        """Draw pages in the terminal's language."""
        postgresql.bound(top.WAIT_SECONDS)
        with translation.override(language()):
            before = top.look()
            if once or json or not (sys.stdin.isatty() and sys.stdout.isatty()):
                time.sleep(interval)
                self.show(top.Rates(before, top.look()), as_json=json)
                return
            with terminal():
                self.watch(before, interval)

    def show(self, rates: top.Rates, *, as_json: bool) -> None:
        """Write one page."""
        if as_json:
            self.stdout.write(json.dumps(rates.as_json(), ensure_ascii=False))
            return
        width = shutil.get_terminal_size().columns
        self.stdout.write("\n".join(top.lines(rates, width)))

    def watch(self, before: top.Look, interval: float) -> None:
        """Draw until q or Ctrl-C."""
        while not pressed_q(interval):
            now = top.look()
            size = shutil.get_terminal_size()
            page = top.lines(top.Rates(before, now), size.columns)
            self.stdout.write(CLEAR + "\r\n".join(page[: size.lines - 1]), ending="")
            self.stdout.flush()
            before = now


def language() -> str:
    """The site's language that the terminal's variables ask for; English if none."""
    asked = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    known = {code.partition("-")[0]: code for code, _ in settings.LANGUAGES}
    return known.get(asked.partition("_")[0].lower(), "en")


@contextmanager
def terminal() -> Iterator[None]:
    """Another screen, and keys as they are pressed; all as before at the end, Ctrl-C included."""
    before = termios.tcgetattr(sys.stdin)
    sys.stdout.write(ASIDE)
    try:
        tty.setcbreak(sys.stdin)
        yield
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stdout.write(BACK)
        sys.stdout.flush()


def pressed_q(seconds: float) -> bool:
    """Whether q is pressed within that time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0] and os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b""):
            return True
    return False
