"""The version of the program, as pyproject.toml has it (a test compares them)."""

VERSION = "0.2.0"
