"""Times in the API's answers."""

from datetime import datetime
from typing import Annotated

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone; JSON has it as ISO 8601."""
