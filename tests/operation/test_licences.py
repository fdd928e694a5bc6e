"""Licences of what is installed: the list is what the packages say, and each may be given on with the site."""

import pytest
from django.conf import settings

import manage
from operation.licences import EXCEPTIONS, Package, of_traces, packages
from operation.management.commands.document_licences import page

PACKAGES = packages(manage.RUNTIME_LOCK)
MORE = of_traces(manage.RUNTIME_LOCK, settings.BASE_DIR / "requirements-traces.lock")


@pytest.mark.parametrize("package", [*PACKAGES, *MORE], ids=lambda package: package.name)
def test_the_site_may_be_given_on_with_it(package: Package) -> None:
    assert package.allowed(), f"{package.name} is under {package.licence or 'no known licence'}"


def test_all_of_the_lock_is_looked_at() -> None:
    pinned = manage.RUNTIME_LOCK.read_text().count("==")
    assert pinned * 0.9 < len(PACKAGES) <= pinned, "but for what other machines install"
    assert EXCEPTIONS.keys() <= {package.name for package in PACKAGES}


def test_the_page_is_made_of_them() -> None:
    assert (settings.BASE_DIR / "docs" / "licences.md").read_text() == page()


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        ("MIT", True),
        ("MIT AND BSD-3-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("(MIT OR Apache-2.0) AND ISC", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("SSPL-1.0", False),
        ("Other/Proprietary License", False),
        ("", False),
    ],
)
def test_a_licence_that_does_not_go_with_the_sites_is_refused(licence: str, is_allowed: bool) -> None:
    assert Package("made-up", licence).allowed() is is_allowed
