"""What grows with the number of items?

`growth_items` calls the site's functions on communities of several sizes. A call should cost the same.

A share of the items are quotes, polls, replies of one thread, and messages. Half of the quotes have one original, and
each reader has a conversation with half of their messages. Hashtags, likes, votes and the notifications of bells grow
with the items too.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from celery import current_app as app
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from benchmarks.community import Community, emptied, entries, materialise_outbox, users
from benchmarks.discover import LIKES, forget_recall
from benchmarks.measure import BenchmarkReport, Case, Size, interleaved
from discover import feed, refreshing
from items import counts, polls
from items.actions import delete, edit, like, publish
from items.bodies import ItemBody
from items.conversations.conversations import conversations_page, open_conversation
from items.conversations.messages import messages_page
from items.models import Item
from items.profiles.profile import find_item, item_count, profile_page
from items.quotes import quotes_page
from items.search.query import parse
from items.search.search import search_items
from items.tags.tags import tag_page
from items.threads.threads import thread_page
from notifications.bells import ring
from notifications.feed import notifications_page, waiting
from relations.actions import set_bell
from relations.models import Follow, Tag
from relations.tags import follow_tag
from storage.connections import feeds, fetch, pipelined
from timeline.home import home_page
from timeline.inbox import Tail
from timeline.models import Delivery
from timeline.outbox import source_of

QUESTION = "Does a call cost the same with the most items as with the fewest?"
LIMIT = 20
FLAT = 1.5
"""Limit of a call with the most items over the same call with the fewest."""
ITEMS_A_SENDER = 100
BYTES_AN_ITEM = 1_000
"""Of PostgreSQL, with indexes, words and all that belongs to items."""
SPARE_BYTES = 4 * 2**30
"""For the WAL, sorts, and what Redis keeps."""
SENDERS = 200
"""Senders who publish, and who have not voted."""
TAGS, FOLLOWED_TAGS = 500, 10
BELLS = 5
"""Followees whose posts ring, of each reader."""

# The last bits of an item's id are those of its number. So each statement takes its own items, and gives each new one
# the id of an item some seconds later.
COLUMNS = "id, sender_id, type, title, content, extra_info, status, visibility"
POST = "'text', '', '{\"text\": \"it grows\"}', '{}', 'published', 'public'"
QUOTES = f"""
    INSERT INTO items_item ({COLUMNS}, quote_of_id, modified_at)
    SELECT id + (1000::bigint << 12), sender_id, {POST}, CASE WHEN (id & 64) = 0 THEN %(viral)s ELSE id END, now()
    FROM items_item WHERE (id & 63) = 1 AND reply_to_id IS NULL
"""
REPLIES = f"""
    INSERT INTO items_item ({COLUMNS}, reply_to_id, root_id, modified_at)
    SELECT id + (2000::bigint << 12), sender_id, {POST}, %(viral)s, %(viral)s, now()
    FROM items_item WHERE (id & 63) = 2
"""
POLLS = f"""
    WITH made AS (
        INSERT INTO items_item ({COLUMNS}, modified_at)
        SELECT id + (3000::bigint << 12), sender_id, 'poll', '', jsonb_build_object('text', 'Which one?', 'poll',
            jsonb_build_object('options', '["This", "That"]'::jsonb, 'multiple', false, 'closes_at', %(ends)s::text)),
            '{{}}', 'published', 'public', now()
        FROM items_item WHERE (id & 127) = 3 AND reply_to_id IS NULL RETURNING id
    )
    INSERT INTO items_poll (item_id, closes_at, votes, voters, told_to, is_told)
    SELECT id, %(ends)s::timestamptz, '{{0, 0}}', 0, 0, false FROM made
"""
# All but the first senders vote in the newest poll.
VOTES = f"""
    WITH voted AS (
        INSERT INTO items_vote (item_id, user_id, choices)
        SELECT newest.item_id, u.id, ARRAY[u.id & 1]
        FROM (SELECT max(item_id) AS item_id FROM items_poll) newest, accounts_user u
        WHERE u.id > {SENDERS} AND u.id <= %(senders)s RETURNING item_id
    )
    UPDATE items_poll p SET voters = v.voters, votes = ARRAY[v.voters, 0]
    FROM (SELECT item_id, count(*) AS voters FROM voted GROUP BY item_id) v WHERE p.item_id = v.item_id
"""
# A reader's: half of them in one conversation with a followee, each other begins one.
MESSAGES = f"""
    WITH people AS (
        SELECT place - 1 AS place, reader, partner, conversation
        FROM unnest(%(readers)s::bigint[], %(partners)s::bigint[], %(conversations)s::bigint[])
            WITH ORDINALITY AS t (reader, partner, conversation, place)
    ), made AS (
        INSERT INTO items_item ({COLUMNS}, conversation_id, modified_at)
        SELECT id + (4000::bigint << 12), CASE WHEN (id & 64) = 0 THEN partner ELSE sender_id END, 'text', '',
            '{{"text": "between us"}}', '{{}}', 'published', 'mentioned',
            CASE WHEN (id & 64) = 0 THEN conversation END, now()
        FROM items_item JOIN people ON place = ((id >> 7) & 31) %% %(count)s WHERE (id & 63) = 4
        RETURNING id, sender_id, conversation_id
    )
    INSERT INTO items_participant (conversation_id, user_id, last, read, is_request)
    SELECT id, person, id, CASE WHEN person = sender_id THEN id ELSE 0 END, false
    FROM made JOIN people ON place = ((id >> 7) & 31) %% %(count)s
    CROSS JOIN LATERAL unnest(ARRAY[sender_id, reader]) AS person WHERE conversation_id IS NULL
"""
TAGGED = f"""
    INSERT INTO items_itemtag (tag, item_id, is_public_post)
    SELECT 'topic' || ceil({TAGS} * random() ^ 2)::integer, id, true
    FROM items_item WHERE (id & 15) = 5 AND reply_to_id IS NULL
"""
# Half of them for the readers.
RUNG = """
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id, position)
        SELECT CASE WHEN (id & 64) = 0 THEN (%(readers)s::bigint[])[1 + ((id >> 7) & 31) %% %(count)s]
            ELSE 1 + (id >> 12) %% %(senders)s END, 'post', id, id
        FROM items_item WHERE (id & 63) = 6 AND reply_to_id IS NULL RETURNING id, recipient_id, item_id
    )
    INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
    SELECT told.item_id, told.id, told.recipient_id, i.sender_id FROM told JOIN items_item i ON i.id = told.item_id
"""
TABLES = ("item", "poll", "vote", "participant", "itemtag", "like")
NOTIFYING = ("notifications_notification", "notifications_act")


class Growing:
    """Communities with growing numbers of items."""

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size = size

    def build(self) -> None:
        """Check the disk. `community` builds each one."""
        needed = max(self.size.growth_items) * BYTES_AN_ITEM + SPARE_BYTES
        free = shutil.disk_usage(settings.DATA_DIR).free
        if needed > free:
            most = max(0, (free - SPARE_BYTES) // BYTES_AN_ITEM)
            raise SystemExit(
                f"growth_items: {max(self.size.growth_items):,} items need {needed / 2**30:.0f} GB, and "
                f"{settings.DATA_DIR} has {free / 2**30:.0f} GB. --items {most} would fit, or set TMPDIR."
            )

    def described(self) -> str:
        """The data set in a line."""
        return f"Communities of {' and '.join(f'{count:,}' for count in self.size.growth_items)} items"

    def community(self, items: int) -> "GrownCommunity":
        """Build the community of a size."""
        made = GrownCommunity(replace(self.size, items=items, senders=max(items // ITEMS_A_SENDER, 2 * SENDERS)))
        made.build()
        return made


class GrownCommunity(Community):
    """A community with quotes, polls, threads, messages, hashtags and bells."""

    def build(self) -> None:
        """Replace all data, and build the readers' windows."""
        with step(f"{self.size.items:,} items by {self.size.senders:,} senders"):
            super().build()
        with step("words"):
            self.index_words(self.size.items)
        self.people = users(self.readers[[count for count in self.readers if count <= 200][-1]])
        self.listeners = users(self.readers[min(self.readers)])
        """Readers of hashtags."""
        self.viral = Item.objects.published().filter(reply_to=None).latest("pk")
        self._add_acts()
        self._follow_tags()
        self.materialise()

    def _add_acts(self) -> None:
        readers = [reader.pk for reader in self.people]
        self.partners = users([Follow.objects.filter(follower=one).earliest("pk").followee_id for one in readers])
        # The newest message begins each conversation, so that the site itself writes its people.
        begun = [
            publish(sender=partner, content={"text": "between us"}, addressed=[reader.username])
            for reader, partner in zip(self.people, self.partners, strict=True)
        ]
        self.conversations = [item.pk for item in begun]
        params = {
            "viral": self.viral.pk,
            "senders": self.size.senders,
            "ends": "2099-01-01T00:00:00+00:00",
            "readers": readers,
            "partners": [partner.pk for partner in self.partners],
            "conversations": self.conversations,
            "count": len(readers),
            "people": [*range(1, 1 + self.size.senders), *readers],
            "each": 2,
        }
        statements = {"quotes": QUOTES, "replies": REPLIES, "polls": POLLS, "votes": VOTES, "messages": MESSAGES}
        statements |= {"hashtags": TAGGED, "likes": LIKES, "bells": RUNG}
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")  # the references are correct by construction
            for name, statement in statements.items():
                with step(name):
                    cursor.execute(statement, params)
            cursor.execute("RESET session_replication_role")
            with step("VACUUM"):
                for table in [*(f"items_{name}" for name in TABLES), *NOTIFYING]:
                    cursor.execute(f"VACUUM ANALYZE {table}")
        for reader in self.people:
            for followee in User.objects.filter(followed_by__follower=reader).order_by("pk")[:BELLS]:
                set_bell(follower=reader, followee=followee, rings=True)

    def _follow_tags(self) -> None:
        tags = [f"topic{number}" for number in range(1, 1 + FOLLOWED_TAGS)]
        for user in self.listeners:
            for tag in tags:
                follow_tag(user=user, tag=tag)
        for tag in Tag.objects.filter(name__in=tags):
            materialise_outbox(source_of(tag=tag.pk))


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print how long the block took."""
    begin = time.perf_counter()
    yield
    print(f"  {what}: {time.perf_counter() - begin:.0f} s", flush=True)


def run(growing: Growing) -> BenchmarkReport:
    """Run the benchmark `growth_items`."""
    sizes, calls = growing.size.growth_items, growing.size.growth_calls
    few, many = min(sizes), max(sizes)
    report = BenchmarkReport(
        "growth_items",
        QUESTION,
        ["what", *(f"{count:,} items" for count in sizes), "most / fewest"],
        f"{calls} calls of each kind; ms, medians; ratios of {many:,} to {few:,} items",
    )
    found: dict[int, dict[str, float]] = {}
    for count in sizes:
        begin = time.perf_counter()
        community = growing.community(count)
        seconds = time.perf_counter() - begin
        ((size,),) = fetch("SELECT pg_database_size(current_database())")
        note = (
            f"{count:,} items: generated in {seconds:.0f} s, {size / 2**30:.2f} GB, {size / count:,.0f} bytes an item."
        )
        print(f"  {note}", flush=True)
        report.notes.append(note)
        with step("calls"):
            found[count] = _seconds_of_calls(community, calls)
    emptied()
    for name in found[few]:
        ratio = found[many][name] / found[few][name]
        report.rows.append([name, *(round(found[count][name] * 1000, 2) for count in sizes), round(ratio, 2)])
        report.ratio(name, ratio, at_most=None if name.startswith(("VACUUM", "task")) else FLAT)
    return report


def _seconds_of_calls(community: GrownCommunity, calls: int) -> dict[str, float]:
    now = timezone.now()
    tasks = {
        "task, refresh_popular": lambda: refreshing.refresh_popular(now=now),
        "task, refresh_words": lambda: refreshing.refresh_words(now=now),
    }
    found = {name: _seconds(task) for name, task in tasks.items()}
    writes = Writes(community, calls)
    cases = _reads(community, writes.posts) | writes.cases()
    warm_up = len(community.people)
    found |= {name: median(times) for name, times in interleaved(cases, rounds=calls, warm_up=warm_up).items()}
    app.control.purge()
    Delivery.objects.all().delete()
    counts.fold()
    with connection.cursor() as cursor:
        written = [post.pk for post in writes.posts]
        cursor.execute("UPDATE items_item SET modified_at = now() WHERE id = ANY(%s)", [written])
        found["VACUUM, items_item"] = _seconds(lambda: cursor.execute("VACUUM items_item"))
    return found


def _reads(community: GrownCommunity, posts: list[Item]) -> dict[str, Case]:
    readers, senders = community.people, users(range(1, 1 + SENDERS))
    inboxes = [[entry.item_id for entry in entries(reader.pk)] for reader in readers]
    ((thread,),) = fetch(
        "SELECT root_id FROM items_item WHERE root_id <> %s GROUP BY 1 ORDER BY count(*) DESC LIMIT 1",
        [community.viral.pk],
    )
    ((poll, quote),) = fetch("SELECT (SELECT max(item_id) FROM items_poll), max(quote_of_id) FROM items_item")

    def one(number: int) -> User:
        return readers[number % len(readers)]

    def body(item_id: int, reader: User) -> ItemBody:
        shown = find_item(item_id, reader)
        assert shown
        return shown

    def below(number: int) -> object:
        pipelined(feeds(), [Tail(one(number).pk).drop()])
        return home_page(one(number), last_id=inboxes[number % len(readers)][-1], limit=LIMIT)

    def first_refresh(number: int) -> object:
        forget_recall(one(number))
        return feed.refresh(one(number), limit=LIMIT)

    def search(text: str) -> Case:
        query = parse(text)
        assert search_items(query, readers[0], limit=LIMIT).items, text
        return lambda number: search_items(query, one(number), limit=LIMIT)

    def conversation(number: int) -> object:
        conversation_id = community.conversations[number % len(readers)]
        open_conversation(one(number), conversation_id)
        return messages_page(one(number), conversation_id, limit=LIMIT)

    pages: dict[str, Callable[[int], object]] = {
        "quotes, of one item": lambda n: quotes_page(body(community.viral.pk, one(n)), one(n), limit=LIMIT).items,
        "hashtags, page": lambda n: tag_page("topic1", one(n), limit=LIMIT).items,
        "messages, list": lambda n: conversations_page(one(n), limit=LIMIT).items,
        "notifications, page": lambda n: notifications_page(one(n), limit=LIMIT).items,
        "bells, list": lambda n: notifications_page(one(n), limit=LIMIT, group="posts").items,
    }
    for name, page in pages.items():
        assert page(0), f"{name} is empty"
    return pages | {
        "home, page 1": lambda n: home_page(one(n), limit=LIMIT),
        "home, page 10": lambda n: home_page(one(n), last_id=inboxes[n % len(readers)][9 * LIMIT - 1], limit=LIMIT),
        "home, below the inbox": below,
        "hashtags, home of a follower": lambda n: home_page(
            community.listeners[n % len(community.listeners)], limit=LIMIT
        ),
        "profile, page": lambda n: profile_page(senders[n % len(senders)], one(n), limit=LIMIT),
        "profile, count": lambda n: item_count(senders[n % len(senders)], one(n)),
        "item, alone": lambda n: find_item(posts[n % len(posts)].pk, one(n)),
        "quotes, one": lambda n: find_item(quote, one(n)),
        "polls, one": lambda n: find_item(poll, one(n)),
        "threads, small": lambda n: thread_page(body(thread, one(n)), one(n)),
        "threads, large": lambda n: thread_page(body(community.viral.pk, one(n)), one(n)),
        "messages, one conversation": conversation,
        "notifications, badge": lambda n: waiting(one(n)),
        "search, frequent word": search("w3"),
        "search, rarer word": search("w100"),
        "search, two frequent words": search("w3 w5"),
        "Discover, first refresh": first_refresh,
        "Discover, refresh": lambda n: feed.refresh(one(n), limit=LIMIT),
    }


class Writes:
    """The calls that write."""

    def __init__(self, community: GrownCommunity, calls: int) -> None:
        self.community = community
        self.posts = list(
            Item.objects.published().filter(reply_to=None, visibility="public").order_by("-pk")[: 10 * calls]
        )
        self.poll = Item.objects.filter(type="poll").latest("pk")
        self.senders = [one for one in users(range(1, 1 + SENDERS)) if one.pk != self.poll.sender_id]
        self.mine = [publish(sender=self.senders[0], content={"text": "so it grows"})]
        """To edit and delete. Never empty, whatever comes first in a round."""
        rings = Follow.objects.filter(follower=community.people[0], bell=True).earliest("pk")
        self.belled = User.objects.get(pk=rings.followee_id)

    def cases(self) -> dict[str, Case]:
        """A case for each kind of write."""
        people, partners = self.community.people, self.community.partners
        senders, posts, mine = self.senders, self.posts, self.mine

        def say(number: int) -> None:
            mine.append(publish(sender=senders[number % len(senders)], content={"text": f"so it grows {number}"}))

        def message(number: int) -> None:
            place = number % len(people)
            publish(sender=partners[place], content={"text": f"{number}"}, addressed=[people[place].username])

        return {
            "write, publish": say,
            "threads, reply": lambda n: publish(
                sender=senders[n % len(senders)], content={"text": f"yes {n}"}, reply_to=self.community.viral
            ),
            "quotes, publish": lambda n: publish(
                sender=senders[n % len(senders)], content={"text": f"see {n}"}, quote_of=self.community.viral
            ),
            "messages, send": message,
            "polls, vote": lambda n: polls.vote(user=senders[n], item=self.poll, choices=[0]),
            "bells, ring": lambda n: ring(publish(sender=self.belled, content={"text": f"ding {n}"}).pk),
            "write, like": lambda n: like(user=people[n % len(people)], item=posts[n % len(posts)]),
            "write, edit": lambda n: edit(item=mine[-1], content={"text": f"it has grown {n}"}),
            "write, delete": lambda n: delete(item=mine.pop(0)),
        }


def _seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin
