# ruff: noqa: RUF001 - Chinese sentences have Chinese commas
"""The pictures of the demo community: faces, banners, and pictures of what the posts tell of.

All are drawn by program, and go the way of every upload (media.actions). The same seed draws the same pictures.
"""

import contextlib
import io
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from PIL import Image

from accounts.faces import set_face
from accounts.models import User
from community.demo_canvas import Canvas
from community.demo_faces import cat_sign, face, lighthouse_sign, weather_sign
from community.demo_scenes import SCENES, animation
from community.demo_things import THINGS
from items import attachments
from items.models import Item, ItemType, Visibility
from media import attaching
from media.actions import MediaError, upload
from media.decoder import BusyError, decoder
from media.files import StoreError
from media.models import Use

logger = logging.getLogger(__name__)

MOST_FACES, MOST_POSTS, TIMES = 30, 18, 2
"""Bounds of the time that a demo takes: users with faces, posts with pictures, and posts with the same scenes."""
SHARE = 0.7
"""The share of the posts with a picture, of those that tell of something that can be drawn."""
WIDE, TALL, SQUARE, PANORAMA, BANNER = (660, 440), (440, 620), (480, 480), (840, 360), (900, 300)
MOVING = "lighthouse, moving"
PAINTERS: dict[str, Callable[[Canvas], None]] = {**SCENES, **THINGS}
SEEDS = {"mira": 3, "tomas": 2, "lin-wei": 12, "oriel": 8, "bastian": 18, "wanda": 7}
SIGNS = {"harbor-news": lighthouse_sign, "weather-desk": weather_sign, "su-he": cat_sign}
FACELESS = "site-admin"
BANNERS = {
    "mira": "mill",
    "tomas": "bridge",
    "lin-wei": "sea",
    "harbor-news": "ferry",
    "weather-desk": "clouds",
}


class Shot(NamedTuple):
    """A picture of a scene: its size in pixels, and what it shows in words."""

    scene: str
    size: tuple[int, int]
    words: str


class Feature(NamedTuple):
    """A post of a named user that is shown as it is here. `age`: how many of their posts are newer."""

    username: str
    age: int
    type: ItemType
    text: str
    shots: tuple[Shot, ...] = ()
    title: str = ""
    url: str = ""
    warning: str = ""
    is_sensitive: bool = False


SHOWN: dict[str, tuple[Shot, ...]] = {
    "The first ferry was ten minutes late": (Shot("ferry", WIDE, "A ferry with a red funnel in the fog."),),
    "Found a 1962 tram map": (Shot("tram map", WIDE, "A folded map with seven tram lines that cross a river."),),
    "Three loaves out of the oven": (
        Shot("bread", WIDE, "Three loaves on a floured board. The left one is straight."),
    ),
    "Somebody left a chessboard": (Shot("chess", SQUARE, "A chessboard from above, with seventeen pieces left."),),
    "The new footbridge opens": (Shot("bridge", PANORAMA, "A bridge of two towers over still water at dawn."),),
    "Counted eleven swifts": (Shot("mill", TALL, "Swifts around an old windmill, dark before a red sky."),),
    "Rode the coast road": (
        Shot("coast", WIDE, "A road along a green slope, and the sea below."),
        Shot("hills", TALL, "Hill behind hill in the haze of the morning."),
        Shot("sea", SQUARE, "A white sail before the setting sun."),
        Shot("clouds", WIDE, "White clouds over a meadow."),
    ),
    "Learned today that lighthouses": (Shot("lighthouse", TALL, "A striped lighthouse at night, its light on."),),
    "The market has apricots": (Shot("apricots", SQUARE, "A crate full of ripe apricots."),),
    "Half the street came out": (
        Shot("moon", WIDE, "A full moon over dark pines."),
        Shot("town", WIDE, "The lit windows of the town, mirrored in the water."),
    ),
    "They painted the pier": (Shot("sea", PANORAMA, "A sailing boat on a calm evening."),),
    "The museum has a whole room": (
        Shot("doorknob", SQUARE, "A round doorknob on a painted door."),
        Shot("doorknob", SQUARE, "Another doorknob, on another door."),
        Shot("doorknob", SQUARE, "A third one. They differ more than one thinks."),
    ),
    "A rainbow, a hailstorm": (Shot("rainbow", WIDE, "A rainbow over fields and a white house."),),
    "Walked home the long way": (
        Shot("town", TALL, "Roofs and lit windows at dusk."),
        Shot("storm", TALL, "The same roofs in the rain, a minute later."),
    ),
    "Morning: fog on the water": (Shot("ferry", PANORAMA, "Fog on the water, and a ferry in it."),),
    "Tonight clear": (Shot("moon", PANORAMA, "A full moon and many stars."),),
    "Showers from the south-west": (Shot("storm", WIDE, "Rain over the harbour's roofs."),),
    "Dry and mild": (Shot("clouds", PANORAMA, "Few clouds in a blue sky."),),
    "The bridge will be lifted": (Shot("bridge", WIDE, "The bridge before sunrise, without traffic."),),
    "早班渡轮": (Shot("ferry", WIDE, "雾中的渡轮，红色烟囱。"),),
    "今天的云": (Shot("clouds", WIDE, "草地上方的白云。"), Shot("hills", WIDE, "晨雾里层层的山。")),
    "在旧书店": (Shot("tram map", SQUARE, "一张有七条线路的旧电车地图。"),),
    "雨停了": (Shot("two rainbows", PANORAMA, "田野上的两道彩虹和一座白房子。"),),
    "市场里又有杏子": (Shot("apricots", WIDE, "一箱熟透的杏子。"),),
}
"""By the beginning of a post's text."""
FEATURES = (
    Feature(
        "harbor-news",
        0,
        ItemType.IMAGE,
        "The lighthouse museum opens its night tours again. Bring a coat, and somebody to be brave for.",
        (Shot(MOVING, (320, 240), "The light of a lighthouse turns once around at night."),),
    ),
    Feature(
        "tomas",
        0,
        ItemType.IMAGE,
        "Sixty kilometres, four stops, one flat tyre. The bridge was worth all of them.",
        (
            Shot("coast", WIDE, "A road along a green slope above a turquoise sea."),
            Shot("bridge", WIDE, "A red bridge over still water at dawn."),
            Shot("mill", WIDE, "An old windmill before the evening sky."),
            Shot("sea", WIDE, "A sailing boat in front of the setting sun."),
        ),
    ),
    Feature(
        "mira",
        0,
        ItemType.ARTICLE,
        "I bake at four in the morning because I am awake at four in the morning. It began as a way to stop looking at "
        "the clock, and became the best part of the day.\n\nStart in the evening: 500 grams of flour, 350 of water, "
        "10 of salt, and a spoon of starter that smells of yoghurt. Fold it every half hour until you are bored, then "
        "once more. Leave it by the window and go to bed.\n\nAt four it has doubled, whatever the weather desk says. "
        "Shape it without pressing the air out; flour more than you dare. A hot pot with a lid does what an expensive "
        "oven does. Twenty-five minutes with the lid, twenty without.\n\nThe crust sings when it cools. That is not "
        "poetry: it cracks, you can hear it from the next room. By then the first ferry goes, and somebody is always "
        "glad of the first slice.",
        title="Bread for people who sleep badly",
    ),
    Feature(
        "mira",
        1,
        ItemType.IMAGE,
        "She has moved in above the kitchen window, and I have decided to be brave about it.",
        (Shot("spider", WIDE, "A brown garden spider with three pale spots, in the middle of her web."),),
        warning="A spider, large",
        is_sensitive=True,
    ),
    Feature(
        "tomas",
        2,
        ItemType.LINK,
        "Every footbridge of the coast, with the best time to cross it. I have feelings about number twelve.",
        url="https://example.org/bridges/on-foot",
    ),
    Feature(
        "lin-wei",
        0,
        ItemType.IMAGE,
        "江边的傍晚，从落日等到月亮。",
        (
            Shot("sea", WIDE, "落日和一只白帆。"),
            Shot("town", WIDE, "对岸亮起的窗，映在水里。"),
            Shot("moon", TALL, "松林上的满月。"),
        ),
    ),
    Feature(
        "mira",
        3,
        ItemType.IMAGE,
        "The yard behind the bakery after the meeting about the new oven. No one was hurt, the sky was.",
        (Shot("storm", WIDE, "Heavy rain over dark roofs."), Shot("rainbow", WIDE, "A rainbow, ten minutes later.")),
        is_sensitive=True,
    ),
)


class Plan(NamedTuple):
    """An item that is to show pictures, and its content then; none where it is told without."""

    item: Item
    content: dict[str, Any]
    shots: Sequence[Shot]


def faces(users: Sequence[User]) -> None:
    """Give the first of these users, who are saved, faces, and some of them banners."""
    chosen = [user for user in users if user.username != FACELESS][:MOST_FACES]
    with _drawing() as pool, _decoding():
        drawn: list[tuple[User, Use, Future[io.BytesIO]]] = []
        for user in chosen:
            name = user.username
            seed = SEEDS.get(name, crc32(name.encode()))
            drawn.append((user, Use.AVATAR, pool.submit(_face, name, seed)))
            if name in BANNERS:
                drawn.append((user, Use.BANNER, pool.submit(_file, Shot(BANNERS[name], BANNER, ""), seed)))
        for user, use, file in drawn:
            set_face(user=user, use=use, file=file.result())


def illustrate(items: Sequence[Item], chance: random.Random) -> None:
    """Put pictures into some of these items, which are not saved and stand oldest first, and bring the features in."""
    posts = [item for item in reversed(items) if not (item.repost_of or item.reply_to)]
    with _drawing() as pool, _decoding():
        plans = [*_featured(posts)]
        taken = {plan.item.pk for plan in plans}
        shown: Counter[str] = Counter()
        for item in posts:
            key = next((key for key in SHOWN if item.text.startswith(key)), None)
            if key is None or item.pk in taken or shown[key] == TIMES or chance.random() > SHARE:
                continue
            shown[key] += 1
            plans.append(Plan(item, item.content, SHOWN[key]))
            if shown.total() == MOST_POSTS:
                break
        drawn = [[pool.submit(_file, shot, chance.randrange(2**32)) for shot in plan.shots] for plan in plans]
        for plan, files in zip(plans, drawn, strict=True):
            if plan.shots:
                _show(plan, [file.result() for file in files])


@contextlib.contextmanager
def _drawing() -> Iterator[ThreadPoolExecutor]:
    """A thread that draws ahead, on one core, while a child decodes what was drawn, on another."""
    pool = ThreadPoolExecutor(1, "drawing")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _decoding() -> Iterator[None]:
    """Go on without the pictures that are left where one cannot be kept: a demo is worth having without them."""
    try:
        yield
    except (MediaError, BusyError, StoreError) as error:
        logger.warning("the demo community has fewer pictures than it might: %r", error)
    finally:
        decoder.stop()


def _featured(posts: Sequence[Item]) -> Iterator[Plan]:
    """The features; those without pictures are brought in at once."""
    for feature in FEATURES:
        own = [one for one in posts if one.sender.username == feature.username and one.visibility == Visibility.PUBLIC]
        if feature.age >= len(own):
            continue
        item = own[feature.age]
        words = {"text": feature.text, "url": feature.url, "warning": feature.warning}
        content: dict[str, Any] = {name: value for name, value in words.items() if value}
        if feature.is_sensitive:
            content["sensitive"] = True
        if not feature.shots:
            item.type, item.title, item.content = feature.type, feature.title, content
        yield Plan(item, content, feature.shots)


def _show(plan: Plan, files: Sequence[io.BytesIO]) -> None:
    """Make an item one of pictures, with the content of its plan. It stays as it is where one cannot be kept."""
    item = plan.item
    rows = [
        upload(owner_id=item.sender_id, file=file, description=shot.words)
        for shot, file in zip(plan.shots, files, strict=True)
    ]
    item.type, item.content = ItemType.IMAGE, plan.content | {"media": [str(row.pk) for row in rows]}
    attaching.use(attachments.claimed(item), item_id=item.pk)


def _face(username: str, seed: int) -> io.BytesIO:
    """The file of an avatar."""
    return _encoded(SIGNS.get(username, face)(seed))


def _file(shot: Shot, seed: int) -> io.BytesIO:
    """The file of a picture."""
    if shot.scene == MOVING:
        frames = animation(*shot.size, seed)
        file = io.BytesIO()
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=110, loop=0)
        return file
    canvas = Canvas(*shot.size, np.random.default_rng(seed))
    PAINTERS[shot.scene](canvas)
    return _encoded(canvas.finished())


def _encoded(image: Image.Image) -> io.BytesIO:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=92)
    return file
