"""Every statement of the project, and the rows PostgreSQL touches for it.

`python -m tests.support.plans` lists the statements in the source. `explained` also explains the ORM's.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

ROOT = Path(__file__).parents[2]
ROOMS = sorted({file.parent.name for file in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests"})
STATEMENT = re.compile(r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE|TRUNCATE|COPY)\s+\S+")
FILLED_IN = re.compile(r"%(?:\(\w+\))?s|\{\w*\}")
"""Where a text takes a parameter or another text."""


# --- Statements in the source ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Text:
    """A statement or the start of a composed one."""

    file: str
    line: int
    parts: tuple[str, ...]
    """The text between parameters and insertions, without whitespace."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def is_in(self, statement: str) -> bool:
        """Whether a statement has the parts in this order."""
        position = 0
        for part in self.parts:
            found = statement.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        return True


def bare(text: str) -> str:
    return re.sub(r"\s+|\$\d+", "", text)


def texts() -> list[Text]:
    return [
        Text(str(file.relative_to(ROOT)), line, tuple(filter(None, map(bare, FILLED_IN.split(text)))))
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        if file.parent.name != "migrations" and "generated" not in file.parts
        for line, text in _strings(ast.parse(file.read_text()))
        if STATEMENT.match(text)
    ]


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings, with {} for insertions."""
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part != node
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in inner:
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


# --- Plans of PostgreSQL ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Explained:
    """A statement in one step of a scenario, with one kind of plan."""

    step: str
    statement: str
    plan: dict[str, Any]
    kind: str
    """custom, or generic: a plan for any parameters of a prepared statement."""

    @property
    def touched(self) -> int:
        return touched(self.plan)


def touched(node: dict[str, Any]) -> int:
    """Rows that scans return and filters drop, in all loops. Sorts, hashes and aggregates get theirs from nodes
    below.
    """
    rows = sum(touched(child) for child in node.get("Plans", ()))
    thrown = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
    if "Scan" in node["Node Type"] or node["Node Type"] == "ModifyTable":
        thrown += node["Actual Rows"]
    return rows + round(thrown * node["Actual Loops"])


def worst(node: dict[str, Any]) -> str:
    """The worst nodes, for the error message."""
    found: list[tuple[int, str]] = []

    def walk(node: dict[str, Any]) -> None:
        own = touched(node) - sum(touched(child) for child in node.get("Plans", ()))
        found.append((own, f"{node['Node Type']} {node.get('Relation Name', node.get('Index Name', ''))} {own}"))
        for child in node.get("Plans", ()):
            walk(child)

    walk(node)
    return ", ".join(name for own, name in sorted(found, reverse=True)[:3] if own)


def hashes_of_other_rows(plan: dict[str, Any]) -> list[str]:
    """Subplans for a row outside them. In a copied condition only the first copy refills the hash for the next row.

    See docs/decisions.md: A rule for many readers ends with OFFSET 0.
    """
    nodes = list(_nodes(plan))
    asked = {name for node in nodes for text in _conditions(node) for name in HASHED.findall(text)}
    found = []
    for node in nodes:
        if node.get("Subplan Name") in asked:
            within = list(_nodes(node))
            known = {each[key] for each in within for key in ("Alias", "CTE Name", "Relation Name") if key in each}
            outside = {name for each in within for text in _conditions(each) for name in COLUMN.findall(text)} - known
            if outside:
                found.append(f"{node['Subplan Name']} asks {', '.join(sorted(outside))}")
    return found


HASHED = re.compile(r"hashed (SubPlan \d+)")
COLUMN = re.compile(r"(?<![\w.'\"])([a-z_]\w*)\.[a-z_]")


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _conditions(node: dict[str, Any]) -> Iterator[str]:
    for name, text in node.items():
        if isinstance(text, str) and (name.endswith(("Cond", "Filter")) or name == "Function Call"):
            yield text


TIMES = 12
"""How many different parameters are explained per statement."""


class Recorder:
    """Explains statements with their first `TIMES` different parameters. The caller sets `step`."""

    def __init__(self) -> None:
        self.step = ""
        self.is_silent = False
        self.explained: list[Explained] = []
        self.executed: set[str] = set()
        self.failed: dict[str, str] = {}
        """Statements that could not be explained, and why."""
        self._done: dict[str, set[str]] = {}

    def note(self, cursor: psycopg.Cursor[Any], query: Any, params: Any) -> None:
        if self.is_silent:
            return
        text = query.decode() if isinstance(query, bytes) else str(query)
        self.executed.add(text)
        asked = repr(params)
        known = self._done.setdefault(text, set())
        if asked in known or len(known) >= TIMES or not re.match(r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE)\s", text):
            return
        known.add(asked)
        if "pg_try_advisory" in text or "pg_advisory_unlock" in text:  # would keep the session's lock
            return
        for kind in ("custom", "generic") if isinstance(cursor, psycopg.RawCursor) else ("custom",):
            try:
                plan = _plan(cursor, text, params, kind)
            except psycopg.Error as error:
                self.failed[text] = f"{type(error).__name__}: {error}"
            else:
                self.explained.append(Explained(self.step, text, plan, kind))


EXECUTE = psycopg.Cursor.execute
EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)"
_numbers = itertools.count(1)


def _plan(cursor: psycopg.Cursor[Any], text: str, params: Any, kind: str) -> dict[str, Any]:
    """Executed and rolled back. Raises the statement's errors."""
    connection = cursor.connection
    with connection.transaction(force_rollback=True), psycopg.ClientCursor(connection) as client:
        EXECUTE(client, "SET LOCAL enable_seqscan = off")
        if kind == "generic":
            name, values = f"explained_{next(_numbers)}", list(params or ())
            EXECUTE(client, "SET LOCAL plan_cache_mode = force_generic_plan")
            EXECUTE(client, f"PREPARE {name} {_types(cursor, text, values)} AS {text}".replace("%", "%%"), [])
            marks = f"({', '.join(['%s'] * len(values))})" if values else ""
            EXECUTE(client, f"{EXPLAIN} EXECUTE {name} {marks}", values)
            return _read(client)
        if isinstance(cursor, psycopg.RawCursor):
            with psycopg.RawCursor(connection) as raw:
                EXECUTE(raw, f"{EXPLAIN} {text}", params)
                return _read(raw)
        EXECUTE(client, f"{EXPLAIN} {text}", params)
        return _read(client)


def _read(cursor: psycopg.Cursor[Any]) -> dict[str, Any]:
    row: Any = cursor.fetchone()
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def _types(cursor: psycopg.Cursor[Any], text: str, values: list[Any]) -> str:
    if not values:
        return ""
    query = cursor._query_cls(psycopg.adapt.Transformer(cursor))
    query.convert(text.encode(), values)
    with psycopg.ClientCursor(cursor.connection) as client:
        EXECUTE(
            client,
            "SELECT string_agg(CASE oid WHEN 0 THEN 'unknown' ELSE format_type(oid, NULL) END, ', ' ORDER BY place)"
            " FROM unnest(%s::oid[]) WITH ORDINALITY AS type (oid, place)",
            [list(query.types or ())],
        )
        row: Any = client.fetchone()
    return f"({row[0]})"


@contextmanager
def explained() -> Iterator[Recorder]:
    """Explain all statements of this process's threads."""
    recorder = Recorder()

    def execute(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        recorder.note(cursor, query, params)
        return EXECUTE(cursor, query, params, **options)

    server = psycopg.ServerCursor.execute

    def execute_slowly(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        recorder.note(cursor, query, params)
        return server(cursor, query, params, **options)

    with (
        patch.object(psycopg.Cursor, "execute", execute),
        patch.object(psycopg.ServerCursor, "execute", execute_slowly),
    ):
        yield recorder


if __name__ == "__main__":
    for text in texts():
        print(text.place)
