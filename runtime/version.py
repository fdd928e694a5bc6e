"""The program's version, from pyproject.toml."""

import tomllib
from pathlib import Path

VERSION: str = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text())["project"]["version"]
