"""OpenTelemetry traces of requests and tasks. Off by default (`FEEDSITE_TRACES`), and an extra.

Spans name routes, tasks, verbs and tables, but no text, name, address, key or token, so a collector may be elsewhere
(`tests/runtime/test_traces.py`). A caller's trace context is ignored: strangers could choose what is sampled, and write
into traces. The exporter's thread starts with a process's first span, after the fork. When off, a span costs one call.
See docs/decisions.md: Own code in place of a library.
"""

import logging
import re
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from celery import Task
from celery.signals import before_task_publish
from django.apps import apps

from runtime.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

logger = logging.getLogger(__name__)

HEADER = "traceparent"
"""Header of a task's message with its parent span (W3C Trace Context)."""
INSTALL = "python -m pip install --require-hashes --only-binary=:all: -r requirements/traces.lock"
VERB = re.compile(r"\s*(\w+)")
TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+"?(\w+)')
OFF: AbstractContextManager[None] = nullcontext()

Result = TypeVar("Result")


class Tracing:
    """The process's spans. Raises ImportError if the extra is not installed."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http import trace_exporter
        from opentelemetry.sdk import resources
        from opentelemetry.sdk import trace as sdk
        from opentelemetry.sdk.trace import export
        from opentelemetry.trace.propagation import tracecontext

        self.trace, self.sdk, self.export, self.exporter = trace, sdk, export, trace_exporter
        self.resources, self.context = resources, tracecontext.TraceContextTextMapPropagator()
        # Without a collector each retry would log a line. This leaves one per lost batch.
        logging.getLogger(trace_exporter.__name__).setLevel(logging.ERROR)
        self.lock = threading.Lock()
        self.provider: Any = None

    def tracer(self) -> "Tracer":
        """The tracer. The first call starts the exporter, configured by OTEL_* variables."""
        with self.lock:
            if self.provider is None:
                named = {"service.name": "feedsite", "service.version": VERSION}
                resource = self.resources.Resource(named).merge(self.resources.OTELResourceDetector().detect())
                provider = self.sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
                provider.add_span_processor(self.export.BatchSpanProcessor(self.exporter.OTLPSpanExporter()))
                self.provider = provider
        tracer: Tracer = self.provider.get_tracer("feedsite", VERSION)
        return tracer

    def is_recording(self) -> bool:
        """Whether this thread is in a span that will be sent."""
        return self.trace.get_current_span().is_recording()

    @contextmanager
    def span(self, name: str, kind: str, context: "Context | None" = None) -> Generator["Span"]:
        """A span. It records only an error's class: messages contain values of statements."""
        span = self.tracer().start_span(name, context, self.trace.SpanKind[kind])
        with self.trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self.trace.StatusCode.ERROR)
                raise


_tracing: Tracing | None = None


def prepare(*, is_wanted: bool) -> None:
    """Load what traces need, before the program forks. Without the extra, log how to install it."""
    global _tracing
    if not is_wanted or _tracing is not None:
        return
    try:
        _tracing = Tracing()
    except ImportError as error:
        logger.warning("FEEDSITE_TRACES=1, but OpenTelemetry is not installed (%s). Install it: %s", error, INSTALL)


def is_on() -> bool:
    """Whether spans are made."""
    return _tracing is not None


# --- Spans -------------------------------------------------------------------------------------------------
def span(name: str) -> AbstractContextManager["Span | None"]:
    """A call to another server, or None outside a span."""
    if _tracing is None or not _tracing.is_recording():
        return OFF
    return _tracing.span(name, "CLIENT")


def request() -> AbstractContextManager["Span | None"]:
    """The span of a request. `answered` describes it."""
    return OFF if _tracing is None else _begun(_tracing, "request", "SERVER")


def answered(span: "Span", *, method: str, route: str, status: int, source: str | None) -> None:
    """Describe the request, by its address's pattern only."""
    span.update_name(f"{method} {route}")
    span.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
    if source:
        span.set_attribute("feedsite.source", source)
    if status >= 500 and _tracing is not None:
        span.set_status(_tracing.trace.StatusCode.ERROR)


def task(name: str, sent_by: Any) -> AbstractContextManager["Span | None"]:
    """A task's span, in the trace of the span in its message, if any."""
    if _tracing is None:
        return OFF
    carrier = {HEADER: sent_by} if isinstance(sent_by, str) else {}
    return _begun(_tracing, f"task {name}", "CONSUMER", _tracing.context.extract(carrier))


class TracedTask(Task[Any, Any]):
    """A task with its own span."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task."""
        if self.request.called_directly:
            return self.run(*args, **kwargs)
        with task(str(self.name), self.request.get(HEADER)):
            return self.run(*args, **kwargs)


def _begun(
    tracing: Tracing, name: str, kind: str, context: "Context | None" = None
) -> AbstractContextManager["Span | None"]:
    """May be the process's first span. A wrong OTEL_* variable is logged once, and turns traces off."""
    global _tracing
    try:
        tracing.tracer()
    except Exception:
        logger.exception("traces cannot be sent. They are off until the next start")
        _tracing = None
        return OFF
    return tracing.span(name, kind, context)


def bound(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function with this thread's span, for another thread."""
    if _tracing is None or not _tracing.is_recording():
        return function
    trace, current = _tracing.trace, _tracing.trace.get_current_span()

    def within(*args: Any) -> Result:
        with trace.use_span(current):
            return function(*args)

    return within


@before_task_publish.connect
def hand_on(headers: dict[str, Any], **kwargs: Any) -> None:
    """Add the current span to the task's message."""
    if _tracing is not None:
        _tracing.context.inject(headers)


# --- Names -------------------------------------------------------------------------------------------------
@lru_cache(1024)
def summary(query: str) -> str:
    """A statement's verb and first table, without values."""
    verb = VERB.match(query)
    table = next((name for name in TABLE.findall(query) if name in _tables()), "")
    return " ".join(filter(None, (verb[1].upper() if verb else "", table)))


@cache
def _tables() -> frozenset[str]:
    return frozenset(model._meta.db_table for model in apps.get_models(include_auto_created=True))
