from argparse import ArgumentParser
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.conf.locale import LANG_INFO
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.management.commands import makemessages
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.utils.translation import to_locale
from jinja2.ext import extract_from_ast

NOT_OURS = [".venv", "var", "tests", "docs", "benchmarks", "locale", "web/static", "static"]


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


class Extract(makemessages.Command):
    """Django's `makemessages`, extended to Jinja2 pages."""

    build_file_class = File


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
            call_command(
                Extract(),
                locale=locales,
                ignore_patterns=NOT_OURS,
                no_location=True,
                no_wrap=True,
                no_obsolete=True,
                verbosity=0,
            )
        call_command("compilemessages", locale=locales, ignore_patterns=NOT_OURS, verbosity=options["verbosity"])
        for locale in locales:
            self.stdout.write(f"{Path('locale', locale, 'LC_MESSAGES', 'django.po')} is extracted and compiled.")
