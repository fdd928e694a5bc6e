"""The application that granian serves for `http_page`: the site with the addresses of the benchmark."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")
settings.ROOT_URLCONF = "benchmarks.addresses"

application = get_wsgi_application()
