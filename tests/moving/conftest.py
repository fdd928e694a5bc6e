from pathlib import Path
from typing import Any

import pytest

from tests.support.timelines import workers  # noqa: F401


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any, media_folder: Path) -> Path:
    settings.IMPORTS_DIR = tmp_path / "imports"
    return tmp_path / "imports"
