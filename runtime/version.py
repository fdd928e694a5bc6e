"""The program's version, as in pyproject.toml (a test compares them)."""

VERSION = "0.2.0"
