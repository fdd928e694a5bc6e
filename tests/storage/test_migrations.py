import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres import operations as concurrent
from django.contrib.postgres.operations import AddConstraintNotValid
from django.core.management import call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import functions

from runtime.management.commands.makemigrations import Autodetector
from storage.indexes import AddIndexConcurrently

ROOT = Path(settings.BASE_DIR)
FOLDERS = [*ROOT.glob("*/migrations"), *ROOT.glob("*/*/migrations")]
APPS = frozenset(
    config.label
    for config in apps.get_app_configs()
    if Path(config.path).is_relative_to(ROOT) and "site-packages" not in Path(config.path).parts
)
"""Table prefixes of the site's apps."""
TABLE = r"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?"
CONSTRAINT = r"ADD\s+(?:CONSTRAINT\s+\S+\s+)?(?:CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)"
FORBIDDEN_SQL = {
    "an index that is not built concurrently": r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)(?:\S+\s+)*?ON\s+",
    "a constraint that is validated at once": rf"{TABLE}(?=\S+[^;]*{CONSTRAINT}(?![^;]*(?:NOT\s+VALID|USING\s+INDEX)))",
    "a column that is rewritten or read through": rf"{TABLE}(?=\S+[^;]*(?:\sTYPE\s|SET\s+NOT\s+NULL))",
}
CREATED = r"(?i)CREATE\s+(?:UNLOGGED\s+)?TABLE\s+(\S+)"


def offences(migration: Any, before: ProjectState) -> Iterator[str]:
    """Blocking while they read an existing table."""
    state = before.clone()
    operations = list(_flat(migration.operations))
    models_made = {each.name.lower() for each in operations if isinstance(each, migrations.CreateModel)}
    statements = [_sql(each) for each in operations if isinstance(each, migrations.RunSQL)]
    tables_made = {table.strip('"').lower() for sql in statements for table in re.findall(CREATED, sql)}
    for operation in operations:
        if isinstance(operation, migrations.RunSQL):
            yield from _in_sql(_sql(operation), tables_made)
        elif isinstance(operation, concurrent.AddIndexConcurrently):
            if migration.atomic or not isinstance(operation, AddIndexConcurrently):
                yield f"{operation.describe()}: take storage.indexes.AddIndexConcurrently, with atomic = False"
        elif getattr(operation, "model_name", "").lower() not in models_made:
            yield from (f"{operation.describe()}: {why}" for why in _of(operation, migration.app_label, state))
        operation.state_forwards(migration.app_label, state)


def _of(operation: Any, app: str, state: ProjectState) -> Iterator[str]:
    if isinstance(operation, migrations.AddIndex):
        yield "take storage.indexes.AddIndexConcurrently"
    elif isinstance(operation, migrations.AddConstraint) and not isinstance(operation, AddConstraintNotValid):
        yield "add it NOT VALID and validate it later; a unique one by an index that is built concurrently"
    elif isinstance(operation, migrations.AlterUniqueTogether | migrations.AlterIndexTogether):
        yield "it builds an index"
    elif isinstance(operation, migrations.AddField):
        yield from _new_column(operation.field)
    elif isinstance(operation, migrations.AlterField):
        known = state.models[app, operation.model_name_lower].fields[operation.name]
        yield from _changed(known, operation.field)


def _flat(operations: Any) -> Iterator[Any]:
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from _flat(operation.database_operations)
        else:
            yield operation


def _sql(operation: Any) -> str:
    parts = [operation.sql] if isinstance(operation.sql, str) else operation.sql
    return ";\n".join(part if isinstance(part, str) else part[0] for part in parts)


def _in_sql(sql: str, tables: set[str]) -> Iterator[str]:
    for why, pattern in FORBIDDEN_SQL.items():
        for found in re.finditer(f"(?is){pattern}(?P<table>[^\\s(]+)", sql):
            if found["table"].strip('"').lower() not in tables:
                yield f"RunSQL: {why}, on {found['table']}"


def _has_index(field: Any) -> bool:
    return bool(field.unique or field.db_index)


def _new_column(field: Any) -> Iterator[str]:
    if field.many_to_many:
        return
    if _has_index(field):
        yield "it builds an index"
    if field.remote_field and field.db_constraint:
        yield "its constraint is validated at once"
    if getattr(field, "generated", False):
        yield "it rewrites the table"
    elif not field.null and not field.has_db_default():
        yield "the version before cannot write a row without it: give it db_default, or let it be null"
    given = field.db_default
    if field.has_db_default() and not isinstance(given, models.Value | functions.Now) and hasattr(given, "as_sql"):
        yield "its default may rewrite the table"


def _changed(old: Any, new: Any) -> Iterator[str]:
    if _has_index(new) and not _has_index(old):
        yield "it builds an index"
    if old.null and not new.null:
        yield "NOT NULL reads the table through"
    if old.remote_field is None and new.remote_field is not None and new.db_constraint:
        yield "its constraint is validated at once"
    types = [_type(field) for field in (old, new)]
    sizes = [re.fullmatch(r"varchar\((\d+)\)", kind or "") for kind in types]
    widens = sizes[0] and (types[1] == "text" or (sizes[1] and int(sizes[1][1]) >= int(sizes[0][1])))
    if types[0] != types[1] and not widens:
        yield f"{types[0]} becomes {types[1]}"


def _type(field: Any) -> str | None:
    if field.remote_field:
        return "(a reference)"
    kind: str | None = field.db_type(connection)
    return kind


# --- Checks ----------------------------------------------------------------------------------------------
def all_migrations() -> list[tuple[str, str]]:
    loader = MigrationLoader(None)
    later = {key for key, each in loader.disk_migrations.items() if not (each.initial or each.replaces)}
    return sorted(key for key in later if key[0] in APPS)


@pytest.mark.slow
@pytest.mark.parametrize(("app", "name"), all_migrations())
def test_it_blocks_no_writer(app: str, name: str) -> None:
    loader = MigrationLoader(None)
    migration = loader.disk_migrations[app, name]
    assert list(offences(migration, loader.project_state((app, name), at_end=False))) == []


def test_every_room_with_tables_is_looked_at() -> None:
    packages = [".".join(folder.parent.relative_to(ROOT).parts) for folder in FOLDERS]
    rooms = {apps.get_containing_app_config(f"{package}.models").label for package in packages}  # type: ignore[union-attr]
    assert rooms == {app for app, _ in MigrationLoader(None).disk_migrations if app in APPS}
    assert {"media", "mail"} <= rooms


def test_first_migrations_are_first() -> None:
    """The checks skip first and squashed migrations."""
    loader = MigrationLoader(None)
    for (app, name), migration in loader.disk_migrations.items():
        if app in APPS and migration.initial:
            assert name.startswith("0001_"), (app, name)


@pytest.fixture
def shop() -> ProjectState:
    state = ProjectState()
    state.add_model(
        ModelState(
            "shop",
            "thing",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("name", models.CharField(max_length=10, null=True)),
                ("size", models.IntegerField(default=0)),
            ],
        )
    )
    return state


CHECK = models.CheckConstraint(condition=models.Q(size__gt=0), name="thing_size")
INDEX = models.Index(fields=["size"], name="thing_by_size")
NOTE = migrations.CreateModel("note", [("id", models.BigAutoField(primary_key=True)), ("size", models.IntegerField())])
SQL = migrations.RunSQL


@pytest.mark.parametrize(
    ("operations", "count"),
    [
        ([migrations.AddIndex("thing", INDEX)], 1),
        ([NOTE, migrations.AddIndex("note", INDEX)], 0),
        ([AddIndexConcurrently("thing", INDEX)], 0),
        ([concurrent.AddIndexConcurrently("thing", INDEX)], 1),
        ([migrations.AddConstraint("thing", CHECK)], 1),
        ([AddConstraintNotValid("thing", CHECK)], 0),
        ([migrations.AddConstraint("thing", models.UniqueConstraint(fields=["name"], name="once"))], 1),
        ([migrations.AddField("thing", "note", models.TextField(null=True))], 0),
        ([migrations.AddField("thing", "at", models.DateTimeField(db_default=functions.Now()))], 0),
        ([migrations.AddField("thing", "at", models.FloatField(db_default=functions.Random()))], 1),
        ([migrations.AddField("thing", "slug", models.SlugField(db_default=""))], 1),
        ([migrations.AddField("thing", "note", models.TextField(default=""))], 1),
        ([migrations.AddField("thing", "note", models.TextField(db_default=""))], 0),
        ([migrations.AlterField("thing", "name", models.CharField(max_length=20, null=True))], 0),
        ([migrations.AlterField("thing", "name", models.CharField(max_length=5, null=True))], 1),
        ([migrations.AlterField("thing", "name", models.CharField(max_length=10))], 1),
        ([migrations.AlterField("thing", "size", models.BigIntegerField())], 1),
        ([migrations.AlterField("thing", "size", models.IntegerField(db_index=True))], 1),
        ([SQL("CREATE INDEX a ON shop_thing (size)")], 1),
        ([SQL("create unique index if not exists a\n on shop_thing (size)")], 1),
        ([SQL("CREATE INDEX CONCURRENTLY a ON shop_thing (size)")], 0),
        ([SQL(["CREATE TABLE a (b int)", "CREATE INDEX c ON a (b)"])], 0),
        ([SQL("ALTER TABLE shop_thing ADD CONSTRAINT a CHECK (size > 0)")], 1),
        ([SQL("ALTER TABLE shop_thing ADD CONSTRAINT a CHECK (size > 0) NOT VALID")], 0),
        ([SQL("ALTER TABLE shop_thing ALTER COLUMN size TYPE bigint")], 1),
        ([SQL("ALTER TABLE shop_thing ALTER COLUMN name SET NOT NULL")], 1),
        ([SQL("ALTER TABLE shop_thing ADD COLUMN other integer NULL")], 0),
    ],
)
def test_refused_operations(shop: ProjectState, operations: list[Any], count: int) -> None:
    migration = SimpleNamespace(app_label="shop", atomic=False, operations=operations)
    assert len(list(offences(migration, shop))) == count


# --- What stands in migrations ---------------------------------------------------------------------------
def test_only_what_the_database_holds_needs_a_migration() -> None:
    def changed(options: dict[str, str] | None = None, **kwargs: Any) -> dict[str, list[Any]]:
        before, after = ProjectState(), ProjectState()
        before.add_model(ModelState("shop", "thing", [("name", models.CharField(max_length=10))]))
        fields = [("name", models.CharField(**{"max_length": 10} | kwargs))]
        after.add_model(ModelState("shop", "thing", fields, options))
        asks = MigrationQuestioner({"ask_initial": True})
        return Autodetector(before, after, asks).changes(MigrationLoader(None).graph)

    assert changed(verbose_name="n", help_text="Of it.", choices=[("a", "A")], validators=[print], blank=True) == {}
    assert changed({"verbose_name": "a thing", "verbose_name_plural": "some things"}) == {}
    assert changed({"db_table": "other"})
    assert changed(max_length=11)
    (migration,) = changed(db_default="", help_text="Of it.")["shop"]
    assert migration.operations[0].field.help_text == ""


# --- Indexes that are built concurrently -----------------------------------------------------------------
def is_valid(name: str) -> bool | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        found = cursor.fetchone()
    return found[0] if found else None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("left", ["nothing", "an invalid index", "a valid index"])
@pytest.mark.parametrize("index", ["item_answered", "item_public"])
def test_an_index_is_built_whatever_an_attempt_left(index: str, left: str) -> None:
    before = MigrationLoader(None).project_state()
    operation = AddIndexConcurrently("item", before.models["items", "item"].get_index_by_name(index))
    before.remove_index("items", "item", index)
    after = before.clone()
    operation.state_forwards("items", after)
    with connection.cursor() as cursor:
        if left == "nothing":
            cursor.execute(f"DROP INDEX {index}")
        elif left == "an invalid index":
            cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", [index])
    try:
        with connection.schema_editor(atomic=False) as editor:
            operation.database_forwards("items", editor, before, after)
            assert is_valid(index)
            operation.database_forwards("items", editor, before, after)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE pg_index SET indisvalid = true WHERE indexrelid = to_regclass(%s)", [index])
    assert is_valid(index)


@pytest.mark.slow
@pytest.mark.django_db
def test_migrate_leaves_the_connection_as_patient_as_it_was() -> None:
    """A later statement must not fail on the short limit."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '7s'")
        call_command("migrate", interactive=False, verbosity=0)
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("7s",)
        cursor.execute("RESET lock_timeout")
