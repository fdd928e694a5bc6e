import ast
import re
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.conf.locale import LANG_INFO
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.management.commands import makemessages
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.utils.translation import get_language_info, to_locale
from jinja2.ext import extract_from_ast

NOT_OURS = [".venv", "var", "tests", "docs", "benchmarks", "locale", "web/static", "static"]

ADMIN_FILES = [
    *("*admin.py", "apps.py", "templates/django", "templates/mail/test.txt", "accounts/about/actions.py"),
    *("accounts/about/colours.py", "accounts/about/models.py", "accounts/joining_models.py", "accounts/mail/models.py"),
    *("accounts/review.py", "live/review.py", "moderation/by_hand.py", "moderation/case_acts.py"),
    *("moderation/sentences.py", "moderation/subjects.py", "seen/models.py", "storage/deliveries.py"),
    *("timeline/explain.py", "timeline/models.py", "timeline/truth.py"),
]
"""Files whose texts only admins and moderators read."""
ADMIN_CLASSES = {
    *("Level", "BigVChange", "CardState", "GroundsForm", "ItemType", "MediaKind", "MediaState", "Review", "State"),
    *("Status", "Use", "Visibility", "AppealState", "CaseSource", "CaseState", "PictureAction", "SenderKind", "Verb"),
    "WordRule",
}
"""Likewise classes in `models.py` and `forms.py`."""
USERNAME = re.compile(r"(?<!\u2066)@(?:%\(\w+\)s|\{\w+\})")


class File(makemessages.BuildFile):
    """A source file, written as Python for xgettext. Unlike Django it also reads Jinja2 pages."""

    def preprocess(self) -> None:
        """Write the texts of a Jinja2 page as Python calls."""
        path = Path(self.path)
        if path.parts[0] != "templates" or path.parts[1] == "django":
            super().preprocess()
            return
        page = cast("Jinja2", engines["jinja2"]).env.parse(path.read_text(encoding="utf-8"), filename=str(path))
        calls = [f"{name}{texts!r}\n" for _, name, texts in extract_from_ast(page, babel_style=False)]
        Path(self.work_path).write_text("".join(calls), encoding="utf-8")


class MembersFile(File):
    """A source file without the texts of the admin: names of columns, and `ADMIN_CLASSES`."""

    @cached_property
    def has_both(self) -> bool:
        """Whether texts of members and of the admin stand in this file."""
        return Path(self.path).name.endswith(("models.py", "forms.py"))

    @cached_property
    def is_templatized(self) -> bool:
        """Whether a copy is read."""
        return self.has_both or super().is_templatized

    def preprocess(self) -> None:
        """Write a copy without these texts."""
        if not self.has_both:
            super().preprocess()
            return
        text = Path(self.path).read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in admin_parts(ast.parse(text)):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        Path(self.work_path).write_text("\n".join(lines), encoding="utf-8")


def admin_parts(tree: ast.Module) -> Iterator[ast.stmt]:
    """Classes of the admin, and what names a model and its columns."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        if node.name in ADMIN_CLASSES:
            yield node
        for each in node.body:
            is_choice = isinstance(each, ast.Assign) and isinstance(each.value, ast.Tuple)
            is_column = isinstance(each, ast.Assign) and "models." in ast.unparse(each.value)
            if not is_choice and (is_column or getattr(each, "name", "") in ("Meta", "__str__")):
                yield each


class Extract(makemessages.Command):
    """Django's `makemessages`, extended to Jinja2 pages."""

    build_file_class = File


class ExtractMembersTexts(makemessages.Command):
    """Without the texts of the admin."""

    build_file_class = MembersFile


def isolate_usernames(catalogue: Path) -> None:
    """Put @names between isolates (U+2066, U+2069), which keep the @ before the name."""
    lines, is_translation = [], False
    for line in catalogue.read_text(encoding="utf-8").splitlines():
        is_translation = line.startswith("msgstr") or (is_translation and line.startswith('"'))
        lines.append(USERNAME.sub("\u2066\\g<0>\u2069", line) if is_translation else line)
    catalogue.write_text("\n".join([*lines, ""]), encoding="utf-8")


class Command(BaseCommand):
    """Extracts and compiles the translated texts.

    Needs GNU gettext. The site does not: compiled catalogues are in the repository. People must translate new texts and
    check fuzzy ones, or tests/runtime/test_messages.py fails.
    """

    help = "Extract the texts of the code into locale/ (needs GNU gettext), and compile the catalogues."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--compile", action="store_true", help="Only compile.")
        parser.add_argument("--new", metavar="CODE", help="Begin a catalogue, such as `ar` or `pt-br`.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Extract the texts, and compile the catalogues."""
        codes = [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
        if options["new"]:
            if options["new"] not in LANG_INFO or options["new"] == settings.LANGUAGE_CODE:
                raise CommandError(f"{options['new']} is no language code that Django knows, such as ar or pt-br.")
            codes = [options["new"]]
        locales = [to_locale(code) for code in codes]
        if not options["compile"]:
            extract(Extract(), [to_locale(code) for code in codes if code in settings.ADMIN_LANGUAGES], NOT_OURS)
            rest = [to_locale(code) for code in codes if code not in settings.ADMIN_LANGUAGES]
            extract(ExtractMembersTexts(), rest, [*NOT_OURS, *ADMIN_FILES])
        for code in codes:
            if get_language_info(code)["bidi"]:
                isolate_usernames(Path("locale", to_locale(code), "LC_MESSAGES", "django.po"))
        call_command("compilemessages", locale=locales, ignore_patterns=NOT_OURS, verbosity=options["verbosity"])
        for locale in locales:
            self.stdout.write(f"{Path('locale', locale, 'LC_MESSAGES', 'django.po')} is extracted and compiled.")


def extract(command: makemessages.Command, locales: list[str], left_out: list[str]) -> None:
    """Bring catalogues up to date with the texts of the code."""
    if locales:
        call_command(
            command,
            locale=locales,
            ignore_patterns=left_out,
            no_location=True,
            no_wrap=True,
            no_obsolete=True,
            verbosity=0,
        )
