from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from relations.models import CsvImport
from relations.rules import may_know_of
from relations.tags import followed_tags_page
from storage.connections import stream

# Only visible users, and those whom the user blocked or muted.
OF_USER = """
    SELECT u.id, u.username, r.created_at, {bell} FROM relations_{table} r JOIN accounts_user u ON u.id = r.{other}_id
    WHERE r.{own}_id = %(user)s AND {seen} ORDER BY r.id
"""
SEEN, ACTIVE = may_know_of("u", "%(user)s", is_probe=False), "u.is_active"


class RelationRow(msgspec.Struct, omit_defaults=True):
    """A related user, and since when. `bell`: whether each of their posts notifies."""

    user_id: str
    username: str
    since: datetime
    bell: bool = False


BELL = "coalesce(r.bell, false)"


LISTS = f"""
    SELECT l.id, l.title, l.is_exclusive, l.created_at, ARRAY(
        SELECT u.username FROM relations_listmember m JOIN accounts_user u ON u.id = m.member_id
        WHERE m.list_id = l.id AND {SEEN} ORDER BY m.id
    ) FROM relations_list l WHERE l.owner_id = %(user)s ORDER BY l.id
"""


class ListRow(msgspec.Struct):
    """A list and its members' usernames."""

    id: str
    title: str
    exclusive: bool
    since: datetime
    members: list[str]


def _lists(user: User) -> Iterator[ListRow]:
    return (ListRow(str(list_id), *rest) for list_id, *rest in stream(LISTS, {"user": user.pk}))


def _rows(user: User, table: str, own: str, other: str, seen: str, bell: str = "false") -> Iterator[RelationRow]:
    query = OF_USER.format(table=table, own=own, other=other, seen=seen, bell=bell)
    return (RelationRow(str(user_id), *rest) for user_id, *rest in stream(query, {"user": user.pk}))


class CsvImportRow(msgspec.Struct):
    """An import, with the names refused and why."""

    kind: str
    uploaded_at: datetime
    rows: int
    refused: list[list[str]]


def _imports(user: User) -> Iterator[CsvImportRow]:
    columns = ("kind", "created_at", "total", "refused")
    return (CsvImportRow(*row) for row in CsvImport.objects.filter(user=user).order_by("pk").values_list(*columns))


class NoteRow(msgspec.Struct):
    """A note about a user."""

    user_id: str
    username: str
    text: str
    since: datetime


NOTES = f"""
    SELECT u.id, u.username, n.text, n.created_at
    FROM relations_accountnote n JOIN accounts_user u ON u.id = n.subject_id
    WHERE n.owner_id = %(user)s AND {SEEN} ORDER BY n.id
"""


def _notes(user: User) -> Iterator[NoteRow]:
    return (NoteRow(str(user_id), *rest) for user_id, *rest in stream(NOTES, {"user": user.pk}))


class TagRow(msgspec.Struct):
    """A followed hashtag."""

    hashtag: str
    since: datetime


def files(user: User) -> list[ExportFile]:
    """Relations' part of a user's data export."""
    asked = _rows(user, "followrequest", "follower", "followee", SEEN, BELL)
    asking = _rows(user, "followrequest", "followee", "follower", SEEN)
    return [
        ExportFile(
            "follows.jsonl", _("The people you follow."), _rows(user, "follow", "follower", "followee", SEEN, BELL)
        ),
        ExportFile(
            "followers.jsonl", _("The people who follow you."), _rows(user, "follow", "followee", "follower", SEEN)
        ),
        ExportFile("follow_requests.jsonl", _("The people you asked to follow."), asked),
        ExportFile("follow_requests_to_you.jsonl", _("The people who asked to follow you."), asking),
        ExportFile("list_imports.jsonl", _("The lists you imported recently."), _imports(user)),
        ExportFile("blocks.jsonl", _("The people you block."), _rows(user, "block", "blocker", "blocked", ACTIVE)),
        ExportFile("mutes.jsonl", _("The people you mute."), _rows(user, "mute", "muter", "muted", ACTIVE)),
        ExportFile("account_notes.jsonl", _("Your notes about people."), _notes(user)),
        ExportFile("lists.jsonl", _("Your lists, and the people in them."), _lists(user)),
        ExportFile(
            "followed_hashtags.jsonl",
            _("The hashtags you follow."),
            (TagRow(f"#{tag.name}", tag.since) for tag in followed_tags_page(user).tags),
        ),
    ]
