from typing import Any

from django.db import migrations, models

from items.visibility import public_post
from storage.indexes import AddIndexConcurrently

BATCH = 1000
NEXT = "SELECT DISTINCT item_id FROM items_itemtag WHERE item_id > %s ORDER BY item_id LIMIT %s"
# The lock waits for concurrent changes of an item and reads its new version.
FILL = f"""
    WITH post AS MATERIALIZED (SELECT id FROM items_item i WHERE id = ANY(%s) AND {public_post("i")} FOR SHARE)
    UPDATE items_itemtag t SET is_public_post = true FROM post WHERE t.item_id = post.id AND NOT t.is_public_post
"""


def fill(apps: Any, schema_editor: Any) -> None:
    """Fill the column in batches."""
    last = 0
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(NEXT, [last, BATCH])
            ids = [row[0] for row in cursor.fetchall()]
            if not ids:
                return
            cursor.execute(FILL, [ids])
            last = ids[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("items", "0002_tag_posts")]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        AddIndexConcurrently(
            model_name="itemtag",
            index=models.Index(
                fields=["tag", "-item"], condition=models.Q(("is_public_post", True)), name="item_tag_posts"
            ),
        ),
    ]
