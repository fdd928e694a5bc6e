"""`setup`: writes a public site's file of variables with keys, and creates its role and database. Without Django."""

import argparse
import contextlib
import os
import pwd
import secrets
import shutil
import smtplib
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from urllib.parse import quote

from runtime import addresses, environment

ABOUT = (
    "Prepare a public site on your own servers: write the settings and keys to a file, and create the role and "
    "database in PostgreSQL. See docs/install.md."
)
USER = "feedsite"
"""The system user of the programs, and the default role and database."""
DOMAIN_ASKED = "The site's domain (feeds.example.org): "
MAIL_ASKED = "The mail server (smtp+tls://user:password@mail.example.org:587, or empty: letters go to the log): "
LETTER_ASKED = "Your e-mail address, for a test letter (empty: none): "
MAIL_SECONDS = 15.0
NO_LETTER = "No test letter was sent. Send one when the site runs: feedsite sendtestemail ADDRESS"
NO_MAIL = "No mail server is set, so letters go to the log. Set FEEDSITE_EMAIL_URL in {file}."
NOT_MADE = """\
The role and the database do not exist yet. Run this as a superuser of PostgreSQL, then continue:
{statements}"""


class SetupError(RuntimeError):
    """The site cannot be prepared. The message is one line for the terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options. Missing ones are asked for, or have a default."""
    parser.add_argument("--domain", help="the site's host name")
    parser.add_argument("--mail", help="FEEDSITE_EMAIL_URL")
    parser.add_argument("--test-letter", metavar="ADDRESS", help="where to send a test letter")
    parser.add_argument("--file", type=Path, default=Path("/etc/feedsite.env"), help="the file to write")
    parser.add_argument("--database", default=USER, help="the name of role and database")
    parser.add_argument(
        "--postgresql", default="127.0.0.1:5432", metavar="HOST[:PORT]", help="where PostgreSQL listens"
    )
    parser.add_argument(
        "--superuser", metavar="URL", help="the address of a PostgreSQL superuser (default: the system user postgres)"
    )
    parser.add_argument("--feeds", default="redis://127.0.0.1:6379/0", metavar="URL", help="the Redis for feeds")
    parser.add_argument("--plays", default="redis://127.0.0.1:6380/1", metavar="URL", help="the Redis for plays")
    parser.add_argument("--broker", default="redis://127.0.0.1:6381/0", metavar="URL", help="the Redis for the queue")
    parser.add_argument("--backups", default="/var/lib/feedsite/backups", help="FEEDSITE_BACKUP_TO")


def main(arguments: Sequence[str]) -> None:
    """Run `setup`. Raises SetupError and OptionsError."""
    parser = argparse.ArgumentParser(prog="manage.py setup", description=ABOUT)
    add_arguments(parser)
    asked = parser.parse_args(arguments)
    if asked.file.exists():
        raise SetupError(f"{asked.file} exists and holds the site's keys. It was not changed.")
    domain = asked.domain or prompt(DOMAIN_ASKED)
    if not domain:
        raise SetupError("The site needs a domain: --domain feeds.example.org.")
    password = secrets.token_urlsafe(24)
    variables = {
        "FEEDSITE_ALLOWED_HOSTS": f"{domain},127.0.0.1",
        "FEEDSITE_URL": f"https://{domain}",
        "FEEDSITE_CSRF_TRUSTED_ORIGINS": f"https://{domain}",
        "FEEDSITE_HTTPS": "1",
        "FEEDSITE_HSTS_SECONDS": "3600",
        "FEEDSITE_SECRET_KEY": secrets.token_urlsafe(48),
        "FEEDSITE_METRICS_TOKEN": secrets.token_urlsafe(24),
        "FEEDSITE_DATABASE_URL": database_url(asked.database, password, asked.postgresql),
        "FEEDSITE_REDIS_URL": asked.feeds,
        "FEEDSITE_BROKER_URL": asked.broker,
        "FEEDSITE_PLAYED_URL": asked.plays,
        "FEEDSITE_BACKUP_TO": asked.backups,
        "FEEDSITE_EMAIL_URL": asked.mail if asked.mail is not None else prompt(MAIL_ASKED),
        "FEEDSITE_EMAIL_FROM": f"noreply@{domain}",
    }
    check_variables(variables)
    write_variables(asked.file, variables)
    print(f"Wrote {asked.file}. It holds the site's keys. Copy it to each machine that you add.")
    if variables["FEEDSITE_EMAIL_URL"].startswith("smtp"):
        to = asked.test_letter if asked.test_letter is not None else prompt(LETTER_ASKED)
        if to:
            print(send_letter(to, variables["FEEDSITE_EMAIL_URL"], variables["FEEDSITE_EMAIL_FROM"], asked.file))
        else:
            print(NO_LETTER)
    elif not variables["FEEDSITE_EMAIL_URL"]:
        print(NO_MAIL.format(file=asked.file))
    statements = role_and_database(asked.database, password)
    if run_statements(statements, asked.superuser):
        print(f"Created the role and the database {asked.database}.")
    else:
        print(NOT_MADE.format(statements="\n".join(f"    {each};" for each in statements)))
    print("Browsers remember HTTPS for one hour. Raise FEEDSITE_HSTS_SECONDS when the certificate works.")


def prompt(question: str) -> str:
    """Ask a question at the terminal. Returns the answer, or empty."""
    if not sys.stdin.isatty():
        return ""
    with contextlib.suppress(EOFError):
        return input(question).strip()
    return ""


def send_letter(to: str, url: str, sender: str, file: Path) -> str:
    """Send a test letter. Returns a line with what the mail server answered."""
    server = addresses.parse_mail(url)
    trust = ssl.create_default_context()
    try:
        letter = EmailMessage()
        letter["Subject"], letter["From"], letter["To"] = "Test email from feedsite", sender, to
        letter["Date"], letter["Message-ID"] = formatdate(), make_msgid(domain=sender.partition("@")[2])
        letter.set_content("setup asked for this email.\n")
        with (
            smtplib.SMTP_SSL(server.host, server.port, timeout=MAIL_SECONDS, context=trust)
            if server.scheme == "smtps"
            else smtplib.SMTP(server.host, server.port, timeout=MAIL_SECONDS)
        ) as session:
            if server.scheme == "smtp+tls":
                session.starttls(context=trust)
            if server.user:
                session.login(server.user, server.password)
            session.send_message(letter)
    except (OSError, ValueError) as error:  # includes errors of smtplib and TLS
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return f"The test letter to {to} was not sent: {said}. Correct FEEDSITE_EMAIL_URL in {file}."
    return f"Sent a test letter to {to} through {server.host}:{server.port}."


def database_url(name: str, password: str, place: str) -> str:
    """The address of the site's database. A `place` with a slash is a socket's folder."""
    if place.startswith("/"):
        return f"postgresql://{name}:{password}@/{name}?host={quote(place)}"
    return f"postgresql://{name}:{password}@{place}/{name}"


def check_variables(variables: Mapping[str, str]) -> None:
    """Raise OptionsError for wrong values."""
    for name in [name for name in os.environ if name.startswith(environment.PREFIX)]:
        del os.environ[name]
    os.environ.update(variables)
    environment.validated_options()


def write_variables(path: Path, variables: Mapping[str, str]) -> None:
    """Write the file of variables, readable only by root and the site's user. Raises SetupError."""
    lines = "".join(f"{name}={value}\n" for name, value in variables.items() if value)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640), "w") as file:
            file.write(f"# docs/settings.md lists all settings.\n{lines}")
            with contextlib.suppress(KeyError, PermissionError):
                os.fchown(file.fileno(), -1, pwd.getpwnam(USER).pw_gid)
            os.fchmod(file.fileno(), 0o640)
    except OSError as error:
        raise SetupError(f"{path} cannot be written: {error.strerror}.") from error


def role_and_database(name: str, password: str) -> list[str]:
    """SQL that creates the role and the database. `restore --check` needs CREATEDB."""
    quoted = '"' + name.replace('"', '""') + '"'
    return [
        f"CREATE ROLE {quoted} LOGIN CREATEDB PASSWORD '{password}'",
        f"CREATE DATABASE {quoted} OWNER {quoted} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'",
    ]


def run_statements(statements: Sequence[str], superuser: str | None) -> bool:
    """Run SQL by a superuser's address, or as root by the user postgres. False without either. Raises SetupError."""
    if superuser:
        psql, shown = ["psql", "--dbname", superuser], "the superuser"
    elif os.geteuid() == 0 and shutil.which("psql") and has_user("postgres"):
        psql, shown = ["runuser", "--user", "postgres", "--", "psql", "--dbname", "postgres"], "the user postgres"
    else:
        return False
    # By standard input, so that the password is in no list of processes.
    done = subprocess.run(  # noqa: S603 (ours)
        [*psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"],
        input="".join(f"{each};\n" for each in statements),
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise SetupError(f"PostgreSQL refused {shown}: {said}. Delete the file before you run setup again.")
    return True


def has_user(name: str) -> bool:
    """Whether the system has this user."""
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False
