from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = [("oauth2_provider", "0022_refreshtoken_token_family_index")]

    operations = [migrations.RunSQL((SQL / "tokens.sql").read_text())]
