"""A right-to-left language: the site's texts in Arabic letters."""

import re
from pathlib import Path

import polib
from django.conf import LazySettings

KEPT = re.compile(r"%\(\w+\)[a-z]|%[a-z%]|\{\w*\}|<[^>]*>|&\w+;")
"""What a translation leaves unchanged."""
ARABIC = "ابتثجحخدذرزسشصضطظعغفقكلم"
PLURALS = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"
FORMS = 6


def in_arabic(text: str) -> str:
    """The text keeps its length."""
    parts, place = [], 0
    for kept in KEPT.finditer(text):
        parts += [_letters(text[place : kept.start()]), kept[0]]
        place = kept.end()
    return "".join([*parts, _letters(text[place:])])


def _letters(text: str) -> str:
    return re.sub(r"[A-Za-z]", lambda letter: ARABIC[(ord(letter[0].lower()) - 97) % len(ARABIC)], text)


def offer_arabic(settings: LazySettings, folder: Path) -> None:
    """The compiled catalogue is in `folder`. Plural forms end with their number."""
    texts = polib.pofile(str(Path(settings.BASE_DIR) / "locale/zh_Hans/LC_MESSAGES/django.po"))
    texts.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": PLURALS}
    for text in texts:
        text.flags = []
        if text.msgid_plural:
            text.msgstr_plural = {form: in_arabic(text.msgid_plural) + f" {form}" for form in range(FORMS)}
        else:
            text.msgstr = in_arabic(text.msgid)
    path = folder / "ar/LC_MESSAGES/django.mo"
    path.parent.mkdir(parents=True)
    texts.save_as_mofile(str(path))
    settings.LOCALE_PATHS = [folder, *settings.LOCALE_PATHS]
    settings.LANGUAGES = [*settings.LANGUAGES, ("ar", "العربية")]
