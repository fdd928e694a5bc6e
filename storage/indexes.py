from typing import Any

from django.contrib.postgres import operations


class AddIndexConcurrently(operations.AddIndexConcurrently):
    """Builds an index while the site runs, in migrations with `atomic = False`.

    May run again: replaces only an invalid index.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Build the index unless a valid one exists."""
        self._ensure_not_in_transaction(schema_editor)
        name = schema_editor.quote_name(self.index.name)
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
            found = cursor.fetchone()
        if found == (True,):
            return
        if found:
            schema_editor.remove_index(
                to_state.apps.get_model(app_label, self.model_name), self.index, concurrently=True
            )
        super().database_forwards(app_label, schema_editor, from_state, to_state)
