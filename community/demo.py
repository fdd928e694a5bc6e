# ruff: noqa: RUF001, SIM905 - Chinese sentences have Chinese commas; sixty names are read best in lines
"""A small made-up community: people, follows and a week of posts."""

import random
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import get_hasher, make_password
from django.db import connection, transaction

from accounts.about.actions import change_settings
from accounts.about.site import current
from accounts.models import Level, User
from community import demo_messages, demo_notifications, demo_order, demo_pictures, demo_sessions
from community.demo_texts import Deck, Voices, writes_chinese
from discover import filling
from items.models import Item, ItemCounts, ItemType, Like, Visibility
from items.search.indexing import copy_index
from relations import rules
from relations.models import Follow
from storage import ids
from timeline import inbox, outbox

SEED = 2922
DAYS = 6
POSTS_PER_USER = 6
REPLY_SHARE = 0.35
NESTED_SHARE = 0.4
"""Share of replies that answer another reply."""
MOST_REPLIES = 7
"""Maximum replies in a thread."""
REPOST_SHARE = 0.1
SMALLEST, LARGEST = 12, 20_000
"""Number of users. Nine have fixed names. For more than 20,000 use `manage.py load`."""

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters of the passwords. None look alike: people type these."""

ADMIN = "site-admin"
READERS = ("mira", "tomas", "lin-wei")
"""Daily readers to log in as."""
AWAY = {"oriel": 3, "bastian": 12, "wanda": 45}
"""Days since the last visit of readers of the other levels. They write nothing."""
BIG_VS = ("harbor-news", "weather-desk")
"""Big-Vs. Every reader that people can log in as follows them."""


NAMED = {
    ADMIN: ("Site admin", "Keeps this site running."),
    "mira": ("Mira Halvorsen", "Bakes before sunrise, reads after sunset."),
    "tomas": ("Tomás Quintela", "Bicycles, bridges and bad puns."),
    "lin-wei": ("林未", "写代码，也写一点诗。住在江边。"),
    "oriel": ("Oriel Pascoe", "Here at the weekend, tide permitting."),
    "bastian": ("Bastian Rook", "Once a month I read everything."),
    "wanda": ("Wanda Fairley", "Gone sailing."),
    "harbor-news": ("Harbor News", "What happens between the lighthouse and the fish market."),
    "weather-desk": ("The Weather Desk", "Two forecasts a day. We look out of the window, too."),
}
GIVEN = (
    "Ada Amara Anselm Bao Beatriz Benno Calla Chidi Clara Dario Dilan Edda Elif Emre Farah Fenna Gideon Greta "
    "Hana Henrik Ines Iker Jonas Juno Kaito Katya Leif Leonor Lucia Malik Maren Mateo Nadia Nils Noor Odette "
    "Olek Oona Paloma Petr Priya Quentin Rafael Runa Sabine Samir Selma Silas Tamsin Tariq Tova Ulla Viktor "
    "Wanda Xenia Yara Yusuf Zane Zofia"
).split()
SURNAMES = (
    "Abara Bergström Castellan Dubois Eriksen Ferrante Galloway Hashimoto Ivanova Jansen Kowalski Lindqvist "
    "Marchetti Nakagawa Okafor Pereira Quist Rosales Sato Teller Ueda Vasquez Winters Yilmaz Zeller"
).split()
CHINESE = (
    ("zhou-mo", "周末", "只在周末更新的厨房日记。"),
    ("su-he", "苏禾", "种菜、拍云、养一只不听话的猫。"),
    ("gu-yuan", "顾远", "铁路迷，走过每一条支线。"),
    ("tang-li", "唐梨", "插画师，画小城和大海。"),
    ("he-chuan", "何川", "白天测桥，晚上观星。"),
)
BIOS = (
    "Repairs clocks, collects maps.",
    "Marine biologist on dry land.",
    "Plays the cello, badly and often.",
    "Letters, type and a very old printing press.",
    "Runs up hills, walks down them.",
    "Mother of two, gardener of many.",
    "Teaches physics with string and marbles.",
    "Nurse. Night shifts, day hikes.",
    "Sourdough, sailing, small databases.",
    "Opinions are my dog's.",
    "Translates novels and menus.",
    "Looking for the perfect dumpling.",
    "Carpenter. Measures twice.",
    "Birds before breakfast.",
    "",
)


@dataclass(frozen=True, slots=True)
class Login:
    """A login, and the user's role."""

    username: str
    password: str
    role: str


@dataclass(frozen=True, slots=True)
class Demo:
    """The logins and counts of a new community."""

    logins: tuple[Login, ...]
    users: int
    follows: int
    items: int
    likes: int


class NotEmptyError(Exception):
    """The site has users already."""


@transaction.atomic
def make(*, size: int = 60, has_pictures: bool = False, told: Callable[[str], None] = lambda line: None) -> Demo:
    """Make the demo, and report its progress to `told`. Raises NotEmptyError if the site has users."""
    with connection.cursor() as cursor:  # a second call waits, and finds the first one's users
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('feedsite.demo'))")
    if User.objects.exists():
        raise NotEmptyError
    chance = random.Random(SEED)  # noqa: S311 (made-up people, no secrets)
    now = datetime.now(UTC)
    roles = dict.fromkeys(READERS, "reader, here every day")
    roles |= {name: f"reader, last here {days} days ago" for name, days in AWAY.items()}
    roles |= {ADMIN: f"administrator, see /{settings.ADMIN_PATH}"}
    logins = tuple(Login(name, _password(), role) for name, role in roles.items())
    told(f"making {size:,} people")
    users = _people(chance, size, now, {login.username: login.password for login in logins})
    follows = _follows(chance, users, now)
    told("writing posts")
    voices = Voices(chance)
    items = _items(chance, voices, users, now)
    if has_pictures:
        told("drawing pictures")
        demo_pictures.set_faces(users, items)
        demo_pictures.add_pictures(items)
    _write_replies(voices, items)
    Item.objects.bulk_create(items, batch_size=2000)
    copy_index((item.pk, item.title, item.text) for item in items if not item.repost_of)
    told("adding likes and notifications")
    likes = _likes(chance, users, items, now)
    _store_counts(items, likes)
    for user in users:
        if user.is_big_v:
            transaction.on_commit(partial(outbox.begin, user.pk))
        elif user.username in roles:
            transaction.on_commit(partial(inbox.begin, user.pk))
    demo_notifications.write_notifications(items, likes, follows)
    demo_sessions.write_sessions(follows, now=now, has_pictures=has_pictures)
    demo_messages.write_messages(users, follows, now=now, has_pictures=has_pictures)
    demo_order.add_lists_and_pins(users, items, follows, likes)
    filling.recommend()
    if not current().summary:
        change_settings(short_description="A made-up town by the sea, to try this site.")
    return Demo(logins, len(users), len(follows), len(items), len(likes))


def _password() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(14))


def _people(chance: random.Random, size: int, now: datetime, passwords: dict[str, str]) -> list[User]:
    profiles = [(name, *profile) for name, profile in NAMED.items()]
    profiles += CHINESE[: size - len(profiles)]
    taken: Counter[str] = Counter()
    given_names, surnames, bios = (Deck(chance, cards) for cards in (GIVEN, SURNAMES, BIOS))
    while len(profiles) < size:
        given, surname = given_names.deal(), surnames.deal()
        name = f"{given}-{surname}".lower().replace("ö", "o")
        taken[name] += 1
        if taken[name] > 1:
            name += f"-{taken[name]}"
        profiles.append((name, f"{given} {surname}", bios.deal()))
    # 68 random bits are safe with a quick hash. Django rehashes at the first sign-in.
    quick: Any = copy(get_hasher())
    quick.iterations = 1000
    unusable = make_password(None)
    users = []
    for name, display_name, bio in profiles:
        often = 1 if name in NAMED else chance.choice((1, 1, 2, 5, 9, 20, 60, 140, 500, 900))
        hours = 24 * AWAY[name] if name in AWAY else often
        users.append(
            User(
                username=name,
                display_name=display_name,
                bio=bio,
                password=make_password(passwords[name], hasher=quick) if name in passwords else unusable,
                is_big_v=name in BIG_VS,
                is_staff=name == ADMIN,
                is_superuser=name == ADMIN,
                level=_level_after(hours),
                last_seen_at=now - timedelta(hours=hours),
                date_joined=now - timedelta(days=chance.randint(DAYS + 1, 400)),
            )
        )
    return User.objects.bulk_create(users, batch_size=1000)


def _level_after(hours: int) -> int:
    ages = sorted(settings.LEVEL_AGES.items(), reverse=True)
    return next((level for level, age in ages if timedelta(hours=hours) < age), Level.DORMANT)


def _follows(chance: random.Random, users: list[User], now: datetime) -> list[Follow]:
    """Write the follows. The chance to be followed falls with the rank, so most follow the same few."""
    ranked = chance.sample(users, len(users))
    ranked.sort(key=lambda user: not user.is_big_v)
    weights = [1.5 if user.is_big_v else 3 / (rank + 8) for rank, user in enumerate(ranked)]
    follows = []
    for follower in users:
        wanted = min(len(users) // 2, 24 if follower.username in NAMED else chance.randint(3, 18))
        # Repeated draws are lost, mostly of users with many followers.
        followees = {user.pk for user in chance.choices(ranked, weights, k=2 * wanted)} - {follower.pk}
        if follower.username in READERS or follower.username in AWAY:
            followees |= {user.pk for user in users if user.is_big_v}
        if follower.username in READERS:
            followees |= {user.pk for user in users if user.username in READERS} - {follower.pk}
        follows += [Follow(follower=follower, followee_id=followee) for followee in sorted(followees)]
    chance.shuffle(follows)
    for place, follow in enumerate(follows):  # lists are ordered by id, newest first
        follow.created_at = now - timedelta(days=DAYS) * (1 - place / len(follows))
    Follow.objects.bulk_create(follows, batch_size=5000)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE accounts_user u SET
                following_count = ({rules.followees("u.id", "count(*)")}),
                follower_count = ({rules.followers("u.id", "count(*)")})
            """
        )
    return follows


def _items(chance: random.Random, voices: Voices, users: list[User], now: datetime) -> list[Item]:
    """Make unsaved items, replies without text. None needs a fan-out: windows are built when read."""
    count = len(users) * POSTS_PER_USER
    # More items near now. Distinct milliseconds, so sequence 0 is free.
    ages = sorted({int(chance.random() ** 1.4 * DAYS * 86_400_000) + 180_000 for _ in range(count)}, reverse=True)
    talk = {name: 0.0 if name in AWAY or name == ADMIN else 2.0 for name in NAMED}
    eager = chance.choices(users, [talk.get(user.username, chance.random()) for user in users], k=len(ages))
    items: list[Item] = []
    said: list[Item] = []
    replies: list[Item] = []
    reposted: dict[int, set[int]] = {}
    answered: Counter[int] = Counter()
    for age, sender in zip(ages, eager, strict=True):
        moment = now - timedelta(milliseconds=age)
        item = Item(id=ids.compose(moment, 0), sender=sender, modified_at=moment)
        what = chance.random()
        nested = chance.random() < NESTED_SHARE
        if said and what < REPOST_SHARE and (original := _pick_repost(chance, sender, said, reposted)):
            item.type, item.repost_of = ItemType.REPOST, original
        elif what > 1 - REPLY_SHARE and (
            above := _pick_answered(chance, voices, sender, replies[-20:] if nested else said[-40:], answered)
        ):
            item.reply_to, item.root = above, above.root or above
            answered[item.root.pk] += 1
            replies.append(item)
        else:
            item.content = {"text": voices.post(sender)}
            item.visibility = Visibility.PUBLIC if sender.is_big_v else _visibility(chance)
            if item.visibility == Visibility.PUBLIC:
                said.append(item)
        items.append(item)
    return items


def _pick_answered(
    chance: random.Random, voices: Voices, sender: User, recent: Sequence[Item], answered: Counter[int]
) -> Item | None:
    """Somebody else's item in the sender's language, preferably of a reader to log in as, or with a reply that fits."""
    fitting = [
        one
        for one in recent
        if one.sender != sender
        and writes_chinese(one.sender) == writes_chinese(sender)
        and answered[(one.root or one).pk] < MOST_REPLIES
    ]
    if not fitting:
        return None
    weights = [
        max(0.1, voices.count_fitting(root.text) - answered[root.pk]) * (3 if root.sender.username in READERS else 1)
        for root in (one.root or one for one in fitting)
    ]
    return chance.choices(fitting, weights)[0]


def _write_replies(voices: Voices, items: Sequence[Item]) -> None:
    """Give the replies texts, when the posts have theirs."""
    for feature in demo_pictures.FEATURES:
        voices.fitting[feature.text] = feature.replies
    heard: dict[int, set[str]] = {}
    for item in items:
        if item.root:
            thread = heard.setdefault(item.root.pk, set())
            item.content = {"text": voices.reply(item.root, thread)}
            thread.add(item.text)


def _pick_repost(chance: random.Random, sender: User, said: list[Item], reposted: dict[int, set[int]]) -> Item | None:
    """A recent item to repost, preferably one reposted before, so that homes can fold reposts."""
    recent = [item for item in said[-25:] if item.sender != sender and sender.pk not in reposted.get(item.pk, ())]
    again = [item for item in recent if item.pk in reposted]
    if not recent:
        return None
    original = chance.choice(again if again and chance.random() < 0.7 else recent)
    reposted.setdefault(original.pk, set()).add(sender.pk)
    return original


def _likes(chance: random.Random, users: list[User], items: list[Item], now: datetime) -> list[Like]:
    likes = []
    for item in items:
        if item.repost_of or item.visibility != Visibility.PUBLIC:
            continue
        count = int(chance.paretovariate(1.2 if item.reply_to else 0.8)) - 1
        count += chance.randint(2, 12) if item.media or item.sender.is_big_v else 0
        age = now - item.modified_at
        likes += [
            Like(user=user, item=item, created_at=item.modified_at + age * chance.random())
            for user in chance.sample(users, min(count, len(users) // 2, 500))
            if user != item.sender
        ]
    likes.sort(key=lambda like: like.created_at)  # lists are ordered by id, newest first
    return Like.objects.bulk_create(likes, batch_size=5000)


def _store_counts(items: list[Item], likes: list[Like]) -> None:
    counted: dict[int, ItemCounts] = {}

    def of(item_id: int) -> ItemCounts:
        return counted.setdefault(item_id, ItemCounts(item_id=item_id))

    for like in likes:
        of(like.item_id).likes += 1
    for item in items:
        if item.repost_of_id:
            of(item.repost_of_id).reposts += 1
        if item.reply_to_id and item.root_id:
            for above in {item.reply_to_id, item.root_id}:
                of(above).replies += 1
    ItemCounts.objects.bulk_create(counted.values(), batch_size=5000)


def _visibility(chance: random.Random) -> Visibility:
    return chance.choices((Visibility.PUBLIC, Visibility.FOLLOWERS, Visibility.MUTUALS), (88, 8, 4))[0]
