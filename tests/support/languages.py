"""Languages that nobody speaks: the site's texts in Arabic letters, and longer ones in brackets."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polib
from django.conf import LazySettings, settings
from django.core.signals import setting_changed
from django.dispatch import receiver

from feedsite import jinja
from runtime.management.commands.messages import USERNAME

KEPT = re.compile(r"%\(\w+\)[a-z]|%[a-z%]|\{\w*\}|<[^>]*>|&\w+;")
"""What a translation leaves unchanged."""
ARABIC = "ابتثجحخدذرزسشصضطظعغفقكلم"
PLURALS = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"
FORMS = 6


def in_arabic(text: str) -> str:
    """The text keeps its length. @names stand between isolates, as in real catalogues."""
    return USERNAME.sub("\u2066\\g<0>\u2069", _rewritten(text, _letters))


def in_brackets(text: str) -> str:
    """The text is two fifths longer. What a page shows without brackets is not translated."""
    return f"⟦{text}{'~' * (len(KEPT.sub('', text)) * 2 // 5)}⟧"


def _rewritten(text: str, write: Callable[[str], str]) -> str:
    parts, place = [], 0
    for kept in KEPT.finditer(text):
        parts += [write(text[place : kept.start()]), kept[0]]
        place = kept.end()
    return "".join([*parts, write(text[place:])])


def _letters(text: str) -> str:
    return re.sub(r"[A-Za-z]", lambda letter: ARABIC[(ord(letter[0].lower()) - 97) % len(ARABIC)], text)


def offer_arabic(changed: LazySettings, folder: Path) -> None:
    """Plural forms end with their number."""
    catalogue(folder, "ar", in_arabic, PLURALS, lambda form: f" {form}")
    _offer(changed, folder, "ar", "العربية")


def offer_brackets(changed: LazySettings, folder: Path) -> None:
    """Under the code of Esperanto, which Django knows."""
    catalogue(folder, "eo", in_brackets, "nplurals=2; plural=n != 1;")
    _offer(changed, folder, "eo", "⟦Esperanto⟧")


def catalogue(
    folder: Path, code: str, write: Callable[[str], str], plurals: str, ending: Callable[[int], str] = lambda form: ""
) -> None:
    """A compiled catalogue with the site's texts."""
    texts = polib.pofile(str(Path(settings.BASE_DIR) / "locale/zh_Hans/LC_MESSAGES/django.po"))
    texts.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": plurals}
    for text in texts:
        text.flags = []
        if text.msgid_plural:
            forms = range(int(re.findall(r"\d+", plurals)[0]))
            text.msgstr_plural = {form: write(text.msgid_plural) + ending(form) for form in forms}
        else:
            text.msgstr = write(text.msgid)
    path = folder / code / "LC_MESSAGES/django.mo"
    path.parent.mkdir(parents=True)
    texts.save_as_mofile(str(path))


@receiver(setting_changed)
def forget_translations(setting: str, **kwargs: Any) -> None:
    """Forget what was translated by other catalogues."""
    if setting == "LOCALE_PATHS":
        jinja._in_language.cache_clear()


def _offer(changed: LazySettings, folder: Path, code: str, name: str) -> None:
    changed.LOCALE_PATHS = [folder, *changed.LOCALE_PATHS]
    changed.LANGUAGES = [*(language for language in changed.LANGUAGES if language[0] != code), (code, name)]
