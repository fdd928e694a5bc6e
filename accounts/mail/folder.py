"""Letters as files of a folder (`filemail:///FOLDER`), for the site's user only."""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.mail.backends import filebased
from django.utils import timezone


class EmailBackend(filebased.EmailBackend):
    """Writes each letter into a file of mode 0600. A new folder has mode 0700."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Path(str(settings.EMAIL_FILE_PATH)).mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(*args, **kwargs)

    def open(self) -> bool:
        """Open a new file. Nobody can put one, or a link, there before: not even in /tmp."""
        if self.stream is not None:
            return False
        path = f"{settings.EMAIL_FILE_PATH}/{timezone.now():%Y%m%d-%H%M%S}-{secrets.token_hex(8)}.log"
        self.stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
        return True
