import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import LazySettings, settings
from django.core import checks

from runtime.environment import OptionsError, allowed_values, read, unknown_variables
from runtime.management.commands.check_all import clean_environ
from runtime.management.commands.document_settings import documents
from runtime.options import INTERNAL, SECTIONS, VARIABLES, Options
from runtime.rate_table import RATES, parse_rate
from tests.support.clusters import free_ports
from tests.support.effort import some
from tests.support.environments import given, refusal

ROOT = Path(settings.BASE_DIR)
SECRET = "hunter2"
MOST_SETTINGS = 87


WRONG = [
    ("FEEDSITE_RATES", "login=lots", "'lots' of login is not like 20/hour"),
    ("FEEDSITE_RATES", "login=0/hour", "'0/hour' of login is not like"),
    ("FEEDSITE_RATES", "login", "'' of login is not like"),
    ("FEEDSITE_RATES", "logn=20/hour", "there is no rate logn (did you mean login?)"),
    ("FEEDSITE_RATES", "zqxjkv=20/hour", "there is no rate zqxjkv."),
    ("FEEDSITE_RATES", "logn=20/hour, read=x", "there is no rate logn (did you mean login?); 'x' of read is"),
    ("FEEDSITE_FOLLOW_CAP", "0", "from 1 to"),
    ("FEEDSITE_FOLLOW_CAP", "abc", "a whole number"),
    ("FEEDSITE_FOLLOW_CAP", "1.5", "a whole number"),
    ("FEEDSITE_HTTPS", "maybe", "It must be 1 or 0."),
    ("FEEDSITE_RATE_SCALE", "1e999", "a number from 0"),
    ("FEEDSITE_RATE_SCALE", "nan", "a number from 0"),
    ("FEEDSITE_REDIS_TIMEOUT_SECONDS", "0.2s", "a number from 0.001"),
    ("FEEDSITE_CSRF_TRUSTED_ORIGINS", "https://a.example, example.org", "https://example.org"),
    ("FEEDSITE_STREAM_ORIGINS", "https://*.example.org", "https://example.org"),
    ("FEEDSITE_ALLOWED_HOSTS", "https://example.org", "without scheme"),
    ("FEEDSITE_DISCOVER_SEEN", "all", "impressions, plays or both"),
    ("FEEDSITE_FEEDS_MEMORY", "much", "512mb"),
    ("FEEDSITE_PLAYED_OLD_KEY", "played", "{uid}"),
    ("FEEDSITE_IMPRESSION_CAPACITY", "999", "from 1000"),
    ("FEEDSITE_ADMIN_PATH", "api", "not below api"),
    ("FEEDSITE_HOST", "all of them", "an IP address of this machine or localhost."),
    ("FEEDSITE_HOST", "feeds.example.org", "an IP address of this machine or localhost."),
    ("FEEDSITE_GRPC_HOST", "127.0.0", "an IP address of this machine or localhost."),
    ("PORT", "0", "from 1 to 65535"),
    ("PORT", "http", "from 1 to 65535"),
    ("FEEDSITE_LOG_LEVEL", "loud", "DEBUG, INFO"),
    ("FEEDSITE_TIME_ZONE", "Mars/Olympus", "such as Asia/Shanghai"),
    ("FEEDSITE_TIME_ZONE", "UTC+8", "such as Asia/Shanghai"),
    ("FEEDSITE_TIME_ZONE", "Europe", "such as Asia/Shanghai"),
    ("FEEDSITE_TIME_ZONE", "../../../etc/passwd", "such as Asia/Shanghai"),
    ("FEEDSITE_TIME_ZONE", "/etc/localtime", "such as Asia/Shanghai"),
]


@pytest.mark.parametrize(("name", "value", "says"), WRONG)
def test_a_wrong_value_is_one_line_that_names_what_is_allowed(name: str, value: str, says: str) -> None:
    line = refusal(**{name: value})
    assert line.startswith(f"{name} is {value!r}. It must be ")
    assert says in line


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("FEEDSITE_DATABASE_URL", f"mysql://u:{SECRET}@h/n", "it begins with mysql://"),
        ("FEEDSITE_DATABASE_URL", SECRET, "it has no scheme"),
        ("FEEDSITE_DATABASE_URL", f"postgresql://u:{SECRET}@h:port/n", "not valid"),
        ("FEEDSITE_DATABASE_URL", f"postgresql://u:{SECRET}@h/", "has no database"),
        ("FEEDSITE_DATABASE_URL", f"postgresql://u:{SECRET} @h/n", "contains a space"),
        ("FEEDSITE_REDIS_URL", f"redis://u:{SECRET}@h/zero", "its database is not a number"),
        ("FEEDSITE_REDIS_URL", f"redis://:{SECRET}/0@h", "has no host|not valid|not a number"),
        ("FEEDSITE_REDIS_URL", f"redis+cluster://u:{SECRET}@feeds/1", "only database 0"),
        ("FEEDSITE_REDIS_URL", f"redis+cluster://u:{SECRET}/x@feeds", "not valid"),
        ("FEEDSITE_CACHE_URL", f"redis+cluster://u:{SECRET}@feeds", "it begins with"),
        ("FEEDSITE_BROKER_URL", f"http://u:{SECRET}@broker", "it begins with http://"),
        ("FEEDSITE_BROKER_URL", "unix:///broker.sock", "it begins with unix://"),
        ("FEEDSITE_OPENSEARCH_URL", "search.internal", "no scheme"),
        ("FEEDSITE_OPENSEARCH_URL", f"ftp://u:{SECRET}@search.internal/items", "ftp://"),
        *(
            (
                "FEEDSITE_OPENSEARCH_URL",
                f"https://u:{SECRET}@search.internal:9200{path}",
                "must end with a name|not like",
            )
            for path in ("", "/", "/Items", "/_items", "/a/b", "/a,b", "/items?x=1")
        ),
        ("FEEDSITE_OPENSEARCH_URL", "https:///items", "not like the example"),
        ("FEEDSITE_METRICS_TOKEN", f"{SECRET} and more", "without spaces"),
    ],
)
def test_what_may_hold_a_secret_is_not_repeated(name: str, value: str, says: str) -> None:
    line = refusal(**{name: value})
    assert line.startswith(f"{name} must be ")
    assert SECRET not in line
    assert re.search(says, line), line


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"FEEDSITE_LEVEL_1_CAP": "400"}, "FEEDSITE_LEVEL_2_CAP is 300. It must be higher than FEEDSITE_LEVEL_1_CAP"),
        ({"FEEDSITE_LEVEL_1_CAP": "300"}, "which is 300"),
        ({"FEEDSITE_LEVEL_3_CAP": "250"}, "FEEDSITE_LEVEL_3_CAP is 250. It must be higher than FEEDSITE_LEVEL_2_CAP"),
        ({"FEEDSITE_REPLICA_URL": "postgresql://h/n"}, "FEEDSITE_DATABASE_URL, its primary, is not"),
        ({"FEEDSITE_REDIS_URL": "redis+cluster://feeds"}, "Set FEEDSITE_BROKER_URL to a single server"),
    ],
)
def test_values_that_contradict_each_other(environ: dict[str, str], says: str) -> None:
    assert says in refusal(**environ)


def test_all_that_is_wrong_is_told_at_once_and_nothing_that_follows_from_it() -> None:
    with pytest.raises(OptionsError) as refused:
        given(
            {
                "FEEDSITE_LEVEL_1_CAP": "x",
                "FEEDSITE_LEVEL_2_CAP": "50",
                "FEEDSITE_STREAM": "x",
                "FEEDSITE_REPLICA_URL": "postgresql://h/n",
            }
        )
    names = ["FEEDSITE_REPLICA_URL", "FEEDSITE_LEVEL_1_CAP", "FEEDSITE_STREAM"]
    assert [line.split()[0] for line in refused.value.lines] == names


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_is_not_set(empty: str) -> None:
    assert given(dict.fromkeys(VARIABLES, empty)) == given({})


def test_values_are_read_as_people_write_them() -> None:
    found = given(
        {
            "FEEDSITE_HTTPS": " Yes ",
            "FEEDSITE_ALLOWED_HOSTS": " a.example , .b.example,[::1],*,",
            "FEEDSITE_LOG_LEVEL": "debug",
            "FEEDSITE_SIGN_UP": "Invite",
            "FEEDSITE_SECRET_KEY": " begins with a space",
            "FEEDSITE_RATE_SCALE": "1e6",
            "FEEDSITE_RATES": " login=5/hour, read = 9/second,",
            "FEEDSITE_ADMIN_PATH": "/back/door/",
            "FEEDSITE_HOST": "localhost",
            "FEEDSITE_GRPC_HOST": "::1",
            "FEEDSITE_DATABASE_URL": "postgresql://u:p@one:5432,two:5433/name",
        }
    )
    assert found.https is True
    assert found.allowed_hosts == ["a.example", ".b.example", "[::1]", "*"]
    assert (found.log_level, found.sign_up) == ("DEBUG", "invite")
    assert found.secret_key == " begins with a space"
    assert found.rate_scale == 1e6
    assert found.rates == {"login": "5/hour", "read": "9/second"}
    assert found.admin_path == "/back/door/"
    assert (found.host, found.grpc_host) == ("127.0.0.1", "::1"), "granian takes no names"
    assert found.database_url == "postgresql://u:p@one:5432,two:5433/name"


def test_what_may_hold_a_secret_is_not_in_the_settings_as_text() -> None:
    url = f"postgresql://u:{SECRET}@h/n"
    found = given({"FEEDSITE_DATABASE_URL": url, "FEEDSITE_SECRET_KEY": SECRET, "FEEDSITE_METRICS_TOKEN": SECRET})
    assert found.database_url == url
    assert SECRET not in f"{found} {found!r}"


# --- The file --------------------------------------------------------------------------------------------
def read_with(environ: dict[str, str], folder: Path) -> tuple[Options, dict[str, str]]:
    with patch.dict(os.environ, environ, clear=True):
        return read(folder), dict(os.environ)


def test_a_file_adds_what_is_not_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\n\nFEEDSITE_FOLLOW_CAP=7\nexport PORT=81\n"
        'FEEDSITE_DATA_DIR=\'/a b/$c #d\'\nFEEDSITE_SECRET_KEY="a\\"b"\nFEEDSITE_OUTBOX_CAP=3\n'
        "FEEDSITE_EMAIL_FROM=${HOME}@example.org\n".replace("${HOME}", "feeds")
    )
    found, after = read_with({"FEEDSITE_OUTBOX_CAP": "4"}, tmp_path)
    assert (found.follow_cap, found.port, found.outbox_cap) == (7, 81, 4)
    assert found.data_dir == Path("/a b/$c #d")
    assert found.secret_key == 'a"b'
    assert after["FEEDSITE_FOLLOW_CAP"] == "7", "for the programs that this one starts"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """The site would start with an empty database."""
    with pytest.raises(OptionsError, match="cannot be read: No such file"):
        read_with({"FEEDSITE_ENV_FILE": str(tmp_path / "missing")}, tmp_path)
    (tmp_path / ".env").mkdir()
    with pytest.raises(OptionsError, match="cannot be read: Is a directory"):
        read_with({}, tmp_path)
    (tmp_path / "odd").write_bytes(b"PORT=\xff\n")
    with pytest.raises(OptionsError, match="cannot be read: it is not UTF-8"):
        read_with({"FEEDSITE_ENV_FILE": str(tmp_path / "odd")}, tmp_path)
    lines = f"PORT=80\nFEEDSITE_DATABASE_URL postgresql://u:{SECRET}@h/n\nFEEDSITE_URL\nFEEDSITE_SECRET_KEY='{SECRET}\n"
    (tmp_path / "odd").write_text(lines)
    with pytest.raises(OptionsError) as refused:
        read_with({"FEEDSITE_ENV_FILE": str(tmp_path / "odd")}, tmp_path)
    assert refused.value.lines == tuple(f"Line {line} of {tmp_path / 'odd'} is not NAME=value." for line in (2, 3, 4))


# --- Names -----------------------------------------------------------------------------------------------
def test_a_name_that_nothing_reads_is_told_with_the_nearest() -> None:
    found = list(
        unknown_variables(
            {"FEEDSITE_DATABSE_URL": "x", "FEEDSITE_ZQXJKV": "", "OTHER": "", **dict.fromkeys(VARIABLES, "")}
        )
    )
    assert [tuple(each) for each in found] == [
        ("FEEDSITE_DATABSE_URL", "FEEDSITE_DATABASE_URL"),
        ("FEEDSITE_ZQXJKV", ""),
    ]


def test_every_name_in_the_project_is_a_setting() -> None:
    """CHANGELOG.md may name old ones."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    ours = {"tests/runtime/test_environment.py", "CHANGELOG.md", ""}
    strange = set()
    for name in set(files) - ours:
        if (ROOT / name).suffix in (".png", ".gz", ".mo") or not (ROOT / name).exists():
            continue
        named = re.findall(r"FEEDSITE_[A-Z0-9_]*[A-Z0-9]\b", (ROOT / name).read_text(errors="replace"))
        strange |= {(name, each) for each in named if each not in {*VARIABLES, *INTERNAL}}
    assert strange == {("tests/operation/test_doctor.py", "FEEDSITE_DATABSE_URL")}


def test_every_setting_is_read() -> None:
    code = "".join(
        (ROOT / path).read_text() for path in ("feedsite/settings.py", "runtime/up.py", "runtime/programs.py")
    )
    read_by_name = set(re.findall(r"\b(?:env|options)\.(\w+)", code))
    elsewhere = "".join((ROOT / path).read_text() for path in ("manage.py", "compose.yaml", "runtime/environment.py"))
    elsewhere += (ROOT / "runtime/embedded.py").read_text()
    unread = {name for variable, name in VARIABLES.items() if name not in read_by_name and variable not in elsewhere}
    assert unread == set()


def test_the_settings_are_few_and_described() -> None:
    assert len(VARIABLES) <= MOST_SETTINGS
    assert SECTIONS.keys() <= Options.model_fields.keys()
    for name, field in Options.model_fields.items():
        shown = field.json_schema_extra
        assert isinstance(shown, dict)
        is_told = field.default not in ("", [], {}, None) or shown["otherwise"]
        assert is_told, name
        assert str(field.description).endswith("."), name
        assert allowed_values(field), name


def test_the_rates_are_sound() -> None:
    for name, rate in RATES.items():
        assert parse_rate(rate.default)[0] >= 1, name
        assert rate.text.endswith("."), name
    assert {name: rate.default for name, rate in RATES.items()} == settings.RATES


@pytest.mark.parametrize("path", documents())
def test_the_documents_are_what_the_table_says(path: str) -> None:
    assert (ROOT / path).read_text() == documents()[path], "run `manage.py document_settings`"


def test_the_example_is_a_file_that_can_be_used(tmp_path: Path) -> None:
    """Every line that sets something, unless it needs a file."""
    lines = re.sub(r"^#(?=[A-Z_]+[0-9A-Z_]*=)", "", (ROOT / ".env.example").read_text(), flags=re.MULTILINE)
    (tmp_path / ".env").write_text(lines.replace("FEEDSITE_ENV_FILE=", "FEEDSITE_ENV_FILE=\n#"))
    _, after = read_with({}, tmp_path)
    assert after.keys() == VARIABLES.keys()


# --- As it is run ----------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("command", [["up"], ["check"], ["doctor"], ["migrate"]])
def test_every_command_refuses_in_the_same_words(tmp_path: Path, command: list[str]) -> None:
    wrong = {"FEEDSITE_RATES": "login=lots", "FEEDSITE_DATABASE_URL": f"mysql://u:{SECRET}@h/n"}
    run = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=clean_environ(tmp_path / "var") | wrong,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    database, login = sorted(run.stderr.splitlines())
    assert database.startswith("feedsite: FEEDSITE_DATABASE_URL must be an address such as postgresql://")
    assert login.startswith("feedsite: FEEDSITE_RATES is 'login=lots'. It must be names of rates")
    assert not (tmp_path / "var").exists(), "nothing was started"


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    some(2, [["account", "first-admin"], ["migrate"], ["backup", "site.backup"], ["policy"]]),
)
def test_a_database_that_does_not_answer_is_one_line(tmp_path: Path, command: list[str]) -> None:
    unreachable = {"FEEDSITE_DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    run = subprocess.run(
        [sys.executable, ROOT / "manage.py", *command],
        cwd=tmp_path,
        env=clean_environ(tmp_path / "var") | unreachable,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("feedsite: PostgreSQL failed: connection failed")
    assert not (tmp_path / "site.backup").exists()


@pytest.mark.long
def test_migrate_waits_for_a_database_that_starts_later(tmp_path: Path) -> None:
    """This happens after a boot."""
    run = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--wait", "1"],
        cwd=ROOT,
        env=clean_environ(tmp_path / "var") | {"FEEDSITE_DATABASE_URL": "postgresql://127.0.0.1:1/x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    waiting, line = run.stderr.splitlines()
    assert waiting == "PostgreSQL does not answer. Trying again."
    assert line.startswith("feedsite: PostgreSQL failed: connection failed")


@pytest.mark.long
def test_a_database_that_is_not_migrated_is_one_line(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "manage.py", "account", "first-admin"],
        cwd=ROOT,
        env=clean_environ(tmp_path / "var"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    line = run.stderr.splitlines()[-1]
    assert line.startswith("feedsite: the database is of another version")
    assert line.endswith("Run `manage.py migrate`.")
    assert "Traceback" not in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", some(1, [["check"], ["up"]]))
def test_an_unknown_name_is_a_warning(tmp_path: Path, command: list[str]) -> None:
    unreachable = {"FEEDSITE_DATABASE_URL": "postgresql://127.0.0.1:1/x", "FEEDSITE_REDIS_URL": "redis://127.0.0.1:1/0"}
    run = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=clean_environ(tmp_path / "var") | unreachable | {"FEEDSITE_DATABSE_URL": "x", "PORT": str(free_ports()[0])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FEEDSITE_DATABSE_URL is not a setting of the site; did you mean FEEDSITE_DATABASE_URL?" in run.stderr


@pytest.mark.parametrize(
    ("values", "refusals"),
    [
        ({"SECRET_KEY": "changeme"}, {"feedsite.E001"}),
        ({"SECRET_KEY": "a" * 64}, {"feedsite.E001"}),
        ({"METRICS_TOKEN": "abc"}, {"feedsite.E002"}),
        ({"METRICS_TOKEN": "0123456789abcdef"}, set()),
    ],
)
def test_secrets_that_can_be_guessed_are_refused(
    settings: LazySettings, values: dict[str, str], refusals: set[str]
) -> None:
    for name, value in values.items():
        setattr(settings, name, value)
    errors = [each for each in checks.run_checks() if each.level >= checks.ERROR]
    assert {each.id for each in errors} == refusals
    assert not any(value in str(each) for each in errors for value in values.values())


@pytest.mark.long
def test_up_does_not_start_with_a_secret_key_that_can_be_guessed(tmp_path: Path) -> None:
    environ = clean_environ(tmp_path / "var") | {"FEEDSITE_SECRET_KEY": "changeme"}
    run = subprocess.run(
        [sys.executable, "manage.py", "migrate"], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "FEEDSITE_SECRET_KEY can be guessed." in run.stderr
