from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from oauth2_provider.models import AccessToken

from accounts import actions
from accounts.models import User
from storage.events import Revoked
from tests.support.clients import app_of, token_of
from tests.support.factories import UserFactory


@pytest.mark.django_db(transaction=True)
def test_a_token_that_is_issued_while_its_app_is_removed_is_told_of_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    told: set[int] = set()

    def note(event: Any) -> None:
        assert isinstance(event, Revoked)
        told.add(event.user)

    monkeypatch.setattr(actions, "announce", note)
    early: User = UserFactory.create()
    late: User = UserFactory.create()
    app = app_of()
    token_of(early, app=app)
    issued: list[bool] = []

    def issue() -> bool:
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '300ms'")
                token_of(late, app=app)
        except OperationalError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(1) as pool:

        def after_the_read(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            found = execute(sql, params, many, context)
            if not issued and sql.startswith("SELECT") and "oauth2_provider_accesstoken" in sql:
                issued.append(pool.submit(issue).result())
            return found

        with connection.execute_wrapper(after_the_read):
            actions.delete_app(app_id=app.pk)
    assert len(issued) == 1
    assert not AccessToken.objects.exists()
    assert told == ({early.pk, late.pk} if issued[0] else {early.pk})
