import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts.actions import issue_token
from items import actions as items
from media.models import MediaFile
from relations import actions as relations
from tests.support.effort import tries
from tests.support.factories import UserFactory
from web.openapi import document

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.django_db(transaction=True)]

# Answers to rules that a schema cannot state.
RULES = """
[generation]
allow-x00 = false

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429]

[[operations]]
include-path-regex = "/api/v1/(auth/token|users/me/(password|sessions|delete))$"
headers = { Authorization = "Token %s" }
"""
"""A separate user: these calls may end the others' session."""


FILES = "^/api/v1/(me/media(/[^/]+/captions)?|users/me/(avatar|banner))$"
"""Random bytes are no files, so these get pictures: tests/support/schema_pictures.py."""


def checked(site: str, config: Path, *options: str, **environ: str) -> None:
    document()  # is made once, in seconds; the program waits for ten
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run"]
    command += [f"{site}/api/schema", "--checks", "all", "--generation-deterministic", "--max-redirects", "0"]
    command += ["--workers", "2", "--request-timeout", "30", "--suppress-health-check", "all", "--no-color"]
    done = subprocess.run(
        [*command, *options], cwd=config.parent, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "Selected: 0/" not in done.stdout


@pytest.mark.long
def test_the_site_keeps_to_its_schema(live_server: Any, settings: Any, tmp_path: Path) -> None:
    settings.RATE_SCALE = 1e6
    settings.STREAM_PORT = 1  # nobody follows the redirect to the stream process
    user, victim, writer = (UserFactory.create(username=name) for name in ("user", "victim", "writer"))
    relations.follow(follower=user, followee=writer)
    items.publish(sender=writer, content={"text": "words"})
    config = tmp_path / "schemathesis.toml"
    config.write_text(RULES % issue_token(user=victim))
    token = ["--header", f"Authorization: Token {issue_token(user=user)}"]
    checked(live_server.url, config, *token, "--max-examples", str(tries(1, 3)), "--exclude-path-regex", FILES)


@pytest.mark.long
def test_files_keep_to_the_schema(live_server: Any, settings: Any, tmp_path: Path, media_folder: Path) -> None:
    settings.RATE_SCALE = 1e6
    user = UserFactory.create(username="user")
    config = tmp_path / "schemathesis.toml"
    config.write_text(RULES % issue_token(user=user))
    token = ["--header", f"Authorization: Token {issue_token(user=user)}"]
    environ = {"SCHEMATHESIS_HOOKS": "tests.support.schema_pictures", "PYTHONPATH": str(settings.BASE_DIR)}
    checked(
        live_server.url, config, *token, "--max-examples", str(tries(2, 30)), "--include-path-regex", FILES, **environ
    )
    assert MediaFile.objects.filter(use="").count() > 1, "pictures were taken"
    assert MediaFile.objects.filter(use="avatar").count() <= 1
