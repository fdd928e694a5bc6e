import stat
from pathlib import Path

from django.conf import settings
from django.core import checks

from operation.doctor.findings import Finding, Findings, make_finding
from runtime import environment

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", ".localhost", "testserver"})


def configuration() -> Findings:
    """Check variables, secrets, hosts, HTTPS and proxies. Wrong values stop the command earlier."""
    public = sorted(set(settings.ALLOWED_HOSTS) - LOCAL)
    yield _unknown_variables()
    yield from _secret_key()
    yield from _private_files()
    yield from _web_settings(public)
    if settings.MEDIA_ACCEL_PATH and not settings.MEDIA_STORE_SECRET_URL:
        yield _media_readable_by_nginx()
    if public:
        yield from _deployment()


def _unknown_variables() -> Finding:
    strange = [str(each) for each in environment.unknown_variables()]
    return make_finding(
        "settings",
        "; ".join(strange) if strange else "are all known",
        warning=bool(strange),
        todo="Correct the name or remove it. docs/settings.md lists all variables.",
    )


def _secret_key() -> Findings:
    key = settings.SECRET_KEY
    weak = len(key) < 50 or len(set(key)) < 10 or key.startswith("django-insecure-")
    yield make_finding(
        "secret key",
        "is weak" if weak else "is long enough",
        error=weak,
        todo="Remove FEEDSITE_SECRET_KEY to get a new key, or set 50 random characters. This signs out all users.",
    )


def _private_files() -> Findings:
    """Check who may read what the site writes. The group may enter the data folder, as nginx must."""
    private = [
        ("secret key file", settings.DATA_DIR / "secret_key", 0o077, "go="),
        ("data folder", settings.DATA_DIR, 0o007, "o="),
    ]
    if settings.EMAIL_FILE_PATH:
        private.append(("mail folder", Path(settings.EMAIL_FILE_PATH), 0o077, "go="))
    for name, path, closed, change in private:
        if path.exists():
            mode = stat.S_IMODE(path.stat().st_mode)
            yield make_finding(name, f"has mode {mode:03o}", error=bool(mode & closed), todo=f"chmod {change} {path}")


def _web_settings(public: list[str]) -> Findings:
    yield make_finding(
        "hosts",
        ", ".join(settings.ALLOWED_HOSTS) or "none",
        warning="*" in public,
        todo="List your host names in FEEDSITE_ALLOWED_HOSTS. With * an attacker can put another host into links.",
    )
    yield make_finding(
        "debug",
        "is on" if settings.DEBUG else "is off",
        error=settings.DEBUG,
        todo="Remove FEEDSITE_DEBUG: error pages show code and settings.",
    )
    insecure = bool(public) and not settings.HTTPS
    yield make_finding(
        "https",
        "is on" if settings.HTTPS else "is off",
        error=insecure,
        todo="Set FEEDSITE_HTTPS=1, behind a proxy that ends TLS. Without it passwords are sent unencrypted.",
    )
    yield make_finding(
        "proxy",
        "is trusted" if settings.PROXY else "is not trusted",
        error=settings.HTTPS and not settings.PROXY,
        todo="Remove FEEDSITE_PROXY or set it to 1. Without it all clients share one rate limit.",
    )
    is_logged = settings.EMAIL_BACKEND == "accounts.mail.console.EmailBackend"
    yield make_finding(
        "mail server",
        "is not set: letters go to the log" if is_logged else "is set",
        warning=bool(public) and is_logged,
        todo="Set FEEDSITE_EMAIL_URL. Without it users cannot reset a forgotten password.",
    )
    token = settings.METRICS_TOKEN
    yield make_finding(
        "metrics token",
        "is set" if token else "is not set",
        warning=bool(token) and len(token) < 16,
        todo="Set FEEDSITE_METRICS_TOKEN to at least 16 random characters.",
    )


def _media_readable_by_nginx() -> Finding:
    """Check that a server in the site's group can read media."""
    folders = [settings.DATA_DIR, settings.MEDIA_DIR, settings.MEDIA_ROOT]
    closed = [str(each) for each in folders if each.exists() and not each.stat().st_mode & 0o010]
    return make_finding(
        "media files for nginx",
        f"cannot be read: the site's group may not enter {', '.join(closed)}"
        if closed
        else "can be read by the site's group",
        error=bool(closed),
        todo=f"Run `chmod g+x {' '.join(closed)}` and add nginx's user to the group. nginx answers 403 until then.",
    )


def _deployment() -> Findings:
    for message in checks.run_checks(include_deployment_checks=True):
        if not message.is_silenced() and not str(message.id).startswith("feedsite."):  # reported above
            todo = message.hint or "See `manage.py check --deploy`."
            yield make_finding(message.id or "check", message.msg, warning=True, todo=todo)
