"""Python programs that a process starts as needed, with code that was read when the process started.

An upgrade may have replaced the tree by then.
"""

import marshal
import os
import sys
import tempfile
import zipfile
from functools import cached_property
from importlib.abc import SourceLoader
from importlib.util import MAGIC_NUMBER, find_spec
from itertools import accumulate
from typing import ClassVar


class LoadedProgram:
    """A module that runs as a program, with the site's modules that it imports."""

    every: ClassVar[list["LoadedProgram"]] = []

    def __init__(self, module: str, *imported: str) -> None:
        self.module, self.imported = module, imported
        self.every.append(self)

    @cached_property
    def handle(self) -> int:
        """A zip file with the code, without a name on the disk. The program must inherit it."""
        with tempfile.TemporaryFile() as file:
            with zipfile.ZipFile(file, "w") as packed:
                for name in self._names():
                    spec = find_spec(name)
                    assert spec is not None  # noqa: S101 (our own)
                    assert isinstance(spec.loader, SourceLoader)  # noqa: S101 (the same)
                    code = MAGIC_NUMBER + bytes(12) + marshal.dumps(spec.loader.get_code(name))
                    end = ".pyc" if spec.submodule_search_locations is None else "/__init__.pyc"
                    packed.writestr(name.replace(".", "/") + end, code)
                run = f"import runpy; runpy.run_module({self.module!r}, run_name='__main__', alter_sys=True)"
                packed.writestr("__main__.py", run)
            file.flush()
            return os.dup(file.fileno())

    @property
    def command(self) -> list[str]:
        """The command. Its process must inherit `handle`."""
        return [sys.executable, f"/dev/fd/{self.handle}"]

    def _names(self) -> set[str]:
        """The modules and their packages."""
        each = (accumulate(name.split("."), "{}.{}".format) for name in (self.module, *self.imported))
        return {name for names in each for name in names}


def load() -> None:
    """Read the code of all programs that this process may start."""
    for program in LoadedProgram.every:
        program.handle  # noqa: B018 (reads it)
