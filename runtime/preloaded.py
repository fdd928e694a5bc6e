"""`python -m runtime.preloaded granian … feedsite.wsgi:application`: granian, with the site loaded before it forks.

Memory that is loaded before a fork is one copy for the parent and all its children, until one of them writes to it. The
garbage collector would, at its first round, so it is told to leave these objects alone (`gc.freeze`).

See docs/decisions.md: Programs load the site before they fork.
"""

import gc
import logging
import runpy
import sys
from importlib import import_module
from types import ModuleType

from runtime import shedding


def load(target: str) -> ModuleType:
    """Import the application's module and its addresses, and keep the collector off them."""
    gc.disable()  # a round half-way would leave holes that every child fills for itself
    module = import_module(target.partition(":")[0])
    load_pages()
    share()
    gc.enable()
    return module


def queue(module: ModuleType) -> None:
    """Have requests wait in a queue of the site."""
    from django.conf import settings

    shedding.install(module, threads=settings.WEB_THREADS, seconds=settings.WEB_WAIT_SECONDS)
    logging.getLogger("_granian").addFilter(is_news)


def is_news(record: logging.LogRecord) -> bool:
    """Whether a line of granian is to be written. Its threads are many because they are doors alone
    (runtime/shedding.py), and docs/scaling.md says what the sysctl does.
    """
    return not str(record.msg).startswith(("Configuration allows spawning up to", "Workers respawn is configured, but"))


def load_pages() -> None:
    """Import what the first requests would: the addresses with their views, and the catalogues of texts."""
    from django.conf import settings
    from django.urls import get_resolver
    from django.utils import translation

    get_resolver()._populate()  # for the language of the moment, and it imports all
    for code, _ in settings.LANGUAGES:
        translation.activate(code)
    translation.deactivate()


def share() -> None:
    """Have all objects of now left alone by the collector, in this process and in those that it forks."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.argv[0:2] = sys.argv[1:2]
    queue(load(sys.argv[-1]))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
