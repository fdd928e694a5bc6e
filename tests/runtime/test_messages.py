import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.template import engines
from jinja2 import nodes
from jinja2.ext import GETTEXT_FUNCTIONS

LOCALE = Path(settings.BASE_DIR) / "locale"
PAGES = Path(settings.BASE_DIR) / "templates"
CATALOGUES = sorted(LOCALE.glob("*/LC_MESSAGES/*.po"))
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z%]|\{\w*\}|</?\w+[^>]*>")
Entry = tuple[str | None, str]


def entries(path: Path) -> dict[Entry, polib.POEntry]:
    return {(entry.msgctxt, entry.msgid): entry for entry in polib.pofile(str(path))}


def texts(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def test_there_is_a_catalogue_for_every_language_but_the_first() -> None:
    assert {path.parent.parent.name for path in CATALOGUES} == {"ar", "es", "ja", "zh_Hans"}


@pytest.mark.parametrize("path", CATALOGUES, ids=str)
def test_everything_is_translated(path: Path) -> None:
    catalogue = polib.pofile(str(path))
    assert len(catalogue) > (100 if path.stem == "django" else 0)
    assert [entry.msgid for entry in catalogue.untranslated_entries()] == [], f"translate these in {path}"
    assert [entry.msgid for entry in catalogue.fuzzy_entries()] == [], (
        f"each has the translation of a text like it: correct it in {path}, and remove its lines `#, fuzzy` and `#|`"
    )
    assert [entry.msgid for entry in catalogue.obsolete_entries()] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", CATALOGUES, ids=str)
def test_the_compiled_catalogue_says_the_same(path: Path) -> None:
    compiled = {
        (entry.msgctxt, entry.msgid): (entry.msgid_plural, texts(entry))
        for entry in polib.mofile(str(path.with_suffix(".mo")))
    }
    known = {key: (entry.msgid_plural, texts(entry)) for key, entry in entries(path).items()}
    assert compiled == known, "run `python3 manage.py messages --compile`"


@pytest.mark.parametrize("path", CATALOGUES, ids=str)
def test_placeholders_and_markup_are_kept(path: Path) -> None:
    for entry in polib.pofile(str(path)):
        for text in texts(entry):
            placeholders = sorted(PLACEHOLDER.findall(text))
            allowed = [sorted(PLACEHOLDER.findall(source)) for source in (entry.msgid, entry.msgid_plural) if source]
            is_number_in_words = entry.msgid_plural and set(placeholders) <= set(allowed[-1])  # two: "مدخلان"
            assert placeholders in allowed or is_number_in_words, entry.msgid


def texts_of_pages() -> Iterator[tuple[str, Entry, list[str]]]:
    """(page, text with context, value names). No text may be a variable."""
    pages = engines["jinja2"].env
    admin = (PAGES / "django", PAGES / "mail/test.txt")
    for path in sorted(path for path in PAGES.rglob("*.*") if not {path, *path.parents} & {*admin}):
        for call in pages.parse(path.read_text()).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in GETTEXT_FUNCTIONS:
                context = call.args.pop(0).as_const() if "p" in call.node.name else None
                yield path.name, (context, call.args[0].as_const()), [value.key for value in call.kwargs]


@pytest.mark.parametrize("path", list(LOCALE.glob("*/LC_MESSAGES/django.po")), ids=str)
def test_each_text_of_a_page_is_known_and_gets_its_values(path: Path) -> None:
    catalogue = entries(path)
    found = list(texts_of_pages())
    assert len(found) > 500
    assert [(page, text) for page, text, _ in found if text not in catalogue] == [], "run `python3 manage.py messages`"
    for page, text, names in found:
        entry = catalogue[text]
        for form in [entry.msgid, entry.msgid_plural, *texts(entry)]:
            assert "%(" not in form % dict.fromkeys(names, 1), page


def test_texts_are_marked_by_names_that_are_extracted() -> None:
    aliases = re.compile(r"import .*gettext\w* as (?!_$)", re.MULTILINE)
    files = [path for path in Path(settings.BASE_DIR).glob("[!.]*/**/*.py") if "tests" not in path.parts]
    assert [path for path in files if aliases.search(path.read_text())] == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the site that commands may change."""
    if not shutil.which("xgettext"):
        pytest.skip("needs GNU gettext (Debian's package gettext)")
    site = tmp_path / "site"
    left_out = shutil.ignore_patterns(".*", "var", ".venv", "__pycache__", "tests", "docs")
    shutil.copytree(settings.BASE_DIR, site, ignore=left_out)
    return site


def run(site: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "django", *words], cwd=site, check=True, text=True, capture_output=True
    ).stdout


@pytest.mark.long
@pytest.mark.slow
def test_a_language_is_begun_in_one_step(copy: Path) -> None:
    assert "locale/pl/LC_MESSAGES/django.po" in run(copy, "messages", "--new", "pl")
    begun = polib.pofile(str(copy / "locale/pl/LC_MESSAGES/django.po"))
    assert "nplurals=4" in begun.metadata["Plural-Forms"]
    texts_of_members = {entry.msgid for entry in begun}
    assert len(texts_of_members) > 1_000
    assert {"Log in", "This username is taken.", "This usually takes about a day."} <= texts_of_members
    assert not {"is big account", "{who} warned {whom}", "Hold for review", "follow requests"} & texts_of_members
    offered = "from django.conf import settings; print([code for code, _ in settings.LANGUAGES])"
    assert run(copy, "shell", "--no-imports", "--command", offered).strip() == (
        "['en', 'ar', 'es', 'ja', 'pl', 'zh-hans']"
    )


@pytest.mark.long
@pytest.mark.slow
def test_a_changed_text_waits_in_every_catalogue_and_is_english_meanwhile(copy: Path) -> None:
    page = copy / "templates/accounts/reset_link.html"
    page.write_text(page.read_text().replace("Set a new password", "Set a newer password"))
    run(copy, "messages")
    for path in copy.glob("locale/*/LC_MESSAGES/django.po"):
        (changed,) = [entry for entry in polib.pofile(str(path)) if entry.msgid == "Set a newer password"]
        assert "fuzzy" in changed.flags, path
    said = run(
        copy,
        *("shell", "--no-imports", "--command"),
        "from django.utils.translation import gettext, override\n"
        "with override('ar'): print(gettext('Set a newer password'), gettext('You unmuted @%(name)s.'), sep='\\n')",
    )
    assert said.split("\n")[:2] == ["Set a newer password", "ألغيت كتم \u2066@%(name)s\u2069."]


@pytest.mark.long
@pytest.mark.slow
def test_an_unknown_language_is_refused(copy: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run(copy, "messages", "--new", "xx")
    assert "xx is no language code that Django knows" in raised.value.stderr
    assert not (copy / "locale/xx").exists()


@pytest.mark.slow
def test_nothing_in_the_code_is_missing(copy: Path) -> None:
    run(copy, "messages")
    for path in LOCALE.glob("*/LC_MESSAGES/django.po"):  # djangojs.po has the texts of Django's scripts
        extracted = entries(copy / path.relative_to(settings.BASE_DIR))
        assert set(extracted) == set(entries(path)), "run `python3 manage.py messages`, and translate what is new"
        plural = {key: entry.msgid_plural for key, entry in extracted.items()}
        assert plural == {key: entry.msgid_plural for key, entry in entries(path).items()}
