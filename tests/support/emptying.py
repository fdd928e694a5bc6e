from django.db import connection


def empty_tables() -> None:
    """Django's flush truncates every table in 150 ms. This takes 5 ms, and keeps rows from migrations."""
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT quote_ident(relname), pg_relation_size(oid) > 262144 FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
                AND relname NOT IN ('django_migrations', 'django_content_type', 'auth_permission', 'auth_group',
                    'auth_group_permissions', 'accounts_policy')
        """)
        tables = cursor.fetchall()
        # Without foreign key triggers, any order works.
        statements = ["SET session_replication_role = replica"]
        statements += [f"DELETE FROM {table}" for table, is_large in tables if not is_large]
        statements += ["SET session_replication_role = origin"]
        if large := [table for table, is_large in tables if is_large]:
            statements.append(f"TRUNCATE {', '.join(large)} CASCADE")
        cursor.execute("; ".join(statements))
