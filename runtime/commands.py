"""The page of `manage.py help`, by purpose."""

BY_PURPOSE = {
    "Run the site": {
        "setup": "prepare a public site: settings, keys and database",
        "up": "run the whole site: servers, migrations, programs",
        "program": "run one program, for systemd or containers",
        "migrate": "update the database to this version",
        "collectstatic": "update the static files to this version",
        "status": "what runs, since when, and what waits",
        "restart": "restart all programs, without a pause",
        "upgrade": "upgrade the running site to the version on the disk",
    },
    "Check the site": {
        "doctor": "check everything, and print what to do",
        "sendtestemail": "send a test letter now, and print the result",
        "timeline_check": "compare inboxes and outboxes with PostgreSQL",
        "explain_home": "explain why a reader sees a post at home, or not",
    },
    "Back up and move": {
        "backup": "write a backup of the site to one file",
        "restore": "restore a backup, or test it (--check)",
        "readonly": "turn read-only mode on or off",
        "seal_factors": "re-encrypt second factors for a new secret key",
    },
    "Members": {
        "account": "create, promote, demote, ban or delete one, or restore access",
        "policy": "who has an inbox, and to whom big-Vs' posts are pushed",
    },
    "Import and index posts": {
        "demo": "fill an empty site with a made-up community",
        "load": "import users, follows and posts from files",
        "played_migrate": "import old play histories",
        "reindex": "rebuild the search words and tags of all posts",
        "discover_index": "load all public posts into OpenSearch",
    },
}
INNER = frozenset(
    {
        *("prepare", "await_servers", "check_key", "played_grpc", "flush"),
        *("check_all", "makemigrations", "messages", "document_settings", "document_layout", "bench"),
    }
)
"""Other commands: steps of those above, and for developers."""


def help_text() -> str:
    """The text of `manage.py help`."""
    width = max(len(name) for names in BY_PURPOSE.values() for name in names)
    lines = ["manage.py COMMAND [--help]"]
    for purpose, names in BY_PURPOSE.items():
        lines += ["", purpose, *(f"  {name:<{width}}  {text}" for name, text in names.items())]
    return "\n".join([*lines, "", "manage.py help --all also lists Django's commands and those for developers."])
