"""Every variable is checked by name before anything starts, and the documents say what the code reads."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.environment import Given, OptionsError, read, renamed, unknown
from runtime.management.commands.check_all import clean_environ
from runtime.management.commands.document_settings import documents
from runtime.options import GROUPS, INTERNAL, OPTIONS, RATES, RENAMED, RETIRED, RULES
from tests.support.clusters import free_ports
from tests.support.effort import some

ROOT = Path(settings.BASE_DIR)
SECRET = "hunter2"


def refusal(**environ: str) -> str:
    """The one line that refuses the environment."""
    with pytest.raises(OptionsError) as refused:
        Given(environ)
    (line,) = refused.value.lines
    assert "\n" not in line
    assert line.endswith(".")
    return line


WRONG = [
    ("FEEDSITE_RATE_LOGIN", "lots", "20/hour"),
    ("FEEDSITE_RATE_LOGIN", "0/hour", "1 or more"),
    ("FEEDSITE_FAN_OUT_RANGE", "0", "from 2 to"),
    ("FEEDSITE_FAN_OUT_RANGE", "abc", "a whole number"),
    ("FEEDSITE_HTTPS", "maybe", "1 or 0"),
    ("FEEDSITE_BIG_V_PUSH_LEVEL", "9", "from 1 to 4"),
    ("FEEDSITE_PLAYED_ERROR_RATE", "3", "above 0 and below 1"),
    ("FEEDSITE_PLAYED_ERROR_RATE", "nan", "above 0 and below 1"),
    ("FEEDSITE_RATE_SCALE", "1e999", "a number from 0"),
    ("FEEDSITE_REDIS_TIMEOUT_SECONDS", "0.2s", "a number of seconds"),
    ("FEEDSITE_CSRF_TRUSTED_ORIGINS", "https://a.example, example.org", "https://example.org"),
    ("FEEDSITE_STREAM_ORIGINS", "https://*.example.org", "https://example.org"),
    ("FEEDSITE_ALLOWED_HOSTS", "https://example.org", "without scheme"),
    ("FEEDSITE_DISCOVER_SEEN", "all", "impressions, plays or both"),
    ("FEEDSITE_FEEDS_MEMORY", "much", "512mb"),
    ("FEEDSITE_PLAYED_OLD_KEY", "played", "{uid}"),
    ("FEEDSITE_PLAYED_WAITING_CAP", "999", "from 1000"),
    ("FEEDSITE_ADMIN_PATH", "api", "not below api"),
    ("FEEDSITE_HOST", "all of them", "a host name"),
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
    assert line.startswith(f"{name} is {value!r}; it must be ")
    assert says in line


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("FEEDSITE_DATABASE_URL", f"mysql://u:{SECRET}@h/n", "it begins with mysql://"),
        ("FEEDSITE_DATABASE_URL", SECRET, "it has no scheme"),
        ("FEEDSITE_DATABASE_URL", f"postgresql://u:{SECRET}@h:port/n", "malformed"),
        ("FEEDSITE_DATABASE_URL", f"postgresql://u:{SECRET}@h/", "names no database"),
        ("FEEDSITE_DATABASE_URL", f"postgresql://u:{SECRET} @h/n", "holds a space"),
        ("FEEDSITE_REDIS_URL", f"redis://u:{SECRET}@h/zero", "its database is no number"),
        ("FEEDSITE_REDIS_URL", f"redis://:{SECRET}/0@h", "names no host|malformed|no number"),
        ("FEEDSITE_REDIS_URL", f"redis+cluster://u:{SECRET}@feeds/1", "only database 0"),
        ("FEEDSITE_CACHE_URL", f"redis+cluster://u:{SECRET}@feeds", "it begins with"),
        ("FEEDSITE_BROKER_URL", f"http://u:{SECRET}@broker", "it begins with http://"),
        ("FEEDSITE_BROKER_URL", "unix:///broker.sock", "it begins with unix://"),
        ("FEEDSITE_OPENSEARCH_URL", "search.internal", "no scheme"),
        ("FEEDSITE_OPENSEARCH_URL", f"ftp://u:{SECRET}@search.internal/items", "ftp://"),
        *(
            ("FEEDSITE_OPENSEARCH_URL", f"https://u:{SECRET}@search.internal:9200{path}", "ends in no name|not like")
            for path in ("", "/", "/Items", "/_items", "/a/b", "/a,b", "/items?x=1")
        ),
        ("FEEDSITE_OPENSEARCH_URL", "https:///items", "not like the example"),
        ("FEEDSITE_METRICS_TOKEN", f"{SECRET} and more", "without spaces"),
    ],
)
def test_what_may_hold_a_secret_is_not_repeated(name: str, value: str, says: str) -> None:
    line = refusal(**{name: value})
    assert line.startswith(f"{name} is not ")
    assert SECRET not in line
    assert re.search(says, line), line


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"FEEDSITE_LEVEL_1_CAP": "400"}, "are 400, 300 and 1000"),
        ({"FEEDSITE_LEVEL_1_CAP": "300"}, "above the one before"),
        ({"FEEDSITE_REPLICA_URL": "postgresql://h/n"}, "without FEEDSITE_DATABASE_URL"),
        ({"FEEDSITE_RECALL_COUNT": "9000"}, "FEEDSITE_RECALL_COUNT is 9000"),
        ({"FEEDSITE_PLAYED_SHARDS": "10"}, "FEEDSITE_PLAYED_TASK_SHARDS is 50"),
        ({"FEEDSITE_HSTS_PRELOAD": "1"}, "needs FEEDSITE_HSTS_SUBDOMAINS=1"),
        ({"FEEDSITE_HSTS_PRELOAD": "1", "FEEDSITE_HSTS_SUBDOMAINS": "1", "FEEDSITE_HSTS_SECONDS": "60"}, "31536000"),
        ({"FEEDSITE_REDIS_URL": "redis+cluster://feeds"}, "Set FEEDSITE_BROKER_URL to a single server"),
        ({"FEEDSITE_PROXIES": "1"}, "FEEDSITE_PROXIES is not read any more"),
    ],
)
def test_values_that_contradict_each_other(environ: dict[str, str], says: str) -> None:
    assert says in refusal(**environ)


def test_all_that_is_wrong_is_told_at_once_and_nothing_that_follows_from_it() -> None:
    with pytest.raises(OptionsError) as refused:
        Given({"FEEDSITE_LEVEL_1_CAP": "x", "FEEDSITE_LEVEL_2_CAP": "50", "FEEDSITE_STREAM": "x"})
    assert [line.split()[0] for line in refused.value.lines] == ["FEEDSITE_LEVEL_1_CAP", "FEEDSITE_STREAM"]


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_is_not_set(empty: str) -> None:
    given = Given(dict.fromkeys(OPTIONS, empty) | {"FEEDSITE_PROXIES": empty})
    assert given.texts == {}
    assert "FEEDSITE_WEB_PROCESSES" not in given
    assert given.whole("FEEDSITE_GRPC_PORT") == 0
    assert given.whole("FEEDSITE_FOLLOW_CAP") == 2000


def test_values_are_read_as_people_write_them() -> None:
    given = Given(
        {
            "FEEDSITE_HTTPS": " Yes ",
            "FEEDSITE_ALLOWED_HOSTS": " a.example , .b.example,[::1],*,",
            "FEEDSITE_LOG_LEVEL": "debug",
            "FEEDSITE_SECRET_KEY": " begins with a space",
            "FEEDSITE_RATE_SCALE": "1e6",
            "FEEDSITE_ADMIN_PATH": "/back/door/",
            "FEEDSITE_DATABASE_URL": "postgresql://u:p@one:5432,two:5433/name",
        }
    )
    assert given.switch("FEEDSITE_HTTPS") is True
    assert given.words("FEEDSITE_ALLOWED_HOSTS") == ["a.example", ".b.example", "[::1]", "*"]
    assert given.text("FEEDSITE_LOG_LEVEL") == "DEBUG"
    assert given.text("FEEDSITE_SECRET_KEY") == " begins with a space"
    assert given.number("FEEDSITE_RATE_SCALE") == 1e6
    assert given.text("FEEDSITE_ADMIN_PATH") == "/back/door/"
    assert "FEEDSITE_DATABASE_URL" in given


# --- The file --------------------------------------------------------------------------------------------
def test_a_file_adds_what_is_not_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\n\nFEEDSITE_FOLLOW_CAP=7\nexport PORT = 1\n".replace("PORT = 1", "PORT=81")
        + 'FEEDSITE_DATA_DIR=\'/a b/$c #d\'\nFEEDSITE_SECRET_KEY="a\\"b"\nFEEDSITE_TOKEN_CAP=3\n'
    )
    environ = {"FEEDSITE_TOKEN_CAP": "4"}
    given = read(environ, tmp_path)
    assert (given.whole("FEEDSITE_FOLLOW_CAP"), given.whole("PORT"), given.whole("FEEDSITE_TOKEN_CAP")) == (7, 81, 4)
    assert given.text("FEEDSITE_DATA_DIR") == "/a b/$c #d"
    assert given.text("FEEDSITE_SECRET_KEY") == 'a"b'
    assert environ["FEEDSITE_FOLLOW_CAP"] == "7", "for the programs that this one starts"


def test_an_old_name_of_the_environment_wins_over_the_new_one_of_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FEEDSITE_REDIS_TIMEOUT_SECONDS=0.9\nFEEDSITE_STREAM_LIMIT=7\n")
    environ = {"FEEDSITE_REDIS_TIMEOUT": "0.3", "FEEDSITE_STREAM_CAP": "8"}
    given = read(environ, tmp_path)
    assert (given.number("FEEDSITE_REDIS_TIMEOUT_SECONDS"), given.whole("FEEDSITE_STREAM_CAP")) == (0.3, 8)
    assert "FEEDSITE_STREAM_LIMIT" not in environ, "which would be warned of, though it does nothing"


def test_a_wrong_value_is_told_by_the_name_that_it_was_set_by() -> None:
    with pytest.raises(OptionsError, match=r"^FEEDSITE_STREAM_CAP \(set as FEEDSITE_STREAM_LIMIT\) is 'x'; it must be"):
        Given({"FEEDSITE_STREAM_LIMIT": "x"})
    with pytest.raises(OptionsError, match=r"^FEEDSITE_STREAM_CAP is 'x'; it must be"):
        Given({"FEEDSITE_STREAM_LIMIT": "7", "FEEDSITE_STREAM_CAP": "x"})


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Without its database's address the site would begin with an empty one."""
    with pytest.raises(OptionsError, match="cannot be read: No such file"):
        read({"FEEDSITE_ENV_FILE": str(tmp_path / "missing")}, tmp_path)
    (tmp_path / ".env").mkdir()
    with pytest.raises(OptionsError, match="cannot be read: Is a directory"):
        read({}, tmp_path)
    (tmp_path / "odd").write_text(f"PORT=80\nFEEDSITE_DATABASE_URL = postgresql://u:{SECRET}@h/n\n")
    with pytest.raises(OptionsError) as refused:
        read({"FEEDSITE_ENV_FILE": str(tmp_path / "odd")}, tmp_path)
    assert refused.value.lines == (f"Line 2 of {tmp_path / 'odd'} is not NAME=value.",)


# --- Names -----------------------------------------------------------------------------------------------
def test_a_name_that_nothing_reads_is_told_with_the_nearest() -> None:
    found = list(
        unknown({"FEEDSITE_DATABSE_URL": "x", "FEEDSITE_ZQXJKV": "", "OTHER": "", **dict.fromkeys(OPTIONS, "")})
    )
    assert [tuple(each) for each in found] == [
        ("FEEDSITE_DATABSE_URL", "FEEDSITE_DATABASE_URL"),
        ("FEEDSITE_ZQXJKV", ""),
    ]


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_is_read_under_its_new_one(old: str, new: str) -> None:
    assert new in OPTIONS
    assert old not in OPTIONS
    default = OPTIONS[new].default
    assert Given({old: default}).texts[new] == default
    assert Given({old: "nonsense", new: default}).texts[new] == default
    assert list(renamed({old: "7"})) == [f"{old} is called {new} now; the old name is read until version 0.3.0"]
    assert list(unknown({old: "7"})) == []
    assert list(renamed({old: "", new: "8"})) == []


def test_every_name_in_the_project_is_in_the_table() -> None:
    """Of the code, the tests, the documents and what deploys: a name that is written wrong anywhere is found."""
    known = {*OPTIONS, *INTERNAL, *RETIRED, *RENAMED}
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    ours = {"tests/runtime/test_environment.py", ""}
    strange = set()
    for name in set(files) - ours:
        if (ROOT / name).suffix in (".png", ".gz", ".mo") or not (ROOT / name).exists():
            continue
        text = (ROOT / name).read_text(errors="replace")
        strange |= {(name, found) for found in re.findall(r"FEEDSITE_[A-Z0-9_]*[A-Z0-9]\b", text) if found not in known}
    assert strange == {("tests/operation/test_doctor.py", "FEEDSITE_DATABSE_URL")}


def test_every_option_is_read_by_name() -> None:
    code = "\n".join(
        (ROOT / path).read_text()
        for path in ("feedsite/settings.py", "runtime/environment.py", "runtime/family.py", "manage.py")
    )
    code += (ROOT / "runtime/embedded.py").read_text() + (ROOT / "compose.yaml").read_text()
    assert {name for name in OPTIONS if name not in code} == set(RATES.values())


def test_the_table_is_sound() -> None:
    names = [option.name for group in GROUPS for option in group.options]
    assert len(names) == len(set(names))
    for option in OPTIONS.values():
        assert bool(option.default) != bool(option.otherwise), option.name
        assert option.text.endswith("."), option.name
        if option.default:
            option.kind.parse(option.default)
        if option.example:
            option.kind.parse(option.example)
    assert {name for rule in RULES for name in rule.names} <= OPTIONS.keys()


@pytest.mark.parametrize("path", documents())
def test_the_documents_are_what_the_table_says(path: str) -> None:
    assert (ROOT / path).read_text() == documents()[path], "run `manage.py document_settings`"


def test_the_example_is_a_file_that_can_be_used(tmp_path: Path) -> None:
    """With every line of it that sets something, but what needs a file of its own."""
    lines = re.sub(r"^#(?=[A-Z_]+[0-9A-Z_]*=)", "", (ROOT / ".env.example").read_text(), flags=re.MULTILINE)
    (tmp_path / ".env").write_text(lines.replace("FEEDSITE_ENV_FILE=", "FEEDSITE_ENV_FILE=\n#"))
    environ: dict[str, str] = {}
    read(environ, tmp_path)
    assert environ.keys() == OPTIONS.keys()


# --- As it is run ----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("command", [["up"], ["check"], ["doctor"], ["migrate"]])
def test_every_command_refuses_in_the_same_words(tmp_path: Path, command: list[str]) -> None:
    wrong = {"FEEDSITE_RATE_LOGIN": "lots", "FEEDSITE_DATABASE_URL": f"mysql://u:{SECRET}@h/n"}
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
    assert database.startswith("feedsite: FEEDSITE_DATABASE_URL is not an address such as postgresql://")
    assert login.startswith("feedsite: FEEDSITE_RATE_LOGIN is 'lots'; it must be a number of calls")
    assert not (tmp_path / "var").exists(), "nothing was started"


@pytest.mark.long
@pytest.mark.parametrize(
    "command", some(2, [["admin_link"], ["migrate"], ["backup", "site.backup"], ["big_v", "mira", "on"]])
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
    assert line.startswith("feedsite: PostgreSQL failed the command: connection failed")
    assert not (tmp_path / "site.backup").exists()


@pytest.mark.long
def test_migrate_waits_for_a_database_that_starts_later(tmp_path: Path) -> None:
    """As after a boot; here it never comes, and the wait ends."""
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
    assert waiting == "PostgreSQL does not answer; trying again."
    assert line.startswith("feedsite: PostgreSQL failed the command: connection failed")


@pytest.mark.long
def test_a_database_that_is_not_migrated_is_one_line(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "manage.py", "admin_link"],
        cwd=ROOT,
        env=clean_environ(tmp_path / "var"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    line = run.stderr.splitlines()[-1]
    assert line.startswith("feedsite: the database is not of this version")
    assert line.endswith("run `manage.py migrate`.")
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
    assert "FEEDSITE_DATABSE_URL is not read by the site; the nearest name is FEEDSITE_DATABASE_URL" in run.stderr
