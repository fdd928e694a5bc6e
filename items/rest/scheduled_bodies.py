from collections.abc import Iterable

import msgspec

from accounts.models import RepliableBy, User
from items import scheduling
from items.bodies import Object
from items.models import ScheduledPost
from media.objects import OwnMedium
from web.times import Time


class ScheduledBody(msgspec.Struct):
    """A scheduled post. `failure`: why it was not published, else null. `awaits`: the id of its video that is still
    being converted, else null. `publish_at` null: as soon as that is ready.
    """

    id: str
    publish_at: Time | None
    awaits: str | None
    failure: str | None
    type: str
    title: str
    content: Object
    extra_info: Object
    media: list[OwnMedium]
    visibility: str
    reply_to: str | None
    quote_of: str | None
    quotable_by: str | None
    """Null: as the sender's settings say at the time."""
    repliable_by: str
    created_at: Time


def scheduled_bodies(posts: Iterable[ScheduledPost], sender: User) -> list[ScheduledBody]:
    """Scheduled posts as the API shows them."""
    posts = list(posts)
    media = scheduling.media_of(sender, posts)
    return [_body(post, media[post.pk]) for post in posts]


def _body(post: ScheduledPost, media: list[OwnMedium]) -> ScheduledBody:
    written = post.post
    content, extra_info = (msgspec.Raw(msgspec.json.encode(written[name])) for name in ("content", "extra_info"))
    reply_to, quote_of = (str(written[name]) if written[name] else None for name in ("reply_to", "quote_of"))
    return ScheduledBody(
        id=str(post.pk),
        publish_at=post.publish_at,
        awaits=str(post.awaits) if post.awaits else None,
        failure=post.failure or None,
        type=written["type"],
        title=written["title"],
        content=content,
        extra_info=extra_info,
        media=media,
        visibility=written["visibility"],
        reply_to=reply_to,
        quote_of=quote_of,
        quotable_by=written["quotable_by"],
        repliable_by=written.get("repliable_by") or RepliableBy.EVERYONE,
        created_at=post.created_at,
    )
