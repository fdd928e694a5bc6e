"""What a push message says: the fields of Mastodon's, which apps know, and `url` for the site's own pages."""

from typing import Any

import msgspec
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.about.logo import icon_url
from accounts.about.site import current
from accounts.cards import UserCard
from accounts.signing_in.sealing import SealError, unseal
from items.bodies import ItemBody
from items.models import Visibility
from notifications.models import Kind, PushSubscription, PushWords
from notifications.sentences import act_sentence

TYPES = {
    Kind.REPLY: "mention",
    Kind.MENTION: "mention",
    Kind.QUOTE: "quote",
    Kind.POLL: "poll",
    Kind.FOLLOW: "follow",
    Kind.FOLLOW_REQUEST: "follow_request",
    Kind.POST: "status",
}
"""The kinds that Mastodon has too, and what they are called there."""
BODY_LENGTH = 200
MOST_BYTES = 3_072
"""Largest message. A push service takes 4,096 bytes, with all that encryption adds."""


class MessageFacts(msgspec.Struct):
    """What a message tells."""

    act_id: int
    kind: str
    actor: UserCard
    item: ItemBody | None = None
    session_id: int | None = None
    title: str = ""
    """The title of a live session."""


def message(told: MessageFacts, subscription: PushSubscription, *, others: int = 0, is_capped: bool = False) -> bytes:
    """The JSON of a message of an act and a number of `others`, or more if `is_capped`. At most `MOST_BYTES`."""
    with translation.override(subscription.language or settings.LANGUAGE_CODE):
        fields = {
            "notification_id": told.act_id,
            "notification_type": TYPES.get(Kind(told.kind), told.kind),
            "icon": _absolute_url(_icon(told.actor)),
            "title": act_sentence(told.kind, told.item, told.actor.name),
            "body": _with_others(_body(told, subscription.words), others, is_capped=is_capped),
            "url": _page_path(told),
        }
        return _encode_message(fields, subscription)


def trial_message(subscription: PushSubscription) -> bytes:
    """The JSON of a trial message."""
    with translation.override(subscription.language or settings.LANGUAGE_CODE):
        fields = {
            "notification_id": 0,
            "notification_type": "mention",
            "icon": _absolute_url(_icon()),
            "title": current().name,
            "body": _("Push notifications work on this device."),
            "url": "/settings/notifications/push",
        }
        return _encode_message(fields, subscription)


def _encode_message(fields: dict[str, Any], subscription: PushSubscription) -> bytes:
    try:
        token = unseal(subscription.app_token)
    except SealError:  # of a secret key before the last
        token = ""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return msgspec.json.encode({"access_token": token, "preferred_locale": language, **fields})


def _body(told: MessageFacts, words: str) -> str:
    if told.kind == Kind.LIVE:
        return told.title
    if told.item is None or words == PushWords.NONE:
        return ""
    if told.item.visibility == Visibility.MENTIONED and words != PushWords.ALL:
        return ""
    return told.item.words


def _with_others(text: str, others: int, *, is_capped: bool) -> str:
    if not others:
        return _truncate(text, BODY_LENGTH)
    count = f"{others}+" if is_capped else str(others)
    more = ngettext("and %(count)s more", "and %(count)s more", others) % {"count": count}
    return f"{_truncate(text, BODY_LENGTH - len(more) - 1)}\n{more}".lstrip()


def _truncate(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _page_path(told: MessageFacts) -> str:
    if told.kind == Kind.LIVE:
        return f"/live/{told.session_id}"
    return f"/items/{told.item.id}" if told.item else "/notifications"


def _icon(actor: UserCard | None = None) -> str:
    """The address of the actor's avatar, or of the site's icon without an actor."""
    return actor.avatar_url if actor is not None else icon_url(current().logo, "icon-192")


def _absolute_url(address: str) -> str:
    return f"{settings.SITE_URL}{address}" if address.startswith("/") else address
