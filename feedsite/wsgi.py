"""The WSGI application that granian serves."""

import io
import os
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def measured(application: Application) -> Application:
    """Give chunked bodies a length: Django takes a body without Content-Length for an empty one.

    No more is read than Django takes; what is longer is seen to be too long by its length.
    """

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not environ.get("CONTENT_LENGTH") and environ.get("HTTP_TRANSFER_ENCODING"):
            body = environ["wsgi.input"].read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
            environ["wsgi.input"] = io.BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return serve


application = measured(get_wsgi_application())
