import io
import json
import logging
import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.signals import request_finished
from django.db import DatabaseError, OperationalError, connection, transaction
from django.test import Client

from accounts.about import site
from feedsite.celery import app
from runtime import logs
from runtime.supervisor import as_json_line
from storage.postgresql import base
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from timeline.tasks import sweep

pytestmark = pytest.mark.django_db


def written(record: logging.LogRecord) -> dict[str, Any]:
    line = logs.JsonFormatter().format(record)
    assert "\n" not in line
    fields: dict[str, Any] = json.loads(line)
    return fields


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "feedsite.access")
    return lambda: [written(record) for record in caplog.records if record.name == "feedsite.access"]


def test_a_request_is_one_line_without_its_secrets(client: Client, settings: Any, lines: Any) -> None:
    settings.ACCESS_LOG = True
    user = UserFactory()
    client.force_login(user)
    client.get("/?token=hunter2", HTTP_AUTHORIZATION="Token hunter2")
    client.get(f"/@{user.username}")
    client.get("/search?q=hunter2")
    client.get("/no-such-hunter2")
    home, profile, search, nothing = lines()
    assert home.pop("ms") > 0
    assert home.items() >= {"route": "/", "method": "GET", "status": 200, "user": user.pk, "source": "sql"}.items()
    assert profile["route"] == "@<str:username>"
    assert search["route"] == "search"
    assert (nothing["route"], nothing["status"]) == ("(none)", 404)
    assert "hunter2" not in json.dumps([home, profile, search, nothing])


def test_by_default_people_read_no_line_a_request(client: Client, lines: Any) -> None:
    client.get("/healthz")
    assert lines() == []


@pytest.mark.parametrize(
    ("given", "taken"), [("abc-DEF_1.2", True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("ä", False)]
)
def test_a_sane_id_is_taken_and_another_made(client: Client, given: str, taken: bool) -> None:
    response = client.get("/healthz", HTTP_X_REQUEST_ID=given)
    answered = response["X-Request-ID"]
    assert (answered == given) is taken
    assert logs.SANE.fullmatch(answered)
    request_finished.send(Client)
    assert logs.request_id.get() == ""
    assert client.get("/healthz")["X-Request-ID"] != client.get("/healthz")["X-Request-ID"]


def test_what_fails_names_its_request(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Django logs it after the middleware returned."""
    client.get("/nowhere", HTTP_X_REQUEST_ID="r404")
    (record,) = (record for record in caplog.records if record.name == "django.request")
    assert vars(record)["about"] == " [r404]"


def test_a_refusal_is_one_line_without_a_traceback(caplog: pytest.LogCaptureFixture, db: None) -> None:
    client = logged_in(UserFactory.create(is_staff=True))
    assert client.get("/admin/accounts/user/").status_code == 403
    (record,) = [record for record in caplog.records if record.name == "django.request"]
    assert "Forbidden (Permission denied): /admin/accounts/user/" in record.getMessage()
    assert (record.exc_info, record.exc_text) == (None, None)


def test_a_bad_request_is_one_line_without_a_traceback(caplog: pytest.LogCaptureFixture, db: None) -> None:
    assert Client().get("/search?q=%00").status_code == 400
    records = [record for record in caplog.records if record.name.startswith("django")]
    assert records
    assert [(record.exc_info, record.exc_text) for record in records] == [(None, None)] * len(records)


def test_an_outage_that_no_view_meets_is_one_line_with_its_cause(
    caplog: pytest.LogCaptureFixture, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("100 % of\nit is away")

    monkeypatch.setattr("accounts.levels.presence.PresenceMiddleware.__call__", fails)
    assert Client(raise_request_exception=False).get("/").status_code == 503
    (record,) = [record for record in caplog.records if record.name == "django.request"]
    assert record.getMessage() == "Service Unavailable: /: 100 % of it is away"
    assert (record.exc_info, record.exc_text) == (None, None)


def test_an_id_cannot_be_made_up_as_a_second_line(client: Client) -> None:
    assert "\n" not in client.get("/healthz", HTTP_X_REQUEST_ID="a\nb")["X-Request-ID"]


def test_a_task_belongs_to_the_request_that_sent_it() -> None:
    seen: list[tuple[str, str]] = []

    @app.task(name="tests.look", bind=True)
    def look(self: Any) -> None:
        seen.append((logs.request_id.get(), logs.task_name.get()))

    headers: dict[str, Any] = {}
    token = logs.request_id.set("from-the-page")
    logs.add_request_id(headers=headers)
    logs.request_id.reset(token)
    look.apply(headers=headers)
    look.apply()
    del app.tasks["tests.look"]
    assert seen == [("from-the-page", "tests.look"), ("", "tests.look")]
    assert logs.request_id.get() == logs.task_name.get() == ""


def test_a_traceback_is_one_field_and_what_is_no_word_is_left_out() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.ERROR, "", 0, "it %s", ("failed",), sys.exc_info(), extra={"request": object(), "item": 7}
        )
    fields = written(record)
    assert fields["message"] == "it failed"
    assert "ValueError: a\nb" in fields["error"]
    assert fields["item"] == 7
    assert "request" not in fields


@pytest.mark.slow
def test_json_is_what_the_environment_says() -> None:
    code = (
        "import logging.config; from django.conf import settings; logging.config.dictConfig(settings.LOGGING); "
        "logging.getLogger('x').warning('grüße %s', 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=os.environ | {"FEEDSITE_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stderr.splitlines()
    assert json.loads(line).items() >= {"level": "WARNING", "logger": "x", "message": "grüße 1"}.items()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"at": "t", "level": "ERROR", "logger": "x", "message": "m"}',
            {"level": "ERROR", "logger": "x", "message": "m"},
        ),
        ("[INFO] Starting granian", {"level": "INFO", "logger": "web", "message": "[INFO] Starting granian"}),
        ('{"half', {"message": '{"half'}),
        ("[1]", {"message": "[1]"}),
        ("", {"message": ""}),
    ],
)
def test_what_a_program_of_the_site_wrote_becomes_one_object(line: str, expected: dict[str, str]) -> None:
    fields = json.loads(as_json_line(line, "web"))
    assert fields.items() >= (expected | {"program": "web"}).items()
    assert fields["at"]


def test_enqueueing_carries_the_id_through_a_real_broker() -> None:
    with app.connection_for_write() as connection:
        queue = connection.SimpleQueue("celery", no_ack=True)
        queue.clear()
        token = logs.request_id.set("r1")
        assert sweep.delay()
        logs.request_id.reset(token)
        message = queue.get(timeout=60)
        queue.close()
        assert message.headers["request_id"] == "r1"


# --- An outage of PostgreSQL -------------------------------------------------------------------------------
@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setattr(logs, "outage", logs.Outage())
    monkeypatch.setattr(base, "outage", logs.outage)
    stream, handler = io.StringIO(), logging.StreamHandler()
    handler.setStream(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    for each in (logs.AboutFilter(), logs.OutageFilter(), logs.RefusalFilter()):
        handler.addFilter(each)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    return stream


def fail() -> None:
    """Raise what Django raises without PostgreSQL."""
    wrapper = base.DatabaseWrapper(connection.settings_dict | {"HOST": "127.0.0.1", "PORT": "1"})
    wrapper.ensure_connection()


def test_an_outage_is_one_line_at_its_start_and_one_at_its_end(console: io.StringIO) -> None:
    logger = logging.getLogger("celery.app.trace")
    for _ in range(40):
        try:
            fail()
        except OperationalError as error:
            logger.exception("Task %s raised unexpected: %r", "items.fold_counts", error)
            logger.warning("the site's settings could not be read. The last known ones are used: %s", error)
    first, *others = console.getvalue().splitlines()
    assert first.startswith("ERROR celery.app.trace: PostgreSQL does not answer: connection failed: ")
    assert ". So this failed: Task items.fold_counts raised unexpected" in first
    assert "Connection refused" in first
    assert not others
    another = base.DatabaseWrapper(connection.settings_dict)
    another.ensure_connection()
    another.close()
    _first, last = console.getvalue().splitlines()
    assert last == "WARNING postgresql: PostgreSQL answers again, after 0 s. 79 further lines about it were left out."
    another.ensure_connection()
    another.close()
    assert len(console.getvalue().splitlines()) == 2, "an end is told once"


def test_faults_of_statements_keep_their_tracebacks(console: io.StringIO, db: None) -> None:
    for statement in ("SELECT FROM nowhere", "SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(1)"):
        try:
            with transaction.atomic():
                connection.cursor().execute(statement)
        except DatabaseError:
            logging.getLogger("x").exception("failed")
    assert console.getvalue().count("Traceback") >= 2
    assert "does not answer" not in console.getvalue()


def test_404_and_503_are_lines_of_the_access_log_alone(console: io.StringIO, client: Client, settings: Any) -> None:
    settings.ACCESS_LOG = True
    client.get("/nowhere")
    site.site_copy.set(site.Site(read_only_why="We move."))
    client.post("/login")
    said = [line for line in console.getvalue().splitlines() if "django.request" in line]
    assert said == []
