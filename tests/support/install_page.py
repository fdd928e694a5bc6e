import re
from pathlib import Path

from django.conf import settings

PAGE = (Path(settings.BASE_DIR) / "docs" / "install.md").read_text()
STEPS = re.findall(r"^\*\*(\d+)\. (.*?)(?=^\*\*\d+\. |\Z)", PAGE, re.DOTALL | re.MULTILINE)


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def block(title: str) -> str:
    (found,) = [text for _, text in STEPS if text.startswith(title)]
    return blocks(found)[0]
