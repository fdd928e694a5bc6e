"""Valid usernames from any text.

Rules, in this order:

1. A valid name stays.
2. Accents are removed (é → e). Latin, Greek, Cyrillic, Hebrew, Arabic, kana and Hangul become ASCII. Other letters and
   emoji are dropped.
3. Each run of other characters (`^[]{}|`, a backquote, spaces, dots) becomes one `_`, but none at the ends.
4. The name is cut to 30 characters.
5. If nothing is left, the name is `user-ID` with the data set's id. If it is reserved, taken, held, or looks like
   another, `-ID` is appended, then a number.

So a name depends on earlier rows and existing users, and appended rows change none. The text becomes the display name
if valid. Han characters are dropped, because their sounds differ by language.
"""
# ruff: noqa: RUF001 (letters of other scripts are what this module is about)

import re
import unicodedata
from collections.abc import Iterator
from itertools import count

from django.core.exceptions import ValidationError

from accounts.models import not_reserved, username_pattern
from accounts.naming import check_display_name, check_imitation
from web.letters import beginning

LONGEST = 30
"""Maximum characters of a username."""
LONGEST_SHOWN = 50
"""Maximum characters of a display name."""
READ = 200
"""Characters of a text that are used."""

_LETTERS = """
ß=ss æ=ae œ=oe ø=o đ=d ð=d þ=th ł=l ı=i ĸ=k ŋ=n ħ=h ŧ=t ə=e ƒ=f
α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o
а=a б=b в=v г=g д=d е=e ж=zh з=z и=i й=i к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts ч=ch ш=sh щ=shch
ъ= ы=y ь= э=e ю=yu я=ya є=ye і=i ї=yi ґ=g ў=u ђ=d ј=j љ=lj њ=nj ћ=c џ=dz ѓ=g ќ=k ѕ=dz
א=a ב=b ג=g ד=d ה=h ו=v ז=z ח=h ט=t י=y כ=k ך=k ל=l מ=m ם=m נ=n ן=n ס=s ע=a פ=p ף=p צ=ts ץ=ts ק=q ר=r ש=sh ת=t
ا=a ب=b ت=t ث=th ج=j ح=h خ=kh د=d ذ=dh ر=r ز=z س=s ش=sh ص=s ض=d ط=t ظ=z ع=a غ=gh ف=f ق=q ك=k ل=l م=m ن=n ه=h و=w
ي=y ة=a ى=a ء=
"""
"""Letters of Latin, Greek, Cyrillic, Hebrew and Arabic in ASCII."""
_ASCII = dict(pair.split("=") for pair in _LETTERS.split())
_SYLLABLE = re.compile(r"(?:HANGUL SYLLABLE|(?:HIRAGANA|KATAKANA) LETTER(?: SMALL)?) ([A-Z]+)\Z")
"""Unicode names of syllables say how they sound."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_ENDS = "_-"


def is_permitted(name: str) -> bool:
    """Whether a user may have this name."""
    try:
        username_pattern(name)
        not_reserved(name)
    except ValidationError:
        return False
    return True


def candidates(text: str, number: int) -> Iterator[str]:
    """Valid names without end, best first."""
    base = text if is_permitted(text) else _written(text)
    if is_permitted(base):
        yield base
    for place in count():
        end = f"-{number}" if place == 0 else f"-{number}-{place + 1}"
        name = f"{base[: LONGEST - len(end)].rstrip(_ENDS) or 'user'}{end}"
        yield name


def _written(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text[:READ])
    return _OTHER.sub("_", "".join(map(_ascii, plain))).strip(_ENDS)[:LONGEST].rstrip(_ENDS)


def _ascii(letter: str) -> str:
    if letter.isascii():
        return letter
    known = _ASCII.get(letter.lower())
    if known is None:
        syllable = _SYLLABLE.match(unicodedata.name(letter, ""))
        bare = "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part))
        known = syllable[1].lower() if syllable else _bare(bare)
    return known.capitalize() if letter.isupper() else known


def _bare(letters: str) -> str:
    """Without accents. Empty for other scripts, a space for a non-letter."""
    said = "".join(letter if letter.isascii() else _ASCII.get(letter.lower(), "") for letter in letters)
    return said if said or any(letter.isalnum() for letter in letters) else " "


def display_name(text: str, username: str) -> str:
    """The text on one line, cut to the limit. Empty if invalid, or equal to the username."""
    letters = (
        letter if unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp") else " " for letter in text[:READ]
    )
    name = beginning(" ".join("".join(letters).split()), LONGEST_SHOWN).rstrip()
    try:
        check_display_name(name)
        check_imitation(name)
    except ValidationError:
        return ""
    return "" if name == username else name
