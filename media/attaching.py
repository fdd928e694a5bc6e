"""Attaches media to items and live sessions, and withdraws them, in the caller's transaction."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from media.actions import PICTURES_AN_ITEM, UnusableMediaError, delete_media, rename, unusable_video
from media.models import NEVER, MediaFile, MediaKind, MediaState, Use
from storage.connections import fetch, id_array

USE = """
    UPDATE media_mediafile m SET use = 'item', item_id = %(item)s, position = asked.place, key = '',
        withdrawn_at = NULL, is_private = %(private)s
    FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS asked (id, place) WHERE m.id = asked.id RETURNING m.id
"""


PLACE = """
    UPDATE media_mediafile m SET position = asked.place
    FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS asked (id, place)
    WHERE m.id = asked.id AND m.item_id = %(item)s RETURNING m.id
"""


AGAIN = timedelta(days=1)
"""How long the author may post the media of a deleted post again."""


def usable(owner_id: int) -> QuerySet[MediaFile]:
    """The owner's media that a new post can use: unused ones, and those of posts just deleted to write them again."""
    again = Q(use=Use.AGAIN, withdrawn_at__gt=Now() - AGAIN, hidden_at=None)
    return MediaFile.objects.filter(Q(use=Use.NONE, withdrawn_at=None) | again, owner_id=owner_id)


def unused_media(*, owner_id: int, ids: Iterable[int]) -> QuerySet[MediaFile]:
    """The owner's usable media among these ids."""
    return usable(owner_id).filter(pk__in=list(ids))


class UnfinishedMediaError(UnusableMediaError):
    """A video is still being converted."""


def claim(*, owner_id: int, ids: Sequence[int], takes_unfinished: bool = False) -> list[MediaFile]:
    """The owner's unused media in order, locked. Raises UnusableMediaError, UnfinishedMediaError."""
    found = {row.pk: row for row in unused_media(owner_id=owner_id, ids=ids).select_for_update().order_by("pk")}
    if len(found) < len(set(ids)) or len(set(ids)) < len(ids):
        raise UnusableMediaError(_("One of these pictures is gone, already used, or not yours. Add it again."))
    for row in found.values():
        if row.state == MediaState.FAILED:
            raise unusable_video(row.failure)
        if row.state == MediaState.PROCESSING and not takes_unfinished:
            raise UnfinishedMediaError(_("This video is still being converted. Try again in a moment."))
    return [found[number] for number in ids]


def reserve(rows: Sequence[MediaFile], *, is_private: bool) -> None:
    """Keep claimed media for a scheduled post."""
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).update(
        use=Use.LATER, item_id=None, withdrawn_at=None, is_private=is_private
    )


def release(*, owner_id: int, ids: Sequence[int]) -> None:
    """Let media of a scheduled post be claimed, or swept."""
    MediaFile.objects.filter(pk__in=ids, owner_id=owner_id, use=Use.LATER).update(use=Use.NONE, is_private=False)


def reserved(*, owner_id: int, ids: Iterable[int]) -> dict[int, MediaFile]:
    """The owner's media of scheduled posts among these, by id."""
    return MediaFile.objects.filter(owner_id=owner_id, use=Use.LATER, withdrawn_at=None).in_bulk(list(ids))


def check_combination(kinds: Sequence[str]) -> None:
    """Raise UnusableMediaError unless it is one video, or up to `PICTURES_AN_ITEM` pictures."""
    videos = sum(kind == MediaKind.VIDEO for kind in kinds)
    if videos and len(kinds) > 1:
        raise UnusableMediaError(_("A post can have pictures or one video, not both."))
    if len(kinds) > PICTURES_AN_ITEM:
        words = ngettext(
            "A post can have up to %(count)d picture. Remove some.",
            "A post can have up to %(count)d pictures. Remove some.",
            PICTURES_AN_ITEM,
        )
        raise UnusableMediaError(words % {"count": PICTURES_AN_ITEM})


def assign_to_item(rows: Sequence[MediaFile], *, item_id: int, is_private: bool = False) -> None:
    """Assign claimed media to the item. `is_private`: not for staff."""
    fetch(USE, {"item": item_id, "ids": id_array(row.pk for row in rows), "private": is_private})


def show_to_staff(item_id: int) -> None:
    """Let staff see the media of a reported private mention."""
    MediaFile.objects.filter(item_id=item_id).update(is_private=False)


def set_order(ids: Sequence[int], *, item_id: int) -> None:
    """Set the order of an item's media."""
    fetch(PLACE, {"item": item_id, "ids": id_array(ids)})


def lock_media_of_item(item_id: int, *, withdrawn: bool = False) -> list[MediaFile]:
    """The item's media, locked, without hidden ones. `withdrawn`: only the withdrawn ones, else only the others."""
    rows = MediaFile.objects.select_for_update().filter(item_id=item_id, withdrawn_at__isnull=not withdrawn)
    return list(rows.filter(hidden_at=None).order_by("position", "pk"))


def media_by_item(item_ids: Iterable[int | None]) -> dict[int, list[MediaFile]]:
    """All media in any state, in order, by item id."""
    found: dict[int, list[MediaFile]] = {}
    ids = {number for number in item_ids if number}
    for row in MediaFile.objects.filter(item_id__in=ids).order_by("item_id", "position", "pk") if ids else ():
        found.setdefault(row.item_id or 0, []).append(row)
    return found


def rename_media_of_items(item_ids: Iterable[int]) -> dict[int, list[MediaFile]]:
    """Rename the files of items, without withdrawn and hidden ones. Returns them in order by item id."""
    shown = MediaFile.objects.select_for_update().filter(item_id__in=list(item_ids), withdrawn_at=None, hidden_at=None)
    rows = list(shown.order_by("item_id", "position", "pk"))
    rename(rows)
    found: dict[int, list[MediaFile]] = {}
    for row in rows:
        found.setdefault(row.item_id or 0, []).append(row)
    return found


def withdraw_media(item_id: int, *, for_good: bool = False) -> list[MediaFile]:
    """Rename an item's files. `for_good`: also withdraw all its media."""
    rows = lock_media_of_item(item_id)
    rename(rows)
    if for_good:
        MediaFile.objects.filter(item_id=item_id).update(withdrawn_at=Now())
    return rows


def offer_again(item_id: int) -> list[MediaFile]:
    """Let the author use a deleted item's media in a new post. Those that moderators hid stay out."""
    rows = lock_media_of_item(item_id, withdrawn=True)
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).update(use=Use.AGAIN)
    return rows


def restore_media(item_id: int) -> list[MediaFile]:
    """Show an item's withdrawn media again, but not hidden ones."""
    rows = lock_media_of_item(item_id, withdrawn=True)
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).update(use=Use.ITEM, withdrawn_at=None)
    MediaFile.objects.filter(item_id=item_id, hidden_at__isnull=False).update(withdrawn_at=NEVER)
    return lock_media_of_item(item_id)


def hide(item_id: int, ids: Sequence[int] | None) -> list[MediaFile]:
    """Hide media (None: all) from everyone, even the owner, under secret names. Returns newly hidden ones."""
    rows = [row for row in lock_media_of_item(item_id) if ids is None or row.pk in ids]
    rename(rows)
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).update(hidden_at=Now(), withdrawn_at=NEVER)
    return rows


def unhide(item_id: int, ids: Sequence[int] | None) -> list[MediaFile]:
    """Show hidden media (None: all) again, and return them."""
    hidden = MediaFile.objects.select_for_update().filter(item_id=item_id, hidden_at__isnull=False)
    rows = [row for row in hidden.order_by("pk") if ids is None or row.pk in ids]
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).update(hidden_at=None, withdrawn_at=None)
    return rows


def lock_cover(medium_id: int) -> MediaFile | None:
    """The live session's cover, locked."""
    rows = MediaFile.objects.select_for_update().filter(pk=medium_id, use=Use.COVER, withdrawn_at=None)
    return rows.first()


def use_as_cover(row: MediaFile, *, session_id: int) -> None:
    """Assign a claimed picture to the session."""
    row.use, row.session_id, row.key = Use.COVER, session_id, ""
    row.save(update_fields=["use", "session_id", "key"])


def renamed_cover(medium_id: int) -> MediaFile | None:
    """Rename a cover's files."""
    row = lock_cover(medium_id)
    if row is not None:
        rename([row])
    return row


def retire_cover(medium_id: int) -> None:
    """Withdraw an unused cover. Staff see it until the sweep."""
    row = renamed_cover(medium_id)
    if row is not None:
        MediaFile.objects.filter(pk=row.pk).update(withdrawn_at=Now())


def covers_of(session_ids: Iterable[int | None]) -> dict[int, list[MediaFile]]:
    """Present and former covers by session id."""
    found: dict[int, list[MediaFile]] = {}
    ids = {number for number in session_ids if number}
    for row in MediaFile.objects.filter(session_id__in=ids).order_by("session_id", "-pk") if ids else ():
        found.setdefault(row.session_id or 0, []).append(row)
    return found


def forget_items(item_ids: Sequence[int]) -> None:
    """Delete the media of these items."""
    delete_media(list(MediaFile.objects.select_for_update().filter(item_id__in=item_ids).order_by("pk")))
