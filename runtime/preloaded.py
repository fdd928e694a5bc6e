"""`python -m runtime.preloaded granian … feedsite.wsgi:application`: granian, with the site loaded before it forks.

Processes share this memory until one writes to it, as the garbage collector would. So `gc.freeze` hides the objects.

See docs/decisions.md: Programs load the site before they fork.
"""

import gc
import logging
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from runtime import shedding

COLLECTED_AFTER = 10_000
"""New objects between two collections. With 700, Python's default, they take a tenth of a page's time."""


def load(target: str) -> ModuleType:
    """Import the application and its views, hidden from the garbage collector."""
    with hidden_from_collector():
        module = import_module(target.partition(":")[0])
        import_module("feedsite.loading").load_pages()  # after the application, which sets Django up
    return module


@contextmanager
def hidden_from_collector() -> Iterator[None]:
    """Hide from the garbage collector what the block loads, and let it collect less often afterwards."""
    gc.disable()  # a collection in between would leave holes that every child fills separately
    yield
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    gc.enable()


def install_queue(module: ModuleType) -> None:
    """Let requests wait in the site's queue instead of granian's."""
    from django.conf import settings

    shedding.install(module, threads=settings.WEB_THREADS, seconds=settings.WEB_WAIT_SECONDS)
    logging.getLogger("_granian").addFilter(is_worth_logging)


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Log filter: False for granian's warnings about many threads, which only queue."""
    return not str(record.msg).startswith(("Configuration allows spawning up to", "Workers respawn is configured, but"))


def main(words: Sequence[str]) -> None:
    """Run granian, the first of the words, with the others."""
    sys.argv = list(words)
    install_queue(load(sys.argv[-1]))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
