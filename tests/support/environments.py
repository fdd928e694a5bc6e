import os
from collections.abc import Mapping
from unittest.mock import patch

import pytest

from runtime.environment import OptionsError, validated_options
from runtime.options import Options


def given(environ: Mapping[str, str]) -> Options:
    """Raises OptionsError."""
    with patch.dict(os.environ, environ, clear=True):
        return validated_options()


def refusal(**environ: str) -> str:
    with pytest.raises(OptionsError) as refused:
        given(environ)
    (line,) = refused.value.lines
    assert "\n" not in line
    assert line.endswith(".")
    return line
