# ruff: noqa: RUF001 - Chinese sentences have Chinese commas
"""Pictures of the demo, uploaded from `pictures/`."""

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from accounts.faces import set_face
from accounts.models import User
from items.attachments import attachments
from items.models import Item, ItemType, Visibility
from media import attaching
from media.actions import MediaError, upload
from media.decoder import DecoderBusyError, decoder
from media.files import StoreError
from media.models import Use

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).with_name("pictures")
MOST_POSTS = 18
"""Maximum posts with pictures besides the features. Bounds the time of a demo."""
FACES = {
    "mira": "face-mira",
    "tomas": "face-tomas",
    "lin-wei": "face-lin-wei",
    "oriel": "face-oriel",
    "bastian": "face-bastian",
    "wanda": "face-wanda",
    "harbor-news": "face-harbor-news",
    "weather-desk": "face-weather-desk",
    "su-he": "face-su-he",
}
MORE_FACES = tuple(f"face-{number}" for number in range(1, 9))
"""Faces of the other most active users."""
FACELESS = "site-admin"
BANNERS = {
    "mira": "mill",
    "tomas": "bridge-dawn",
    "lin-wei": "sea-evening",
    "harbor-news": "ferry",
    "weather-desk": "clouds",
}


class PictureFile(NamedTuple):
    """A file in `FOLDER` without suffix, and its description."""

    name: str
    words: str


class Feature(NamedTuple):
    """A fixed post. It replaces the user's post with `age` newer ones."""

    username: str
    age: int
    type: ItemType
    text: str
    shots: tuple[PictureFile, ...] = ()
    title: str = ""
    url: str = ""
    warning: str = ""
    is_sensitive: bool = False


SHOWN: dict[str, tuple[PictureFile, ...]] = {
    "The first ferry was ten minutes late": (PictureFile("ferry", "A ferry with a red funnel in the fog."),),
    "Found a 1962 tram map": (PictureFile("tram-map", "A folded map with seven tram lines that cross a river."),),
    "Three loaves out of the oven": (
        PictureFile("bread", "Three loaves on a floured board. The left one is straight."),
    ),
    "Somebody left a chessboard": (PictureFile("chess", "A chessboard from above, with seventeen pieces left."),),
    "The new footbridge opens": (PictureFile("bridge-dawn", "A bridge of two towers over still water at dawn."),),
    "Counted eleven swifts": (PictureFile("mill", "Swifts around an old windmill, dark before a red sky."),),
    "Rode the coast road": (
        PictureFile("coast", "A road along a green slope, and the sea below."),
        PictureFile("hills", "Hill behind hill in the haze of the morning."),
        PictureFile("sea", "A white sail before the setting sun."),
        PictureFile("clouds", "White clouds over a meadow."),
    ),
    "Learned today that lighthouses": (PictureFile("lighthouse", "A striped lighthouse at night, its light on."),),
    "The market has apricots": (PictureFile("apricots", "A crate full of ripe apricots."),),
    "Half the street came out": (
        PictureFile("moon", "A full moon over dark pines."),
        PictureFile("town", "The lit windows of the town, mirrored in the water."),
    ),
    "They painted the pier": (PictureFile("sea-evening", "A sailing boat on a calm evening."),),
    "The museum has a whole room": (
        PictureFile("doorknob-1", "A round doorknob on a painted door."),
        PictureFile("doorknob-2", "Another doorknob, on another door."),
        PictureFile("doorknob-3", "A third one. They differ more than one thinks."),
    ),
    "A rainbow, a hailstorm": (
        PictureFile("rainbow", "A rainbow over fields and a white house, and a paler one above it."),
    ),
    "Walked home the long way": (
        PictureFile("town", "Roofs and lit windows at dusk."),
        PictureFile("storm", "The same roofs in the rain, a minute later."),
    ),
    "Morning: fog on the water": (PictureFile("ferry", "Fog on the water, and a ferry in it."),),
    "Tonight clear": (PictureFile("moon", "A full moon and many stars."),),
    "Showers from the south-west": (PictureFile("storm", "Rain over the harbour's roofs."),),
    "Dry and mild": (PictureFile("clouds", "Few clouds in a blue sky."),),
    "The bridge will be lifted": (PictureFile("bridge", "The bridge before sunrise, without traffic."),),
    "早班渡轮": (PictureFile("ferry", "雾中的渡轮，红色烟囱。"),),
    "今天的云": (PictureFile("clouds", "草地上方的白云。"), PictureFile("hills", "晨雾里层层的山。")),
    "在旧书店": (PictureFile("tram-map", "一张有七条线路的旧电车地图。"),),
    "雨停了": (PictureFile("rainbow", "田野上的两道彩虹和一座白房子。"),),
    "市场里又有杏子": (PictureFile("apricots", "一箱熟透的杏子。"),),
}
"""Pictures of posts, by the beginning of a post's text."""
FEATURES = (
    Feature(
        "harbor-news",
        0,
        ItemType.IMAGE,
        "The lighthouse museum opens its night tours again. Bring a coat, and somebody to be brave for.",
        (PictureFile("lighthouse-moving", "The light of a lighthouse turns once around at night."),),
    ),
    Feature(
        "tomas",
        0,
        ItemType.IMAGE,
        "Sixty kilometres, four stops, one flat tyre. The bridge was worth all of them.",
        (
            PictureFile("coast", "A road along a green slope above a turquoise sea."),
            PictureFile("bridge", "A red bridge over still water at dawn."),
            PictureFile("mill", "An old windmill before the evening sky."),
            PictureFile("sea", "A sailing boat in front of the setting sun."),
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
        (PictureFile("spider", "A brown garden spider with three pale spots, in the middle of her web."),),
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
            PictureFile("sea", "落日和一只白帆。"),
            PictureFile("town", "对岸亮起的窗，映在水里。"),
            PictureFile("moon", "松林上的满月。"),
        ),
    ),
    Feature(
        "mira",
        3,
        ItemType.IMAGE,
        "The yard behind the bakery after the meeting about the new oven. No one was hurt, the sky was.",
        (
            PictureFile("storm", "Heavy rain over dark roofs."),
            PictureFile("rainbow", "Two rainbows, ten minutes later."),
        ),
        is_sensitive=True,
    ),
)


class PicturePlan(NamedTuple):
    """An item to get pictures, with its new content."""

    item: Item
    content: dict[str, Any]
    shots: Sequence[PictureFile]


def set_faces(users: Sequence[User], items: Sequence[Item]) -> None:
    """Give saved users faces and banners."""
    posts = Counter(item.sender.username for item in items)
    others = [user for user in users if user.username not in FACES and user.username != FACELESS]
    others.sort(key=lambda user: -posts[user.username])
    own = [(user, FACES[user.username]) for user in users if user.username in FACES]
    with _log_failures():
        for user, name in (*own, *zip(others, MORE_FACES, strict=False)):
            with _open_picture(name) as file:
                set_face(user=user, use=Use.AVATAR, file=file)
        for user in users:
            if user.username in BANNERS:
                with _open_picture(BANNERS[user.username]) as file:
                    set_face(user=user, use=Use.BANNER, file=file)


def add_pictures(items: Sequence[Item]) -> None:
    """Add pictures to unsaved items."""
    posts = [item for item in reversed(items) if not (item.repost_of or item.reply_to)]
    with _log_failures():
        plans = list(_feature_plans(posts))
        taken = {plan.item.pk for plan in plans}
        left = dict(SHOWN)
        for item in posts:
            key = next((key for key in left if item.text.startswith(key)), None)
            if key is not None and item.pk not in taken and len(SHOWN) - len(left) < MOST_POSTS:
                plans.append(PicturePlan(item, item.content, left.pop(key)))
        for plan in plans:
            _attach_pictures(plan)


@contextlib.contextmanager
def _log_failures() -> Iterator[None]:
    """Log a failure in a block and skip the rest of it: a demo is useful without pictures."""
    try:
        yield
    except (MediaError, DecoderBusyError, StoreError) as error:
        logger.warning("some demo pictures are missing, because they could not be decoded: %r", error)
    finally:
        decoder.stop()


def _feature_plans(posts: Sequence[Item]) -> Iterator[PicturePlan]:
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
        yield PicturePlan(item, content, feature.shots)


def _attach_pictures(plan: PicturePlan) -> None:
    if not plan.shots:
        return
    item = plan.item
    rows = []
    for shot in plan.shots:
        with _open_picture(shot.name) as file:
            rows.append(upload(owner_id=item.sender_id, file=file, description=shot.words))
    item.type, item.content = ItemType.IMAGE, plan.content | {"media": [str(row.pk) for row in rows]}
    attaching.assign_to_item(attachments.claim_media(item), item_id=item.pk)


def _open_picture(name: str) -> IO[bytes]:
    return (FOLDER / f"{name}.webp").open("rb")
