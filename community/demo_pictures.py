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
from media.models import MediaFile, Use

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).with_name("pictures")
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
THINGS = ("apricots", "chess", "moon", "hills", "doorknob-2", "coast", "rainbow")
"""Pictures that the next ones chose instead of a face."""
FACELESS = "site-admin"
BANNERS = {
    "mira": "mill",
    "tomas": "bridge-dawn",
    "lin-wei": "sea-evening",
    "harbor-news": "ferry",
    "weather-desk": "clouds",
}
FOCUS = {"moon": (0.0, 0.5), "lighthouse": (0.0, 0.5), "sea": (0.6, 0.0), "hills": (0.0, -0.15)}
"""What to show of pictures that are cropped, where it is not the middle."""


class PictureFile(NamedTuple):
    """A file in `FOLDER` without suffix, and its description."""

    name: str
    words: str


class Feature(NamedTuple):
    """A fixed post. It replaces one of the user's, with `age` newer ones or a few more."""

    username: str
    age: int
    type: ItemType
    text: str
    shots: tuple[PictureFile, ...] = ()
    title: str = ""
    url: str = ""
    warning: str = ""
    is_sensitive: bool = False
    replies: tuple[str, ...] = ()


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
"""Pictures of posts, by the beginning of a post's text. None is shown twice."""
FEATURES = (
    Feature(
        "harbor-news",
        0,
        ItemType.IMAGE,
        "The lighthouse museum opens its night tours again. Bring a coat, and somebody to be brave for.",
        (PictureFile("lighthouse-moving", "The light of a lighthouse turns once around at night."),),
        replies=(
            "I volunteer to be brave.",
            "Is the keeper still telling the story with the goat?",
            "Thursday, both of us, with a flask.",
        ),
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
        replies=(
            "The second picture, please, in large, for my kitchen.",
            "Which stop had the cake?",
            "A flat tyre is only a bridge to a rest.",
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
        replies=(
            "Read this at four in the morning. There is flour everywhere. Thank you.",
            "It sings! Mine sang! I called the whole house.",
            "How much does 'flour more than you dare' weigh?",
            "The first ferry confirms: we are glad of the first slice.",
        ),
    ),
    Feature(
        "mira",
        1,
        ItemType.IMAGE,
        "She has moved in above the kitchen window, and I have decided to be brave about it.",
        (PictureFile("spider", "A brown garden spider with three pale spots, in the middle of her web."),),
        warning="A spider, large",
        is_sensitive=True,
        replies=(
            "Does she have a name yet?",
            "Braver than me.",
        ),
    ),
    Feature(
        "tomas",
        2,
        ItemType.LINK,
        "Every footbridge of the coast, with the best time to cross it. I have feelings about number twelve.",
        url="https://example.org/bridges/on-foot",
        replies=(
            "Number twelve creaks in C major.",
            "You have feelings about all of them.",
        ),
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
        replies=(
            "第二张好像画。",
            "原来你在对岸，我们也在看。",
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
        replies=(
            "Two rainbows for one oven. I call that a yes.",
            "So, do we get the oven?",
        ),
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
    with log_failures():
        for user, name in (*own, *zip(others, MORE_FACES + THINGS, strict=False)):
            with _open_picture(name) as file:
                set_face(user=user, use=Use.AVATAR, file=file)
        for user in users:
            if user.username in BANNERS:
                with _open_picture(BANNERS[user.username]) as file:
                    set_face(user=user, use=Use.BANNER, file=file)


def add_pictures(items: Sequence[Item]) -> None:
    """Add pictures to unsaved items."""
    posts = [item for item in reversed(items) if not (item.repost_of or item.reply_to)]
    with log_failures():
        plans = list(_feature_plans(items[::-1]))
        taken = {plan.item.pk for plan in plans}
        shown: set[str] = set()
        for item in posts:
            key = next((key for key in SHOWN if item.text.startswith(key)), "")
            names = {shot.name for shot in SHOWN.get(key, ())}
            if names and not names & shown and item.pk not in taken:
                shown |= names
                plans.append(PicturePlan(item, item.content, SHOWN[key]))
        for plan in plans:
            _attach_pictures(plan)


@contextlib.contextmanager
def log_failures() -> Iterator[None]:
    """Log a failure in a block and skip the rest of it: a demo is useful without pictures."""
    try:
        yield
    except (MediaError, DecoderBusyError, StoreError) as error:
        logger.warning("some demo pictures are missing, because they could not be decoded: %r", error)
    finally:
        decoder.stop()


def _feature_plans(items: Sequence[Item]) -> Iterator[PicturePlan]:
    """Replace the most answered of three posts by each feature. `items`: newest first."""
    answers = Counter(item.root.pk for item in items if item.root)
    posts = [one for one in items if one.visibility == Visibility.PUBLIC and not (one.repost_of or one.reply_to)]
    for feature in FEATURES:
        own = [one for one in posts if one.sender.username == feature.username][feature.age :][:3]
        if not own:
            continue
        item = max(own, key=lambda one: answers[one.pk])
        posts.remove(item)
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
    rows = [upload_picture(item.sender_id, shot) for shot in plan.shots]
    item.type, item.content = ItemType.IMAGE, plan.content | {"media": [str(row.pk) for row in rows]}
    attaching.assign_to_item(attachments.claim_media(item), item_id=item.pk)


def upload_picture(owner_id: int, shot: PictureFile) -> MediaFile:
    """Upload a picture, for an item or a session."""
    with _open_picture(shot.name) as file:
        focus = FOCUS.get(shot.name, (0.0, 0.0))
        return upload(owner_id=owner_id, file=file, description=shot.words, focus=focus)


def _open_picture(name: str) -> IO[bytes]:
    return (FOLDER / f"{name}.webp").open("rb")
