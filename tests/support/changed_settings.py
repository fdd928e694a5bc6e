import json
import os
from datetime import timedelta
from typing import Any

from feedsite.settings import *  # noqa: F403

VARIABLE = "TEST_SETTINGS"


def changed(**values: Any) -> dict[str, str]:
    """Environment variables for these values. A number is seconds if the setting is a span."""
    return {"DJANGO_SETTINGS_MODULE": __name__, VARIABLE: json.dumps(values)}


for _name, _value in json.loads(os.environ.get(VARIABLE, "{}")).items():
    _is_span = isinstance(globals()[_name], timedelta)  # an unknown setting fails
    globals()[_name] = timedelta(seconds=_value) if _is_span else _value
