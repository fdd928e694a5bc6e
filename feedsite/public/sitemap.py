"""The sitemap: parts with up to `PART` public posts or users.

A periodic task stores the first post of each part, so nothing scans earlier posts. Parts of users are ranges of ids.

See docs/decisions.md: Own code in place of a library.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Max

from accounts.models import User
from feedsite.public.models import SitemapPart
from items.visibility import public_post
from storage.connections import fetch
from storage.ids import NO_BOUND

PART = 2_000
PARTS_AT_ONCE = 100
"""Maximum parts added per run. After an import, several runs catch up."""
MOST_PARTS, MOST_OF_PEOPLE = 45_000, 5_000
"""Maximum parts of posts and of users. A sitemap index may have 50,000 entries."""

# The first post of the next part: PART posts after the last part's first.
NEXT = f"""
    SELECT i.id FROM items_item i WHERE {public_post("i")} AND i.id >= %(first)s
    ORDER BY i.id OFFSET %(part)s LIMIT 1
"""
POSTS = f"""
    SELECT i.id, i.modified_at, '' FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
    WHERE {public_post("i")} AND i.id >= %(first)s AND i.id < %(end)s AND s.is_active AND s.is_indexable
    ORDER BY i.id LIMIT %(part)s
"""
PEOPLE = """
    SELECT u.id, NULL::timestamptz, u.username FROM accounts_user u
    WHERE u.id >= %(first)s AND u.id < %(end)s AND u.is_active AND u.is_indexable ORDER BY u.id
"""


class SitemapLine(NamedTuple):
    """A line of the sitemap: a post's id and last change, or a user's id and name."""

    id: int
    changed_at: datetime | None
    username: str


def extend() -> int:
    """Add full parts of posts, at most `PARTS_AT_ONCE`. Returns how many."""
    added = 0
    with transaction.atomic():
        parts = SitemapPart.objects.select_for_update().order_by("-first_id")
        last = parts.first() or SitemapPart.objects.get_or_create(first_id=0)[0]
        while added < PARTS_AT_ONCE:
            rows = fetch(NEXT, {"first": last.first_id, "part": PART})
            if not rows:
                break
            last, _created = SitemapPart.objects.get_or_create(first_id=rows[0][0])
            added += 1
    return added


def post_parts() -> list[int]:
    """The first ids of the parts of posts, newest first."""
    found = SitemapPart.objects.order_by("-first_id").values_list("first_id", flat=True)[:MOST_PARTS]
    return list(found) or [0]


def people_parts() -> range:
    """The numbers of parts of users."""
    highest = User.objects.aggregate(highest=Max("pk"))["highest"] or 0
    return range(min(highest // PART + 1, MOST_OF_PEOPLE))


def posts_of(first_id: int) -> Iterator[SitemapLine] | None:
    """The posts of a part. None if no part has this first id."""
    following = (
        SitemapPart.objects.filter(first_id__gt=first_id).order_by("first_id").values_list("first_id", flat=True)
    )
    if first_id and not SitemapPart.objects.filter(pk=first_id).exists():
        return None
    # The growing part may have a few more, until the next part takes them.
    bounds = {"first": first_id, "end": following.first() or NO_BOUND, "part": 2 * PART}
    return iter(fetch(POSTS, bounds, into=SitemapLine._make))


def people_of(number: int) -> Iterator[SitemapLine]:
    """The users of a part."""
    return iter(fetch(PEOPLE, {"first": number * PART, "end": (number + 1) * PART}, into=SitemapLine._make))
