"""Tables large enough to reveal a full scan: `MANY` rows or more, copied from a template of the ORM.

For each list on a page some user or item has one that long.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import connection, models
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant

from accounts.about.models import Rule, SiteSettings
from accounts.actions import issue_token
from accounts.joining_models import Application, Invitation, Invited
from accounts.mail.models import Letter
from accounts.models import AddressCheck, Authenticator, Deletion, EmailAddress, HeldName, Recount, SessionOrigin, User
from community.archives.models import ArchiveImport, BroughtItem
from discover.models import IssuedPage, ItemChange, PopularItem, WordRarity
from items.models import (
    Bookmark,
    CountChange,
    Filter,
    HiddenReply,
    IdempotencyKey,
    Item,
    ItemCounts,
    Like,
    LinkCard,
    Pin,
    Poll,
    RefusedHost,
    ScheduledPost,
    Visibility,
)
from live.models import Host, KeptSnapshot, LiveSession, Reminder, ReplayDelivery, State
from media.models import FileMove, MediaFile, OwnerRename, VideoConversion
from moderation.models import (
    Appeal,
    Case,
    DailyFigures,
    Decision,
    PictureAttempt,
    PictureRule,
    ReplyTemplate,
    Report,
    SenderRule,
    WordRule,
)
from notifications.models import Act, Kind, Notification, QuietHours, ReadMark, Ringing, Silenced
from relations.models import (
    AccountNote,
    Block,
    CsvImport,
    Follow,
    FollowerCountChange,
    FollowRequest,
    List,
    ListMember,
    Mute,
    Tag,
    TagFollow,
)
from seen.models import MergeRun
from storage.ids import SEQUENCE_BITS, compose
from tests.support.clients import app_of, token_of
from tests.support.factories import ItemFactory, UserFactory
from timeline.models import Backfill, Delivery, DeliveryRange, Import, ImportedUser, ReadingPosition

MANY = 10_000
DEVICE: dict[str, Any] = {
    "endpoint": "https://push.example.org/send/1",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
}
"""A browser with push messages."""
FOLLOWEES = 500
"""FOLLOW_CAP limits it."""
POSTS = 3 * MANY
LISTS = 30
"""The limit is 50."""


def grow(template: models.Model, count: int, **columns: str) -> None:
    """`columns` are SQL expressions of `g` (1 to `count`)."""
    meta = template._meta
    names = [
        f'"{field.column}"'
        for field in meta.local_concrete_fields
        if not field.generated and (not field.primary_key or field.column in columns)
    ]
    differs = ", ".join(f"'{name}', {expression}" for name, expression in columns.items())
    listed = ", ".join(names)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({listed}) SELECT {', '.join(f'new.{name}' for name in names)}"
            f" FROM {meta.db_table} base CROSS JOIN generate_series(1, {count}) AS g"
            f" CROSS JOIN LATERAL jsonb_populate_record(base, jsonb_build_object({differs})) AS new"
            f" WHERE base.{meta.pk.column} = '{template.pk}'"
        )


class Grown:
    """`star` has the most of nearly everything. `reader` does the most. Everybody likes, reposts and answers `busy`."""

    def __init__(self) -> None:
        self.begun = compose(timezone.now(), 0) >> SEQUENCE_BITS
        self.star = UserFactory(username="star", is_big_v=True, follower_count=MANY, following_count=FOLLOWEES)
        self.reader = UserFactory(username="reader", follower_count=MANY, following_count=FOLLOWEES)
        self.admin = User.objects.create_superuser("admin", "correct horse battery staple")
        self.other = UserFactory(username="other")
        self.ordinary = UserFactory(username="ordinary", display_name="Ordinary Person")
        with connection.cursor() as cursor:
            # Right by construction: foreign keys need no check.
            cursor.execute("SET session_replication_role = replica")
        try:
            self._grow()
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SET session_replication_role = origin")
                cursor.execute("VACUUM ANALYZE")

    def ids(self, series: int) -> str:
        """SQL of ids, newest first, a minute apart."""
        return f"(({self.begun} - g::bigint * 60000) << {SEQUENCE_BITS} | {series})"

    @property
    def nth(self) -> str:
        return f"({self.first} + g - 1)"

    def _grow(self) -> None:
        self._people()
        self._items()
        self._conversations()
        self._relations()
        self._scheduled()
        self._muted_threads()
        self._hidden_replies()
        self._filters()
        self._pins()
        self._notifications()
        self._live()
        self._moderation()
        self._media()
        self._link_cards()
        self._upkeep()

    def _media(self) -> None:
        facts: dict[str, Any] = {"kind": "image", "ext": "jpg", "width": 9, "height": 9, "size": 9}
        medium = MediaFile.objects.create(owner_id=self.star.pk, name="0", sha256="0", use="item", item_id=1, **facts)
        ids = {"id": self.ids(17), "name": "'a' || g"}
        grow(medium, MANY, owner_id=self.nth, item_id=self.ids(0), key="'key' || g", **ids)
        covers = {"use": "'cover'", "item_id": "NULL::bigint", "session_id": self.ids(0)}
        grow(medium, MANY, id=self.ids(19), name="'e' || g", owner_id=self.nth, **covers)
        ids = {"id": self.ids(18), "name": "'b' || g"}
        grow(medium, MANY, use="''", item_id="NULL::bigint", created_at="now() - g * interval '1 second'", **ids)
        blocked = PictureRule.objects.create(sha256="1", phash=1, action="hold", note="known", medium_id=medium.pk)
        grow(blocked, 100, sha256="'r' || g", phash="g")
        attempt = PictureAttempt.objects.create(rule=blocked, user=self.star, item_id=1)
        grow(attempt, MANY, user_id=self.nth, at="now() - g * interval '1 minute'")
        with connection.cursor() as cursor:
            shown = '[{"id": "1", "kind": "image", "name": "a", "ext": "jpg", "width": 9, "height": 9}]'
            cursor.execute(
                "UPDATE items_item SET media = %s WHERE sender_id = %s AND repost_of_id IS NULL AND id %% 7 < 3",
                [shown, self.star.pk],
            )
        move = FileMove.objects.create(name="c", ext="jpg", small_ext="jpg")
        grow(move, MANY, name="'c' || g", to="'d' || g")
        grow(Recount.objects.create(user_id=0), 100, user_id=self.nth)
        grow(OwnerRename.objects.create(owner_id=0), 100, owner_id=self.nth)
        done = VideoConversion.objects.create(media_id=0, owner_id=self.star.pk, original="0", seconds=1)
        VideoConversion.objects.update(finished_at=timezone.now())
        done.refresh_from_db()
        ago = dict.fromkeys(("created_at", "finished_at"), "now() - g * interval '1 minute'")
        grow(done, MANY, media_id="g", owner_id=self.nth, original="'c' || g", **ago)
        VideoConversion.objects.filter(media_id__in=range(1, 6)).update(finished_at=None)

    def _link_cards(self) -> None:
        """The star's posts link to different pages, all others to one."""
        facts = {"url": "https://busy.example/", "title": "busy", "description": "", "site": "", "picture": None}
        card = LinkCard.objects.create(url="https://busy.example/", digest="0", domain="example.busy.", facts=facts)
        asked = {"asked_at": "now() - g * interval '1 hour'", "checked_at": "now() - g * interval '1 hour'"}
        grow(card, MANY, digest="'b' || g", **asked)
        grow(card, MANY, digest="'a' || g", domain="'example.h' || g || '.'", picture_id=self.ids(18), **asked)
        LinkCard.objects.create(url="http://127.0.0.1/", digest="1", domain="1.0.0.127.", state="waiting")
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE items_item SET link_card_id = CASE WHEN sender_id = %s THEN %s + id %% %s ELSE %s END"
                " WHERE visibility = 'public' AND status = 'published' AND repost_of_id IS NULL",
                [self.star.pk, card.pk, MANY, card.pk],
            )
        self.refused = RefusedHost.objects.create(host="busy.example")
        grow(self.refused, MANY, host="'bad' || g || '.example'")

    def _people(self) -> None:
        grow(
            self.ordinary,
            MANY,
            username="'user' || g",
            display_name="'P' || g",
            level="g % 4",
            last_seen_at="now() - g * interval '1 hour'",
            date_joined="now() - g * interval '1 hour'",
            follower_count="g % 400",
            is_big_v="g % 400 = 399",
        )
        self.first = User.objects.get(username="user1").pk
        invitation = Invitation.objects.create(code="0", made_by=self.star, uses=1)
        grow(invitation, MANY, id="g + 1000000", code="'c' || g", made_by_id=f"{self.star.pk}")
        grow(invitation, MANY, id="g + 2000000", code="'d' || g", made_by_id=self.nth)
        invited = Invited.objects.create(user=self.ordinary, invitation=invitation)
        grow(invited, MANY, user_id=self.nth, invitation_id="g + 1000000")
        application = Application.objects.create(username="applies", password="0", reason="I read a lot.")
        grow(application, MANY, username="'applies' || g", created_at="now() - g * interval '1 minute'")
        rule = Rule.objects.create(number=1, text="Be kind.")
        grow(rule, 100, withdrawn_at="CASE WHEN g > 20 THEN now() END")
        SiteSettings.objects.create()

    def polled(self, lasts: timedelta) -> Item:
        closes_at = timezone.now() + lasts
        content = {
            "text": "a poll",
            "poll": {"options": ["a", "b"], "multiple": False, "closes_at": closes_at.isoformat()},
        }
        item = ItemFactory(sender=self.ordinary, type="poll", content=content)
        Poll.objects.create(item=item, closes_at=closes_at, votes=[MANY, 0], voters=MANY)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO items_vote (item_id, user_id, choices)"
                " SELECT %s, id, '{0}' FROM accounts_user WHERE id >= %s ORDER BY id LIMIT %s",
                [item.pk, self.first, MANY],
            )
        return item

    def _items(self) -> None:
        post = ItemFactory(sender=self.ordinary, content={"text": "nothing"})
        words = """jsonb_build_object('text',
            'word' || g % 5000 || ' word' || g % 7 || CASE g % 3 WHEN 0 THEN ' #busy' ELSE ' #quiet' || g % 5000 END)"""
        grow(post, POSTS, id=self.ids(0), sender_id=f"{self.first} + (g - 1) % {MANY}", content=words)
        grow(post, MANY, id=self.ids(1), sender_id=f"{self.star.pk}", content=words)
        self.busy = ItemFactory(sender=self.star, content={"text": "busy"})
        reply = ItemFactory(sender=self.ordinary, reply_to=self.busy, root=self.busy)
        grow(reply, MANY, id=self.ids(2), sender_id=self.nth)
        grow(reply, MANY, id=self.ids(3), sender_id=f"{self.reader.pk}")
        repost = ItemFactory(sender=self.ordinary, repost_of=self.busy, content={})
        grow(repost, MANY, id=self.ids(4), sender_id=self.nth)
        quote = ItemFactory(sender=self.ordinary, quote_of=self.busy)
        grow(quote, MANY, id=self.ids(8), sender_id=self.nth)
        self.polled(-timedelta(days=1))  # its voters are notified
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO items_item (id, sender_id, repost_of_id, type, title, content, extra_info, status,"
                " visibility) SELECT id + 5, %s, id, 'repost', '', '{}', '{}', 'published', 'public' FROM items_item"
                " WHERE sender_id >= %s AND reply_to_id IS NULL AND repost_of_id IS NULL ORDER BY id DESC LIMIT %s",
                [self.star.pk, self.first, MANY],
            )
            cursor.execute(
                "INSERT INTO items_itemdocument (item_id, document) SELECT id, to_tsvector('simple', content->>'text')"
                " FROM items_item WHERE repost_of_id IS NULL AND reply_to_id IS NULL"
            )
            cursor.execute(
                "INSERT INTO items_itemtag (tag, item_id, is_public_post)"
                " SELECT substr(split_part(content->>'text', ' ', 3), 2), id, true"
                " FROM items_item WHERE content->>'text' LIKE '%%#%%'"
            )
            for table, columns in (("items_like", "user_id, item_id"), ("discover_notinterested", "user_id, item_id")):
                cursor.execute(
                    f"INSERT INTO {table} ({columns}) SELECT %s, id FROM items_item"
                    " WHERE sender_id >= %s AND reply_to_id IS NULL AND repost_of_id IS NULL LIMIT %s",
                    [self.reader.pk, self.first, MANY],
                )
            cursor.execute(
                "INSERT INTO items_itemcounts (item_id, likes, replies, circle_replies, reposts)"
                " SELECT id, 1, 0, 0, 0 FROM items_item WHERE reply_to_id IS NULL AND id <> %s",
                [self.busy.pk],
            )
            cursor.execute(
                "INSERT INTO discover_notinterested (user_id, item_id) SELECT sender_id, id FROM items_item"
                " WHERE sender_id >= %s AND reply_to_id IS NULL AND repost_of_id IS NULL",
                [self.first],
            )
        like = Like.objects.create(user=self.other, item=self.busy)
        grow(like, MANY, user_id=self.nth)
        kept = Bookmark.objects.create(user=self.other, item=self.busy)
        grow(like, MANY // 2, user_id=f"{self.star.pk}", item_id=self.ids(0))  # the reader already likes as many
        for one in (self.star, self.reader):
            grow(kept, MANY // 2, user_id=f"{one.pk}", item_id=self.ids(0))
        grow(kept, MANY, user_id=self.nth)
        ItemCounts.objects.create(item=self.busy, likes=MANY + 1, replies=2 * MANY, reposts=MANY)
        key = IdempotencyKey.objects.create(sender=self.ordinary, key="key", fingerprint="0", item=post)
        grow(key, MANY, key="'key' || g", sender_id=self.nth)
        # A busy site stages this much in two seconds.
        grow(CountChange.objects.create(item=post, likes=1), 200, item_id=f"{self.busy.pk}")

    def _conversations(self) -> None:
        """Many conversations of star and reader, and many requests and messages in them."""
        first = ItemFactory(sender=self.ordinary, visibility=Visibility.MENTIONED, content={"text": "@star word1"})
        grow(first, MANY, id=self.ids(20), sender_id=self.nth)
        self.talk = ItemFactory(sender=self.star, visibility=Visibility.MENTIONED, content={"text": "@reader word1"})
        message = ItemFactory(
            sender=self.reader, visibility=Visibility.MENTIONED, reply_to=self.talk, conversation=self.talk
        )
        grow(
            message, MANY, id=self.ids(21), sender_id=f"CASE g % 2 WHEN 0 THEN {self.star.pk} ELSE {self.reader.pk} END"
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO items_participant (conversation_id, user_id, last, read, is_request)"
                " SELECT i.id, u.id, i.id, 0, u.id <> i.sender_id AND i.sender_id %% 5 = 0 FROM items_item i"
                " CROSS JOIN LATERAL unnest(ARRAY[i.sender_id, %s, %s]) AS u (id)"
                " WHERE i.visibility = 'mentioned' AND i.conversation_id IS NULL ON CONFLICT DO NOTHING",
                [self.star.pk, self.reader.pk],
            )
            cursor.execute(
                "INSERT INTO items_correspondent (writer_id, reader_id)"
                " SELECT p.user_id, other.user_id FROM items_participant p JOIN items_participant other"
                " USING (conversation_id) WHERE p.user_id <> other.user_id ON CONFLICT DO NOTHING"
            )

    def _relations(self) -> None:
        follow = Follow.objects.create(follower=self.ordinary, followee=self.other)
        grow(follow, MANY, follower_id=self.nth, followee_id=f"{self.star.pk}")
        grow(follow, MANY, follower_id=self.nth, followee_id=f"{self.reader.pk}")
        grow(follow, FOLLOWEES, follower_id=f"{self.star.pk}", followee_id=self.nth)
        grow(follow, FOLLOWEES, follower_id=f"{self.reader.pk}", followee_id=self.nth)
        for step in range(1, 6):
            grow(follow, MANY, follower_id=self.nth, followee_id=f"{self.first} + (g + {step} * 37) % {MANY}")
        Follow.objects.create(follower=self.reader, followee=self.star)
        for user in (self.reader, self.star):
            without = Follow.objects.filter(follower=user).order_by("pk")[: FOLLOWEES // 2]
            Follow.objects.filter(pk__in=list(without.values_list("pk", flat=True))).update(reposts=False)
            rung = Follow.objects.filter(follower=user).order_by("-pk")[:90]
            Follow.objects.filter(pk__in=list(rung.values_list("pk", flat=True))).update(bell=True)
        Follow.objects.filter(followee=self.star, follower__gte=self.first).update(bell=True)
        User.objects.filter(username="user702").update(is_locked=True)
        User.objects.filter(pk=self.reader.pk).update(is_locked=True)
        request = FollowRequest.objects.create(follower=self.ordinary, followee=self.other)
        for one in (self.star, self.reader):
            grow(request, MANY // 2, follower_id=f"{self.first + FOLLOWEES} + g", followee_id=f"{one.pk}")
        grow(request, MANY, follower_id=self.nth, followee_id=f"{self.first} + (g + 50) % {MANY}")
        for model, one, two in ((Block, "blocker_id", "blocked_id"), (Mute, "muter_id", "muted_id")):
            pair = model._default_manager.create(**{one: self.ordinary.pk, two: self.other.pk})
            # Users whom the star blocks, users who block the star, and all others.
            grow(pair, MANY // 2, **{one: f"{self.star.pk}", two: f"{self.first + FOLLOWEES} + g"})
            grow(pair, MANY // 2, **{one: f"{self.first + MANY // 2} + g - 1", two: f"{self.star.pk}"})
            grow(pair, MANY, **{one: self.nth, two: f"{self.first} + (g + 50) % {MANY}"})
        note = AccountNote.objects.create(owner=self.ordinary, subject=self.other, text="a colleague")
        grow(note, MANY, owner_id=self.nth, subject_id=f"{self.first} + (g + 50) % {MANY}")
        grow(note, MANY // 2, owner_id=f"{self.star.pk}", subject_id=f"{self.first + FOLLOWEES} + g")
        self._lists()
        self._tags()
        Mute.objects.exclude(muter=self.star).update(expires_at=timezone.now() + timedelta(days=30))
        imported = CsvImport.objects.create(
            user=self.ordinary, kind="mutes", total=1, done=1, finished_at=timezone.now()
        )
        grow(imported, MANY, user_id=self.nth)
        archive = ArchiveImport.objects.create(
            user=self.ordinary, folder="", state="done", total=1, done=1, finished_at=timezone.now()
        )
        grow(archive, MANY, user_id=self.nth)
        grow(FollowerCountChange.objects.create(user=self.ordinary, change=1), 1_000, user_id=f"{self.star.pk}")

    def _tags(self) -> None:
        """Everybody follows the busy one, the star the maximum, a normal user ten."""
        tag = Tag.objects.create(name="busy")
        grow(tag, MANY, name="'quiet' || g")
        follow = TagFollow.objects.create(user=self.other, tag=tag)
        grow(follow, MANY, user_id=self.nth)
        grow(follow, MANY, user_id=self.nth, tag_id=f"{tag.pk} + g")
        for user, count in ((self.star, 99), (self.ordinary, 9)):
            TagFollow.objects.create(user=user, tag=tag)
            grow(follow, count, user_id=f"{user.pk}", tag_id=f"{tag.pk} + g")
            User.objects.filter(pk=user.pk).update(followed_tag_count=count + 1)
        User.objects.filter(pk__gte=self.first, pk__lt=self.first + MANY).update(followed_tag_count=2)

    def _lists(self) -> None:
        """Reader and star have the maximum, one with all followees and one exclusive."""
        grow(List.objects.create(owner=self.ordinary, title="list"), MANY, owner_id=self.nth)
        base = List.objects.filter(owner=self.first).get().pk - 1
        of_star = ListMember.objects.create(list_id=base + 1, owner_id=self.first, member=self.star)
        grow(of_star, MANY - 1, list_id=f"{base + 1} + g", owner_id=f"{self.first} + g")
        for owner in (self.reader, self.star):
            lists = [List.objects.create(owner=owner, title=f"list {number}") for number in range(LISTS)]
            exclusive = List.objects.create(owner=owner, title="out of home", is_exclusive=True)
            for one, members in ((lists[0], FOLLOWEES), (exclusive, 20)):
                member = ListMember.objects.create(list=one, owner=owner, member=self.ordinary)
                grow(member, members, member_id=self.nth)

    def _pins(self) -> None:
        """The star has three."""
        brought = BroughtItem.objects.create(user=self.star, origin="", item=self.busy)
        grow(brought, MANY, item_id=self.ids(0), origin="'x' || g")
        pin = Pin.objects.create(item=self.busy, sender=self.star)
        grow(pin, MANY, item_id=self.ids(0), sender_id=self.nth)
        grow(pin, 2, item_id=self.ids(1))

    def _muted_threads(self) -> None:
        """All muted the busy one. Reader and star muted many."""
        others = [f"SELECT {user.pk}, {self.ids(0)}" for user in (self.reader, self.star)]
        with connection.cursor() as cursor:
            for rows in (f"SELECT {self.nth}, {self.busy.pk}", *others):
                cursor.execute(
                    f"INSERT INTO items_mutedthread (user_id, root_id) {rows} FROM generate_series(1, {MANY}) AS g"
                    " ON CONFLICT DO NOTHING"
                )

    def _hidden_replies(self) -> None:
        """All under the busy one."""
        hidden = HiddenReply.objects.create(reply=self.busy, root=self.busy, user=self.star)
        grow(hidden, MANY, reply_id=self.ids(2), root_id=f"{self.busy.pk}")

    def _scheduled(self) -> None:
        """A tenth is due. Reader and star have the maximum."""
        post = {"type": "text", "title": "", "content": {"text": "later"}, "extra_info": {}, "visibility": "public"}
        post |= dict.fromkeys(("reply_to", "quote_of", "quotable_by"))
        at = timezone.now() + timedelta(days=1)
        one = ScheduledPost.objects.create(sender=self.ordinary, post=post, publish_at=at, key="first")
        gone = "CASE WHEN g % 50 = 1 THEN jsonb_set(base.post, '{reply_to}', '1') ELSE base.post END"
        failed = "CASE WHEN g % 2 = 0 THEN 'error' ELSE '' END"
        grow(
            one,
            MANY,
            sender_id=self.nth,
            publish_at="now() + (g - 1000) * interval '1 minute'",
            failure=failed,
            post=gone,
        )
        for owner in (self.reader, self.star):
            grow(one, 95, sender_id=f"{owner.pk}", key="'key' || g")

    def _filters(self) -> None:
        """Some have expired. Reader and star have nearly the maximum."""
        soon, late = "now() + g * interval '1 hour'", "now() - interval '1 day'"
        one = Filter.objects.create(owner=self.ordinary, phrase="nothing", whole_word=True, action="warn")
        grow(one, MANY, owner_id=self.nth, expires_at=f"CASE g % 10 WHEN 0 THEN {soon} WHEN 1 THEN {late} END")
        for owner in (self.reader, self.star):
            grow(one, 90, owner_id=f"{owner.pk}", phrase="'phrase ' || g")
        User.objects.update(filters_version=1)

    def _notifications(self) -> None:
        entry = Notification.objects.create(recipient=self.ordinary, kind=Kind.LIKE, item=self.busy)
        grow(
            entry,
            MANY,
            recipient_id=f"{self.star.pk}",
            kind="CASE g % 2 WHEN 0 THEN 'mention' ELSE 'reply' END",
            item_id=self.ids(2),
            position=self.ids(2),
        )
        grow(
            entry,
            MANY,
            recipient_id=self.nth,
            item_id=self.ids(0),
            position="feedsite_next_id() - (300::bigint * 86400000 << 12)",
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)"
                " SELECT position + row_number() OVER () %% 4, id, recipient_id, %s FROM notifications_notification"
                " ON CONFLICT DO NOTHING",
                [self.other.pk],
            )
        self.liked = Notification.objects.create(recipient=self.star, kind=Kind.LIKE, item=self.busy)
        act = Act.objects.create(notification=self.liked, recipient=self.star, actor=self.other)
        grow(act, MANY, id=self.ids(9), actor_id=self.nth)
        grow(Ringing.objects.create(item=self.busy), 20, item_id=self.ids(0))
        grow(ReadMark.objects.create(user=self.ordinary, up_to=1), MANY, user_id=self.nth)
        grow(Silenced.objects.create(user=self.ordinary, kinds=["live"]), MANY, user_id=self.nth)
        grow(QuietHours.objects.create(user=self.ordinary, begins=1, ends=2, time_zone="UTC"), MANY, user_id=self.nth)

    def _live(self) -> None:
        now = timezone.now()
        self.session = LiveSession.objects.create(host=self.star, title="busy", starts_at=now)
        replay = LiveSession.objects.create(
            host=self.ordinary,
            title="over",
            starts_at=now,
            started_at=now,
            ended_at=now,
            state=State.REPLAY,
            position=1,
        )
        past = {"starts_at": "now() - g * interval '1 minute'", "started_at": "now() - g * interval '1 minute'"}
        grow(replay, MANY, id=self.ids(11), position=self.ids(11), host_id=f"{self.star.pk}", **past)
        grow(replay, MANY, id=self.ids(12), position=self.ids(12), host_id=self.nth, **past)
        upcoming = LiveSession.objects.create(host=self.ordinary, title="soon", starts_at=now)
        grow(upcoming, MANY, id=self.ids(13), host_id=self.nth, starts_at="now() + g * interval '1 minute'")
        live = LiveSession.objects.create(
            host=self.ordinary, title="now", starts_at=now, started_at=now, state=State.LIVE
        )
        grow(live, 2_000, id=self.ids(14), host_id=self.nth, started_at="now()")
        version = Item.objects.latest("pk").pk
        host = Host.objects.create(user=self.ordinary, scheduled=1, version=version, applied=version)
        Host.objects.create(user=self.star, scheduled=1, version=version, applied=version)
        grow(host, MANY, user_id=self.nth)
        reminder = Reminder.objects.create(session=self.session, user=self.ordinary)
        grow(reminder, MANY, user_id=self.nth)
        grow(
            reminder,
            MANY,
            session_id=f"(SELECT id FROM live_livesession WHERE host_id = {self.nth} AND title = 'soon')",
        )
        # Parked: never delivered, but readers find it.
        delivery = ReplayDelivery.objects.create(session=replay, host=self.ordinary, position=1, parked_at=now)
        grow(delivery, MANY, session_id=f"{replay.pk} - g", position="g + 1", sweep_at="now() - interval '1 day'")
        kept = KeptSnapshot.objects.create(reader=self.ordinary, digest="0", lives=0, entries=[], expires_at=now)
        grow(kept, MANY, reader_id=self.nth, expires_at="now() + interval '1 hour'")

    def _moderation(self) -> None:
        rule = WordRule.objects.create(text="forbidden")
        grow(rule, 200, text="'forbidden' || g")
        held = ItemFactory(sender=self.ordinary, status="in_review", visibility=Visibility.PUBLIC)
        grow(held, MANY, id=self.ids(16), sender_id=self.nth)
        case = Case.objects.create(item=held, host=held.sender, source="rules", reasons=["words: forbidden"])
        case.words.add(rule)
        grow(case, MANY, item_id=self.ids(16))
        report = Report.objects.create(item=self.busy, reporter=self.ordinary, reason="spam", case=case)
        hourly = "now() - g * interval '1 hour'"
        grow(report, MANY, reporter_id=self.nth, created_at=hourly)
        grow(
            *(report, MANY),
            item_id=self.ids(0),
            reporter_id=f"{self.reader.pk}",
            case_id=f"{case.pk} + g",
            created_at=hourly,
        )
        decision = Decision.objects.create(by=self.admin, verb="approved", item=held)
        grow(decision, MANY, item_id=self.ids(16))
        warned = Decision.objects.create(by=self.admin, verb="warn", user=self.reader, is_told=True, text="Be kind.")
        grow(warned, MANY, user_id=self.nth, at=hourly)
        grow(warned, 200)
        own = Decision.objects.filter(user=self.reader, is_told=True).order_by("pk")
        appeals = [Appeal(decision=one, text="No.", state="rejected") for one in own[:100]]
        Appeal.objects.bulk_create(appeals)
        others = Decision.objects.filter(is_told=True).exclude(user=self.reader).order_by("pk")
        Appeal.objects.bulk_create(
            Appeal(decision=one, text="No.", created_at=timezone.now() - timedelta(hours=hours))
            for hours, one in enumerate(others[:MANY])
        )
        grow(DailyFigures.objects.create(day=timezone.now().date(), reports=1), MANY, day="current_date - g::int")
        ReplyTemplate.objects.create(title="Rude", text="Be kind.")
        grow(SenderRule.objects.create(user=self.ordinary, kind="white"), MANY // 2, user_id=self.nth)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO moderation_case_words (case_id, wordrule_id)"
                " SELECT id, %s + id %% 2 * (id / 2 %% 200) FROM moderation_case ON CONFLICT DO NOTHING",
                [rule.pk],
            )

    def _upkeep(self) -> None:
        now = timezone.now()
        some = Item.objects.filter(reply_to=None, repost_of=None)[:20].values_list("pk", flat=True)
        page = IssuedPage.objects.create(
            user=self.ordinary, item_ids=list(some), reasons=[""] * 20, has_more=True, issued_at=now, is_recorded=True
        )
        grow(page, MANY, user_id=self.nth, issued_at="now() - g * interval '10 seconds'")
        grow(page, 1_000, user_id=f"{self.reader.pk}", issued_at="now() - g * interval '1 minute'")
        grow(WordRarity.objects.create(word="word0", rarity=2.0), MANY, word="'word' || g")
        popular = PopularItem.objects.create(item=self.busy, popularity=1.0)
        grow(popular, 500, item_id=self.ids(0))
        grow(ItemChange.objects.create(item=self.busy), MANY, item_id=self.ids(0))
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                INSERT INTO feedsite_written (user_id, written_at)
                SELECT {self.nth}, now() FROM generate_series(1, {MANY}) AS g
                """
            )
        grow(Deletion.objects.create(user=self.ordinary), MANY, user_id=self.nth, tried_at="now()")
        grow(HeldName.objects.create(digest="0"), MANY, digest="g::text")
        issue_token(user=self.ordinary, user_agent="x", ip="10.0.0.1")
        token = AccessToken.objects.get()
        grow(token, MANY, token_checksum="md5('own' || g)", user_id=self.nth)
        origins = (
            "INSERT INTO accounts_tokenorigin (token_id, user_agent, ip) "
            "SELECT id, 'x', '10.0.0.1' FROM oauth2_provider_accesstoken"
        )
        with connection.cursor() as cursor:
            cursor.execute(f"{origins} WHERE id <> {token.pk}")
        app = app_of()
        grow(app, MANY, client_id="md5(g::text)")
        token_of(self.ordinary, app=app)
        held = AccessToken.objects.get(application=app)
        grow(held, MANY, token_checksum="md5(g::text)", user_id=self.nth)
        with connection.cursor() as cursor:  # a private address, so nothing is sent
            cursor.execute(
                "INSERT INTO notifications_pushsubscription (user_id, token_id, endpoint, p256dh, auth,"
                " server_key, kinds, policy, words, language, user_agent, app_token, is_standard, due_at)"
                " SELECT user_id, id, 'https://192.0.2.1/' || id, %s, %s, '', '{mention,reply,live}', 'followed',"
                " 'open', '', '', '', true, now() + interval '1 day' FROM oauth2_provider_accesstoken",
                [DEVICE["keys"]["p256dh"], DEVICE["keys"]["auth"]],
            )
        code = Grant.objects.create(user=self.ordinary, application=app, code="0", expires=now + timedelta(days=1))
        grow(code, MANY, code="md5(g::text)", user_id=self.nth)
        session = Session.objects.create(session_key="0", session_data="", expire_date=now)
        grow(session, MANY, session_key="md5(g::text)", expire_date="now() + interval '1 day'")
        self._safety(now)
        entry = LogEntry.objects.create(
            user=self.admin, action_flag=ADDITION, content_type=ContentType.objects.get_for_model(Item), object_id="1"
        )
        grow(entry, MANY)
        run = MergeRun.objects.create(node=1, task_shard=1, started_at=now, seconds=1.0)
        grow(run, MANY, task_shard="g % 50", started_at="now() - g * interval '72 seconds'")
        delivery = Delivery.objects.create(item=self.busy, sender=self.star, parked_at=now)
        grow(delivery, MANY, item_id=self.ids(0), sender_id=self.nth)
        grow(DeliveryRange.objects.create(delivery=delivery, revision=1, low=0, high=1), MANY, delivery_id=self.ids(0))
        backfill = Backfill.objects.create(sender=self.ordinary, followers=0, finished_at=now)
        grow(backfill, MANY, sender_id=self.nth)
        source = Import.objects.create(fingerprint="0", users=0, follows=0, posts=0)
        imported = ImportedUser.objects.create(user=self.ordinary, source=source, original_id=0)
        grow(imported, MANY, user_id=self.nth, original_id="g")
        grow(ReadingPosition.objects.create(reader=self.ordinary, item_id=1), MANY, reader_id=self.nth)

    def _safety(self, now: datetime) -> None:
        address = EmailAddress.objects.create(user=self.ordinary, email="0@example.org", verified=True, primary=True)
        grow(address, MANY, user_id=self.nth, email="g || '@example.org'")
        check = AddressCheck.objects.create(address=address, key_digest="0", code_digest="0", expires_at=now)
        later = "now() + interval '1 day'"
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO accounts_addresscheck (address_id, key_digest, code_digest, tries, expires_at)"
                f" SELECT id, '0', '0', 0, {later} FROM account_emailaddress WHERE id <> {check.pk}"
            )
        factor = Authenticator.objects.create(user=self.ordinary, type="webauthn", data={"name": "key"})
        grow(factor, MANY, user_id=self.nth)
        place = SessionOrigin.objects.create(user=self.ordinary, ip="10.0.0.1", session_key="0", user_agent="x")
        grow(place, MANY, user_id=self.nth, session_key="md5(g::text)")
        letter = Letter.objects.create(kind="test", address="a@example.org", user_id=self.ordinary.pk, expires_at=now)
        grow(letter, MANY, user_id=self.nth, state="'sent'", expires_at=later)


def counted(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        row: Any = cursor.fetchone()
    return int(row[0])
