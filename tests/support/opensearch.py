"""A strict stand-in: no test machine has the real OpenSearch.

It checks requests against the formats of docs.opensearch.org, and searches as documented. It knows only what the site
uses, from these pages, and refuses the rest:

- Query DSL: Function score (gauss, field value factor, weight, score and boost modes), Boolean, Constant score, Term,
  Terms, Range, IDs, Match all, Named queries; limits: index.max_result_window, indices.query.bool.max_clause_count
- API reference: Search (parameters, sort, docvalue_fields, response), Bulk (NDJSON, index,
  require_alias, external versions, response), Create index (naming, mappings, aliases), Delete index
- Mappings: dynamic, keyword, long, integer, date with strict_date_time

It has no analysis, shards, refresh (documents are found at once) or timing.
"""

import base64
import gzip
import json
import math
import re
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

MAX_RESULT_WINDOW = 10_000
MAX_CLAUSES = 1024
MAX_TERMS = 65_536
Json = dict[str, Any]


class RefusedError(Exception):
    """(error type, reason, status)"""

    def __init__(self, kind: str, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.kind, self.why, self.status = kind, why, status

    def answer(self) -> Json:
        cause = {"type": self.kind, "reason": self.why}
        return {"error": {"root_cause": [cause], **cause}, "status": self.status}


def need(condition: bool, why: str, kind: str = "parsing_exception") -> None:
    if not condition:
        raise RefusedError(kind, why)


def known(value: Any, *allowed: str, required: tuple[str, ...] = ()) -> Json:
    """Check that an object has only these keys."""
    need(isinstance(value, dict), f"{value!r} is not an object")
    need(set(value) <= set(allowed) | set(required), f"unknown key [{set(value) - set(allowed) - set(required)}]")
    need(set(required) <= set(value), f"[{set(required) - set(value)}] is required")
    return dict(value)


def only(value: Any) -> tuple[str, Any]:
    need(isinstance(value, dict) and len(value) == 1, f"{value!r} must have exactly one key")
    return next(iter(value.items()))


def number(value: Any, why: str) -> float:
    need(isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value), why)
    return float(value)


def integer(value: Any, least: int, most: int, why: str) -> int:
    need(isinstance(value, int) and not isinstance(value, bool) and least <= value <= most, why)
    return int(value)


def milliseconds(text: Any) -> float:
    """Parse a time unit: 5d, 12h, 500ms."""
    found = re.fullmatch(r"(\d+)(d|h|m|s|ms|micros|nanos)", text) if isinstance(text, str) else None
    need(found is not None, f"failed to parse [{text}] as a time value: unit is missing or unrecognized")
    assert found is not None
    unit = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "micros": 1e-3, "nanos": 1e-6}[found[2]]
    return int(found[1]) * unit


def date(text: Any) -> float:
    """Parse a strict_date_time: yyyy-MM-dd'T'HH:mm:ss.SSSZ."""
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)"
    need(
        isinstance(text, str) and re.fullmatch(pattern, text) is not None,
        f"failed to parse date field [{text}] with format [strict_date_time]",
        "mapper_parsing_exception",
    )
    return datetime.fromisoformat(text).timestamp() * 1000


def float32(value: float) -> float:
    """Scores are 32-bit numbers."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


# --- Mappings and documents ------------------------------------------------------------------------------
PARAMETERS = {
    "keyword": {"doc_values", "index", "norms", "ignore_above", "eager_global_ordinals"},
    "long": {"doc_values", "index", "coerce"},
    "integer": {"doc_values", "index", "coerce"},
    "date": {"doc_values", "index", "format"},
}
RANGES = {"long": 63, "integer": 31}


def check_index(name: str, body: Any) -> Json:
    named = re.fullmatch(r"[^_\-+][^\s,:\"*+/\\|?#<>]*", name) is not None and name == name.lower()
    need(named and len(name.encode()) <= 255, f"Invalid index name [{name}]", "invalid_index_name_exception")
    body = known(body, "settings", "mappings", "aliases")
    mappings = known(body.get("mappings", {}), "dynamic", "properties", "_source")
    need(mappings.get("dynamic") in (True, False, "strict", "strict_allow_templates"), "dynamic", "mapper_exception")
    for field, mapping in mappings["properties"].items():
        kind = mapping.get("type")
        need(
            kind in PARAMETERS, f"No handler for type [{kind}] declared on field [{field}]", "mapper_parsing_exception"
        )
        known(mapping, "type", *PARAMETERS[kind])
        need(kind != "date" or mapping.get("format") == "strict_date_time", "this stand-in knows one format")
    for alias, options in body.get("aliases", {}).items():
        need(alias != name, "an alias has the name of its index", "invalid_alias_name_exception")
        known(options, "filter", "routing", "index_routing", "search_routing", "is_write_index", "is_hidden")
    return body


def check_value(kind: str, value: Any, field: str) -> None:
    why, error = f"failed to parse field [{field}] of type [{kind}]", "mapper_parsing_exception"
    for one in value if isinstance(value, list) else [value]:
        if kind == "keyword":
            need(isinstance(one, str) and len(one.encode()) <= 32_766, why, error)
        elif kind == "date":
            date(one)
        else:
            whole = isinstance(one, int) and not isinstance(one, bool)
            need(whole and -(2 ** RANGES[kind]) <= one < 2 ** RANGES[kind], why, error)


# --- Queries ---------------------------------------------------------------------------------------------
class Query:
    """`score` follows the published formulas, and is None without a match."""

    def __init__(self, source: Any, properties: Json) -> None:
        self.properties = properties
        self.names: dict[str, Callable[[Json], float | None]] = {}
        self.clauses = 0
        self.score = self.read(source)

    def matched(self, document: Json) -> list[str]:
        return [name for name, score in self.names.items() if score(document) is not None]

    def read(self, source: Any) -> Callable[[Json], float | None]:
        kind, body = only(source)
        reader = getattr(self, f"read_{kind}", None)
        need(reader is not None, f"unknown query [{kind}]")
        assert reader is not None
        self.clauses += 1
        need(self.clauses <= MAX_CLAUSES, f"maxClauseCount is set to {MAX_CLAUSES}", "too_many_clauses")
        score, options = reader(body)
        boost = number(options.get("boost", 1.0), "boost must be a number")
        need(boost >= 0, "negative [boost] are not allowed", "illegal_argument_exception")

        def boosted(document: Json) -> float | None:
            value = score(document)
            return None if value is None else value * boost

        if "_name" in options:
            need(isinstance(options["_name"], str), "_name must be a string")
            need(options["_name"] not in self.names, "of two queries of one name only one would be told")
            self.names[options["_name"]] = boosted
        return boosted

    def field(self, name: str, *kinds: str) -> str:
        need(name in self.properties, f"the field [{name}] is not mapped")
        kind = str(self.properties[name]["type"])
        need(kind in kinds, f"[{name}] is of type [{kind}]")
        need(self.properties[name].get("index", True), f"[{name}] is not indexed", "query_shard_exception")
        return kind

    def doc_values(self, name: str, *kinds: str) -> None:
        self.field(name, *kinds)
        need(self.properties[name].get("doc_values", True), f"[{name}] has no doc values", "illegal_argument_exception")

    def read_match_all(self, body: Any) -> Any:
        return (lambda document: 1.0), known(body, "boost", "_name")

    def read_term(self, body: Any) -> Any:
        field, options = only(body)
        self.field(field, "keyword")
        options = known(options, "boost", "_name", "case_insensitive", required=("value",))
        need(isinstance(options["value"], str), "a keyword is a string")
        return (lambda document: 1.0 if options["value"] in listed(document, field) else None), options

    def read_terms(self, body: Any) -> Any:
        options = {key: body[key] for key in ("boost", "_name") if key in body}
        field, values = only({key: value for key, value in body.items() if key not in options})
        self.field(field, "keyword")
        need(isinstance(values, list) and len(values) <= MAX_TERMS, f"[terms] takes at most {MAX_TERMS} values")
        need(all(isinstance(value, str) for value in values), "a keyword is a string")
        wanted = set(values)
        return (lambda document: 1.0 if wanted & set(listed(document, field)) else None), options

    def read_ids(self, body: Any) -> Any:
        options = known(body, "boost", "_name", required=("values",))
        need(isinstance(options["values"], list), "[values] is a list")
        need(all(isinstance(value, str) for value in options["values"]), "ids are strings")
        return (lambda document: 1.0 if document["_id"] in options["values"] else None), options

    def read_range(self, body: Any) -> Any:
        field, options = only(body)
        self.field(field, "long", "integer")
        options = known(options, "gt", "gte", "lt", "lte", "boost", "_name")
        bounds = {key: options[key] for key in ("gt", "gte", "lt", "lte") if key in options}
        need(all(isinstance(bound, int) for bound in bounds.values()), "a bound of a whole number is one")
        tests: dict[str, Callable[[int, int], bool]] = {
            "gt": lambda value, bound: value > bound,
            "gte": lambda value, bound: value >= bound,
            "lt": lambda value, bound: value < bound,
            "lte": lambda value, bound: value <= bound,
        }

        def score(document: Json) -> float | None:
            values = listed(document, field)
            inside = any(all(tests[key](value, bound) for key, bound in bounds.items()) for value in values)
            return 1.0 if inside else None

        return score, options

    def read_constant_score(self, body: Any) -> Any:
        options = known(body, "boost", "_name", required=("filter",))
        condition = self.read(options["filter"])
        return (lambda document: None if condition(document) is None else 1.0), options

    def read_bool(self, body: Any) -> Any:
        parts = ("must", "must_not", "should", "filter")
        options = known(body, *parts, "minimum_should_match", "boost", "_name")
        clauses: dict[str, list[Callable[[Json], float | None]]] = {}
        for part in parts:
            given = options.get(part, [])
            clauses[part] = [self.read(clause) for clause in (given if isinstance(given, list) else [given])]
        required = clauses["must"] or clauses["filter"]
        least = integer(options.get("minimum_should_match", 0 if required else 1), 0, 1000, "minimum_should_match")

        def score(document: Json) -> float | None:
            if any(clause(document) is None for clause in [*clauses["must"], *clauses["filter"]]):
                return None
            if any(clause(document) is not None for clause in clauses["must_not"]):
                return None
            should = [found for clause in clauses["should"] if (found := clause(document)) is not None]
            if clauses["should"] and len(should) < least:
                return None
            return math.fsum([*should, *(clause(document) or 0.0 for clause in clauses["must"])])

        return score, options

    def read_function_score(self, body: Any) -> Any:
        modes = {"multiply", "sum", "avg", "max", "min"}
        allowed = ("query", "functions", "score_mode", "boost_mode", "max_boost", "min_score", "boost", "_name")
        options = known(body, *allowed)
        inner = self.read(options.get("query", {"match_all": {}}))
        functions = [self.read_function(function) for function in options.get("functions", [])]
        mode, boosting = options.get("score_mode", "multiply"), options.get("boost_mode", "multiply")
        need(mode in modes | {"first"} and boosting in modes | {"replace"}, "unknown mode")
        need(mode in ("multiply", "sum") and boosting in ("multiply", "sum", "replace"), "a mode that nobody uses here")
        most = number(options.get("max_boost", 3.4028235e38), "max_boost must be a number")

        def score(document: Json) -> float | None:
            value = inner(document)
            if value is None:
                return None
            factors = [found for function in functions if (found := function(document)) is not None]
            factor = 1.0 if not factors else math.prod(factors) if mode == "multiply" else math.fsum(factors)
            factor = min(factor, most)
            return {"multiply": value * factor, "sum": value + factor, "replace": factor}[boosting]

        return score, options

    def read_function(self, source: Any) -> Callable[[Json], float | None]:
        options = known(source, "filter", "weight", "gauss", "field_value_factor", "_name")
        kinds = [key for key in ("gauss", "field_value_factor") if key in options]
        need(len(kinds) <= 1 and bool(kinds or "weight" in options), "a function score has exactly one function")
        weight = number(options.get("weight", 1.0), "weight must be a number")
        condition = self.read(options["filter"]) if "filter" in options else lambda document: 1.0
        function = getattr(self, f"read_{kinds[0]}")(options[kinds[0]]) if kinds else lambda document: 1.0
        return lambda document: None if condition(document) is None else weight * function(document)

    def read_gauss(self, body: Any) -> Callable[[Json], float]:
        mode = known(body, *body).pop("multi_value_mode", "min")
        need(mode in {"min", "max", "avg", "sum"}, "multi_value_mode")
        field, options = only({key: value for key, value in body.items() if key != "multi_value_mode"})
        self.doc_values(field, "date")
        options = known(options, "offset", "decay", required=("origin", "scale"))
        origin, scale = date(options["origin"]), milliseconds(options["scale"])
        offset = milliseconds(options.get("offset", "0ms"))
        decay = number(options.get("decay", 0.5), "decay must be a number")
        need(scale > 0 and 0 < decay < 1, "scale must be > 0.0, 0 < decay < 1", "illegal_argument_exception")
        variance = -(scale**2) / (2 * math.log(decay))

        def function(document: Json) -> float:
            if field not in document:
                return 1.0
            distance = max(0.0, abs(date(document[field]) - origin) - offset)
            return math.exp(-(distance**2) / (2 * variance))

        return function

    def read_field_value_factor(self, body: Any) -> Callable[[Json], float]:
        options = known(body, "factor", "modifier", "missing", required=("field",))
        self.doc_values(options["field"], "integer", "long")
        need(options.get("modifier") == "log1p", "a modifier that nobody uses here")
        factor = number(options.get("factor", 1), "factor must be a number")

        def function(document: Json) -> float:
            need(options["field"] in document or "missing" in options, "Missing value for field", "exception")
            return math.log10(1 + factor * document.get(options["field"], options.get("missing")))

        return function


def listed(document: Json, field: str) -> list[Any]:
    value = document.get(field, [])
    return value if isinstance(value, list) else [value]


# --- The server ------------------------------------------------------------------------------------------
class Index:
    def __init__(self, name: str, body: Json) -> None:
        self.name = name
        self.aliases = set(body.get("aliases", {}))
        self.properties: Json = body["mappings"]["properties"]
        self.documents: dict[str, Json] = {}
        self.versions: dict[str, int] = {}


Trouble = Callable[["Handler"], bool]
"""Acts in place of an answer. False: answer after all."""


class OpenSearch:
    """`refused` must be empty at the end of a test."""

    def __init__(self, credentials: str = "admin:pass%20word") -> None:
        self.indexes: dict[str, Index] = {}
        self.refused: list[RefusedError] = []
        self.requests: list[tuple[str, str, Any]] = []
        self.trouble: Trouble | None = None
        self.item_trouble: Callable[[str], Json | None] = lambda item_id: None
        """The error for this id in a bulk request."""
        self.lock = threading.Lock()
        self.password = base64.b64encode(credentials.replace("%20", " ").encode()).decode()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"engine": self}))
        self.http.daemon_threads = True
        self.url = f"http://{credentials}@127.0.0.1:{self.http.server_address[1]}/site-items"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    @contextmanager
    def in_trouble(self, trouble: Trouble) -> Iterator[None]:
        self.trouble = trouble
        try:
            yield
        finally:
            self.trouble = None

    @property
    def documents(self) -> dict[int, Json]:
        """Documents by item, without empty ones."""
        return {int(item_id): found for item_id, found in self.index("site-items").documents.items() if found}

    def searches(self) -> list[Json]:
        return [body for _, path, body in self.requests if path.endswith("/_search")]

    def index(self, name: str) -> Index:
        for index in self.indexes.values():
            if name == index.name or name in index.aliases:
                return index
        raise RefusedError("index_not_found_exception", f"no such index [{name}]", 404)

    def answer(self, method: str, path: str, query: dict[str, str], kind: str, body: bytes) -> Json:
        name, _, verb = path.strip("/").partition("/")
        if verb == "_bulk":
            need(method == "POST" and kind == "application/x-ndjson", "a bulk request is application/x-ndjson")
            need(body.endswith(b"\n"), "The bulk request must be terminated by a newline", "illegal_argument_exception")
            known(query, "require_alias", "refresh", "timeout")
            return self.bulk(name, [json.loads(line) for line in body[:-1].split(b"\n")], query)
        need(not body or kind == "application/json", "Content-Type header is not supported", "media_type")
        parsed = json.loads(body) if body else {}
        self.requests.append((method, path, parsed))
        if verb == "_search":
            need(method in ("GET", "POST"), "method")
            return self.search(name, parsed, query)
        need(not verb and method in ("PUT", "DELETE"), f"no handler found for uri [{path}] and method [{method}]")
        known(query, "timeout", "cluster_manager_timeout", "wait_for_active_shards")
        if method == "DELETE":
            del self.indexes[self.index(name).name]
            return {"acknowledged": True}
        if name in self.indexes:
            raise RefusedError("resource_already_exists_exception", f"index [{name}] already exists")
        self.indexes[name] = Index(name, check_index(name, parsed))
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def bulk(self, name: str, lines: list[Any], query: dict[str, str]) -> Json:
        items, errors = [], False
        self.requests.append(("POST", f"/{name}/_bulk", list(lines)))
        while lines:
            verb, about = only(lines.pop(0))
            need(verb == "index", f"Malformed action/metadata line, found [{verb}]", "illegal_argument")
            about = known(about, "_index", "version", "version_type", required=("_id",))
            need(isinstance(about["_id"], str) and len(about["_id"].encode()) <= 512, "_id")
            need(bool(lines), "an action without its document", "illegal_argument")
            document = lines.pop(0)
            done: Json = {"_index": name, "_id": about["_id"]}
            try:
                done |= self.write(name, about, document, query)
            except RefusedError as error:
                errors = True
                done |= {"status": error.status, "error": {"type": error.kind, "reason": error.why}}
                if error.status == 400:
                    self.refused.append(error)
            items.append({verb: done})
        return {"took": 1, "errors": errors, "items": items}

    def write(self, name: str, about: Json, document: Any, query: dict[str, str]) -> Json:
        there = [index for index in self.indexes.values() if name == index.name or name in index.aliases]
        if query.get("require_alias") == "true" and not any(name in index.aliases for index in there):
            raise RefusedError("index_not_found_exception", f"no such index [{name}] and [require_alias]", 404)
        if not there:  # as action.auto_create_index does
            self.indexes[name] = Index(name, {"mappings": {"properties": {}}})
        index, item_id = self.index(name), about["_id"]
        if trouble := self.item_trouble(item_id):
            raise RefusedError(trouble["type"], "trouble", trouble["status"])
        need(about.get("version_type") == "external", "the site writes with versions of its own")
        version = integer(about.get("version"), 1, 2**63 - 1, "version")
        if version <= index.versions.get(item_id, -1):
            raise RefusedError("version_conflict_engine_exception", "version conflict", 409)
        index.versions[item_id] = version
        is_new = item_id not in index.documents
        need(isinstance(document, dict), "a document is an object", "mapper_parsing_exception")
        need(set(document) <= set(index.properties), "a field without a mapping would not be found")
        for field, value in document.items():
            check_value(index.properties[field]["type"], value, field)
        index.documents[item_id] = document
        return {"_version": version, "result": "created" if is_new else "updated", "status": 201 if is_new else 200}

    def search(self, name: str, body: Any, query: dict[str, str]) -> Json:
        query = known(query, "allow_partial_search_results", "cancel_after_time_interval")
        milliseconds(query.get("cancel_after_time_interval", "1s"))
        need(query.get("allow_partial_search_results", "true") in ("true", "false"), "allow_partial_search_results")
        options = ("sort", "track_scores", "track_total_hits", "size", "_source", "docvalue_fields", "timeout")
        body = known(body, *options, required=("query",))
        index = self.index(name)
        asked = Query(body["query"], index.properties)
        size = integer(body.get("size", 10), 0, MAX_RESULT_WINDOW, "Result window is too large")
        need(body.get("_source") in (True, False) and body.get("track_total_hits") in (True, False), "booleans")
        fields = [known(field, "format", required=("field",))["field"] for field in body.get("docvalue_fields", [])]
        for field in fields:
            asked.doc_values(field, "keyword", "integer", "long")
        found = []
        for item_id, document in index.documents.items():
            score = asked.score({"_id": item_id} | document)
            if score is not None:
                need(score >= 0, "score function must not produce negative scores", "illegal_argument_exception")
                found.append((float32(score), document, item_id))
        for field, order in reversed([only(one) for one in body.get("sort", [{"_score": {"order": "desc"}}])]):
            need(known(order, required=("order",))["order"] in ("asc", "desc"), "order")
            if field != "_score":
                asked.doc_values(field, "long", "integer")
            found.sort(
                key=lambda hit: hit[0] if field == "_score" else hit[1][field],
                reverse=order["order"] == "desc",
            )
        hits = []
        for score, document, item_id in found[:size]:
            values = {field: listed(document, field) for field in fields if listed(document, field)}
            hit: Json = {"_index": index.name, "_id": item_id, "_score": None, "fields": values, "sort": [score]}
            if matched := asked.matched({"_id": item_id} | document):
                hit["matched_queries"] = matched
            hits.append(hit)
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"max_score": None, "hits": hits}}


class Handler(BaseHTTPRequestHandler):
    engine: OpenSearch
    protocol_version = "HTTP/1.1"
    timeout = 20

    def do(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not (self.engine.trouble and self.engine.trouble(self)):
            answer, status = self.obey()
            self.reply(json.dumps(answer).encode(), status)

    def obey(self) -> tuple[Json, int]:
        engine, body = self.engine, self.body
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
        try:
            need("Transfer-Encoding" not in self.headers, "bulk requests are not to be sent in chunks")
            if self.headers.get("Authorization") != f"Basic {engine.password}":
                raise RefusedError("security_exception", "Unauthorized", 401)
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            with engine.lock:
                kind = self.headers.get("Content-Type", "")
                return engine.answer(self.command, parts.path, query, kind, body), 200
        except (RefusedError, json.JSONDecodeError) as error:
            refusal = error if isinstance(error, RefusedError) else RefusedError("json_parse_exception", str(error))
            if refusal.status == 400 and refusal.kind != "resource_already_exists_exception":
                engine.refused.append(refusal)
            return refusal.answer(), refusal.status

    do_GET = do_POST = do_PUT = do_DELETE = do  # noqa: N815 (the names of http.server)

    def reply(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")
            body = gzip.compress(body, 1)
        self.send_header("Content-Length", str(len(body)))
        with suppress(OSError):  # the client disconnected
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of http.server)
        pass


# --- Troubles --------------------------------------------------------------------------------------------
def status(code: int, body: bytes = b'{"error": {"type": "trouble"}}') -> Trouble:
    def trouble(handler: Handler) -> bool:
        handler.reply(body, code)
        return True

    return trouble


def says(data: bytes) -> Trouble:

    def trouble(handler: Handler) -> bool:
        handler.wfile.write(data)
        handler.close_connection = True
        return True

    return trouble


def obeys_and_cuts(handler: Handler) -> bool:
    """Act, but cut the connection before the answer."""
    handler.obey()
    handler.close_connection = True
    return True


def late(seconds: float) -> Trouble:

    def trouble(handler: Handler) -> bool:
        time.sleep(seconds)
        return False

    return trouble


def drips(handler: Handler) -> bool:
    """No single wait is long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    with suppress(OSError):
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)
    handler.close_connection = True
    return True
