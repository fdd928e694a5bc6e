"""Loads what requests and tasks would read or import later. An upgrade replaces the tree beside the running programs.

See docs/decisions.md: Programs load the site before they fork.
"""

from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.password_validation import get_default_password_validators
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import mail
from django.core.cache import caches
from django.template import TemplateDoesNotExist, engines
from django.urls import get_resolver
from django.utils import formats, translation

from accounts import lookalikes
from discover.opensearch_server import server
from feedsite.celery import app
from feedsite.public import installing
from items import emoji
from media.store import store
from runtime import loaded_programs
from web import times

ADMIN = ("admin", "drf_spectacular")
"""Apps of pages with templates in Django's own language."""
WIDGETS = ("auth", "forms")
"""Apps of parts that these include."""
OF_PAGES = (
    "PIL.WebPImagePlugin",
    "accounts.signing_in.webauthn",
    "django.contrib.messages.storage.fallback",
    "drf_spectacular.hooks",
    # The extensions of drf-spectacular import what they extend.
    "oauth2_provider.contrib.rest_framework",
    "rest_framework.authtoken.views",
)
"""What pages import when they need it."""


OF_PROGRAMS = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.worker.consumer",
    "clientapi.stream_urls",
    "feedsite.asgi",
    "feedsite.wsgi",
    "granian.cli",
    "granian.server.mp",
    "kombu.transport.redis",
    "storage.quiet",
    "uvicorn.lifespan.on",
)
"""What programs import when they start."""


def load_all() -> None:
    """Load what all programs need, before they are forked."""
    load_pages()
    app.loader.import_default_modules()
    load_tasks()
    for name in OF_PROGRAMS:
        import_module(name)


@cache
def load_pages() -> None:
    """Load what requests need."""
    lookalikes.ascii_lookalikes()  # first, because it frees much memory for the rest
    get_resolver()._populate()  # for the current language; it imports everything
    load_texts()
    load_templates("")
    load_admin_templates()
    load_clients()
    for name in OF_PAGES:
        import_module(name)
    import_module("PIL.Image").preinit()  # its usual plug-ins; workers do without
    get_default_password_validators()
    load_lazy(staticfiles_storage, "manifest_hash")
    installing.script()
    emoji.all_emoji()
    times.zone_names()
    loaded_programs.load()


@cache
def load_tasks() -> None:
    """Load what tasks need."""
    lookalikes.ascii_lookalikes()  # first, as above
    load_texts()
    load_templates("mail/")
    load_clients()
    import_module("chardet")
    mail.get_connection()
    loaded_programs.load()


@cache
def load_stream() -> None:
    """Load what open connections need: texts and pages of errors."""
    load_texts()
    load_templates("4", "5", "_", "about/_mark")
    load_lazy(caches["default"], "client")


def load_texts() -> None:
    """Load the catalogues and formats of all languages."""
    for code, _ in settings.LANGUAGES:
        with translation.override(code):
            formats.get_format("DATE_FORMAT")


def load_templates(*beginnings: str) -> None:
    """Load the page templates whose names have one of these beginnings."""
    pages: Any = engines["jinja2"]
    load_lazy(pages, "template_context_processors")
    for name in pages.env.list_templates():
        if name.startswith(beginnings) and not name.startswith(tuple(f"django/{each}/" for each in ADMIN)):
            pages.get_template(name)


def load_admin_templates() -> None:
    """Load the templates of the admin and of the API's page. Others are not looked for: the admin tries many names."""
    engine: Any = engines["django"].engine  # type: ignore[attr-defined] # the stubs know only the base
    load_lazy(engine, "template_context_processors")
    for folder in [*engine.dirs, *(Path(apps.get_app_config(each).path, "templates") for each in (*ADMIN, *WIDGETS))]:
        for path in folder.rglob("*.html"):
            found = engine.get_template(str(path.relative_to(folder)))
            with suppress(TemplateDoesNotExist):  # the one that it extends under its own name
                engine.find_template(found.name, skip=[found.origin])
    engine.template_loaders[0].loaders = []


def load_clients() -> None:
    """Load the clients of servers. They connect later."""
    for name in ("celery.app.events", "celery.events", "lmdb._envid", settings.SESSION_SERIALIZER.rpartition(".")[0]):
        import_module(name)
    store()
    if settings.OPENSEARCH_URL:
        server()
    load_lazy(caches["default"], "client")
    load_lazy(app, "backend")
    load_lazy(app.amqp, "router")
    load_lazy(app.connection_for_write(), "transport")


def load_lazy(owner: object, name: str) -> None:
    """Read a property whose first reading imports modules or reads files."""
    getattr(owner, name)
