"""What refers to a user goes with the account and is in the export, or stands here with a reason.

Columns come from the models, the foreign keys and the names in PostgreSQL, keys from storage/keys.py. So a new one
fails these tests until somebody has decided.
"""

import inspect
import io
import json
import re
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.test import Client

from accounts import actions
from accounts.export import write_archive
from accounts.models import Session, User
from notifications.models import ReadMark
from seen import played
from storage import ids, keys
from storage.connections import feeds_for_tasks
from tests.support.deletions import settle
from tests.support.factories import PASSWORD
from timeline.models import ReadingPosition

pytestmark = pytest.mark.django_db(transaction=True)

NAMED = re.compile(
    r"(user|owner|sender|host|reader|writer|author|actor|recipient|member|reporter|account|voter|host|by|"
    r"(un)?(follow|block|mut)(er|ee|ed)|\w+_by)(_id)?"
)
"""Columns of numbers that name a user."""
LOG = "the audit log and cases stay: they say who decided what, by a row that names nobody"

LEFT_BY_PURGE = {
    "accounts_clientapp.user_id": "always empty: apps register themselves",
    "feedsite_written.user_id": "when one id last wrote",
    "moderation_senderrule.user_id": "a decision of moderators about the account",
    "oauth2_provider_devicegrant.user_id": "never written",
    "oauth2_provider_idtoken.user_id": "never written",
    "oauth2_provider_refreshtoken.user_id": "never written",
    "timeline_importeduser.user_id": "which id a data set of `load` became",
    "accounts_bigvchange.by_id": LOG,
    "accounts_bigvchange.user_id": LOG,
    "accounts_deletion.user_id": "the queue of the purge itself, which deletes it last",
    "accounts_recount.user_id": "a queue that empties itself in minutes",
    "accounts_user_groups.user_id": "emptied by the deletion",
    "accounts_user_user_permissions.user_id": "emptied by the deletion",
    "django_admin_log.user_id": LOG,
    "items_item.sender_id": "emptied rows stay, because others reply to them",
    "media_ownerrename.owner_id": "a queue that empties itself in a minute",
    "media_videoconversion.owner_id": "a queue; its finished rows count processor seconds for a day",
    "moderation_appeal.answered_by_id": LOG,
    "moderation_case.decided_by_id": LOG,
    "moderation_case.host_id": LOG,
    "moderation_decision.by_id": LOG,
    "moderation_decision.user_id": LOG,
    "moderation_picturerule.by_id": LOG,
    "moderation_report.account_id": "a report by somebody else",
    "moderation_senderrule.by_id": LOG,
    "relations_followercountchange.user_id": "a queue that is folded every few seconds",
    "timeline_backfill.sender_id": "a job that ends by itself",
    "timeline_delivery.sender_id": "a queue that ends by itself",
    "live_replaydelivery.host_id": "a queue that ends by itself",
}
"""Columns that a purge leaves, with the reason."""

EXPORTED = {
    "account_emailaddress.user_id": "account.json",
    "accounts_invitation.made_by_id": "invitations.jsonl",
    "accounts_invited.user_id": "account.json",
    "discover_notinterested.user_id": "not_interested.jsonl",
    "django_session.user_id": "logins.jsonl",
    "items_bookmark.user_id": "bookmarks.jsonl",
    "items_filter.owner_id": "filters.jsonl",
    "items_item.sender_id": "items.jsonl",
    "items_like.user_id": "likes.jsonl",
    "items_mutedthread.user_id": "muted-conversations.jsonl",
    "items_hiddenreply.user_id": "hidden_replies.jsonl",
    "items_participant.user_id": "conversations.jsonl",
    "items_scheduledpost.sender_id": "scheduled.jsonl",
    "items_vote.user_id": "votes.jsonl",
    "live_livesession.host_id": "live_sessions.jsonl",
    "live_reminder.user_id": "live_reminders.jsonl",
    "media_mediafile.owner_id": "media.jsonl",
    "mfa_authenticator.user_id": "second_factors.jsonl",
    "moderation_decision.user_id": "decisions.jsonl",
    "moderation_report.reporter_id": "reports.jsonl",
    "moving_archiveimport.user_id": "archive_imports.jsonl",
    "notifications_pushsubscription.user_id": "push_devices.jsonl",
    "notifications_quiethours.user_id": "quiet_hours.jsonl",
    "notifications_readmark.user_id": "read_notifications.jsonl",
    "notifications_silenced.user_id": "silenced_notifications.jsonl",
    "oauth2_provider_accesstoken.user_id": "logins.jsonl",
    "relations_accountnote.owner_id": "account_notes.jsonl",
    "relations_block.blocker_id": "blocks.jsonl",
    "relations_csvimport.user_id": "list_imports.jsonl",
    "relations_follow.followee_id": "followers.jsonl",
    "relations_follow.follower_id": "follows.jsonl",
    "relations_followrequest.followee_id": "follow_requests_to_you.jsonl",
    "relations_followrequest.follower_id": "follow_requests.jsonl",
    "relations_list.owner_id": "lists.jsonl",
    "relations_listmember.owner_id": "lists.jsonl",
    "relations_mute.muter_id": "mutes.jsonl",
    "relations_tagfollow.user_id": "followed_hashtags.jsonl",
    "timeline_readingposition.reader_id": "reading_position.jsonl",
    "usersessions_usersession.user_id": "logins.jsonl",
}

OTHERS = "it belongs to the other one"
NOT_EXPORTED = LEFT_BY_PURGE | {
    "discover_issuedpage.user_id": "pages that were just sent, for a repeated request",
    "items_correspondent.reader_id": "who has answered whom, as conversations.jsonl shows",
    "items_correspondent.writer_id": "the same",
    "items_idempotencykey.sender_id": "an app's name for a request, for a day",
    "items_pin.sender_id": "the profile shows them",
    "live_host.user_id": "a row to lock",
    "live_walksnapshot.reader_id": "an order of sessions, for half an hour",
    "mail_letter.user_id": "letters on their way",
    "moderation_pictureattempt.user_id": "it would say which pictures a rule knows",
    "moving_broughtitem.user_id": "which posts came from an archive: they are in items.jsonl",
    "notifications_act.actor_id": OTHERS,
    "notifications_act.recipient_id": "acts of others, for 90 days",
    "notifications_notification.recipient_id": "the same",
    "oauth2_provider_grant.user_id": "a code for a minute",
    "relations_accountnote.subject_id": OTHERS,
    "relations_block.blocked_id": OTHERS,
    "relations_listmember.member_id": OTHERS,
    "relations_mute.muted_id": OTHERS,
}
"""Columns that are in no file, with the reason."""
FIELDS_NOT_EXPORTED = {
    "avatar": "a file of media",
    "banner": "a file of media",
    "deleted_at": "empty as long as there is somebody to ask",
    "dismissed_announcement": "a mark of an announcement",
    "filters_version": "a number of the site",
    "folded_name": "from the names",
    "followed_tag_count": "followed_hashtags.jsonl",
    "follower_count": "followers.jsonl",
    "following_count": "follows.jsonl",
    "is_active": "true",
    "is_auto_big_v": "a number of the site",
    "is_staff": "a role, not data of a member",
    "is_superuser": "a role, not data of a member",
    "last_login": "logins.jsonl",
    "level": "from last_seen_at",
    "password": "a hash",
    "promotion": "a number of the site",
    "push_generation": "a number of the site",
    "session_epoch": "a number of the site",
    "session_generation": "a number of the site",
    "uncounted_followees": "a number of the site",
    "window_epoch": "a number of the site",
}
"""Columns of users that account.json leaves out, with the reason."""
RENAMED = {"date_joined": "joined_at", "profile_fields": "fields"}

NO_USER = "names no user"
BRIEF = "gone by itself within minutes"
KEPT_KEYS = {
    "cached": NO_USER,
    "credential": "found by a secret, and gone after a week",
    "events": "capped",
    "further_impressions": NO_USER,
    "impressions": "shared filters of a week",
    "impressions_over": NO_USER,
    "late_notice": BRIEF,
    "beat": NO_USER,
    "mail_pause": NO_USER,
    "mail_turn": NO_USER,
    "observed": NO_USER,
    "of_user": "the list of keys to remove",
    "page": NO_USER,
    "played_early": BRIEF,
    "played_filter": "on the store of filters: tests/seen/test_forgetting.py",
    "played_kept": NO_USER,
    "played_months": NO_USER,
    "played_users": "a member of a shared set, removed: tests/seen/test_forgetting.py",
    "played_trial": BRIEF,
    "popular_tags": NO_USER,
    "rate": BRIEF,
    "session": "found by a secret, invalid, and gone after an hour",
    "suggestions": BRIEF,
    "tag_days": NO_USER,
    "tag_outbox": NO_USER,
}
"""Keys that a purge leaves, or that have tests of their own, with the reason."""


COLUMNS = """
    SELECT c.relname || '.' || a.attname FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
        AND c.relnamespace = current_schema()::regnamespace
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'accounts_user' AND (
        EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conrelid = c.oid
            AND f.confrelid = 'accounts_user'::regclass AND a.attnum = ANY(f.conkey))
        OR a.atttypid IN ('int4'::regtype, 'int8'::regtype) AND a.attname ~ %s)
"""


def columns() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [f"^(?:{NAMED.pattern})$"])
        found = {row[0] for row in cursor.fetchall()}
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.local_fields:
            if field.remote_field and field.remote_field.model is User:
                found.add(f"{model._meta.db_table}.{field.column}")
    return found


TYPES = """
    SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = '' AND a.attnotnull
        AND d.oid IS NULL
"""
VALUES = {
    "jsonb": "'[]'",
    "boolean": "true",
    "timestamp with time zone": "now() + interval '1 day'",
    "uuid": "gen_random_uuid()",
    "smallint": "1",
    "integer": "1",
    "bigint": "1",
    "double precision": "1",
    "inet": "'::1'",
    "text": "'x'",
    "character varying": "'x'",
    "character": "'x'",
    "interval": "'1 hour'",
}


def write_row(column: str, user: User, other: User, *, of_users: set[str]) -> None:
    """A row that names the user in this column, and the other one in each further column of users."""
    table, _, name = column.partition(".")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # no foreign keys, no triggers
        cursor.execute(TYPES, [table])
        needed = {field: VALUES.get(kind, "'{}'") for field, kind in cursor.fetchall()}
        for field in needed:
            if f"{table}.{field}" in of_users:
                needed[field] = str(other.pk)
        needed |= FIELDS.get(table, {}) | FIELDS.get(column, {}) | {name: str(user.pk)}
        names = ", ".join(f'"{field}"' for field in needed)
        cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join(needed.values())})")


FIELDS = {
    "items_filter": {"action": "'hide'"},
    "moderation_case": {"state": "'open'", "item_id": "nextval('moderation_case_id_seq')", "host_id": "1"},
    "moderation_report.reporter_id": {"session_id": "1"},
    "notifications_notification": {"item_id": "1"},
    "notifications_pushsubscription": {"token_id": "1"},
}
"""Values that a constraint asks for, by table or column."""


def count(column: str, user: User) -> int:
    table, _, name = column.partition(".")
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM {table} WHERE "{name}" = %s', [user.pk])
        return int(cursor.fetchone()[0])


def test_nothing_in_postgresql_is_forgotten(ann: User, bob: User) -> None:
    found = columns()
    assert not LEFT_BY_PURGE.keys() - found
    by_deletion = {"accounts_deletion.user_id"}
    for column in sorted(found - by_deletion):
        write_row(column, ann, bob, of_users=found)
        assert count(column, ann), column
    ann.refresh_from_db()
    actions.delete_account(user=ann)
    settle(ann)
    left = {column for column in found if count(column, ann)}
    assert left - LEFT_BY_PURGE.keys() == set(), "purge them, or say why they stay"


def test_all_is_in_the_export(ann: User) -> None:
    found = columns()
    assert EXPORTED.keys() & NOT_EXPORTED.keys() <= {"items_item.sender_id", "moderation_decision.user_id"}
    assert found - EXPORTED.keys() - NOT_EXPORTED.keys() == set(), "export them, or say why not"
    assert not (EXPORTED.keys() | NOT_EXPORTED.keys()) - found
    names = archive(ann).keys()
    assert not set(EXPORTED.values()) - names
    (account,) = archive(ann)["account.json"]
    fields = {RENAMED.get(field.name, field.name) for field in User._meta.concrete_fields}
    assert fields - account.keys() - FIELDS_NOT_EXPORTED.keys() == set(), "export them, or say why not"
    assert not FIELDS_NOT_EXPORTED.keys() - fields


def test_the_marks_of_reading_are_in_the_export(ann: User) -> None:
    ReadingPosition.objects.create(reader=ann, item_id=7, left_id=3)
    ReadMark.objects.create(user=ann, up_to=ids.compose(datetime(2026, 1, 1, tzinfo=UTC), 0))
    files = archive(ann)
    (position,) = files["reading_position.jsonl"]
    assert (position["item_id"], position["left_id"]) == ("7", "3")
    assert files["read_notifications.jsonl"] == [{"up_to": "2026-01-01T00:00:00Z"}]


def archive(user: User) -> dict[str, list[dict[str, Any]]]:
    target = io.BytesIO()
    write_archive(user, target)
    with zipfile.ZipFile(target) as found:
        lines = {name: found.read(name).decode().splitlines() for name in found.namelist() if ".json" in name}
    return {name: [json.loads(line) for line in several] for name, several in lines.items()}


def keys_of(user_id: int) -> Iterator[tuple[str, str]]:
    """Each function of storage/keys.py that may have a key of the user, and a key."""
    arguments = {
        "user_id": user_id,
        "shard": 0,
        "digest": "ab",
        "views_key": keys.views(user_id),
    }
    for name, function in inspect.getmembers(keys, inspect.isfunction):
        if name not in KEPT_KEYS:
            asked = inspect.signature(function).parameters
            assert asked.keys() <= arguments.keys(), f"{name}: purge it, or say why it stays"
            yield name, function(*(arguments[one] for one in asked))


def test_no_key_of_redis_is_forgotten(ann: User) -> None:
    functions = {name for name, _ in inspect.getmembers(keys, inspect.isfunction)}
    assert not KEPT_KEYS.keys() - functions
    found = dict(keys_of(ann.pk))
    found["last shard"] = keys.active_fans(ann.pk, settings.ACTIVE_FANS_SHARDS - 1)
    found["times of replies"] = keys.view_times(keys.reply_views(ann.pk))
    for name, key in found.items():
        server = played.client() if name in ("played_recent", "issued") else feeds_for_tasks()
        server.zadd(key, {"ab": 1})
    assert all(any(server.exists(key) for server in (played.client(), feeds_for_tasks())) for key in found.values())
    actions.delete_account(user=ann)
    settle(ann)
    for server in (played.client(), feeds_for_tasks()):
        assert [name for name, key in found.items() if server.exists(key)] == [], "purge them, or say why they stay"


def test_the_open_browser_has_no_session_any_more(ann: User) -> None:
    client, other = Client(), Client()
    for browser in (client, other):
        browser.post("/login", {"username": ann.username, "password": PASSWORD})
        assert browser.get("/settings").status_code == 200
    assert Session.objects.filter(user_id=ann.pk).count() == 2
    actions.delete_account(user=ann)
    assert not Session.objects.filter(user_id=ann.pk).exists()
    assert client.get("/settings").status_code == 302
