# ruff: noqa: RUF001, SIM905 - Chinese sentences have Chinese commas; sixty names are read best in lines
"""A small made-up community: people, follows and a week of posts."""

import random
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Sequence
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
from community import demo_notifications, demo_order, demo_pictures, demo_sessions
from discover import filling
from items.models import Item, ItemCounts, ItemType, Like, Visibility
from items.search.indexing import copy_index
from relations import rules
from relations.models import Follow
from storage import ids
from timeline import inbox, outbox

SEED = 2620
DAYS = 6
POSTS_PER_USER = 7
REPLY_SHARE = 0.25
NESTED_SHARE = 0.4
"""Share of replies that answer another reply."""
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
WRITE_CHINESE = {"lin-wei", *(profile[0] for profile in CHINESE)}
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
LEADS = (
    "The first ferry was ten minutes late and nobody minded.",
    "Found a 1962 tram map inside a second-hand atlas. #travel",
    "Three loaves out of the oven, one of them straight. #baking",
    "Somebody left a chessboard in the park with a game half played.",
    "The new footbridge opens on Thursday.",
    "Tried to fix the radio and now it only plays opera. #repair",
    "Planted beans where the tomatoes failed. #garden",
    "Long queue at the bakery, long talks in the queue. #baking",
    "The library lends out telescopes now! #books",
    "Counted eleven swifts over the old mill tonight. #birds",
    "My neighbour has taught her parrot to say my name.",
    "Reading the same chapter for the third time, gladly. #books",
    "The choir needs two more tenors and a working heater. #music",
    "Rode the coast road end to end before lunch. #cycling",
    "A heron stood in the fountain as if it had been ordered. #birds",
    "Learned today that lighthouses have visiting hours.",
    "Repotted everything. There is soil in the piano. #garden",
    "The market has apricots again.",
    "Wrote a letter by hand; my wrist has filed a complaint.",
    "Half the street came out to look at the moon.",
    "The night train still has the good blankets. #travel",
    "Found the noise in the bicycle: it was the other bicycle. #cycling",
    "Soup weather at last.",
    "My sister's band plays in the old pump house on Friday. #music",
    "Went out for bread, came back with a lamp.",
    "They painted the pier blue again.",
    "First frost on the allotment. #garden",
    "The museum has a whole room of nothing but doorknobs.",
    "Swam before work. Cold is a matter of opinion.",
    "The cat has found the warm spot on the server.",
    "Finished the puzzle. One piece was in the dog's bed.",
    "Someone at the station plays Schubert every Tuesday. #music",
    "Grandmother's recipe says 'until it looks right'.",
    "A rainbow, a hailstorm and a bus that came on time.",
    "The repair café fixed my toaster and my mood. #repair",
    "Walked home the long way round, past the gasworks.",
    "New glasses. The trees have leaves!",
    "Wrote three pages, kept one sentence. #books",
    "The tide was so low that you could walk to the wreck.",
    "Lost at chess to a nine-year-old. She was kind about it.",
)
TAILS = (
    "Worth getting up for.",
    "Pictures tomorrow, when there is light.",
    "Who is in?",
    "I regret nothing.",
    "More on https://example.org/notes as always.",
    "#smallthings",
    "#harbor",
    "Would do it again.",
    "If you know more, tell me.",
    "That is all. That is the post.",
    "Best day of the month so far.",
    "Do not ask how long it took.",
    "@mira, you were right.",
    "@tomas will have a pun for this.",
    "@lin-wei has a poem about it.",
)
CHINESE_POSTS = (
    "早班渡轮晚了十分钟，没有人着急。",
    "今天的云像一群慢吞吞的羊。",
    "第一次做成功了桂花糕，厨房里都是秋天的味道。",
    "在旧书店找到一张一九六二年的电车地图。\n买下来了。",
    "图书馆现在可以借望远镜了！ #小事",
    "雨停了，江面上有两道彩虹。",
    "修好了台灯，顺便弄坏了收音机。",
    "市场里又有杏子了。@su-he 快去。",
    "读了@lin-wei 的新诗，想去江边走走。",
)
NEWS = (
    "Ferry line 2 returns to the summer timetable on Monday.",
    "The fish market keeps its Saturday hours until October.",
    "The swimming pool is closed for two days: a seal has moved in.",
    "Council votes for trees along the quay, 14 to 3.",
    "Road works at the north gate end a week early.",
    "The lighthouse museum opens its night tours again.",
    "Lost at the quay: one tuba. The finder may keep the case.",
    "The last tram now leaves at half past midnight.",
    "Apprentices wanted at the boatyard; knots can be learned.",
    "A new record at the herring festival: 4,112 sandwiches.",
    "The bridge will be lifted at noon for the tall ships.",
    "Book swap in the waiting hall, every first Sunday.",
)
FORECASTS = (
    "Morning: fog on the water, gone by ten. Afternoon: {0} degrees, light wind from the west.",
    "Tonight clear, {0} degrees, good for stars.",
    "Showers from the south-west, gusts near the pier. {0} degrees.",
    "Dry and mild, {0} degrees. Leave the umbrella.",
)
REPLIES = (
    "Same here!",
    "I saw it too.",
    "Save me a slice, please.",
    "Where was that?",
    "This made my morning.",
    "Count me in.",
    "You always find these things.",
    "Is it open on Sundays?",
    "Lovely.",
    "哈哈，太好了。",
    "Nobody believed me when I said so.",
    "Picture or it did not happen.",
)


class Deck:
    """Deals cards in random order, all before repeating one."""

    def __init__(self, chance: random.Random, cards: Sequence[str]) -> None:
        self._chance = chance
        self._cards = cards
        self._left: list[str] = []

    def deal(self) -> str:
        """The next card."""
        self._left = self._left or self._chance.sample(self._cards, len(self._cards))
        return self._left.pop()


class Voices:
    """Texts of posts and replies."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._leads, self._tails, self._chinese, self._news, self._forecasts, self._replies = (
            Deck(chance, cards) for cards in (LEADS, TAILS, CHINESE_POSTS, NEWS, FORECASTS, REPLIES)
        )

    def post(self, sender: User) -> str:
        """A post in the sender's language and style."""
        if sender.username == "harbor-news":
            return self._news.deal()
        if sender.username == "weather-desk":
            return self._forecasts.deal().format(self._chance.randint(4, 27))
        if sender.username in WRITE_CHINESE:
            return next(text for text in iter(self._chinese.deal, None) if not _mentions_user(text, sender))
        lead, tail = self._leads.deal(), self._tails.deal()
        if _mentions_user(tail, sender):
            return lead
        return self._chance.choice((lead, f"{lead} {tail}", f"{lead}\n\n{tail}"))

    def reply(self, thread: Collection[str]) -> str:
        """A reply, new to the thread if possible."""
        deals = (self._replies.deal() for _ in range(2 * len(REPLIES)))
        return next((text for text in deals if text not in thread), "") or self._replies.deal()


def _mentions_user(text: str, user: User) -> bool:
    return f"@{user.username}" in text


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
    items = _items(chance, users, now)
    if has_pictures:
        told("drawing pictures")
        demo_pictures.set_faces(users, items)
        demo_pictures.add_pictures(items)
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
    demo_sessions.write_sessions(follows, now=now)
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
    while len(profiles) < size:
        given, surname = chance.choice(GIVEN), chance.choice(SURNAMES)
        name = f"{given}-{surname}".lower().replace("ö", "o")
        taken[name] += 1
        if taken[name] > 1:
            name += f"-{taken[name]}"
        profiles.append((name, f"{given} {surname}", chance.choice(BIOS)))
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


def _items(chance: random.Random, users: list[User], now: datetime) -> list[Item]:
    """Make unsaved items. None needs a fan-out: windows are built when read."""
    count = len(users) * POSTS_PER_USER
    # More items near now. Distinct milliseconds, so sequence 0 is free.
    ages = sorted({int(chance.random() ** 1.4 * DAYS * 86_400_000) + 180_000 for _ in range(count)}, reverse=True)
    talk = {name: 0.0 if name in AWAY else 2.0 for name in NAMED}
    eager = chance.choices(users, [talk.get(user.username, chance.random()) for user in users], k=len(ages))
    voices = Voices(chance)
    items: list[Item] = []
    said: list[Item] = []
    replies: list[Item] = []
    reposted: dict[int, set[int]] = {}
    heard: dict[int, set[str]] = {}
    for age, sender in zip(ages, eager, strict=True):
        moment = now - timedelta(milliseconds=age)
        item = Item(id=ids.compose(moment, 0), sender=sender, modified_at=moment)
        what = chance.random()
        if said and what < REPOST_SHARE and (original := _pick_repost(chance, sender, said, reposted)):
            item.type, item.repost_of = ItemType.REPOST, original
        elif said and what > 1 - REPLY_SHARE:
            nested = replies and chance.random() < NESTED_SHARE
            above = [one for one in (replies[-20:] if nested else said[-40:]) if one.sender != sender] or said[-40:]
            # Prefer readers to log in as.
            weights = [5 if one.sender.username in READERS else 1 for one in above]
            item.reply_to = chance.choices(above, weights)[0]
            item.root = item.reply_to.root or item.reply_to
            thread = heard.setdefault(item.root.pk, set())
            item.content = {"text": voices.reply(thread)}
            thread.add(item.text)
            replies.append(item)
        else:
            item.content = {"text": voices.post(sender)}
            item.visibility = Visibility.PUBLIC if sender.is_big_v else _visibility(chance)
            if item.visibility == Visibility.PUBLIC:
                said.append(item)
        items.append(item)
    return items


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
