"""The page of `manage.py help`: the site's commands by purpose."""

BY_PURPOSE = {
    "Run the site": {
        "setup": "prepare a public site: its variables, keys and database",
        "up": "run all of it: servers, migrations, programs",
        "program": "run one program of it, for systemd or containers",
        "migrate": "bring the database up to this version",
        "collectstatic": "bring the static files up to this version",
        "upgrade": "take a running site over to the version on the disk",
    },
    "See that it is well": {
        "doctor": "look at everything, and say what to do",
        "sendtestemail": "send a letter at once, and say how it went",
        "played_status": "what readers played: what waits, what was merged",
        "timeline_check": "compare inboxes and outboxes with PostgreSQL",
        "explain_home": "why a reader sees a post at home, or does not",
    },
    "Keep it, and move it": {
        "backup": "write all that cannot be made again to one file",
        "restore": "fill an empty site from a backup, or try one (--check)",
        "readonly": "let pages be read and nothing be changed",
        "seal_factors": "after a change of the secret key",
    },
    "Members": {
        "account": "make, promote, demote, ban or delete one, or let them in again",
        "big_v": "make a member big-V, or demote them",
        "policy": "which readers have an inbox, and which take pushes from big-Vs",
    },
    "Bring posts in, find them": {
        "demo": "fill an empty site with a made-up community",
        "load": "import users, follows and posts from files",
        "played_migrate": "take over old histories of plays",
        "reindex": "cut all texts into words and tags again",
        "discover_index": "load OpenSearch with all public posts",
    },
}
INNER = frozenset(
    {
        *("prepare", "await_servers", "check_key", "played_grpc", "flush"),
        *("check_all", "messages", "document_settings", "document_layout", "bench"),
    }
)
"""Other commands: steps of those above, and for developers."""


def page() -> str:
    """The text of `manage.py help`."""
    width = max(len(name) for names in BY_PURPOSE.values() for name in names)
    lines = ["manage.py COMMAND [--help]"]
    for purpose, names in BY_PURPOSE.items():
        lines += ["", purpose, *(f"  {name:<{width}}  {text}" for name, text in names.items())]
    return "\n".join([*lines, "", "manage.py help --all lists Django's commands and those for developers, too."])
