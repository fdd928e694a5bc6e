"""The operations of Mastodon's API as this site serves them: for each the entity that it answers, and what it takes.

Names in square brackets are lists. Unknown names are passed over, because apps send fields of other servers
(clientapi/params.py). `TABLE` holds every method of every address but the streams.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from accounts.oauth_models import WEBSITE_LENGTH
from clientapi import params
from clientapi.account_api import BIO_LENGTH, NAME_LENGTH
from clientapi.actions import ADDRESS_LENGTH
from clientapi.entities import (
    Account,
    Announcement,
    Attachment,
    Context,
    CredentialAccount,
    Filter,
    FilterKeyword,
    MutedAccount,
    Relationship,
    Status,
    StatusEdit,
    StatusSource,
)
from clientapi.filter_api import CHOICES, LONGEST_SECONDS, FirstFilter
from clientapi.filter_api import TITLE_LENGTH as FILTER_TITLE_LENGTH
from clientapi.list_api import ListBody
from clientapi.misc_api import Suggestion
from clientapi.notices import Notification
from clientapi.notification_api import Marker
from clientapi.oauth_api import PARAMETER_LENGTH, AppBody, NewAppBody
from clientapi.report_api import CATEGORIES, ReportBody
from clientapi.search_api import FAR, KINDS, Found, TagEntity
from clientapi.status_api import WRITTEN_AS
from items.models import PHRASE_LENGTH
from items.query import QUERY_LENGTH
from items.text import MEDIA_AN_ITEM, TEXT_LENGTH, WARNING_LENGTH
from media.models import DESCRIPTION_LENGTH
from moderation.models import REPORT_LENGTH
from relations.api import LONGEST_MUTE_SECONDS
from relations.models import TITLE_LENGTH
from web.rest import NUMBER

Schema = dict[str, Any]
Fields = Mapping[str, Schema]
TEXT_ANSWER = "text"
"""The answer that is no JSON."""


class Operation(NamedTuple):
    """One method of one address."""

    answer: Any
    """The type of the answer."""
    query: Fields = {}
    body: Fields | None = None
    required: tuple[str, ...] = ()
    """Fields of the body that must be there."""
    is_page: bool = False
    """Whether the answer is a page of a list, with a Link."""
    may_miss: bool = False
    """Whether the query or body names what may not be there."""


# --- Kinds of parameters ---------------------------------------------------------------------------------
ID: Schema = {"type": "string", "pattern": f"^{NUMBER.pattern}$"}
FLAG: Schema = {"type": "string", "enum": sorted(params.TRUE | params.FALSE)}
COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": 10**9, "description": "A greater one counts as the most."}
IDS: Schema = {"type": "array", "items": ID}
NAMES: Schema = {"type": "array", "items": {"type": "string"}}
LIMIT: Fields = {"limit": COUNT}
OFFSET_PAGE: Fields = {**LIMIT, "offset": {"type": "integer", "minimum": 0}}
CURSORS: Fields = {"max_id": ID, "since_id": ID, "min_id": ID, **LIMIT}


def text(most: int) -> Schema:
    """A text of a query."""
    return {"type": "string", "maxLength": most}


def choice(among: Any) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": ["", *sorted(among)]}


# The same in a body: a number in JSON is read as its digits, and null is as if absent.
SAID_ID: Schema = {"type": ["string", "integer", "null"], "pattern": f"^({NUMBER.pattern})?$", "minimum": 1}
SAID_IDS: Schema = {
    "anyOf": [{"type": "array", "items": SAID_ID}, {"type": "object", "additionalProperties": SAID_ID}, SAID_ID]
}
SAID_FLAG: Schema = {"enum": [None, True, False, 1, 0, *FLAG["enum"]]}
FILE: Schema = {"type": "string", "format": "binary"}


def said(most: int) -> Schema:
    """A text of a body."""
    return {"type": ["string", "number", "boolean", "null"], "maxLength": most}


def said_choice(among: Any) -> Schema:
    """One of these words, in a body."""
    return {"enum": [None, "", *sorted(among)]}


def said_number(most: int, least: int = 0) -> Schema:
    """A whole number of a body."""
    return {"anyOf": [{"type": "integer", "minimum": least, "maximum": most}, {"enum": [None, ""]}]}


def page(entity: Any, **query: Schema) -> Operation:
    """A page of a list of these."""
    return Operation(list[entity], {**CURSORS, **query}, is_page=True)


STATUS_FIELDS: Fields = {
    "status": said(TEXT_LENGTH),
    "spoiler_text": said(WARNING_LENGTH),
    "sensitive": SAID_FLAG,
    "media_ids": SAID_IDS | {"maxItems": MEDIA_AN_ITEM},
}
NEW_STATUS: Fields = {**STATUS_FIELDS, "visibility": said_choice(WRITTEN_AS), "in_reply_to_id": SAID_ID}
MEDIUM: Fields = {"description": text(DESCRIPTION_LENGTH), "focus": {"type": "string", "maxLength": 50}}
PROFILE: Fields = {
    "display_name": text(NAME_LENGTH),
    "note": text(BIO_LENGTH),
    **dict.fromkeys(("locked", "discoverable", "indexable"), FLAG),
    **dict.fromkeys(("avatar", "header"), FILE),
}
LIST: Fields = {"title": said(TITLE_LENGTH), "exclusive": SAID_FLAG}
KEYWORD: Fields = {"keyword": said(PHRASE_LENGTH), "whole_word": SAID_FLAG}
FIRST_FILTER: Fields = {
    "phrase": said(PHRASE_LENGTH),
    "whole_word": SAID_FLAG,
    "irreversible": SAID_FLAG,
    "expires_in": said_number(LONGEST_SECONDS),
}
FILTER: Fields = {
    "title": said(FILTER_TITLE_LENGTH),
    "filter_action": said_choice(CHOICES),
    "expires_in": said_number(LONGEST_SECONDS),
    "keywords_attributes": {
        "anyOf": [
            {"type": "array", "items": {"type": "object", "properties": KEYWORD}, "maxItems": 1},
            {"type": "object", "additionalProperties": {"type": "object", "properties": KEYWORD}, "maxProperties": 1},
            {"enum": [None, ""]},
        ]
    },
}
REPORT: Fields = {
    "account_id": SAID_ID,
    "status_ids": SAID_IDS,
    "rule_ids": SAID_IDS,
    "category": said_choice(CATEGORIES),
    "comment": said(REPORT_LENGTH),
}
MARK: Schema = {"type": ["object", "null"], "properties": {"last_read_id": SAID_ID}}
APP: Fields = {
    "client_name": said(1_000),
    "redirect_uris": {"type": ["string", "array"], "items": {"type": "string", "maxLength": ADDRESS_LENGTH}},
    "scopes": said(PARAMETER_LENGTH),
    "website": said(WEBSITE_LENGTH),
}
SEARCH: Fields = {"q": text(QUERY_LENGTH * 2), "limit": COUNT}
Empty = dict[str, Any]
Entities = list[dict[str, Any]]

# --- The table -------------------------------------------------------------------------------------------
TABLE: dict[str, Operation] = {
    # Timelines
    "get v1/timelines/home": page(Status),
    "get v1/timelines/public": page(Status, remote=FLAG, local=FLAG, only_media=FLAG),
    "get v1/timelines/tag/<str:tag>": page(
        Status, only_media=FLAG, **{f"{name}[]": NAMES for name in ("any", "all", "none")}
    ),
    "get v1/timelines/list/<str:list_id>": page(Status),
    "get v1/bookmarks": page(Status),
    "get v1/favourites": page(Status),
    # Statuses
    "get v1/statuses": Operation(list[Status], {"id[]": IDS}),
    "post v1/statuses": Operation(Status, body=NEW_STATUS, may_miss=True),
    "get v1/statuses/<str:status_id>": Operation(Status),
    "put v1/statuses/<str:status_id>": Operation(Status, body=STATUS_FIELDS),
    "delete v1/statuses/<str:status_id>": Operation(Status),
    "get v1/statuses/<str:status_id>/context": Operation(Context),
    "get v1/statuses/<str:status_id>/source": Operation(StatusSource),
    "get v1/statuses/<str:status_id>/history": Operation(list[StatusEdit]),
    "get v1/statuses/<str:status_id>/favourited_by": Operation(list[Account]),
    "get v1/statuses/<str:status_id>/reblogged_by": page(Account),
    **{
        f"post v1/statuses/<str:status_id>/{act}": Operation(Status)
        for act in ("favourite", "unfavourite", "unreblog", "bookmark", "unbookmark", "pin", "unpin", "mute", "unmute")
    },
    "post v1/statuses/<str:status_id>/reblog": Operation(Status, body={"visibility": said_choice({"public"})}),
    # Media
    **{
        f"post {at}/media": Operation(Attachment, body={"file": FILE, **MEDIUM}, required=("file",))
        for at in ("v1", "v2")
    },
    "get v1/media/<str:media_id>": Operation(Attachment),
    "put v1/media/<str:media_id>": Operation(Attachment, body=MEDIUM),
    "delete v1/media/<str:media_id>": Operation(Empty),
    # Accounts
    "get v1/accounts": Operation(list[Account], {"id[]": IDS}),
    "get v1/accounts/verify_credentials": Operation(CredentialAccount),
    "patch v1/accounts/update_credentials": Operation(CredentialAccount, body=PROFILE),
    "get v1/accounts/relationships": Operation(list[Relationship], {"id[]": IDS}),
    "get v1/accounts/lookup": Operation(Account, {"acct": text(300)}, may_miss=True),
    "get v1/accounts/search": Operation(list[Account], {**SEARCH, "following": FLAG}),
    "get v1/accounts/familiar_followers": Operation(Entities),
    "get v1/accounts/<str:account_id>": Operation(Account),
    "get v1/accounts/<str:account_id>/statuses": page(
        Status,
        **dict.fromkeys(("pinned", "only_media", "exclude_replies", "exclude_reblogs"), FLAG),
        tagged=text(100),
    ),
    "get v1/accounts/<str:account_id>/followers": page(Account),
    "get v1/accounts/<str:account_id>/following": page(Account),
    "get v1/accounts/<str:account_id>/lists": Operation(list[ListBody]),
    **{
        f"get v1/accounts/<str:account_id>/{name}": Operation(Entities)
        for name in ("featured_tags", "endorsements", "identity_proofs")
    },
    "post v1/accounts/<str:account_id>/follow": Operation(
        Relationship, body={"reblogs": SAID_FLAG, "notify": SAID_FLAG}
    ),
    "post v1/accounts/<str:account_id>/mute": Operation(
        Relationship, body={"duration": said_number(LONGEST_MUTE_SECONDS), "notifications": SAID_FLAG}
    ),
    **{
        f"post v1/accounts/<str:account_id>/{act}": Operation(Relationship)
        for act in ("unfollow", "remove_from_followers", "block", "unblock", "unmute")
    },
    "get v1/blocks": page(Account),
    "get v1/mutes": page(MutedAccount),
    "get v1/follow_requests": page(Account),
    **{f"post v1/follow_requests/<str:account_id>/{act}": Operation(Relationship) for act in ("authorize", "reject")},
    # Notifications and marks
    "get v1/notifications": page(Notification, account_id=ID, **{"types[]": NAMES, "exclude_types[]": NAMES}),
    "get v1/notifications/unread_count": Operation(dict[str, int]),
    "get v1/notifications/<str:notification_id>": Operation(Notification),
    "post v1/notifications/<str:notification_id>/dismiss": Operation(Empty),
    "post v1/notifications/clear": Operation(Empty),
    "get v1/markers": Operation(dict[str, Marker], {"timeline[]": NAMES}),
    "post v1/markers": Operation(dict[str, Marker], body={"home": MARK, "notifications": MARK}),
    # Lists
    "get v1/lists": Operation(list[ListBody]),
    "post v1/lists": Operation(ListBody, body=LIST, required=("title",)),
    "get v1/lists/<str:list_id>": Operation(ListBody),
    "put v1/lists/<str:list_id>": Operation(ListBody, body=LIST),
    "delete v1/lists/<str:list_id>": Operation(Empty),
    "get v1/lists/<str:list_id>/accounts": Operation(
        list[Account], {"max_id": ID, "limit": COUNT | {"minimum": 0, "description": "0: all of them."}}, is_page=True
    ),
    "post v1/lists/<str:list_id>/accounts": Operation(Empty, body={"account_ids": SAID_IDS}),
    "delete v1/lists/<str:list_id>/accounts": Operation(Empty, {"account_ids[]": IDS}),
    # Filters
    "get v1/filters": Operation(list[FirstFilter]),
    "post v1/filters": Operation(FirstFilter, body=FIRST_FILTER, required=("phrase",)),
    "get v1/filters/<str:filter_id>": Operation(FirstFilter),
    "put v1/filters/<str:filter_id>": Operation(FirstFilter, body=FIRST_FILTER),
    "delete v1/filters/<str:filter_id>": Operation(Empty),
    "get v2/filters": Operation(list[Filter]),
    "post v2/filters": Operation(Filter, body=FILTER),
    "get v2/filters/<str:filter_id>": Operation(Filter),
    "put v2/filters/<str:filter_id>": Operation(Filter, body=FILTER),
    "delete v2/filters/<str:filter_id>": Operation(Empty),
    "get v2/filters/<str:filter_id>/keywords": Operation(list[FilterKeyword]),
    "post v2/filters/<str:filter_id>/keywords": Operation(FilterKeyword),
    "get v2/filters/<str:filter_id>/statuses": Operation(Entities),
    "get v2/filters/keywords/<str:filter_id>": Operation(FilterKeyword),
    "put v2/filters/keywords/<str:filter_id>": Operation(FilterKeyword, body=KEYWORD, required=("keyword",)),
    "delete v2/filters/keywords/<str:filter_id>": Operation(Empty),
    # Searches, and what is popular
    "get v2/search": Operation(
        Found,
        {**SEARCH, "type": choice(KINDS), "offset": {"type": "integer", "minimum": 0, "description": f"Up to {FAR}."}},
    ),
    "get v1/tags/<str:tag>": Operation(TagEntity),
    "post v1/tags/<str:tag>/follow": Operation(TagEntity),
    "post v1/tags/<str:tag>/unfollow": Operation(TagEntity),
    "get v1/trends": Operation(list[TagEntity], OFFSET_PAGE),
    "get v1/trends/tags": Operation(list[TagEntity], OFFSET_PAGE),
    "get v1/trends/statuses": Operation(list[Status], OFFSET_PAGE),
    "get v1/suggestions": Operation(list[Account], OFFSET_PAGE),
    "get v2/suggestions": Operation(list[Suggestion], OFFSET_PAGE),
    # Reports, the site, apps
    **{f"post v1/reports{end}": Operation(ReportBody, body=REPORT, may_miss=True) for end in ("", "/")},
    **{f"get {at}/instance{end}": Operation(Empty) for at in ("v1", "v2") for end in ("", "/")},
    "get v1/instance/rules": Operation(Entities),
    "get v1/instance/extended_description": Operation(Empty),
    "get v1/instance/translation_languages": Operation(Empty),
    "get v1/announcements": Operation(list[Announcement]),
    "post v1/announcements/<str:announcement_id>/dismiss": Operation(Empty),
    "get v1/preferences": Operation(Empty),
    "post v1/apps": Operation(NewAppBody, body=APP, required=("client_name", "redirect_uris")),
    "get v1/apps/verify_credentials": Operation(AppBody),
    "get v1/streaming/health": Operation(TEXT_ANSWER),
    # Lists of what the site does not have
    **{f"get v1/instance/{name}": Operation(Entities) for name in ("peers", "activity", "domain_blocks")},
    **{
        f"get v1/{name}": Operation(Entities)
        for name in (
            *("trends/links", "custom_emojis", "directory", "conversations", "conversations/"),
            *("domain_blocks", "endorsements", "featured_tags", "featured_tags/suggestions", "followed_tags"),
            "scheduled_statuses",
        )
    },
}
