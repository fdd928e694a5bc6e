"""The licences of all packages that a site installs, and whether the site may be given on with them.

A package says its licence by an SPDX expression, or in older metadata by classifiers or a word. `ALLOWED` are those
that go with the site's own (MIT): they let a work that uses the package be given on under other terms. A licence that
is not among them fails the test, and so does a package that says none; `EXCEPTIONS` are known, and stand in the list.
"""

import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

ALLOWED = {
    "0BSD": "",
    "Apache-2.0": "",
    "BSD-2-Clause": "",
    "BSD-3-Clause": "",
    "CC0-1.0": "",
    "HPND": "",
    "ISC": "",
    "LGPL-3.0-only": "used as a library, unchanged",
    "LGPL-3.0-or-later": "used as a library, unchanged",
    "MIT": "",
    "MIT-0": "",
    "MIT-CMU": "",
    "MPL-2.0": "its files stay under it",
    "OLDAP-2.8": "",
    "PSF-2.0": "",
    "PostgreSQL": "",
    "Unlicense": "",
    "Zlib": "",
}
"""SPDX identifiers, and what is to be heeded."""
WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""Words of older metadata, as SPDX identifiers."""
READ = {
    "pyahocorasick": "BSD-3-Clause",  # a part is in the public domain
    "qrcode": "BSD-3-Clause",  # all of its LICENSE; a classifier says otherwise
}
"""Packages whose metadata do not say enough, by what the licence in their files is."""
EXCEPTIONS = {
    "pillow-heif": "its wheel holds libx265 under GPL-2.0-or-later: an image that is given on with it is under the GPL",
}
"""Packages whose wheels are under other terms than their metadata say, and what follows."""


class Package(msgspec.Struct):
    """A package of the lock, with its licence as an SPDX expression; empty where it says none."""

    name: str
    licence: str

    def allowed(self) -> bool:
        """Whether the site may be given on with it: one of the licences that it offers, and all that it combines."""
        if not self.licence:
            return False
        choices = re.split(r"\s+OR\s+", self.licence.replace("(", "").replace(")", ""))
        return any(all(part in ALLOWED for part in re.split(r"\s+AND\s+", choice)) for choice in choices)

    def heeded(self) -> str:
        """The terms to be heeded, or an empty text."""
        if self.name in EXCEPTIONS:
            return f"**{EXCEPTIONS[self.name]}**"
        return "; ".join(dict.fromkeys(note for name, note in ALLOWED.items() if note and name in self.licence))


def packages(lock: Path) -> list[Package]:
    """All that the lock installs on this machine, by name."""
    found = []
    for line in re.findall(r"^(\w[^\\\n]*==[^\\\n]*)", lock.read_text(), re.MULTILINE):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            found.append(Package(requirement.name, licence_of(requirement.name)))
    return sorted({each.name: each for each in found}.values(), key=lambda each: each.name)


def of_traces(site: Path, traces: Path) -> list[Package]:
    """The packages that the lock of the extra `traces` installs besides those of the site."""
    names = {each.name for each in packages(site)}
    return [each for each in packages(traces) if each.name not in names]


def licence_of(name: str) -> str:
    """An SPDX expression; empty where the package says nothing that is known."""
    if name in READ:
        return READ[name]
    said = metadata.metadata(name)
    if expression := said.get_all("License-Expression"):
        return str(expression[0])
    found = list(dict.fromkeys(_by_words(said)))
    return " AND ".join(found) if found else ""


def _by_words(said: "metadata.PackageMetadata") -> Iterator[str]:
    for classifier in said.get_all("Classifier") or ():
        word = classifier.rpartition(" :: ")[2]
        if classifier.startswith("License :: ") and word != "OSI Approved":
            yield WORDS.get(word, word)
    if not any(each.startswith("License :: OSI Approved :: ") for each in said.get_all("Classifier") or ()):
        word = "".join(said.get_all("License") or ()).strip()
        if word and "\n" not in word:
            yield WORDS.get(word, word)


def table(found: Iterable[Package]) -> str:
    """Packages as a table of Markdown."""
    rows = [f"| {each.name} | {each.licence or '**none is said**'} | {each.heeded()} |" for each in found]
    return "\n".join(["| package | licence | to be heeded |", "|---|---|---|", *rows])
